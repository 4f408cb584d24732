"""What ALTER TABLE makes of values when a column's type changes, on canonical text.

MySQL refuses an ALTER that would damage a value, unless its strict mode is off; then it clips
numbers, cuts text and so on. Both have the same result here: an ALTER that is in the log succeeded,
so in strict mode nothing was left to clip. docs/schema-changes.md is this as a table.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal

import numpy as np

from headgate.core.mysql_types import MARIADB_STRINGS, MySqlType
from headgate.landing.mysql_times import NotComputable, time_rule

TextRule = Callable[[str], str]
"""From the canonical text of a value to its canonical text in the new type."""
INTEGER_BITS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
DISPLAY_WIDTHS = {"tinyint": 3, "smallint": 5, "mediumint": 8, "int": 10, "bigint": 20}
TEXT_BYTES = {"tiny": 255, "": 65_535, "medium": 16_777_215, "long": 4_294_967_295}
EXACT = ("integer", "decimal", "bit", "year")
FLOATING = ("float", "double")
TEMPORAL = ("date", "time", "datetime", "timestamp")
LONGEST = 65_535
"""Characters of a VARCHAR whose length is not known."""
MAX_EXPONENT = 400
"""Beyond it a number is larger than any column, or as good as zero."""
_EXACTLY = Context(prec=1000)
_NUMBER = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,6})?)", re.ASCII)


def text_rule(old: MySqlType, new: MySqlType, as_text: bool = False) -> TextRule | None:
    """How values of one type become those of another; None where they stay what they are.

    `as_text` says that values are landed as their text, whose digits then count too. Raises
    NotComputable where the result depends on what is not known; a rule raises it for a value.

    >>> from headgate.core.mysql_types import parse_type
    >>> text_rule(parse_type("decimal(10,3)"), parse_type("decimal(10,1)"))("-2.250")
    '-2.3'
    >>> text_rule(parse_type("varchar(10)"), parse_type("int"))(" 12.5 apples")
    '13'
    >>> text_rule(parse_type("int"), parse_type("bigint")) is None
    True
    """
    if old == new:
        return None
    rules = _RULES.get(new.family)
    if rules is None:
        raise NotComputable(f"what MySQL makes of {old.base} as {new.base} is not known")
    return rules(old, new, as_text)


def _refused(old: MySqlType, new: MySqlType) -> NotComputable:
    if {old.family, new.family} & {"timestamp"} and old.family in (*TEMPORAL, "string"):
        return NotComputable(
            f"{old.base} as {new.base} depends on the time zone of the session that changed it"
        )
    if old.family == "time" and new.family in ("date", "datetime"):
        return NotComputable("TIME as a date gets the date of the day it was changed")
    if {old.family, new.family} == {"string", "binary"}:
        return NotComputable("the bytes of text depend on the column's character set")
    if old.family == "json":
        return NotComputable("MySQL writes JSON in its own form when it becomes text")
    if old.family in FLOATING:
        return NotComputable("MySQL writes floating point in its own form when it becomes text")
    return NotComputable(f"what MySQL makes of {old.base} as {new.base} is not known")


# Numbers


def _to_exact(old: MySqlType, new: MySqlType, as_text: bool) -> TextRule | None:
    """To INT, DECIMAL, BIT."""
    low, high, scale = limits(new)
    if old.family in ("enum", "set") and new.family == "integer":
        return _label_number(old, low, high)
    if old.family in EXACT:
        old_low, old_high, old_scale = limits(_widest(old))
        fits = low <= old_low and old_high <= high and scale >= old_scale
        if fits and (scale == old_scale or not as_text):
            return None
    elif old.family not in (*FLOATING, "string") or old.base in MARIADB_STRINGS:
        raise _refused(old, new)
    # What is stored exactly is rounded away from zero, floating point to the nearest even number.
    to_even = old.family in FLOATING and new.family != "decimal"
    rounding = ROUND_HALF_EVEN if to_even else ROUND_HALF_UP
    unit = Decimal(1).scaleb(-scale)

    def convert(text: str) -> str:
        number = number_in(text)
        if not number or number.adjusted() < -MAX_EXPONENT:
            number = Decimal(0)
        elif number.adjusted() > MAX_EXPONENT:
            number = high if number > 0 else low
        number = min(max(number.quantize(unit, rounding, _EXACTLY), low), high)
        return f"{number if number else number.copy_abs():f}"

    return convert


def limits(type_: MySqlType) -> tuple[Decimal, Decimal, int]:
    """The least and the greatest number of a type, and its digits behind the point."""
    if type_.family == "integer":
        bits = INTEGER_BITS[type_.base]
        if type_.unsigned:
            return Decimal(0), Decimal((1 << bits) - 1), 0
        return Decimal(-1 << bits - 1), Decimal((1 << bits - 1) - 1), 0
    if type_.family == "bit":
        return Decimal(0), Decimal((1 << (type_.length or 1)) - 1), 0
    if type_.family == "year":
        return Decimal(0), Decimal(2155), 0
    digits, scale = type_.length or 10, type_.scale or 0
    high = Decimal(10**digits - 1).scaleb(-scale, _EXACTLY)
    return Decimal(0) if type_.unsigned else high.copy_negate(), high, scale


def _widest(type_: MySqlType) -> MySqlType:
    """A type with its length, or with the largest that it may have where that is not known."""
    if type_.length is not None:
        return type_
    match type_.family:
        case "decimal":
            return type_._replace(length=65, scale=30)
        case "bit":
            return type_._replace(length=64)
        case _:
            return type_


def number_in(text: str) -> Decimal:
    """The number that a text begins with; zero where it begins with none.

    >>> number_in(" 1.50x"), number_in("x")
    (Decimal('1.50'), Decimal('0'))
    """
    match = _NUMBER.match(text)
    return Decimal(match[1]) if match else Decimal(0)


def _to_floating(old: MySqlType, new: MySqlType, as_text: bool) -> TextRule | None:
    if new.scale is not None:
        raise NotComputable(f"{new.base}({new.length},{new.scale}) rounds as the server's C does")
    if (old.family, new.family) == ("float", "double") or old.family == new.family:
        return None
    if old.family not in (*EXACT, *FLOATING, "string") or old.base in MARIADB_STRINGS:
        raise _refused(old, new)

    def convert(text: str) -> str:
        number = float(number_in(text))
        if new.family == "float":
            with np.errstate(over="ignore"):
                number = float(np.float32(number))
        if number in (float("inf"), float("-inf")):
            raise NotComputable(f"a value is too large for {new.base}")
        return repr(number)

    return convert


def _to_year(old: MySqlType, new: MySqlType, as_text: bool) -> TextRule | None:
    if old.family == "year":
        return None
    if old.family not in ("integer", "string"):
        raise _refused(old, new)

    def convert(text: str) -> str:
        if text.isascii() and text.isdigit() and 1901 <= int(text[:5]) <= 2155:
            return text
        raise NotComputable("a value is not a year from 1901 to 2155")

    return convert


# Text


def _to_string(old: MySqlType, new: MySqlType, as_text: bool) -> TextRule | None:
    """To CHAR, VARCHAR and the TEXT types: text is cut, and CHAR loses the spaces at its end."""
    if new.base in MARIADB_STRINGS:
        raise _refused(old, new)
    write = _written(old, new)
    if new.base.endswith("text"):
        most = TEXT_BYTES[new.base.removesuffix("text")]
        if old.family != "string" or _most_bytes(old) <= most:
            return write

        def check(text: str) -> str:
            if len(text.encode("utf-8", "surrogatepass")) > most:
                raise NotComputable(f"a value is longer than {new.base} may be in UTF-8")
            return text

        return check
    length, is_char = new.length or 1, new.base == "char"
    fits = old.base in ("char", "varchar") and (old.length or LONGEST) <= length
    if fits and (not is_char or old.base == "char"):
        return None

    def cut(text: str) -> str:
        text = write(text) if write is not None else text
        return text[:length].rstrip(" ") if is_char else text[:length]

    return cut


def _most_bytes(type_: MySqlType) -> int:
    """The most bytes that a text column holds, in a character set of up to four a character."""
    if type_.base.endswith("text"):
        return TEXT_BYTES[type_.base.removesuffix("text")]
    return 4 * (type_.length or LONGEST)


def _written(old: MySqlType, new: MySqlType) -> TextRule | None:
    """How a value is written as text; None where its canonical text is that."""
    if old.family in ("string", "enum", "set", "date", "time", "datetime"):
        return None
    if old.family == "year":
        return lambda text: text.zfill(4)
    if old.family == "integer":
        width = old.length or DISPLAY_WIDTHS[old.base]
        return (lambda text: text.zfill(width)) if old.zerofill else None
    if old.family == "decimal" and not old.zerofill:
        return None
    raise _refused(old, new)


def _to_json(old: MySqlType, new: MySqlType, as_text: bool) -> TextRule | None:
    if old.family not in ("json", "string"):
        raise _refused(old, new)
    return None


def _to_binary(old: MySqlType, new: MySqlType, as_text: bool) -> TextRule | None:
    """To BINARY, VARBINARY and the BLOB types: bytes are cut, and BINARY is filled with zeros."""
    if old.family != "binary":
        raise _refused(old, new)
    before = (old.length or 0) if old.base == "binary" else 0
    is_blob, fill = new.base.endswith("blob"), new.base == "binary"
    length = TEXT_BYTES[new.base.removesuffix("blob")] if is_blob else new.length or 1

    def convert(text: str) -> str:
        value = b64decode(text).ljust(before, b"\0")[:length]
        return b64encode(value.ljust(length, b"\0") if fill else value).decode()

    return convert


# Labels


def _to_enum(old: MySqlType, new: MySqlType, as_text: bool) -> TextRule | None:
    """To ENUM: by label, else by number; what is none of the labels is the empty string."""
    if old.family == "enum" and set(old.labels) <= set(new.labels):
        return None
    if old.family not in ("enum", "string", "integer"):
        raise _refused(old, new)
    find = _label_finder(new)
    by_number = {str(number): label for number, label in enumerate(new.labels, 1)}
    if old.family == "integer":
        return lambda text: by_number.get(text, "")

    def convert(text: str) -> str:
        label = find(text)
        if label is None and old.family == "string":
            label = by_number.get(text)
        return "" if label is None else label

    return convert


def _to_set(old: MySqlType, new: MySqlType, as_text: bool) -> TextRule | None:
    """To SET: labels that it does not have are gone, the others come in its order."""
    if old.family not in ("set", "string"):
        raise _refused(old, new)
    if old.family == "set" and old.labels == new.labels[: len(old.labels)]:
        return None
    find = _label_finder(new)

    def convert(text: str) -> str:
        chosen = {find(label) for label in text.split(",")}
        return ",".join(label for label in new.labels if label in chosen)

    return convert


def _label_finder(type_: MySqlType) -> Callable[[str], str | None]:
    """The label that a text stands for, in any case and with spaces at its end."""
    exact = dict(zip(type_.labels, type_.labels))
    folded = {label.casefold(): label for label in reversed(type_.labels)}

    def find(text: str) -> str | None:
        text = text.rstrip(" ")
        return exact.get(text, folded.get(text.casefold()))

    return find


def _label_number(old: MySqlType, low: Decimal, high: Decimal) -> TextRule:
    """ENUM as its number, SET as its bits."""
    numbers = {label: number for number, label in enumerate(old.labels)}

    def number(text: str) -> int:
        if old.family == "enum":
            return numbers[text] + 1 if text in numbers else 0
        return sum(1 << numbers[label] for label in text.split(",") if label in numbers)

    return lambda text: str(int(min(max(Decimal(number(text)), low), high)))


# Others


def _to_temporal(old: MySqlType, new: MySqlType, as_text: bool) -> TextRule | None:
    if old.base in MARIADB_STRINGS:
        raise _refused(old, new)
    try:
        return time_rule(old, new, as_text)
    except KeyError:
        raise _refused(old, new) from None


def _to_same(old: MySqlType, new: MySqlType, as_text: bool) -> TextRule | None:
    if old.base != new.base or old.length != new.length:
        raise _refused(old, new)
    return None


_RULES: dict[str, Callable[[MySqlType, MySqlType, bool], TextRule | None]] = {
    "integer": _to_exact, "decimal": _to_exact, "bit": _to_exact, "float": _to_floating,
    "double": _to_floating, "year": _to_year, "string": _to_string, "binary": _to_binary,
    "json": _to_json, "enum": _to_enum, "set": _to_set, "date": _to_temporal,
    "time": _to_temporal, "datetime": _to_temporal, "timestamp": _to_temporal,
    "spatial": _to_same, "vector": _to_same,
}  # fmt: skip
"""By the family of the new type."""
