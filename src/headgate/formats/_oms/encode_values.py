"""How OMS writes a column's value, method by method.

Vendor's document: OMS "Data format description", section "Data transmission from a database to a
text protocol". What its tables leave open is settled by its samples: docs/formats/oms-default.md.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple

from msgspec import Raw

from headgate.core.event import ColumnType, Event, Image, Types
from headgate.core.losses import Lossy
from headgate.core.mysql_types import MySqlType, parse_type
from headgate.core.values import EPOCH
from headgate.formats.encoding import (
    Plans,
    Write,
    Writers,
    hinted,
    number,
    raw_bytes,
    whole,
)

FEW = -6
"""The smallest power of ten that Java's BigDecimal writes without an exponent."""
ZERO_TIME = "0000-00-00 00:00:00"
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?")
FIRST_DAY = date(1970, 1, 1)
INT64 = range(-(2**63), 2**63)


def writer(method: str, type_: MySqlType) -> Write | None:
    """How a serialization method writes a column, or None where canonical text stays as it is.

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


def type_name(told: ColumnType, own: bool = False) -> str | None:
    """A column's type as OMS names it: no more than the name, whose BIGINT is unsigned.

    `own` says that the event came from the format that is written: then the type is OMS's already,
    unless it has flags, which only a schema tells.

    >>> type_name(ColumnType("bigint(20)")), type_name(ColumnType("bigint unsigned"))
    ('INT64', 'BIGINT')
    >>> type_name(ColumnType("varchar(20)"), own=True)
    'varchar(20)'
    """
    type_ = parse_type(told.mysql)
    if type_.family == "unknown" or (own and told.flags is None):
        return told.mysql
    if type_.base == "bigint" and not type_.unsigned:
        return "INT64"
    return type_.base.upper()


class Plan(NamedTuple):
    """What a table's types mean for its rows."""

    writers: Writers
    named: frozenset[str]
    """Columns whose type is told."""
    known: frozenset[str]
    """Those whose type is one that MySQL has."""


def row_writers(method: str, format: str) -> Callable[[Event, list[str]], Writers]:
    """A function from event to what writes its columns: by their types, else by how they came.

    >>> event = Event("row", types={"id": ColumnType("int")}, extra={"numbers": '["n"]'})
    >>> [name for name, _ in row_writers("Default", "oms-default")(event, [])]
    ['id', 'n']
    """

    def make(types: Types | None) -> Plan:
        parsed = {n: parse_type(t.mysql) for n, t in (types or {}).items()}
        told = ((n, writer(method, type_)) for n, type_ in parsed.items())
        return Plan(
            [(name, write) for name, write in told if write],
            named(types),
            frozenset(n for n, type_ in parsed.items() if type_.family != "unknown"),
        )

    plans = Plans(make)

    def writers(event: Event, lost: list[str]) -> Writers:
        own = event.format == format
        bare = hinted(event.extra, digits=not own)
        if event.types is None:
            return bare
        plan = plans(event.types)
        if not own and has_others(event, plan.named):
            lost.append("types-guessed")
        if not bare:
            return plan.writers
        return [*plan.writers, *(hint for hint in bare if hint[0] not in plan.known)]

    return writers


def named(types: Types | None) -> frozenset[str]:
    """The columns whose type a type map tells.

    >>> named({"id": ColumnType("int"), "n": ColumnType()})
    frozenset({'id'})
    """
    return frozenset(name for name, told in (types or {}).items() if told.mysql)


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
    """The values of a row's key as they are written, joined by U+0001; None where one is not there.

    >>> key_values(("a", "b"), {"a": "1", "b": "x"}, {"a": 1, "b": "x"})
    '1\\x01x'
    """
    found = []
    for name in key:
        text = image.get(name)
        if text is None:
            return None
        found.append(key_text(row.get(name), text))
    return SEPARATOR.join(found)


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


def epoch_text(text: str) -> str:
    """A TIMESTAMP as seconds since the epoch, with the fraction it has; what is no time as zero.

    >>> epoch_text("2020-11-24 16:01:02.50"), epoch_text("0000-00-00 00:00:00.000")
    ('1606233662.50', '0000-00-00 00:00:00')
    """
    fraction = text[19:]
    seconds = _seconds(text[:19])
    if seconds is not None and (not fraction or is_fraction(fraction)):
        return seconds + fraction
    if not _TIME.fullmatch(text):
        raise Lossy("misfit", text)
    if text.startswith(ZERO_TIME) and not fraction.strip(".0"):
        return ZERO_TIME
    raise Lossy("zero-dates", ZERO_TIME)


