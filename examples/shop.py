"""One story, told once: a shop's customers, orders and payments, change by change.

The producers in `examples/producers` write it in every dialect. Nothing here knows Headgate.
"""

from __future__ import annotations

import random
from base64 import b64encode
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

DATABASE = "shop"
KEY = "id"
TABLES = {
    "customers": {
        "id": "bigint",
        "name": "varchar(80)",
        "email": "varchar(120)",
        "points": "bigint unsigned",
        "avatar": "varbinary(16)",
        "created_at": "datetime",
    },
    "orders": {
        "id": "bigint",
        "customer_id": "bigint",
        "status": "varchar(16)",
        "total": "decimal(20,4)",
        "note": "varchar(200)",
        "placed_at": "datetime(3)",
        "shipped_at": "datetime",
    },
    "payments": {
        "id": "bigint",
        "order_id": "bigint",
        "amount": "decimal(20,4)",
        "method": "varchar(16)",
        "token": "varbinary(16)",
        "reference": "bigint unsigned",
        "paid_at": "timestamp(3)",
    },
}
ADDED = ("tier", "varchar(16)")
ALTER = "ALTER TABLE customers ADD COLUMN tier VARCHAR(16)"
SCHEMA = "\n".join(
    f"CREATE TABLE {DATABASE}.{table} ("
    + ", ".join(f"{name} {type_}" for name, type_ in columns.items())
    + f", PRIMARY KEY ({KEY}));"
    for table, columns in (TABLES | {"customers": TABLES["customers"] | dict([ADDED])}).items()
)
"""The shop's tables in SQL, as they are in the end."""
LARGEST = 2**64 - 1

PEOPLE = [
    ("Ada Lovelace", "ada@example.com", b"\x89PNG\r\n\x1a\n"),
    ("José Núñez", None, b"\x00\xff\x00\xff"),
    ("李雷", "lilei@example.cn", None),
    ('O\'Brien "Bo" \\ Sons', "", b"\xf0\x9f\x8e\x81 <&>"),
    ("Zoë 🎉🦊", "zoë@example.com", b"\x7f\x80\x00"),
    ("Нина", None, b"plain text"),
    ("Siobhán <b>&amp;</b>", "s@example.ie", b"\xe6\xb5\x8b\xe8\xaf\x95"),
]
NOTES = [None, "", "ring twice 🔔", "gift <3 & wrap it", "line one\nline two\ttabbed", "null"]
METHODS = ["card", "transfer", "wallet"]

Row = dict[str, Any]
Pair = tuple["Row | None", "Row | None"]


@dataclass
class Step:
    """One statement of the story: rows of one table (before, after), a DDL, or a quiet moment."""

    kind: str
    at: datetime
    number: int
    op: str = ""
    table: str = ""
    rows: list[Pair] = field(default_factory=list)

    @property
    def millis(self) -> int:
        """When it was committed, in milliseconds since the epoch."""
        return round((self.at - datetime(1970, 1, 1)).total_seconds() * 1000)

    @property
    def seconds(self) -> int:
        """When it was committed, in whole seconds, which is what a binlog header has."""
        return self.millis // 1000

    @property
    def tso(self) -> int:
        """TiDB's commit timestamp: milliseconds and a logical counter of 18 bits."""
        return (self.millis << 18) + self.number


class Shop:
    """The three tables as they are now, and every statement that made them so."""

    def __init__(self, seed: int = 20240501) -> None:
        self.random = random.Random(seed)
        self.now = datetime(2024, 5, 1, 8, 0, 0, 120_000)
        self.tables: dict[str, dict[int, Row]] = {name: {} for name in TABLES}
        self.steps: list[Step] = []

    def step(self, kind: str, **what: Any) -> None:
        """Let some time pass, then note a statement."""
        self.now += timedelta(milliseconds=self.random.randrange(400, 90_000))
        self.steps.append(Step(kind, self.now, len(self.steps) + 1, **what))

    def insert(self, table: str, *rows: Row) -> None:
        """INSERT, of one row or several."""
        for row in rows:
            self.tables[table][row[KEY]] = row
        self.step("row", op="insert", table=table, rows=[(None, dict(r)) for r in rows])

    def update(self, table: str, changes: dict[int, Row]) -> None:
        """UPDATE of one row or several, in one statement."""
        rows: list[Pair] = []
        for key, change in changes.items():
            before = self.tables[table][key]
            self.tables[table][key] = {**before, **change}
            rows.append((before, dict(self.tables[table][key])))
        self.step("row", op="update", table=table, rows=rows)

    def delete(self, table: str, *keys: int) -> None:
        """DELETE of one row or several."""
        rows: list[Pair] = [(self.tables[table].pop(key), None) for key in keys]
        self.step("row", op="delete", table=table, rows=rows)

    def alter(self) -> None:
        """ALTER TABLE: every customer has one column more, NULL so far."""
        customers = self.tables["customers"]
        self.tables["customers"] = {key: row | {ADDED[0]: None} for key, row in customers.items()}
        self.step("ddl", op="alter", table="customers")

    def quiet(self) -> None:
        """Nothing changed, so producers that have one send a watermark or a heartbeat."""
        self.step("beat")

    def money(self) -> Decimal:
        """An amount with four decimals, trailing zeros and all."""
        cents = self.random.randrange(100, 99_999)
        return (Decimal(cents) / 100).quantize(Decimal("0.0001"))


