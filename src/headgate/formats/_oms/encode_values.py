"""How OMS writes a column's value, method by method.

Vendor's document: OMS "Data format description", section "Data transmission from a database to a
text protocol". What its tables leave open is settled by its samples: docs/formats/oms-default.md.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from msgspec import Raw

from headgate.core.event import ColumnType, Event, Image, Types
from headgate.core.losses import Lossy
from headgate.core.mysql_types import MySqlType, parse_type
from headgate.formats._oms.encode_times import (
    datetime_millis,
    days,
    epoch_text,
    six_digits,
    time_micros,
    zulu,
)
from headgate.formats.encoding import (
    PerTypeMap,
    Write,
    Writers,
    hinted,
    number,
    raw_bytes,
    whole,
)

FEW = -6
"""The smallest power of ten that Java's BigDecimal writes without an exponent."""
INT64 = range(-(2**63), 2**63)


def writer(method: str, type_: MySqlType) -> Write | None:
    """How a serialization method writes a column, or None if canonical text stays as it is.

    >>> from headgate.core.mysql_types import parse_type
    >>> writer("Default", parse_type("bit(4)"))("5")
    'BQ=='
    >>> writer("Debezium", parse_type("date"))("1970-01-02")
    1
    >>> writer("Maxwell", parse_type("set('a','b')"))("a,b"), writer("Canal", parse_type("text"))
    (['a', 'b'], None)
    """
    if method.startswith("Debezium"):
        if type_.base == "bigint" and type_.unsigned:
            return None
        if type_.base == "binary" and type_.length:
            width = 2 * type_.length
            return lambda text: hexadecimal(text).ljust(width, "0")
    return WRITERS[method].get(type_.family)


def canal_writer(type_: MySqlType) -> Write | None:
    """Method Canal.

    >>> from headgate.core.mysql_types import parse_type
    >>> canal_writer(parse_type("timestamp"))("2020-11-24 16:01:02.012345")
    '1606233662.012345'
    """
    return writer("Canal", type_)


def type_name(column_type: ColumnType, same_format: bool = False) -> str | None:
    """A column's type as OMS names it: the name alone, where BIGINT is unsigned.

    `same_format` says that the event was read from the format that is written: then the type is
    already OMS's, unless it has flags, which only a schema gives.

    >>> type_name(ColumnType("bigint(20)")), type_name(ColumnType("bigint unsigned"))
    ('INT64', 'BIGINT')
    >>> type_name(ColumnType("varchar(20)"), same_format=True)
    'varchar(20)'
    """
    type_ = parse_type(column_type.mysql)
    if type_.family == "unknown" or (same_format and column_type.flags is None):
        return column_type.mysql
    if type_.base == "bigint" and not type_.unsigned:
        return "INT64"
    return type_.base.upper()


class Plan(NamedTuple):
    """How the rows of a table are written, from its column types."""

    writers: Writers
    named: frozenset[str]
    """Columns with a declared type."""
    known: frozenset[str]
    """Those whose type is one that MySQL has."""


def row_writers(method: str, format: str) -> Callable[[Event, list[str]], Writers]:
    """A function from event to its columns' writers: by type, else by how the columns were sent.

    >>> event = Event("row", types={"id": ColumnType("int")}, extra={"numbers": '["n"]'})
    >>> [name for name, _ in row_writers("Default", "oms-default")(event, [])]
    ['id', 'n']
    """

    def make(types: Types | None) -> Plan:
        parsed = {n: parse_type(t.mysql) for n, t in (types or {}).items()}
        typed = ((n, writer(method, type_)) for n, type_ in parsed.items())
        return Plan(
            [(name, write) for name, write in typed if write],
            named(types),
            frozenset(n for n, type_ in parsed.items() if type_.family != "unknown"),
        )

    plans = PerTypeMap(make)

    def writers(event: Event, lost: list[str]) -> Writers:
        same_format = event.format == format
        bare = hinted(event.extra, digits=not same_format)
        if event.types is None:
            return bare
        plan = plans(event.types)
        if not same_format and has_others(event, plan.named):
            lost.append("types-guessed")
        if not bare:
            return plan.writers
        return [*plan.writers, *(hint for hint in bare if hint[0] not in plan.known)]

    return writers


def named(types: Types | None) -> frozenset[str]:
    """The columns that a type map has a type for.

    >>> named({"id": ColumnType("int"), "n": ColumnType()})
    frozenset({'id'})
    """
    return frozenset(name for name, type_ in (types or {}).items() if type_.mysql)


def has_others(event: Event, names: frozenset[str]) -> bool:
    """Whether an event has columns that are not among these.

    >>> has_others(Event("row", after={"id": "1", "n": "2"}), frozenset({"id"}))
    True
    """
    before, after = event.before, event.after
    if after is not None and not after.keys() <= names:
        return True
    return before is not None and not before.keys() <= names


