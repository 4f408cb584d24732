"""What is looked at, or changed, in an event before a format's encoder gets it."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from headgate.core.errors import shown
from headgate.core.event import Event, Types, qualified
from headgate.core.losses import SIGN
from headgate.core.mysql_types import MySqlType, parse_type
from headgate.core.values import LAST_TIME, YEAR_ONE
from headgate.formats import traits_of

IMAGES = {
    ("insert", False, True),
    ("snapshot", False, True),
    ("update", True, True),
    ("update", False, True),
    ("delete", True, False),
    ("truncate", False, False),
}
"""Operation, whether there is a before image, whether an after image: what rows there are."""


def malformed(event: Event, same_format: bool) -> str | None:
    """What is wrong with an event that no decoder makes, but a user's job might.

    `same_format` says that it is of the format to be written: Debezium has deletes with nothing but
    the key, TiCDC some of tables without a key that have no column at all.

    >>> malformed(Event("row", "insert", before={"id": "1"}), False)
    'the insert has a before image and no after image'
    """
    changed, emitted = event.event_time or 0, event.emit_time or 0
    if not (YEAR_ONE <= changed <= LAST_TIME and YEAR_ONE <= emitted <= LAST_TIME):
        return "a time is before year 1 or after year 9999"
    if event.kind != "row":
        return None
    before, after = bool(event.before), bool(event.after)
    if (event.op, before, after) in IMAGES:
        return None
    empty = traits_of(event.format, event.dialect).empty_deletes
    if event.op == "delete" and not after and same_format and event.before in empty:
        return None
    if event.op not in ("insert", "snapshot", "update", "delete", "truncate"):
        return f"no row has the operation {shown(event.op)}"
    has = ("a before image" if before else "no before image",
           "an after image" if after else "no after image")  # fmt: skip
    return f"the {event.op} has {' and '.join(has)}"


def lacks_types(event: Event) -> bool:
    """Whether a row has a column whose type is not known.

    >>> lacks_types(Event("row", "insert", after={"id": "1"}))
    True
    """
    row = event.before if event.after is None else event.after
    if not row:
        return False
    return event.types is None or not row.keys() <= event.types.keys()


def without_unavailable(event: Event) -> Event:
    """An update whose old row has no columns either whose new value the source's log did not hold.

    Those did not change; with an old value and no new one they would look as if they did.

    >>> event = Event("row", "update", before={"id": "1", "body": "x"}, after={"id": "1"})
    >>> event.extra = {"unavailable": '{"body":"__debezium_unavailable_value"}'}
    >>> without_unavailable(event).before
    {'id': '1'}
    """
    if event.before is None or event.after is None or "unavailable" not in (event.extra or ()):
        return event
    before = {name: value for name, value in event.before.items() if name in event.after}
    return msgspec.structs.replace(event, before=before)


def truncation(event: Event) -> Event:
    """A truncated table as the DDL statement that does it.

    >>> truncation(Event("row", "truncate", "shop", "a`b")).ddl
    'TRUNCATE TABLE `shop`.`a``b`'
    """
    table = qualified(event.schema, event.table)
    names = [n.replace("`", "``") for n in (event.database, table) if n]
    statement = "TRUNCATE TABLE " + ".".join(f"`{name}`" for name in names)
    return msgspec.structs.replace(event, kind="ddl", op="truncate", ddl=statement)


def details_finder(
    carried: frozenset[str], tells_sign: frozenset[str]
) -> Callable[[Types | None], bool]:
    """What says whether a type map tells more than is written by who writes the types' names.

    `tells_sign` has the types whose written name tells whether they are signed.

    >>> from headgate.core.event import ColumnType
    >>> types = {"id": ColumnType("int unsigned")}
    >>> [details_finder(frozenset(carried), frozenset())(types) for carried in ([], [SIGN])]
    [True, False]
    """

    def has_sign(type_: MySqlType) -> bool:
        return type_.unsigned and SIGN not in carried and type_.base not in tells_sign

    def has_details(types: Types | None) -> bool:
        parsed = [parse_type(column.mysql) for column in (types or {}).values()]
        return any(t.length is not None or t.labels or has_sign(t) for t in parsed)

    return has_details


def unlabelled_columns(types: Types | None) -> list[tuple[str, bool]]:
    """The ENUM and SET columns whose labels the types do not tell.

    True beside those that tell them, `''` among them, so that MySQL's error value is a number.
    """
    parsed = ((name, parse_type(column.mysql)) for name, column in (types or {}).items())
    return [
        (name, bool(type_.labels))
        for name, type_ in parsed
        if type_.base in ("enum", "set")
        and (not type_.labels or (type_.base == "enum" and "" in type_.labels))
    ]


def unlabelled(event: Event, columns: list[tuple[str, bool]]) -> int:
    """How many numbers an event has in the place of labels."""
    images = [image for image in (event.before, event.after) if image]
    values = [(image.get(name), labelled) for image in images for name, labelled in columns]
    return sum(text == "0" if labelled else text is not None for text, labelled in values)
