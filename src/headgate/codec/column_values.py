"""Values of columns whose type only the table's schema tells, in the form of that type."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from headgate.core.cache import BoundedCache
from headgate.core.errors import DecodeError
from headgate.core.event import Event, Image
from headgate.core.json import Number, parse, reader
from headgate.core.mysql_types import MySqlType, parse_type
from headgate.core.options import build, names
from headgate.core.values import Convert, base64_bytes, names_json, with_digits, with_scale, year
from headgate.formats import find, traits_of
from headgate.formats.base import Producer, ReadColumn
from headgate.formats.encoding import is_number, name_list

HINTS = ("numbers", "booleans", "nested")
"""Members of `extra` that say how values without types were sent, unlike their text."""
MOST_DIGITS = 4_000
"""Python makes no number of more."""
_nested = reader(Any)

Columns = tuple[tuple[str, Convert], ...]


_Asked = tuple[Producer, "str | None", "str | None", str]
"""The producer of a column, its hint, the type that was sent and that of the schema."""


class ValueOrigin(NamedTuple):
    """How an event's values were sent: all that reading them depends on, beside their types."""

    producer: Producer
    hints: tuple[str | None, ...] = (None, None, None)


def value_origin(event: Event) -> ValueOrigin:
    """How an event's values were sent.

    >>> value_origin(Event("row", "insert", format="maxwell", extra={"numbers": '["id"]'})).hints
    ('["id"]', None, None)
    """
    extra = event.extra
    if not extra:
        return ValueOrigin(Producer(event.format, event.dialect, event.op))
    member = traits_of(event.format, event.dialect).producer_member
    name = None if member is None else extra.get(member)
    producer = Producer(event.format, event.dialect, event.op, name)
    return ValueOrigin(producer, tuple(map(extra.get, HINTS)))


def signature(event: Event) -> tuple[str | None, ...]:
    """What stands for an event's `ValueOrigin`, and costs less.

    >>> signature(Event("row", "insert", format="maxwell"))
    ('maxwell', None, 'insert')
    """
    extra = event.extra
    if not extra:
        return event.format, event.dialect, event.op
    get = extra.get
    numbers, booleans, nested = get("numbers"), get("booleans"), get("nested")
    member = traits_of(event.format, event.dialect).producer_member
    name = None if member is None else get(member)
    return event.format, event.dialect, event.op, name, numbers, booleans, nested


class Readers:
    """What reads columns' values, by how they were sent; `options` are those of the source."""

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        self.options = {n.replace("-", "_"): v for n, v in (options or {}).items()}
        self.readers: BoundedCache[Producer, ReadColumn | None] = BoundedCache(self._reader)
        self.converters: BoundedCache[_Asked, Convert | None] = BoundedCache(self._converter)

    def _reader(self, producer: Producer) -> ReadColumn | None:
        format = find(producer.format)
        if format is None or format.column_reader is None:
            return None
        options = {n: v for n, v in self.options.items() if n in names(format.options)}
        return format.column_reader(producer, build(format.options, options))

    def column(
        self, origin: ValueOrigin, name: str, sent_type: str | None, mysql: str
    ) -> Convert | None:
        """What makes canonical text of a column's text; None where it is that already.

        >>> origin = ValueOrigin(Producer("maxwell", "maxwell"), (None, None, '["tags"]'))
        >>> Readers().column(origin, "tags", None, "set('r','g')")('["r","g"]')
        'r,g'
        """
        return self.converters[origin.producer, _hint(origin, name, sent_type), sent_type, mysql]

    def _converter(self, asked: _Asked) -> Convert | None:
        producer, hint, sent_type, mysql = asked
        exact = exact_text(parse_type(mysql))
        find = self.readers[producer] if sent_type != mysql else None
        read = find(sent_type, mysql) if find else None
        return exact if read is None else _reading(read, SENT.get(hint or ""), exact)


def hints_of(extra: Mapping[str, str] | None) -> dict[str, str]:
    """What is known of how values were sent."""
    return {hint: extra[hint] for hint in HINTS if hint in extra} if extra else {}


