"""Changes of many tables, as TiCDC writes them: what the benchmark of landing lands.

Independent of Headgate: nothing here imports it. Every table has the columns of `shop.orders`. Its
rows are inserted first; of the changes after that four in five are updates, of rows chosen by
Zipf's law (the k-th row as often as 1/k), and the others inserts and, half as many, deletes. What
a row holds follows from its key and from how often it was changed, so a dictionary of those numbers
is the whole state.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import islice

from messages import FIRST_SECOND, SEED, TICDC_TYPES, notes

Message = tuple[int, bytes]
"""A partition, and a message for it."""
State = dict[str, dict[int, str]]
"""The amount of every row by table and key."""
DATABASE = "shop"
COLUMNS = (
    "id BIGINT PRIMARY KEY, customer_id INT, status VARCHAR(16), amount DECIMAL(12,2), "
    "note VARCHAR(512), created_at DATETIME, weight DOUBLE"
)
STATUSES = ("new", "paid", "packed", "sent", "cancelled")
UPDATES, INSERTS = 0.8, 0.8 + 0.2 * 2 / 3
PARTITIONS = 2
NOTE = 40
TIMES = [f"2024-03-{d:02} {h:02}:{d + h:02}:07" for d in range(1, 29) for h in range(24)]


def amount(key: int, version: int) -> str:
    """The amount of a row; no two versions that follow each other have the same.

    >>> amount(1, 0), amount(1, 1)
    ('79.19', '110.46')
    """
    cents = (key * 7_919 + version * 3_127) % 10_000_000
    return f"{cents // 100}.{cents % 100:02}"


class Changes:
    """The tables of a source, and the changes that they go through."""

    def __init__(self, tables: int, rows: int) -> None:
        self.rng = random.Random(SEED)
        self.names = [f"orders_{number}" for number in range(tables)]
        self.versions: list[dict[int, int]] = [{} for _ in range(tables)]
        self.keys: list[list[int]] = [[] for _ in range(tables)]
        """The most frequently changed first."""
        self.rows, self.next_key, self.commits = rows, 1, 0
        self.notes = notes(NOTE)
        orders = [self.rng.sample(TICDC_TYPES, len(TICDC_TYPES)) for _ in range(64)]
        self.types = [",".join(order) for order in orders]
        """A map of Go, whose order differs by the message."""

    def schema(self) -> str:
        """The tables as DDL: TiCDC does not tell the digits of a DECIMAL."""
        return "".join(f"CREATE TABLE {DATABASE}.{name} ({COLUMNS});\n" for name in self.names)

    def state(self) -> State:
        """What the tables hold now."""
        return {
            name: {key: amount(key, version) for key, version in versions.items()}
            for name, versions in zip(self.names, self.versions)
        }

    def load(self) -> Iterator[Message]:
        """The rows that are there in the beginning."""
        for table, keys in enumerate(self.keys):
            for _ in range(self.rows):
                yield self.insert(table)
            self.rng.shuffle(keys)

    def batch(self, count: int) -> Iterator[Message]:
        """So many changes."""
        return islice(self.endless(), count)

    def endless(self) -> Iterator[Message]:
        chance, tables = self.rng.random, len(self.names)
        while True:
            table, kind = int(chance() * tables), chance()
            keys, versions = self.keys[table], self.versions[table]
            if kind < UPDATES:
                key = keys[int(len(keys) ** chance()) - 1]
                version = versions[key]
                versions[key] = version + 1
                old, new = self.row(key, version), self.row(key, version + 1)
                yield self.message(table, key, "UPDATE", f"[{old}]", new)
            elif kind < INSERTS or len(keys) < 2:
                yield self.insert(table)
            else:
                at = int(chance() * len(keys))
                keys[at], keys[-1] = keys[-1], keys[at]
                key = keys.pop()
                row = self.row(key, versions.pop(key))
                yield self.message(table, key, "DELETE", "null", row)

    def insert(self, table: int) -> Message:
        key = self.next_key
        self.next_key += 1
        self.keys[table].append(key)
        self.versions[table][key] = 0
        return self.message(table, key, "INSERT", "null", self.row(key, 0))

    def row(self, key: int, version: int) -> str:
        return (
            f'{{"id":"{key}","customer_id":"{key * 31 % 1_000_003}",'
            f'"status":"{STATUSES[min(version, 3)]}","amount":"{amount(key, version)}",'
            f'"note":{self.notes[key % 1024]},"created_at":"{TIMES[key % len(TIMES)]}",'
            f'"weight":"{key % 40_000 / 1000}"}}'
        )

    def message(self, table: int, key: int, kind: str, old: str, row: str) -> Message:
        self.commits += 1
        at = FIRST_SECOND * 1000 + self.commits
        text = (
            f'{{"id":0,"database":"{DATABASE}","table":"{self.names[table]}","pkNames":["id"],'
            f'"isDdl":false,"type":"{kind}","es":{at},"ts":{at + 417},"sql":"","sqlType":{{'
            '"id":-5,"customer_id":4,"status":12,"amount":3,"note":12,"created_at":93,"weight":8},'
            f'"mysqlType":{{{self.types[self.commits % 64]}}},"old":{old},"data":[{row}],'
            f'"_tidb":{{"commitTs":{at << 18}}}}}'
        )
        spread = table if len(self.names) > 1 else key
        return spread % PARTITIONS, text.encode()