def customer(shop: Shop, number: int, person: tuple[str, str | None, bytes | None]) -> Row:
    """A new customer."""
    name, email, avatar = person
    return {
        "id": number,
        "name": name,
        "email": email,
        "points": shop.random.randrange(5_000),
        "avatar": avatar,
        "created_at": shop.now.replace(microsecond=0),
    }


def order(shop: Shop, number: int) -> Row:
    """A new order of a random customer."""
    return {
        "id": number,
        "customer_id": shop.random.choice(sorted(shop.tables["customers"])),
        "status": "new",
        "total": shop.money(),
        "note": NOTES[number % len(NOTES)],
        "placed_at": shop.now.replace(microsecond=shop.random.randrange(0, 1000, 10) * 1000),
        "shipped_at": None,
    }


def payment(shop: Shop, number: int, paid: Row) -> Row:
    """A payment of an order."""
    return {
        "id": number,
        "order_id": paid["id"],
        "amount": paid["total"],
        "method": shop.random.choice(METHODS),
        "token": shop.random.randbytes(8) + b"\x00\xff",
        "reference": shop.random.randrange(2**64),
        "paid_at": shop.now.replace(microsecond=shop.random.randrange(0, 1000, 50) * 1000),
    }


def tell(seed: int = 20240501) -> Shop:
    """The whole story."""
    shop = Shop(seed)
    people = [customer(shop, 101 + i, person) for i, person in enumerate(PEOPLE)]
    shop.insert("customers", *people[:3])
    for person in people[3:]:
        shop.insert("customers", person)
    shop.quiet()
    sell(shop, range(1001, 1013))
    shop.quiet()
    ship(shop)
    shop.alter()
    reward(shop)
    sell(shop, range(1013, 1017))
    clean_up(shop)
    shop.quiet()
    return shop


def sell(shop: Shop, numbers: range) -> None:
    """Orders come in; three of four are paid for."""
    for number in numbers:
        placed = order(shop, number)
        if number == 1001:
            placed["placed_at"] = placed["placed_at"].replace(microsecond=0)
        if number == 1002:
            placed["total"] = Decimal("12.3400")
        if number == 1005:
            placed["total"] = Decimal("9999999999999999.9999")
        shop.insert("orders", placed)
        if number % 4:
            paid = payment(shop, number + 4000, placed)
            if number == 1002:
                paid |= {"reference": LARGEST, "token": b"\x00\xff\x00\x01"}
            shop.insert("payments", paid)
            shop.update("orders", {number: {"status": "paid"}})


def ship(shop: Shop) -> None:
    """One UPDATE ships what is paid; the empty note of one order becomes NULL on the way."""
    shipped = {"status": "shipped", "shipped_at": shop.now.replace(microsecond=0)}
    paid = [row for row in shop.tables["orders"].values() if row["status"] == "paid"]
    shop.update("orders", {row[KEY]: shipped | {"note": row["note"] or None} for row in paid[:6]})
    shop.update("orders", {1002: {"status": "delivered", "note": "left at the door 📦"}})


def reward(shop: Shop) -> None:
    """The new column is used, by old customers and a new one."""
    shop.update("customers", {101: {"tier": "gold", "points": LARGEST}})
    shop.update("customers", {105: {"tier": "silver 🥈", "avatar": None}})
    shop.insert("customers", customer(shop, 108, ("Ng", "ng@example.com", b"")) | {"tier": ""})
    shop.update("customers", {102: {"email": "jose@example.com"}})


def clean_up(shop: Shop) -> None:
    """Refunds, a cancelled order, a customer who leaves, and one who leaves and comes back."""
    shop.delete("payments", 5003)
    shop.update("orders", {1003: {"status": "refunded", "total": Decimal("0.0000")}})
    shop.delete("orders", 1004, 1008)
    leaving = shop.tables["customers"][106]
    shop.delete("customers", 106)
    shop.insert("customers", leaving | {"points": 0, "tier": "bronze"})
    shop.delete("customers", 104)


def moment_text(value: datetime, digits: int) -> str:
    """MySQL's text of a DATETIME(digits)."""
    whole = f"{value:%Y-%m-%d %H:%M:%S}"
    return f"{whole}.{value.microsecond:06d}"[: 20 + digits] if digits else whole


def digits_of(mysql_type: str) -> int:
    """The fraction digits of a DATETIME or TIMESTAMP type."""
    return int(mysql_type[-2]) if mysql_type.endswith(")") else 0


def type_of(table: str, column: str) -> str:
    """A column's MySQL type."""
    return TABLES[table].get(column, ADDED[1])


def canonical(table: str, row: Row) -> dict[str, str | None]:
    """A row as canonical text, by the table in docs/events.md."""

    def text(column: str, value: Any) -> str | None:
        if value is None:
            return None
        if isinstance(value, bytes):
            return b64encode(value).decode()
        if isinstance(value, datetime):
            return moment_text(value, digits_of(type_of(table, column)))
        return f"{value:f}" if isinstance(value, Decimal) else str(value)

    return {column: text(column, value) for column, value in row.items()}


def truth(shop: Shop) -> dict[str, list[dict[str, str | None]]]:
    """The final contents of the tables."""
    return {
        name: [canonical(name, row) for _, row in sorted(rows.items())]
        for name, rows in shop.tables.items()
    }