def is_fraction(text: str) -> bool:
    """Whether text is the fraction of a second, point included."""
    return text[0] == "." and text.isascii() and text[1:].isdigit() and len(text) <= 10


@lru_cache(maxsize=4096)
def _seconds(text: str) -> str | None:
    """Seconds since the epoch from UTC text; None where it is no such time."""
    at = moment(text)
    if at is None or at < EPOCH:
        return None
    return str((at - EPOCH) // timedelta(seconds=1))


def moment(text: str) -> datetime | None:
    """The time that `YYYY-MM-DD HH:MM:SS` says, if it says one.

    >>> moment("2020-11-24 16:01:02"), moment("2020-11-24T16:01:02")
    (datetime.datetime(2020, 11, 24, 16, 1, 2), None)
    """
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at if str(at) == text else None


def zulu(text: str) -> str:
    """A TIMESTAMP as ISO text in UTC.

    >>> zulu("2022-11-15 05:12:11")
    '2022-11-15T05:12:11Z'
    """
    if moment(text[:19]) is None or (text[19:] and not is_fraction(text[19:])):
        raise Lossy("zero-dates" if text.startswith(ZERO_TIME) else "misfit", text)
    return f"{text[:10]}T{text[11:]}Z"


def days(text: str) -> int:
    """A DATE as days since the epoch.

    >>> days("2022-11-15")
    19311
    """
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise no_time(text) from None
    if str(day) != text:
        raise Lossy("misfit", text)
    return (day - FIRST_DAY).days


def no_time(text: str) -> Lossy:
    """The loss of a date that no calendar has: NULL for what MySQL calls a date."""
    digits = text.translate(_NO_POINTS)
    if digits.isascii() and digits.isdigit():
        return Lossy("zero-dates", None)
    return Lossy("misfit", text)


_NO_POINTS = str.maketrans("", "", "-: .")


def time_micros(text: str) -> int:
    """A TIME as microseconds.

    >>> time_micros("10:01:00"), time_micros("-00:00:00.5")
    (36060000000, -500000)
    """
    clock, _, fraction = text.removeprefix("-").partition(".")
    parts = clock.split(":")
    digits = clock.replace(":", "") + fraction
    if len(parts) != 3 or not all(parts) or len(digits) > 16 or not digits.isdigit():
        raise Lossy("misfit", text)
    hours, minutes, seconds = map(int, parts)
    micros = (hours * 3600 + minutes * 60 + seconds) * 1_000_000 + int(fraction[:6].ljust(6, "0"))
    return -micros if text[0] == "-" else micros


def datetime_millis(text: str) -> int:
    """A DATETIME as milliseconds since the epoch, as if it were UTC.

    >>> datetime_millis("2022-11-15 05:12:11.25")
    1668489131250
    """
    at, fraction = moment(text[:19]), text[19:]
    if at is None or (fraction and not is_fraction(fraction)):
        raise no_time(text)
    seconds = (at - EPOCH) // timedelta(seconds=1)
    millis = seconds * 1000 + int(fraction[1:4].ljust(3, "0"))
    if fraction[4:].strip("0"):
        raise Lossy("datetime-micros", millis)
    return millis


def whole_or_text(text: str) -> Any:
    """A whole number bare where 64 bits hold it, else as text.

    >>> whole_or_text("12"), whole_or_text("18446744073709551615")
    (12, '18446744073709551615')
    """
    found = whole(text)
    if found.__class__ is int or (len(text) <= 20 and int(text) in INT64):
        return found
    return text


def hexadecimal(text: str) -> str:
    """Binary in base16.

    >>> hexadecimal("ag==")
    '6A'
    """
    return raw_bytes(text).hex().upper()


def six_digits(text: str) -> str:
    """A time with six digits after the second, or nine where six are not enough.

    What is no time is shown as it is.

    >>> six_digits("2016-10-21 05:33:37.523"), six_digits("0000-00-00 00:00:00")
    ('2016-10-21 05:33:37.523000', '0000-00-00 00:00:00')
    >>> six_digits("2016-10-21 05:33:37.1234567"), six_digits("2016-10-21 05:33:37.123456000")
    ('2016-10-21 05:33:37.123456700', '2016-10-21 05:33:37.123456')
    """
    second, fraction = text[:19], text[19:]
    if not _is_time(second) or (fraction and not is_fraction(fraction)):
        return text
    digits = fraction[1:]
    return f"{second}.{digits.ljust(9, '0') if digits[6:].strip('0') else digits[:6].ljust(6, '0')}"


@lru_cache(maxsize=4096)
def _is_time(text: str) -> bool:
    return moment(text) is not None


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
    # Its samples alone write the smallest decimals out.
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
