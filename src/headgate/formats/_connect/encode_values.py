"""How Debezium writes a column: its Kafka Connect schema, and canonical text to JSON values."""

from __future__ import annotations

import re
from base64 import b64encode
from binascii import b2a_base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from functools import lru_cache
from math import isinf
from struct import unpack_from
from types import MappingProxyType
from typing import Any, NamedTuple

from msgspec import Raw

from headgate.core.column_flags import NULLABLE
from headgate.core.event import ColumnType
from headgate.core.losses import Lossy
from headgate.core.mysql_types import MySqlType, parse_type
from headgate.core.options import EncodeOptions, option
from headgate.core.values import EPOCH
from headgate.formats._connect.times import MICROS, MILLIS, NANOS
from headgate.formats._oms.encode_values import scientific
from headgate.formats.encoding import Write, boolean, json_value, number, raw_bytes, whole

EPOCH_DAY = date(1970, 1, 1).toordinal()
MOST_DIGITS = 2_000
MOST_CHARACTERS = 1_000
"""Jackson refuses longer numbers."""
CYCLE_YEARS, CYCLE_DAYS = 400, 146_097
"""After so many years the calendar repeats."""
_DATE = re.compile(r"(-?\d{4,7})-(\d\d)-(\d\d)", re.ASCII)
_CLOCK = re.compile(r"(\d\d):(\d\d):(\d\d)", re.ASCII)
_DECIMAL = re.compile(r"(-?)(\d+)(?:\.(\d+))?", re.ASCII)
is_usual = re.compile(r"\d{4}-\d\d-\d\d (?!24)\d\d:\d\d:\d\d(?:\.\d+)?", re.ASCII).fullmatch
"""What Python's reader of times may be given: 2024-W10-1 is a day to it, 24:00 the next one's."""
INT32, INT64 = range(-(2**31), 2**31), range(-(2**63), 2**63)
RANGES = {"int16": range(-(2**15), 2**15), "int32": INT32, "int64": INT64}
DAY_MILLIS = range(24 * 60 * 60 * 1000 + 1)
"""What Connect's Time may be: it has no negative times, and none beyond a day."""


@dataclass(frozen=True)
class ValueOptions(EncodeOptions):
    """Options of values and of their schema, named as the connector and its converter have them."""

    schemas_enable: bool | None = option(
        None, "write the schema block; unless told, Debezium has it and OMS has not"
    )
    topic_prefix: str | None = option(
        None, "source.name and the first part of schema names; unless told, the event's or headgate"
    )
    decimal_handling_mode: str = option(
        "precise", "how DECIMAL is written", ("precise", "string", "double")
    )
    decimal_format: str = option(
        "base64", "the converter's form of precise decimals", ("base64", "numeric")
    )
    binary_handling_mode: str = option(
        "bytes", "how binary is written", ("bytes", "base64", "base64-url-safe", "hex")
    )
    time_precision_mode: str = option(
        "adaptive_time_microseconds",
        "how DATE, TIME and DATETIME are written",
        ("adaptive_time_microseconds", "connect", "isostring", "microseconds", "nanoseconds"),
    )
    bigint_unsigned_handling_mode: str = option(
        "long", "how BIGINT UNSIGNED is written", ("long", "precise")
    )
    column_propagate_source_type: bool = option(
        False, "put each column's MySQL type into the schema, so that exact types survive"
    )


class Column(NamedTuple):
    """A column's schema, in the converter's order around `optional`, and how values are written."""

    write: Write | None
    head: dict[str, Any]
    tail: Mapping[str, Any] = MappingProxyType({})

    def field(self, name: str, optional: bool) -> dict[str, Any]:
        """The column as a field of a struct.

        >>> Column(None, {"type": "string"}).field("name", True)
        {'type': 'string', 'optional': True, 'field': 'name'}
        """
        return {**self.head, "optional": optional, **self.tail, "field": name}


def plain(type_: str, write: Write | None = None) -> Column:
    """A column whose schema has no name."""
    return Column(write, {"type": type_})


