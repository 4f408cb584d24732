"""A database in use: tables of many types, and sessions that change them at random."""

from __future__ import annotations

import random
import threading
import time
from base64 import b64decode
from collections.abc import Sequence
from typing import Any

import pymysql
from mysql_values import KINDS, POINT, ColumnKind, packed
from pymysql.converters import escape_string

DATABASE = "capture"
ORDERS = """id BIGINT PRIMARY KEY AUTO_INCREMENT, customer INT UNSIGNED, total DECIMAL(20,4),
    state ENUM('new','paid','it''s gone'), tags SET('a','b','c'), note VARCHAR(60) CHARACTER SET latin1,
    data VARBINARY(30), fl FLOAT, db DOUBLE, bits BIT(12), day DATE, at TIMESTAMP(6) NULL,
    span TIME(3), year YEAR, doc JSON"""  # noqa: E501
TABLES = (
    f"CREATE TABLE orders ({ORDERS})",
    "CREATE TABLE items (orders VARCHAR(20), number INT, what TEXT, PRIMARY KEY (orders, number))",
    "CREATE TABLE journal (what VARCHAR(20), amount INT)",
    "CREATE TABLE nothing (id INT PRIMARY KEY)",
)
TYPES = (
    *KINDS,
    ColumnKind("int(8) unsigned zerofill", ("00000000", "00000042", "12345678")),
    ColumnKind("decimal(10,2) unsigned zerofill", ("00000001.10", "99999999.99")),
    ColumnKind("geometry", packed(POINT)),
)
"""Every type, each a column of the table `types`."""
BYTES, NUMBERS = (
    ("binary", "blob", "point", "geometry"),
    ("int", "bit", "decimal", "float", "double"),
)
LATER = "CREATE TABLE later (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(20))"
LARGE = 20_000
"""Rows of the large transaction."""


class Workload:
    """Changes by several sessions, while it is entered."""

    def __init__(
        self, server: Any, seed: int, writers: int = 2, types: Sequence[ColumnKind] = TYPES
    ) -> None:
        self.server, self.seed = server, seed
        self.types = [(f"c{n}", kind) for n, kind in enumerate(types)]
        self.stopped = threading.Event()
        self.failures: list[BaseException] = []
        self.changes = 0
        self.threads = [
            threading.Thread(target=self._write, args=(seed + n,), daemon=True)
            for n in range(writers)
        ]

    def connect(self) -> pymysql.Connection:
        return pymysql.connect(
            host="127.0.0.1", port=self.server.port, user=self.server.user,
            password=self.server.password, database=DATABASE, charset="utf8mb4",
            init_command="SET time_zone = '+00:00'",
        )  # fmt: skip

    def create(self) -> None:
        """The tables, with rows."""
        chance = random.Random(self.seed)
        columns = [f"{name} {kind.type} NULL" for name, kind in self.types]
        self.server.run(
            f"DROP DATABASE IF EXISTS {DATABASE}",
            f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4", f"USE {DATABASE}", *TABLES,
            f"CREATE TABLE types (id INT PRIMARY KEY AUTO_INCREMENT, {', '.join(columns)})",
        )  # fmt: skip
        with self.connect() as sql, sql.cursor() as cursor:
            for _ in range(1500):
                cursor.execute(insert_order(chance))
            for _ in range(200):
                cursor.execute(self.insert_types(chance))
            for n in range(400):
                cursor.execute(f"INSERT INTO items VALUES ('o{n // 3}', {n}, 'é{n}')")
                cursor.execute(f"INSERT INTO journal VALUES ('j{n % 7}', {n % 3})")
            sql.commit()

    def __enter__(self) -> Workload:
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped.set()
        for thread in self.threads:
            thread.join()
        if self.failures:
            raise self.failures[0]

    def alter(self, number: int) -> None:
        """DDL in the middle, and a large transaction."""
        sql = self.connect()
        with sql, sql.cursor() as cursor:
            cursor.execute("SET lock_wait_timeout = 60")
            if number == 0:
                cursor.execute(
                    "ALTER TABLE orders ADD extra VARCHAR(10) DEFAULT 'none' AFTER total"
                )
                cursor.execute(LATER)
                cursor.execute("INSERT INTO later (v) VALUES ('a'), ('b')")
            elif number == 1:
                cursor.execute("ALTER TABLE items MODIFY what MEDIUMTEXT, ADD more BIGINT")
                values = ", ".join(f"('large', {n}, 'x', {n})" for n in range(LARGE))
                cursor.execute(f"INSERT INTO items VALUES {values}")
            else:
                cursor.execute("FLUSH LOGS")
            sql.commit()

    def statement(self, chance: random.Random) -> str:
        """A change of one table or another."""
        return chance.choice([*changes_of_orders(chance), *self.changes_of_types(chance)])

    def insert_types(self, chance: random.Random) -> str:
        names, values = zip(*self.some_values(chance, len(self.types)))
        return f"INSERT INTO types ({', '.join(names)}) VALUES ({', '.join(values)})"

    def changes_of_types(self, chance: random.Random) -> list[str]:
        row = chance.randrange(1, 400)
        new = ", ".join(f"{name} = {value}" for name, value in self.some_values(chance, 5))
        return [
            self.insert_types(chance),
            f"UPDATE types SET {new} WHERE id = {row}",
            f"UPDATE types SET {new} WHERE id BETWEEN {row} AND {row + 3}",
            f"DELETE FROM types WHERE id = {row}",
            f"UPDATE IGNORE types SET id = {row + 100_000} WHERE id = {row}",
        ]

    def some_values(self, chance: random.Random, count: int) -> list[tuple[str, str]]:
        """Columns of the table `types`, each with a literal."""
        chosen = chance.sample(self.types, min(count, len(self.types)))
        return [(name, literal(kind, chance.choice((*kind.values, None)))) for name, kind in chosen]

    def _write(self, seed: int) -> None:
        chance = random.Random(seed)
        while not self.stopped.is_set():
            try:
                sql = self.connect()
                with sql, sql.cursor() as cursor:
                    while not self.stopped.is_set():
                        for _ in range(chance.randrange(1, 6)):
                            cursor.execute(self.statement(chance))
                            self.changes += cursor.rowcount
                        sql.rollback() if chance.random() < 0.1 else sql.commit()
                        time.sleep(0.002)
            except pymysql.err.MySQLError as error:  # a server that is started again, a deadlock
                if error.args and error.args[0] in (1064, 1054):
                    self.failures.append(error)
                    return
                time.sleep(0.2)


