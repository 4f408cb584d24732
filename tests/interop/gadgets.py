"""A table with most of MySQL's types, its changes, and what a reader of each format is to see.

What is expected is worked out here from the events' canonical text and from what the formats'
producers document; no decoder of Headgate takes part.
"""

from __future__ import annotations

import json
import struct
from base64 import b64decode
from collections.abc import Callable, Iterable
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import NamedTuple

from headgate.core.event import ColumnType, Event

Texts = dict[str, str | None]

COLORS = ("red", "deep blue", "it's")
SIZES = ("s", "m", "l")


class Column(NamedTuple):
    """One column: its MySQL type, and two values as canonical text."""

    mysql: str
    one: str
    other: str


COLUMNS = {
    "id": Column("bigint", "1", "9223372036854775807"),
    "tiny": Column("tinyint", "-128", "127"),
    "small": Column("smallint", "-32768", "32767"),
    "medium": Column("mediumint", "-8388608", "8388607"),
    "num": Column("int", "-2147483648", "2147483647"),
    "utiny": Column("tinyint unsigned", "0", "255"),
    "usmall": Column("smallint unsigned", "1", "65535"),
    "uint": Column("int unsigned", "1", "4294967295"),
    "ubig": Column("bigint unsigned", "1", "18446744073709551615"),
    "flag": Column("tinyint(1)", "1", "0"),
    "price": Column("decimal(20,4)", "-0.0100", "9999999999999999.9999"),
    "large": Column("decimal(38,10)", "1.1000000000", "-1234567890123456789012345678.0123456789"),
    "ratio": Column("double", "0.1", "-1.7976931348623157e308"),
    "share": Column("float", "0.25", "-3.5"),
    "name": Column("varchar(80)", 'O\'Brien "Bo" \\ <b>&amp;</b>', "Zoë 李雷 🎉\t\n\u2028"),
    "note": Column("text", "", "null"),
    "day": Column("date", "2024-02-29", "1969-12-31"),
    "at": Column("datetime", "2024-05-01 08:00:00", "1969-12-31 23:59:59"),
    "at3": Column("datetime(3)", "2024-05-01 08:00:00.120", "2024-05-01 08:00:00.000"),
    "at6": Column("datetime(6)", "2024-05-01 08:00:00.123456", "1969-12-31 23:59:59.999999"),
    "stamp": Column("timestamp", "2024-05-01 08:00:00", "1970-01-02 00:00:01"),
    "stamp3": Column("timestamp(3)", "2024-05-01 08:00:00.500", "2038-01-19 03:14:07.999"),
    "clock": Column("time", "08:30:00", "-838:59:59"),
    "since": Column("year", "2024", "1901"),
    "bin": Column("varbinary(16)", "AP8AAQ==", "iVBORw0KGgo="),
    "blob": Column("blob", "", "8J+OgSA8Jj4="),
    "bits": Column("bit(10)", "5", "1023"),
    "color": Column(f"enum({','.join(repr(c) for c in COLORS[:2])},'it''s')", "red", "it's"),
    "sizes": Column("set('s','m','l')", "s,l", "m"),
    "doc": Column("json", '{"a": [1, 2.50, null], "b": "ü\\""}', "[]"),
}
TYPES = {name: ColumnType(column.mysql) for name, column in COLUMNS.items()}
SECOND = 1_714_550_400_000_000


def changes() -> list[Event]:
    """Inserts, updates to and from NULL, deletes, and rows of a snapshot at the end."""
    one: Texts = {name: column.one for name, column in COLUMNS.items()}
    other: Texts = {name: column.other for name, column in COLUMNS.items()}
    nulls: Texts = dict.fromkeys(COLUMNS) | {"id": "3"}
    full = one | {"id": "3"}
    rows: list[tuple[str, Texts | None, Texts | None]] = [
        ("insert", None, one),
        ("insert", None, other),
        ("insert", None, nulls),
        ("update", nulls, full),
        ("update", full, full | {"note": None, "flag": "0"}),
        ("update", full | {"note": None, "flag": "0"}, other | {"id": "3"}),
        ("update", other | {"id": "3"}, nulls),
        ("update", one, one),
        ("update", one, one | {"id": "2"}),
        ("delete", nulls, None),
        ("delete", other, None),
        ("snapshot", None, one),
        ("snapshot", None, other),
    ]
    return [
        Event(
            "row",
            op,
            "lab",
            "gadgets",
            key=("id",),
            before=before,
            after=after,
            types=TYPES,
            event_time=SECOND + number * 1_000_000,
            emit_time=SECOND + number * 1_000_000 + 417_000,
        )
        for number, (op, before, after) in enumerate(rows)
    ]


class Reading(NamedTuple):
    """How a reader declares a column, and what it then sees for canonical text."""

    type: str
    seen: Callable[[str], object]


def same(text: str) -> str:
    return text


def single(text: str) -> float:
    return struct.unpack("f", struct.pack("f", float(text)))[0]


def moment(text: str) -> str:
    return f"{datetime.fromisoformat(text):%Y-%m-%d %H:%M:%S.%f}"


def hexadecimal(text: str) -> str:
    return b64decode(text).hex()


def compact(text: str) -> str:
    return json.dumps(json.loads(text), separators=(",", ":"), ensure_ascii=False)


