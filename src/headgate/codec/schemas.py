"""Row events completed by the tables of a schema file and of DDL events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

from headgate.codec.column_values import (
    HINTS,
    Columns,
    Readers,
    convert_images,
    hints_of,
    signature,
    value_origin,
    without_hints,
)
from headgate.core import values
from headgate.core.cache import BoundedCache, weight
from headgate.core.event import ColumnType, Event, Types
from headgate.core.limits import CACHED_BYTES, CACHED_KEY_BYTES
from headgate.core.mysql_types import parse_type
from headgate.core.values import Convert
from headgate.formats.encoding import is_numbered, name_list
from headgate.formats.table_definitions import table_definitions
from headgate.schema.catalog import Known
from headgate.schema.known_tables import KnownTables


class _Plan(NamedTuple):
    """How events with the same columns and the same types are completed."""

    sent_types: Types | None
    types: Types | None
    columns: Columns
    """Columns that are converted to the form of their type: labels for numbers, and others."""
    read: frozenset[str]
    """Those of them that were sent without a type, and not as text."""
    hints: dict[str, str]
    """How the others were sent (`extra`)."""


_PlanKey = tuple[Known, int, tuple[str, ...], tuple["str | None", ...]]
_Content = tuple[Known, tuple[str, ...], "tuple[tuple[str, ColumnType], ...] | None"]


def _worked_out(content: _Content) -> tuple[Types | None, tuple[tuple[str, Convert], ...]]:
    """An event's types and the columns whose numbers become labels."""
    known, names, types_of_event = content
    sent_types, schema, there = dict(types_of_event or ()), known.table.types, set(names)
    types = {
        name: _merged(schema.get(name), sent_types.get(name))
        for name in dict.fromkeys((*schema, *names, *sent_types))
        if name in sent_types or (name in there and name in schema)
    }
    labels = tuple(
        (name, convert)
        for name, base, convert in known.table.labels
        if name in there and _unlabelled(sent_types.get(name), base)
    )
    return (schema if types == schema else types) or None, labels


def _merged(schema: ColumnType | None, sent: ColumnType | None) -> ColumnType:
    """The schema's type with the event's own jdbc and flags, where it has them."""
    if schema is None or sent is None:
        return schema or sent or ColumnType()
    flags = schema.flags if sent.flags is None else sent.flags
    return ColumnType(schema.mysql, sent.jdbc, flags)


def _unlabelled(sent: ColumnType | None, base: str) -> bool:
    """Whether an event could not know the labels of an ENUM or SET column."""
    if sent is None or sent.mysql is None:
        return True
    return values.base_type(sent.mysql) == base and not values.labels(sent.mysql)


class Schemas(KnownTables):
    """Tables, and the row events that they complete.

    >>> known = Schemas("USE shop; CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(80) NOT NULL)")
    >>> known.table("shop", "t").columns["name"]
    Column(mysql='varchar(80)', nullable=False, generated=None, charset=None)
    >>> known.learn(Event("ddl", "alter", "shop", "t", ddl="ALTER TABLE t ADD price DEC(9,2)"))
    >>> known.table("shop", "t").columns["price"].mysql
    'decimal(9,2)'
    """

    def __init__(self, sql: str | None = None, source: Mapping[str, Any] | None = None) -> None:
        """Tables of SQL text; `source` has the options with which the rows were decoded."""
        super().__init__(sql, table_definitions)
        self._readers = Readers(source)
        self._plans: dict[_PlanKey, _Plan] = {}
        self._plan_bytes = 0
        self._contents = BoundedCache(_worked_out)

    def copy(self) -> Self:
        """The same, to learn apart."""
        other = super().copy()
        other._plans, other._plan_bytes = {}, 0
        return other

    def complete(self, event: Event) -> list[str] | None:
        """Give a row event its table's key and types, and its values the form of their type.

        In place, but an image that changes is a copy. Returns the columns whose values are none of
        their type, which are left without it; None where the table is not known.

        >>> known = Schemas("CREATE TABLE t (id INT PRIMARY KEY, size ENUM('S','M'))")
        >>> event = Event("row", "insert", "d", "t", after={"id": "1", "size": "2"})
        >>> event.format = "open-protocol"
        >>> known.complete(event)
        []
        >>> event.key, event.after, event.types["size"].mysql
        (('id',), {'id': '1', 'size': 'M'}, "enum('S','M')")
        """
        known = self.give_key(event)
        if known is None:
            return None
        before, after, sent_types = event.before, event.after, event.types
        image = before if after is None else after
        if image is None:
            return []
        names = tuple(image)
        if before is not None and tuple(before) != names and before.keys() != image.keys():
            names = tuple({**image, **before})
        plan_key = known, id(sent_types), names, signature(event)
        plan = self._plans.get(plan_key)
        if plan is None or plan.sent_types is not sent_types:
            plan = self._plan(plan_key, event)
        event.types = plan.types
        if not plan.columns:
            return []
        wrong = convert_images(event, plan.columns)
        if wrong:
            event.types = _without(plan, sent_types, wrong)
            event.extra = without_hints(event.extra, plan.read.difference(wrong))
        elif plan.read and event.extra:
            left = {name: v for name, v in event.extra.items() if name not in HINTS}
            event.extra = left | plan.hints or None
        return wrong

    def give_key(self, event: Event) -> Known | None:
        """Give a row event the key of its table, if that is known."""
        if event.kind != "row":
            return None
        known = self._catalog.find(event.database, event.table, event.schema)
        if known is not None:
            # Without a primary key, a message may go by another: Debezium by a unique one.
            event.key = known.table.key or event.key or ()
        return known

    def _plan(self, key: _PlanKey, event: Event) -> _Plan:
        known, _, names, _ = key
        sent_types, origin = event.types, value_origin(event)
        content = (known, names, None if sent_types is None else tuple(sent_types.items()))
        types, labels = self._contents[content]
        labels = labels if is_numbered(event) else ()
        labelled = {name for name, _ in labels}
        sent_mysql = {n: t.mysql for n, t in (sent_types or {}).items()}
        there = set(names) - labelled
        schema = {n: c.mysql for n, c in known.table.columns.items() if n in there}
        if any(parse_type(mysql).family == "binary" for mysql in sent_mysql.values()):
            origin = origin._replace(producer=origin.producer._replace(binary=True))
        converts = [
            (n, self._readers.column(origin, n, sent_mysql.get(n), t)) for n, t in schema.items()
        ]
        columns = (*labels, *((n, convert) for n, convert in converts if convert is not None))
        hinted = {name for hint in origin.hints if hint for name in name_list(hint)}
        read = frozenset(
            name for name, _ in columns if sent_mysql.get(name) is None and name in hinted
        )
        plan = _Plan(
            sent_types, types, columns, read, without_hints(hints_of(event.extra), read) or {}
        )
        size = weight((content, key[-1]))
        if size <= CACHED_KEY_BYTES:
            self._plan_bytes += size
            if self._plan_bytes > CACHED_BYTES:
                self._plans.clear()
                self._plan_bytes = size
            self._plans[key] = plan
        return plan


def _without(plan: _Plan, sent_types: Types | None, wrong: list[str]) -> Types | None:
    """The types without those of some columns, of which only the message's own word is left."""
    types = dict(plan.types or {})
    for name in wrong:
        type_of_event = (sent_types or {}).get(name)
        if type_of_event is None:
            del types[name]
        else:
            types[name] = type_of_event
    return types or None