def without_hints(extra: Mapping[str, str] | None, read: Collection[str]) -> dict[str, str] | None:
    """The `extra` of a row, without how those values were sent that are in their type's form now.

    >>> without_hints({"numbers": '["a","b"]', "nested": '["c"]'}, {"a", "c"})
    {'numbers': '["b"]'}
    """
    left = dict(extra or {})
    for hint in HINTS:
        if hint in left:
            others = tuple(name for name in name_list(left.pop(hint)) if name not in read)
            if others:
                left[hint] = names_json(others)
    return left or None


def _hint(origin: ValueOrigin, name: str, sent_type: str | None) -> str | None:
    """The hint that names a column without a type; None where it was sent as text."""
    if sent_type is None:
        for hint, names in zip(HINTS, origin.hints):
            if names and name in _named(names):
                return hint
    return None


@lru_cache(1_000)
def _named(hint: str) -> frozenset[str]:
    return frozenset(name_list(hint))


def _number(text: str) -> Any:
    digits = text.removeprefix("-")
    whole = digits.isdigit() and digits.isascii() and len(digits) <= MOST_DIGITS
    if whole:
        return int(text)
    return Number(text) if is_number(text) else text  # the hint may be of the other image


def _boolean(text: str) -> Any:
    return text == "1" if text in ("0", "1") else text


def _parsed(text: str) -> Any:
    return parse(_nested, text.encode())


SENT: dict[str, Callable[[str], Any]] = dict(zip(HINTS, (_number, _boolean, _parsed)))
"""What makes of a column's text the JSON value that it was, by hint."""


def _reading(
    read: Callable[[Any], Any], sent: Callable[[str], Any] | None, exact: Convert | None
) -> Convert:
    def convert(text: str) -> str:
        value = read(text if sent is None else sent(text))
        if not isinstance(value, str):
            value = text
        return value if exact is None else exact(value)

    return convert


def exact_text(type_: MySqlType) -> Convert | None:
    """What gives a value the form that its declared type has in MySQL.

    >>> exact_text(parse_type("datetime(3)"))("2024-05-01 08:00:00.500000")
    '2024-05-01 08:00:00.500'
    """
    if type_.family in ("time", "datetime", "timestamp"):
        return with_digits(type_.length or 0)
    if type_.family == "year":
        return year
    if type_.family == "decimal" and type_.scale:
        return with_scale(type_.scale)
    if type_.base == "binary":
        length = type_.length or 1

        def padded(text: str) -> str:
            content = base64_bytes(text)
            if len(content) >= length:
                return text
            return b64encode(content.ljust(length, b"\0")).decode()

        return padded
    return None


def convert_images(event: Event, columns: Columns) -> list[str]:
    """Convert columns in the images of an event; returns those of which a value is no such value.

    Those stay as they were sent, in both images. An image that changes is replaced by a copy.

    >>> event = Event("row", "insert", after={"id": "1", "y": "24"})
    >>> convert_images(event, (("y", year),)), event.after
    ([], {'id': '1', 'y': '0024'})
    """
    before, after = event.before, event.after
    bad: set[str] = set()
    if before is not None:
        event.before = _converted_row(before, columns, bad)
    if after is not None:
        event.after = _converted_row(after, columns, bad)
    if not bad:
        return []
    for image, row in ((before, event.before), (after, event.after)):
        if image is not None and row is not None:
            row.update((name, image[name]) for name in bad if name in image)
    return [name for name, _ in columns if name in bad]


def _converted_row(image: Image, columns: Columns, bad: set[str]) -> Image:
    """A row with each column converted; those of which the value is no such value are added."""
    row = image
    for name, convert in columns:
        text = image.get(name)
        if text is not None:
            try:
                new = convert(text)
            except (DecodeError, ValueError):
                bad.add(name)
                continue
            if new is not text:
                if row is image:
                    row = image.copy()
                row[name] = new
    return row
