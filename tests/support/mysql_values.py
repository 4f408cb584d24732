"""MySQL's column types with values that are their extremes, or that often go wrong.

Values are canonical text (docs/events.md).
"""

from __future__ import annotations

import struct
from base64 import b64decode, b64encode
from typing import NamedTuple


class ColumnKind(NamedTuple):
    """A column type and values of it, as canonical text."""

    type: str
    values: tuple[str, ...]
    has_default: bool = True
    """Whether MySQL allows a literal as its default."""

    @property
    def base(self) -> str:
        """The type's name: `decimal` of `decimal(10,2) unsigned`."""
        return base_of(self.type)


def base_of(type_: str) -> str:
    return type_.partition("(")[0].partition(" ")[0]


def whole_numbers(low: int, high: int) -> tuple[str, ...]:
    return tuple(map(str, dict.fromkeys((low, high, 0, 1, 7, high // 2, low // 3))))


def integers() -> list[ColumnKind]:
    kinds = []
    for name, bits in INTEGER_BITS.items():
        half = 2 ** (bits - 1)
        kinds.append(ColumnKind(name, whole_numbers(-half, half - 1)))
        kinds.append(ColumnKind(f"{name} unsigned", whole_numbers(0, 2 * half - 1)))
    return kinds


def with_fractions(moments: tuple[str, ...], digits: int) -> tuple[str, ...]:
    return tuple(f"{each}.{part[:digits]}" for each in moments for part in FRACTIONS)


def packed(*contents: bytes) -> tuple[str, ...]:
    """Bytes as canonical text."""
    return tuple(b64encode(each).decode() for each in contents)


INTEGER_BITS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
TEXTS = (
    "", "a", "null", "NULL", " padded", "it's \"quoted\" \\ /", "<b>&amp;</b>", "日本語", "🦊",
    "\x01\x1f\x7f\x80\xa0", "line\nbreak\ttab\r\b\f", "\u2028\u2029\ufeff", "1", "1.10", "true",
    "0000-00-00", "AxY=", "e\u0301", "-0", "[]", "{}",
)  # fmt: skip
BYTES = (b"", b"\x00", b"\xff" * 8, b"abc", bytes(range(40)), b"\x89PNG\r\n\x1a\n", "日本".encode())
DATES = ("2024-02-29", "1970-01-01", "1583-01-01", "9999-12-31", "1969-12-31")
MOMENTS = (
    "2024-02-29 23:59:59", "1970-01-01 00:00:00", "1583-01-01 08:30:01", "9999-12-31 23:59:59",
    "1969-12-31 23:59:59",
)  # fmt: skip
STAMPS = ("1970-01-01 00:00:01", "2038-01-19 03:14:07", "2024-02-29 23:59:59")
SPANS = ("00:00:00", "-838:59:59", "838:59:59", "23:59:59", "-00:00:01", "24:00:00", "100:00:00")
SHORT_SPANS = ("00:00:00", "-837:59:59", "23:59:59", "-00:00:01", "24:00:00")
FRACTIONS = ("000000", "000001", "999999", "500000", "120000")
REALS = ("0", "1.5", "-2.25", "0.1", "16777216", "-0.0001220703125")
DOUBLES = (*REALS, "1e300", "-1e-300", "123456789.123456789")
JSON = ('{"a": 1.10, "b": [1, null, "x"]}', "[]", '"text"', "1.10", "{}", "true", "null")
POINT = struct.pack("<IBIdd", 0, 1, 1, 1.5, -2.0)
"""A geometry as MySQL keeps it: the reference system, then well-known binary."""

KINDS = (
    *integers(),
    ColumnKind("tinyint(1)", ("0", "1", "-128", "127")),
    ColumnKind("bit(1)", ("0", "1")),
    ColumnKind("bit(12)", ("0", "1", "4095")),
    ColumnKind("bit(64)", ("0", "1", "18446744073709551615")),
    ColumnKind("decimal(10,2)", ("0.00", "-0.01", "99999999.99", "-99999999.99", "1.10")),
    ColumnKind("decimal(10,0) unsigned", ("0", "9999999999", "1")),
    ColumnKind("decimal(38,10)", ("0.0000000001", f"-{'9' * 28}.{'9' * 10}", "1.1000000000")),
    ColumnKind("decimal(65,30)", (f"{'9' * 35}.{'9' * 30}", f"-0.{'0' * 29}1", f"1.{'0' * 30}")),
    ColumnKind("float", REALS),
    ColumnKind("double", DOUBLES),
    ColumnKind("date", DATES),
    ColumnKind("time", SPANS),
    ColumnKind("time(6)", with_fractions(SHORT_SPANS, 6)),
    ColumnKind("datetime", MOMENTS),
    ColumnKind("datetime(3)", with_fractions(MOMENTS, 3)),
    ColumnKind("datetime(6)", with_fractions(MOMENTS, 6)),
    ColumnKind("timestamp", STAMPS),
    ColumnKind("timestamp(6)", with_fractions(STAMPS[:1] + STAMPS[2:], 6)),
    ColumnKind("year", ("1901", "2024", "2155")),
    ColumnKind("char(10)", tuple(dict.fromkeys(text[:10].rstrip() for text in TEXTS))),
    ColumnKind("varchar(40)", TEXTS),
    ColumnKind("tinytext", TEXTS, has_default=False),
    ColumnKind("text", TEXTS, has_default=False),
    ColumnKind("mediumtext", TEXTS, has_default=False),
    ColumnKind("longtext", TEXTS, has_default=False),
    ColumnKind("binary(8)", packed(*(each[:8].ljust(8, b"\0") for each in BYTES))),
    ColumnKind("varbinary(40)", packed(*BYTES)),
    ColumnKind("tinyblob", packed(*BYTES), has_default=False),
    ColumnKind("blob", packed(*BYTES), has_default=False),
    ColumnKind("mediumblob", packed(*BYTES), has_default=False),
    ColumnKind("longblob", packed(*BYTES), has_default=False),
    ColumnKind("enum('small','it''s','x,y')", ("small", "it's", "x,y")),
    ColumnKind("set('a','b','c')", ("", "a", "a,c", "a,b,c", "b")),
    ColumnKind("json", JSON, has_default=False),
    ColumnKind("point", packed(POINT), has_default=False),
)
"""Every type, each with the values that columns of it are given."""

KEY_KINDS = (
    ColumnKind("int", ("1", "2", "3", "-4", "2147483647", "0")),
    ColumnKind("bigint", ("1", "2", "-9223372036854775808", "9223372036854775807", "10")),
    ColumnKind("bigint unsigned", ("1", "2", "9", "10", "18446744073709551615")),
    ColumnKind("varchar(40)", ("a", "b", "日本語", "it's", "x,y", "10", "9")),
    ColumnKind("decimal(10,2)", ("1.00", "1.10", "-1.10", "99999999.99", "10.00")),
    ColumnKind("date", ("2024-02-29", "1970-01-01", "2024-03-01")),
    ColumnKind("datetime(3)", ("2024-02-29 00:00:00.001", "2024-02-29 00:00:00.010")),
    ColumnKind("binary(8)", packed(b"\0" * 8, b"\xff" * 8, b"abcdefgh")),
)
"""Types of key columns. They have few values, so that keys come back."""


def wider(type_: str) -> list[str]:
    """The types that a column can be modified to without losing anything.

    >>> wider("int unsigned"), wider("datetime(3)")
    (['bigint unsigned'], ['datetime(6)'])
    """
    sign = " unsigned" if type_.endswith("unsigned") else ""
    names = list(INTEGER_BITS)
    if type_.removesuffix(sign) in names:
        return [f"{name}{sign}" for name in names[names.index(type_.removesuffix(sign)) + 1 :]]
    return WIDER.get(type_, [])


WIDER = {
    "bit(12)": ["bit(20)"],
    "decimal(10,2)": ["decimal(12,2)", "decimal(14,4)"],
    "float": ["double"],
    "datetime": ["datetime(3)", "datetime(6)"],
    "datetime(3)": ["datetime(6)"],
    "time": ["time(6)"],
    "timestamp": ["timestamp(6)"],
    "char(10)": ["varchar(40)"],
    "varchar(40)": ["varchar(400)", "text"],
    "tinytext": ["text", "longtext"],
    "text": ["longtext"],
    "varbinary(40)": ["varbinary(400)", "blob"],
    "blob": ["longblob"],
    "enum('small','it''s','x,y')": ["enum('small','it''s','x,y','more')"],
    "set('a','b','c')": ["set('a','b','c','d')"],
}


def widened(text: str | None, old: str, new: str) -> str | None:
    """A value after its column was modified, as the server shows it.

    >>> widened("1.10", "decimal(10,2)", "decimal(14,4)"), widened("1:00", "time", "time(6)")
    ('1.1000', '1:00.000000')
    """
    if text is None or old == new:
        return text
    base = base_of(new)
    if base == "decimal":
        return text + "0" * (places_of(new) - places_of(old))
    if base in ("time", "datetime", "timestamp"):
        more = places_of(new) - places_of(old)
        return text + ("." if "." not in text else "") + "0" * more
    if base == "double" and old == "float":
        return repr(struct.unpack("f", struct.pack("f", float(text)))[0])
    return text


def places_of(type_: str) -> int:
    """The digits behind the point that a type declares."""
    inner = type_.partition("(")[2].partition(")")[0]
    return int(inner.rpartition(",")[2] or 0)


IMPLICIT = {"char": "", "varchar": "", "enum": "small", "set": "", "decimal": "0.00"}
"""What rows get in a new NOT NULL column without a default; other types of ours: 0."""


def literal(type_: str, text: str | None) -> str:
    """A value in SQL.

    >>> literal("bit(12)", "5"), literal("varchar(40)", "it's"), literal("int", None)
    ("b'101'", "'it''s'", 'NULL')
    """
    if text is None:
        return "NULL"
    base = base_of(type_)
    if base == "bit":
        return f"b'{int(text):b}'"
    if base in ("binary", "varbinary") and text:
        return f"0x{b64decode(text).hex()}"
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"