def named(type_: str, name: str, write: Write | None = None, **parameters: str) -> Column:
    """A column whose schema has a name that says what its values mean."""
    tail: dict[str, Any] = {"name": name, "version": 1}
    if parameters:
        tail["parameters"] = parameters
    return Column(write, {"type": type_}, tail)


TEXT, BOOLEAN = plain("string"), plain("boolean", boolean)
TIMES = ("time", "datetime", "timestamp")
INTEGERS = {
    "tinyint": ("int16", "int16"),
    "smallint": ("int16", "int32"),
    "mediumint": ("int32", "int32"),
    "int": ("int32", "int64"),
    "bigint": ("int64", "int64"),
}
"""Connect's type of each integer, signed and unsigned."""
DATA, TIME = "io.debezium.data.", "io.debezium.time."
CONNECT = "org.apache.kafka.connect.data."


def is_measured(type_: MySqlType, options: ValueOptions) -> bool:
    """Whether the number of digits after the point decides, and the type does not tell it.

    >>> is_measured(parse_type("decimal"), ValueOptions())
    True
    """
    if type_.length is not None:
        return False
    if type_.family in ("time", "timestamp"):
        return options.column_propagate_source_type
    return type_.family in ("decimal", "datetime")


def fraction_digits(text: str) -> int:
    """The number of digits after the point.

    >>> fraction_digits("7.90"), fraction_digits("7")
    (2, 0)
    """
    point = text.find(".")
    return len(text) - point - 1 if point >= 0 else 0


def column(
    told: ColumnType,
    options: ValueOptions,
    schemas: bool,
    own: bool,
    digits: int | None = None,
    keyed: bool = False,
    true_false: bool = False,
) -> Column:
    """How a column of a known type is written.

    `own` says that Debezium wrote the event, `true_false` that it called the column a boolean;
    `digits` is measured where the type does not tell it; `keyed` says that the key has the column,
    so that it is NOT NULL without saying so.

    >>> column(ColumnType("decimal(10,2)"), ValueOptions(), True, False).write("7.90")
    'AxY='
    """
    type_ = parse_type(told.mysql)
    required = keyed or (told.flags is not None and not told.flags & NULLABLE)
    known = digits if type_.length is None else type_.length
    found = BOOLEAN if true_false else _column(type_, options, schemas, own, known, required)
    if not options.column_propagate_source_type:
        return found
    parameters = found.tail.get("parameters", {}) | source_parameters(told.mysql or "", known)
    return found._replace(tail={**found.tail, "parameters": parameters})


def _column(
    type_: MySqlType,
    options: ValueOptions,
    schemas: bool,
    own: bool,
    digits: int | None,
    required: bool,
) -> Column:
    family = type_.family
    if family == "integer":
        return integer(type_, options, schemas)
    if family == "decimal":
        scale = type_.scale or 0
        if type_.length is None:
            scale = digits or 0
        untold = type_.length is None and not schemas
        return decimal(type_.length, scale, untold, options)
    if family == "float":
        single = type_.scale is None and (type_.length or 0) <= 24
        return plain("float" if single else "double", real)
    if family in ("date", *TIMES):
        untold = type_.length is None and digits is not None and not schemas
        return temporal(type_, digits or 0, untold, required, options)
    if family == "bit":
        return bit(type_.length)
    if family == "binary":
        return binary(type_, options)
    if family == "spatial":
        return POINT if type_.base == "point" else GEOMETRY
    if family in ("enum", "set"):
        name = DATA + ("Enum" if family == "enum" else "EnumSet")
        if not type_.labels:
            return named("string", name)
        escaped = {label: label.replace(",", "\\,") for label in type_.labels}
        commas = any("," in label for label in type_.labels)
        write = (lambda text: escaped.get(text, text)) if commas else None
        return named("string", name, write, allowed=",".join(escaped.values()))
    if family == "year":
        return named("int32", f"{TIME}Year", own_year if own else year)
    return OTHERS.get(family, TEXT)