INTEGERS = {
    name: Reading(type_, int)
    for name, type_ in {
        "id": "BIGINT",
        "tiny": "TINYINT",
        "small": "SMALLINT",
        "medium": "INT",
        "num": "INT",
        "utiny": "SMALLINT",
        "usmall": "INT",
        "uint": "BIGINT",
        "flag": "TINYINT",
        "since": "INT",
    }.items()
}
COMMON = INTEGERS | {
    "ubig": Reading("DECIMAL(20,0)", Decimal),
    "price": Reading("DECIMAL(20,4)", Decimal),
    "large": Reading("DECIMAL(38,10)", Decimal),
    "ratio": Reading("DOUBLE", float),
    "share": Reading("FLOAT", single),
    "name": Reading("STRING", same),
    "note": Reading("STRING", same),
    "day": Reading("DATE", date.fromisoformat),
    "clock": Reading("STRING", same),
    "doc": Reading("STRING", same),
} | dict.fromkeys(
    ("at", "at3", "at6", "stamp", "stamp3"), Reading("TIMESTAMP(6)", moment)
)  # fmt: skip

# Canal: every value is text, binary in ISO-8859-1, ENUM and SET are numbers.
CANAL = COMMON | {
    "bin": Reading("STRING", lambda text: b64decode(text).decode("latin-1")),
    "blob": Reading("STRING", lambda text: b64decode(text).decode("latin-1")),
    "bits": Reading("INT", int),
    "color": Reading("INT", lambda text: COLORS.index(text) + 1),
    "sizes": Reading("INT", lambda text: sum(1 << SIZES.index(t) for t in text.split(","))),
}
# Maxwell: binary in base64, a SET is an array of labels, JSON is nested.
MAXWELL = COMMON | {
    "bin": Reading("BYTES", hexadecimal),
    "blob": Reading("BYTES", hexadecimal),
    "bits": Reading("INT", int),
    "color": Reading("STRING", same),
    "sizes": Reading("ARRAY<STRING>", lambda text: text.split(",")),
    "doc": Reading("STRING", compact),
}


# Debezium: DECIMAL as text (Flink reads no base64), TIMESTAMP in ISO 8601, other times as numbers
# since the epoch, BIT as little-endian bytes.
EPOCH = datetime(1970, 1, 1)


def micros(text: str) -> int:
    return (datetime.fromisoformat(text) - EPOCH) // timedelta(microseconds=1)


def clock_micros(text: str) -> int:
    hours, minutes, seconds = map(int, text.removeprefix("-").split(":"))
    return (-1 if text[0] == "-" else 1) * (hours * 3600 + minutes * 60 + seconds) * 1_000_000


DEBEZIUM = COMMON | {
    "ubig": Reading("BIGINT", lambda text: (int(text) + 2**63) % 2**64 - 2**63),
    "day": Reading("INT", lambda text: micros(text) // 86_400_000_000),
    "at": Reading("BIGINT", lambda text: micros(text) // 1000),
    "at3": Reading("BIGINT", lambda text: micros(text) // 1000),
    "at6": Reading("BIGINT", micros),
    "stamp": Reading("TIMESTAMP_LTZ(6)", moment),
    "stamp3": Reading("TIMESTAMP_LTZ(6)", moment),
    "clock": Reading("BIGINT", clock_micros),
    "bin": Reading("BYTES", hexadecimal),
    "blob": Reading("BYTES", hexadecimal),
    "bits": Reading("BYTES", lambda text: int(text).to_bytes(2, "little").hex()),
    "color": Reading("STRING", same),
    "sizes": Reading("STRING", same),
}
# As above, with other options: DECIMAL and BIGINT UNSIGNED as bare numbers, all times in ISO 8601.
DEBEZIUM_NUMERIC = DEBEZIUM | {
    "ubig": Reading("DECIMAL(20,0)", Decimal),
    "day": Reading("STRING", lambda text: f"{text}Z"),
    "at": Reading("TIMESTAMP_LTZ(6)", moment),
    "at3": Reading("TIMESTAMP_LTZ(6)", moment),
    "at6": Reading("TIMESTAMP_LTZ(6)", moment),
}
del DEBEZIUM_NUMERIC["clock"]  # ISO 8601 has no -838 hours


def expected(
    events: Iterable[Event], readings: dict[str, Reading], splits_key_changes: bool = False
) -> list[tuple[str | None, ...]]:
    """The changelog that a reader is to see: the kind of each row, then its values as text.

    Debezium writes an update of the key as a delete and an insert.
    """

    def row(kind: str, image: Texts | None) -> tuple[str | None, ...]:
        texts = image or {}
        seen = (
            None if (text := texts[name]) is None else str(reading.seen(text))
            for name, reading in readings.items()
        )
        return kind, *seen

    found = []
    for event in events:
        if event.op == "update":
            same_key = (event.before or {})["id"] == (event.after or {})["id"]
            kinds = ("-D", "+I") if splits_key_changes and not same_key else ("-U", "+U")
            found += [row(kinds[0], event.before), row(kinds[1], event.after)]
        elif event.op == "delete":
            found.append(row("-D", event.before))
        else:
            found.append(row("+I", event.after))
    return found
