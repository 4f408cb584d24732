"""Counts by table: what a job keeps for ever, so names are short and tables a bounded number."""

from __future__ import annotations

from hashlib import blake2b

import msgspec

from headgate.core.event import Event, qualified

MOST_NAME = 256
"""The longest name that is kept whole, in characters; databases allow at most three times 128."""
MOST_TABLES = 5_000
OTHERS = "(other tables)"
"""Under this name the tables are counted that come when so many are known already."""


def short_name(name: str) -> str:
    """A name that is kept: a long one is cut, and a hash distinguishes it from similar ones.

    >>> short_name("shop.orders"), len(short_name("x" * 100_000))
    ('shop.orders', 256)
    """
    if len(name) <= MOST_NAME:
        return name
    digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return f"{name[: MOST_NAME - 1 - len(digest)]}~{digest}"


def table_name(event: Event) -> str:
    """`database.table` or `database.schema.table` of an event, as far as it has them."""
    return full_name(event.database, qualified(event.schema, event.table))


def full_name(database: str | None, table: str | None) -> str:
    """`database.table`, as far as they are known."""
    if database is None or table is None:
        return database or table or ""
    return f"{database}.{table}"


def add_table(to: dict[str, dict[str, int]], table: str, counts: dict[str, int]) -> None:
    """Add a table's counts to those of all tables.

    >>> counts = {}
    >>> add_table(counts, "shop.orders", {"insert": 1})
    >>> counts
    {'shop.orders': {'insert': 1}}
    """
    name = short_name(table)
    if name not in to and len(to) >= MOST_TABLES:
        name = OTHERS
    add_counts(to.setdefault(name, {}), counts)


def add_counts(to: dict[str, int], more: dict[str, int]) -> None:
    """Add counts to counts."""
    for name, n in more.items():
        to[name] = to.get(name, 0) + n


class Counts(msgspec.Struct):
    """What became of messages and their events."""

    messages: int = 0
    events: int = 0
    watermarks: int = 0
    repeated: int = 0
    late: int = 0
    """Changes that came behind the watermark."""
    filtered: int = 0
    """Events that the job's selection leaves out."""
    rows: dict[str, dict[str, int]] = {}
    """Changes that were written, by table and operation."""
    rejected: dict[str, dict[str, int]] = {}
    """Dead letters, by table and code."""
    rejected_events: int = 0
    """Events of the dead letters, as far as they were not counted before."""
    losses: dict[str, int] = {}
    merged: dict[str, dict[str, int]] = {}
    """What merges did to landed tables: rows upserted and deleted, and changes ignored."""

    def add(self, other: Counts) -> None:
        """Add the counts of a partition.

        >>> total = Counts(events=1, rows={"d.t": {"insert": 1}})
        >>> total.add(Counts(events=2, rows={"d.t": {"insert": 1, "delete": 1}}))
        >>> total.events, total.rows
        (3, {'d.t': {'insert': 2, 'delete': 1}})
        """
        self.messages += other.messages
        self.events += other.events
        self.watermarks += other.watermarks
        self.repeated += other.repeated
        self.late += other.late
        self.filtered += other.filtered
        self.rejected_events += other.rejected_events
        for total, added in (
            (self.rows, other.rows),
            (self.rejected, other.rejected),
            (self.merged, other.merged),
        ):
            for table, counts in added.items():
                add_table(total, table, counts)
        add_counts(self.losses, other.losses)

    @property
    def accounted(self) -> dict[str, int]:
        """What became of events: each is in one of these."""
        return {
            "written": sum(n for counts in self.rows.values() for n in counts.values()),
            "repeated": self.repeated,
            "filtered": self.filtered,
            "rejected": self.rejected_events,
            "watermarks": self.watermarks,
        }

    @property
    def dead_letters(self) -> int:
        """How many messages became dead letters."""
        return sum(n for counts in self.rejected.values() for n in counts.values())