def source_parameters(mysql: str, digits: int | None) -> dict[str, str]:
    """What `column.propagate.source.type` says of a type.

    >>> source_parameters("decimal(12,2) unsigned", 12)
    {'__debezium.source.column.type': 'DECIMAL UNSIGNED', ...length': '12', ...scale': '2'}
    """
    type_ = parse_type(mysql)
    head, _, rest = mysql.partition("(")
    words = f"{head} {rest.rpartition(')')[2]}".split()
    name = type_.base if type_.family in ("enum", "set") else " ".join(words)
    prefix = "__debezium.source.column."
    found = {f"{prefix}type": name.upper()}
    length = type_.length
    if length is None and type_.family in TIMES:
        length = digits or None
    if length is not None:
        found[f"{prefix}length"] = str(length)
    if type_.scale is not None:
        found[f"{prefix}scale"] = str(type_.scale)
    return found


# Numbers


def integer(type_: MySqlType, options: ValueOptions, schemas: bool) -> Column:
    """An integer; BIGINT UNSIGNED by its mode. A schema says how large it may be."""
    if type_.base == "bigint" and type_.unsigned:
        if options.bigint_unsigned_handling_mode == "long":
            return plain("int64", wrapped)
        return decimal_column(20, 0, options)
    wire = INTEGERS[type_.base][type_.unsigned]
    return plain(wire, within(RANGES[wire]) if schemas else whole)


def within(allowed: range) -> Write:
    """A function from digits to a number of a declared size.

    >>> within(range(-128, 128))("-5")
    -5
    """
    short = len(str(allowed[-1])) - 1  # so few digits are never too many

    def write(text: str) -> Any:
        size = len(text)
        if size <= short and text.isdigit() and text.isascii() and (size == 1 or text[0] != "0"):
            return int(text)
        found = whole(text)
        if size > 20 or (found if found.__class__ is int else int(text)) not in allowed:
            raise Lossy("misfit", found)
        return found

    return write


def wrapped(text: str) -> Any:
    """BIGINT UNSIGNED in a Java long.

    >>> wrapped("5")
    5
    """
    found = whole(text)
    if len(text) > 20:
        raise Lossy("misfit", text)
    if found.__class__ is not int and (beyond := int(text)) >= 2**63:
        raise (
            Lossy("misfit", found) if beyond >= 2**64 else Lossy("bigint-unsigned", beyond - 2**64)
        )
    if found.__class__ is not int and int(text) < -(2**63):
        raise Lossy("misfit", found)
    return found


def decimal(precision: int | None, scale: int, untold: bool, options: ValueOptions) -> Column:
    """A DECIMAL by its mode; `untold` says that nothing in the message tells its scale."""
    if options.decimal_handling_mode == "string":
        return TEXT if precision is None else plain("string", scaled(scale))
    if options.decimal_handling_mode == "double":
        return plain("double", as_double)
    found = decimal_column(precision, scale, options)
    if not untold or options.decimal_format == "numeric":
        return found
    return counted(found, "decimal-scale")


def counted(found: Column, code: str) -> Column:
    """A column each of whose values is counted as a loss."""
    write = found.write or str

    def with_loss(text: str) -> Any:
        raise Lossy(code, write(text))

    return found._replace(write=with_loss)


def scaled(scale: int) -> Write:
    """A function from decimal text to the text with as many digits as the column's scale.

    >>> scaled(2)("1.5"), scaled(2)("7"), scaled(2)("x")
    ('1.50', '7.00', 'x')
    """
    fill = filled(scale)
    return lambda text: fill(text) if _DECIMAL.fullmatch(text) else text


def filled(digits: int) -> Write:
    """A function that gives text so many digits after its point; more are kept, unless zero.

    >>> filled(3)("13:37:03.5"), filled(0)("1.00"), filled(1)("0.25")
    ('13:37:03.500', '1', '0.25')
    """

    def write(text: str) -> str:
        head, _, fraction = text.partition(".")
        if fraction[digits:].strip("0"):
            return text
        return f"{head}.{fraction[:digits].ljust(digits, '0')}" if digits else head

    return write