SEPARATOR = "\u0001"


def key_values(key: tuple[str, ...], image: Image, row: Mapping[str, Any]) -> str | None:
    """The values of a row's key as they are written, joined by U+0001; None if one is missing.

    >>> key_values(("a", "b"), {"a": "1", "b": "x"}, {"a": 1, "b": "x"})
    '1\\x01x'
    """
    texts = []
    for name in key:
        text = image.get(name)
        if text is None:
            return None
        texts.append(key_text(row.get(name), text))
    return SEPARATOR.join(texts)


def key_text(shown: Any, text: str) -> str:
    """A key's value as text: what the row shows of it, without quotes.

    >>> key_text(Raw(b"1E-8"), "0.00000001"), key_text("BQ==", "5"), key_text(["a", "b"], "a,b")
    ('1E-8', 'BQ==', 'a,b')
    """
    if shown.__class__ is str:
        return shown
    if shown.__class__ is Raw:
        return bytes(shown).decode()
    return str(shown) if shown.__class__ is int else text


def scientific(text: str) -> str:
    """A plain decimal as Java's BigDecimal writes itself: the smallest ones with an exponent.

    >>> scientific("0.000000150"), scientific("0.0000000000"), scientific("-0.000001")
    ('1.50E-7', '0E-10', '-0.000001')
    """
    if not text.startswith(("0.000000", "-0.000000")):
        return text
    sign, _, fraction = text.partition("0.")
    digits = fraction.lstrip("0") or "0"
    exponent = len(digits) - 1 - len(fraction)
    if exponent >= FEW or not fraction.isdigit():
        return text
    point = "." if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{point}{digits[1:]}E{exponent}"


def decimal(text: str) -> Raw:
    """A DECIMAL as a bare number, every digit kept.

    >>> bytes(decimal("5.00")), bytes(decimal("0.00000001"))
    (b'5.00', b'1E-8')
    """
    return number(scientific(text))  # type: ignore[no-any-return]


def year(text: str) -> int:
    """A YEAR as a bare number.

    >>> year("2022"), year("0000")
    (2022, 0)
    """
    if not (text.isascii() and text.isdigit() and len(text) <= 4):
        raise Lossy("misfit", text)
    return int(text)


def bit_bytes(text: str) -> bytes:
    """The bytes of a BIT without leading zeros.

    >>> bit_bytes("257"), bit_bytes("0")
    (b'\\x01\\x01', b'\\x00')
    """
    if not (text.isascii() and text.isdigit() and len(text) <= 20) or (bits := int(text)) >> 64:
        raise Lossy("misfit", text)
    return bits.to_bytes((bits.bit_length() + 7) // 8 or 1, "big")


@lru_cache(maxsize=64)
def _bit_base64(text: str) -> str:
    return b64encode(bit_bytes(text)).decode()


def whole_or_text(text: str) -> Any:
    """A whole number as a bare number if it fits 64 bits, else as text.

    >>> whole_or_text("12"), whole_or_text("18446744073709551615")
    (12, '18446744073709551615')
    """
    value = whole(text)
    if value.__class__ is int or (len(text) <= 20 and int(text) in INT64):
        return value
    return text


def hexadecimal(text: str) -> str:
    """Binary in base16.

    >>> hexadecimal("ag==")
    '6A'
    """
    return raw_bytes(text).hex().upper()


def set_members(text: str) -> list[str]:
    """The labels of a SET.

    >>> set_members("a,b"), set_members("")
    (['a', 'b'], [])
    """
    return text.split(",") if text else []


PLAIN: Mapping[str, Write] = {
    "integer": whole,
    "year": year,
    "decimal": decimal,
    "float": number,
    "double": number,
    "bit": _bit_base64,
    "timestamp": epoch_text,
}
DEBEZIUM: Mapping[str, Write] = {
    "integer": whole_or_text,
    "year": year,
    "decimal": scientific,
    "float": number,
    "double": number,
    "bit": lambda text: bit_bytes(text).hex().upper(),
    "binary": hexadecimal,
    "timestamp": zulu,
    "date": days,
    "time": time_micros,
    "datetime": datetime_millis,
}
WRITERS: Mapping[str, Mapping[str, Write]] = {
    "Default": PLAIN,
    "DefaultExtendColumnType": PLAIN,
    "Canal": PLAIN,
    "SharePlex": PLAIN,
    # Only its samples write the smallest decimals without an exponent.
    "DataWorks": {**PLAIN, "decimal": number},
    "Debezium": DEBEZIUM,
    "DebeziumFlatten": DEBEZIUM,
    "DebeziumSmt": DEBEZIUM,
    "Maxwell": {
        **PLAIN,
        "set": set_members,
        "datetime": six_digits,
        "timestamp": six_digits,
    },
}
"""Per method, how each family of types is written; those that are not here are text already."""