def insert_order(chance: random.Random) -> str:
    values = [
        str(chance.randrange(2**32)), f"{chance.randrange(10**16)}.{chance.randrange(10**4):04d}",
        chance.choice(["'new'", "'it''s gone'", "NULL"]), chance.choice(["'a,c'", "''", "NULL"]),
        chance.choice(["'naïve'", "''", "NULL"]), f"x'{chance.randbytes(5).hex()}00'",
        repr(chance.uniform(-9, 9)), repr(chance.uniform(-1e9, 1e9)), f"{chance.randrange(4096)}",
        chance.choice(["'2024-02-29'", "NULL"]), "'2024-05-01 10:11:12.000345'",
        chance.choice(["'-12:00:00.5'", "'800:59:59'", "NULL"]), chance.choice(["2022", "1901"]),
        chance.choice(["""'{"a": [1, 2.5, "é"]}'""", "NULL"]),
    ]  # fmt: skip
    names = "customer, total, state, tags, note, data, fl, db, bits, day, at, span, year, doc"
    return f"INSERT INTO orders ({names}) VALUES ({', '.join(values)})"


def literal(kind: ColumnKind, text: str | None) -> str:
    """A value as SQL writes it."""
    if text is None:
        return "NULL"
    if kind.base.endswith(BYTES):
        return f"x'{b64decode(text).hex()}'"
    return text if kind.base.endswith(NUMBERS) else f"'{escape_string(text)}'"


def changes_of_orders(chance: random.Random) -> list[str]:
    order, line = chance.randrange(1, 3000), chance.randrange(600)
    return [
        insert_order(chance),
        f"UPDATE orders SET total = total + 0.0001, fl = fl * 3 WHERE id = {order}",
        f"UPDATE orders SET note = 'w{order}' WHERE id BETWEEN {order} AND {order + 5}",
        f"DELETE FROM orders WHERE id = {order}",
        f"UPDATE IGNORE orders SET id = {order + 100_000} WHERE id = {order}",
        "INSERT IGNORE INTO items (orders, number, what) VALUES "
        f"('o{line // 3}', {line}, 'n')",
        f"UPDATE items SET what = 'u{chance.randrange(9)}' WHERE orders = 'o{line // 3}'",
        f"DELETE FROM items WHERE orders = 'o{line // 3}' AND number = {line}",
        f"INSERT INTO journal VALUES ('j{chance.randrange(7)}', {chance.randrange(3)})",
        f"DELETE FROM journal WHERE what = 'j{chance.randrange(7)}' LIMIT 1",
        f"UPDATE journal SET amount = amount + 1 WHERE what = 'j{chance.randrange(7)}' LIMIT 1",
    ]  # fmt: skip