def decimal_column(precision: int | None, scale: int, options: ValueOptions) -> Column:
    """Connect's Decimal."""
    parameters = {"scale": str(scale)}
    if precision is not None:
        parameters["connect.decimal.precision"] = str(precision)
    write = big_number(scale) if options.decimal_format == "numeric" else decimal_bytes(scale)
    return named("bytes", f"{CONNECT}Decimal", write, **parameters)


def decimal_bytes(scale: int) -> Write:
    """A function from decimal text to base64 of its unscaled two's complement integer.

    >>> decimal_bytes(2)("-1.50"), decimal_bytes(2)("7.9"), decimal_bytes(0)("18446744073709551615")
    ('/2o=', 'AxY=', 'AP//////////')
    """

    def write(text: str) -> str:
        head, _, fraction = text.partition(".")
        if len(fraction) != scale:
            if len(fraction) > scale:
                raise Lossy("misfit", text)
            fraction = fraction.ljust(scale, "0")
        digits = head + fraction
        positive = digits if digits[:1] != "-" else digits[1:]
        if not positive.isdigit() or not digits.isascii() or len(digits) > MOST_DIGITS:
            raise Lossy("misfit", text)
        unscaled = int(digits)
        bits = (unscaled if unscaled >= 0 else ~unscaled).bit_length()
        held = unscaled.to_bytes(bits // 8 + 1, "big", signed=True)
        return b2a_base64(held, newline=False).decode()

    return write


def big_number(scale: int) -> Write:
    """A function from decimal text to a bare number, in the notation of Java's BigDecimal.

    >>> bytes(big_number(8)("0.00000015")), bytes(big_number(2)("1.5"))
    (b'1.5E-7', b'1.50')
    """
    fill = scaled(scale)
    return lambda text: real(scientific(fill(text)))


def as_double(text: str) -> Any:
    """A decimal as a Java double.

    >>> bytes(as_double("7.90")), bytes(as_double("12345678"))
    (b'7.9', b'1.2345678E7')
    """
    match = _DECIMAL.fullmatch(text)
    if not match or len(text) > MOST_DIGITS:
        raise Lossy("misfit", text)
    _, head, fraction = match.groups("")
    if isinf(float(text)):
        raise Lossy("misfit", text)
    nearest = Raw(java_double(float(text)).encode())
    significant = (head + fraction).strip("0")
    if len(significant) > 15 and float_digits(float(text)) != significant:
        raise Lossy("float-digits", nearest)
    return nearest


def float_digits(value: float) -> str:
    """The significant digits of a float's shortest text."""
    return repr(abs(value)).partition("e")[0].replace(".", "").strip("0")


def java_double(value: float) -> str:
    """A finite double as Java writes it.

    >>> java_double(1.0), java_double(-12345678.5), java_double(0.0005)
    ('1.0', '-1.23456785E7', '5.0E-4')
    """
    size = abs(value)
    if size == 0 or 1e-3 <= size < 1e7:
        return repr(value)
    digits = float_digits(value)
    exponent = int(f"{value:.17e}".partition("e")[2])
    if "e" in repr(size):
        exponent = int(repr(size).partition("e")[2])
    sign = "-" if value < 0 else ""
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def real(text: str) -> Any:
    """A FLOAT or DOUBLE, digit for digit, where Java's Jackson reads so many characters.

    >>> bytes(real("1.10"))
    b'1.10'
    """
    if len(text) > MOST_CHARACTERS:
        raise Lossy("misfit", text)
    return number(text)


def year(text: str) -> int:
    """A YEAR; 0000 is the year 1900, as the connector writes it.

    >>> year("2022")
    2022
    """
    if not (text.isascii() and text.isdigit() and len(text) <= 4):
        raise Lossy("misfit", text)
    if int(text) == 0:
        raise Lossy("zero-dates", 1900)
    return int(text)


def own_year(text: str) -> int:
    """A YEAR that came from a connector, which wrote 0000 as 1900 itself.

    >>> own_year("0000")
    1900
    """
    return 1900 if text == "0000" else year(text)


# Bytes


def bit(length: int | None) -> Column:
    """BIT(1) is a boolean; longer ones are bytes, the least significant first.

    >>> bit(16).write("13929"), bit(1).write("1")
    ('aTY=', True)
    """
    if length == 1:
        return plain("boolean", boolean)
    size = None if length is None else (length + 7) // 8

    def write(text: str) -> str:
        if not (text.isascii() and text.isdigit() and len(text) <= 20) or (bits := int(text)) >> 64:
            raise Lossy("misfit", text)
        least = (bits.bit_length() + 7) // 8 or 1
        held = bits.to_bytes(max(size or 0, least), "little")
        return b2a_base64(held, newline=False).decode()

    return named("bytes", f"{DATA}Bits", write, length=str(length or 64))


def binary(type_: MySqlType, options: ValueOptions) -> Column:
    """Binary by its mode; BINARY(n) has n bytes."""
    mode = options.binary_handling_mode
    width = type_.length if type_.base == "binary" else None
    wire = "bytes" if mode == "bytes" else "string"
    form = BINARY_FORMS[mode]
    if width is None and mode in ("bytes", "base64"):
        return plain(wire, standard)

    def write(text: str) -> str:
        return form(raw_bytes(text).ljust(width or 0, b"\x00"))

    return plain(wire, write)


def standard(text: str) -> str:
    """Canonical binary text, which is what Debezium writes."""
    raw_bytes(text)
    return text


BINARY_FORMS: dict[str, Callable[[bytes], str]] = {
    "bytes": lambda held: b64encode(held).decode(),
    "base64": lambda held: b64encode(held).decode(),
    "base64-url-safe": lambda held: b64encode(held, b"-_").decode(),
    "hex": bytes.hex,
}


# Times


def temporal(
    type_: MySqlType, digits: int, untold: bool, required: bool, options: ValueOptions
) -> Column:
    """A DATE, TIME, DATETIME or TIMESTAMP by the time precision mode.

    `untold` says that nothing in the message tells a DATETIME's number of digits.
    """
    base, mode = type_.family, options.time_precision_mode
    zero = 0 if required else None
    if base == "timestamp":
        text_zero = "1970-01-01T00:00:00Z" if required else None
        return named("string", f"{TIME}ZonedTimestamp", iso_datetime(text_zero, type_.length))
    if mode == "isostring":
        write, name = {
            "date": (iso_date("1970-01-01Z" if required else None), "IsoDate"),
            "time": (iso_time, "IsoTime"),
            "datetime": (
                iso_datetime("1970-01-01T00:00:00Z" if required else None),
                "IsoTimestamp",
            ),
        }[base]
        return named("string", TIME + name, write)
    if base == "date":
        return named("int32", (CONNECT if mode == "connect" else TIME) + "Date", days(zero))
    if mode == "connect":
        if base == "time":
            return named("int32", f"{CONNECT}Time", counted_time(MILLIS, DAY_MILLIS))
        return named("int64", f"{CONNECT}Timestamp", counted_datetime(MILLIS, zero))
    nanos = mode == "nanoseconds"
    if base == "time":
        name = "NanoTime" if nanos else "MicroTime"
        return named("int64", TIME + name, counted_time(NANOS if nanos else MICROS))
    if nanos:
        return named("int64", f"{TIME}NanoTimestamp", counted_datetime(NANOS, zero))
    if mode == "microseconds":
        return named("int64", f"{TIME}MicroTimestamp", counted_datetime(MICROS, zero))
    found = named("int64", f"{TIME}Timestamp", counted_datetime(MILLIS, zero))
    if digits > 3:
        found = named("int64", f"{TIME}MicroTimestamp", counted_datetime(MICROS, zero))
    return counted(found, "datetime-precision") if untold else found


@lru_cache(maxsize=65536)
def day_number(text: str) -> int | None:
    """Days since the epoch; None for what is no day of the calendar.

    >>> day_number("2022-11-15"), day_number("0000-01-01"), day_number("2022-02-30")
    (19311, -719528, None)
    """
    match = _DATE.fullmatch(text)
    if not match:
        return None
    year_, month, day = map(int, match.groups())
    cycles, within = divmod(year_, CYCLE_YEARS)
    try:  # one cycle later, because Python has no year 0
        ordinal = date(within + CYCLE_YEARS, month, day).toordinal()
    except ValueError:
        return None
    return ordinal - EPOCH_DAY + (cycles - 1) * CYCLE_DAYS


def since_epoch(text: str) -> tuple[int, str] | None:
    """Seconds since the epoch and the digits of the fraction; None for what is no such time.

    >>> since_epoch("2022-11-15 05:12:11.120"), since_epoch("0000-00-00 00:00:00")
    ((1668489131, '120'), None)
    """
    day, _, clock = text.partition(" ")
    clock, point, fraction = clock.partition(".")
    if point and not (fraction.isascii() and fraction.isdigit() and len(fraction) <= 9):
        return None
    day_ = day_number(day)
    match = _CLOCK.fullmatch(clock)
    if day_ is None or not match:
        return None
    hours, minutes, seconds = map(int, match.groups())
    if hours > 23 or minutes > 59 or seconds > 59:
        return None
    return day_ * 86400 + hours * 3600 + minutes * 60 + seconds, fraction


def no_time(text: str, zero: Any) -> Lossy:
    """The loss of a date that no calendar has, or of text that is no date at all."""
    digits = text.translate(_NO_POINTS)
    if digits.isascii() and digits.isdigit():
        return Lossy("zero-dates", zero)
    return Lossy("misfit", text)


_NO_POINTS = str.maketrans("", "", "-: .")


def days(zero: int | None) -> Write:
    """A function from DATE text to days since the epoch; `zero` stands for no date.

    >>> days(None)("2022-11-15")
    19311
    """

    def write(text: str) -> int:
        found = day_number(text)
        if found is None:
            raise no_time(text, zero)
        if found not in INT32:
            raise Lossy("misfit", text)
        return found

    return write


def counted_datetime(units: int, zero: int | None) -> Write:
    """A function from DATETIME text to a count since the epoch, as if it were UTC.

    >>> counted_datetime(MILLIS, None)("2022-11-15 05:12:11.12")
    1668489131120
    """
    width = len(str(units)) - 1
    fromisoformat = datetime.fromisoformat

    def write(text: str) -> int:
        if len(text) == 19 and is_usual(text):  # made short
            try:
                since = fromisoformat(text) - EPOCH
                count = (since.days * 86400 + since.seconds) * units
                if count in INT64:
                    return count
            except ValueError:
                pass  # the years that Python does not have, and what is no time
        found = since_epoch(text)
        if found is None:
            raise no_time(text, zero)
        seconds, fraction = found
        count = seconds * units + int(fraction[:width].ljust(width, "0"))
        if count not in INT64:
            raise Lossy("misfit", text)
        if fraction[width:].strip("0"):
            raise Lossy("datetime-micros", count)
        return count

    return write


def counted_time(units: int, allowed: range = INT64) -> Write:
    """A function from TIME text to a count since midnight; those that are not allowed stay text.

    >>> counted_time(MICROS)("-838:59:59"), counted_time(MICROS)("10:01:00.5")
    (-3020399000000, 36060500000)
    """
    width = len(str(units)) - 1

    def write(text: str) -> int:
        parts = time_parts(text)
        if parts is None:
            raise Lossy("misfit", text)
        seconds, fraction = parts
        count = seconds * units + int(fraction[:width].ljust(width, "0"))
        count = -count if text[0] == "-" else count
        if count not in allowed:
            raise Lossy("misfit", text)
        if fraction[width:].strip("0"):
            raise Lossy("time-micros", count)
        return count

    return write


def time_parts(text: str) -> tuple[int, str] | None:
    """The seconds of a TIME without its sign, and the digits of its fraction."""
    clock, _, fraction = text.removeprefix("-").partition(".")
    parts = clock.split(":")
    numeric = clock.replace(":", "") + fraction
    if len(parts) != 3 or not (numeric.isascii() and numeric.isdigit()) or len(text) > 20:
        return None
    hours, minutes, seconds = (int(p or 0) for p in parts)
    return hours * 3600 + minutes * 60 + seconds, fraction


def iso_date(zero: str | None) -> Write:
    """A function from DATE text to ISO text with the zone letter."""

    def write(text: str) -> str:
        if day_number(text) is None:
            raise no_time(text, zero)
        return f"{text}Z"

    return write


def iso_time(text: str) -> str:
    """ISO text of a TIME.

    >>> iso_time("04:05:11.789")
    '04:05:11.789Z'
    """
    if time_parts(text) is None:
        raise Lossy("misfit", text)
    return f"{text}Z"


def iso_datetime(zero: str | None, digits: int | None = None) -> Write:
    """A function from DATETIME text to ISO text in UTC, with so many digits, or its own.

    >>> iso_datetime(None)("2018-06-20 13:37:03.50"), iso_datetime(None, 3)("2018-06-20 13:37:03.5")
    ('2018-06-20T13:37:03.50Z', '2018-06-20T13:37:03.500Z')
    """

    fromisoformat = datetime.fromisoformat
    fill = str if digits is None else filled(digits)

    def write(text: str) -> str:
        if is_usual(text):  # made short
            try:
                fromisoformat(text)
                return f"{text[:10]}T{fill(text[11:])}Z"
            except ValueError:
                pass
        if since_epoch(text) is None:
            raise no_time(text, zero)
        return f"{fill(text.replace(' ', 'T', 1))}Z"

    return write


# Others


def geometry(text: str) -> Any:
    """A geometry: Debezium's own object, or MySQL's bytes (SRID and well-known binary) as base64.

    >>> geometry("AAAAAAEBAAAAAAAAAAAA8D8AAAAAAADwPw==")
    {'wkb': 'AQEAAAAAAAAAAADwPwAAAAAAAPA/', 'srid': None}
    """
    if text[:1] == "{":
        return nested(text)
    held = raw_bytes(text)
    if len(held) < 9:
        raise Lossy("misfit", text)
    srid = int.from_bytes(held[:4], "little")
    return {"wkb": b64encode(held[4:]).decode(), "srid": srid or None}


def point(text: str) -> Any:
    """A POINT, which has its coordinates besides."""
    found = geometry(text)
    if found.__class__ is not dict:
        return found
    held = raw_bytes(text)[4:]
    if len(held) != 21:
        raise Lossy("misfit", text)
    x, y = unpack_from("<dd" if held[0] == 1 else ">dd", held, 5)
    return {"x": Raw(java_double(x).encode()), "y": Raw(java_double(y).encode()), **found}


def nested(text: str) -> Raw:
    """An object or array, its text kept.

    >>> bytes(nested("[0.10]"))
    b'[0.10]'
    """
    found = json_value(text)
    if found is None or text[:1] not in ("{", "["):
        raise Lossy("misfit", text)
    return found


WKB = [
    {"type": "bytes", "optional": False, "field": "wkb"},
    {"type": "int32", "optional": True, "field": "srid"},
]
GEOMETRY = Column(
    geometry,
    {"type": "struct", "fields": WKB},
    {"name": f"{DATA}geometry.Geometry", "version": 1, "doc": "Geometry"},
)
POINT = Column(
    point,
    {
        "type": "struct",
        "fields": [
            {"type": "double", "optional": False, "field": "x"},
            {"type": "double", "optional": False, "field": "y"},
            {"type": "bytes", "optional": True, "field": "wkb"},
            WKB[1],
        ],
    },
    {"name": f"{DATA}geometry.Point", "version": 1, "doc": "Geometry (POINT)"},
)
OTHERS = {
    "double": plain("double", real),
    "json": named("string", f"{DATA}Json"),
    "vector": Column(
        nested,
        {"type": "array", "items": {"type": "float", "optional": False}},
        {"name": f"{DATA}FloatVector", "version": 1},
    ),
}
