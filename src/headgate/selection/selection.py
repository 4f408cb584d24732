"""What a job takes of the events, and under which names: decided once per table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from headgate.core.cache import BoundedCache
from headgate.core.errors import shown
from headgate.core.event import Event, qualified
from headgate.core.keys import key
from headgate.schema.catalog import Name
from headgate.selection.columns import Projection
from headgate.selection.errors import SelectionError
from headgate.selection.filters import Filter, TableFilter, Transform
from headgate.selection.globs import TableNames
from headgate.selection.routes import FlinkRoute, Match, Names, Route, Router, topic_name
from headgate.selection.statements import Ddl, rename_statement
from headgate.selection.tables import Tables, TableSelector

__all__ = ["Rules", "Selection", "SelectionError"]


@dataclass(frozen=True)
class Rules:
    """The rules of a selection."""

    tables: Tables = key("which tables are processed", Tables, default_text="all")
    filters: tuple[Filter, ...] = key(
        "what is kept of their rows", (), name="filter", aliases={"transform": Transform}
    )
    ddl: Ddl = key("which DDL statements are processed", Ddl, default_text="all")
    routes: tuple[Route, ...] = key(
        "new names of tables, and their topics", (), name="route", read=FlinkRoute
    )


class _Decision(NamedTuple):
    """What applies to one table."""

    selected: bool | None
    """None where the event does not name what would decide it."""
    ops: frozenset[str] | None = None
    filter: int | None = None
    projection: Projection | None = None
    names: Names | None = None
    topic: str | None = None
    error: SelectionError | None = None
    """Why the table has no new name or no topic."""


class Selection:
    """A job's selection, for workers. It pickles without the job's secrets.

    All methods take an event as it was decoded, with its source's names, and may raise
    SelectionError. `shape` gives a new event and leaves the old one as it was.

    >>> rules = Rules(Tables(("shop.*",)), routes=(Route("shop.(.*)", "lake.$1"),))
    >>> selection = Selection(rules)
    >>> event = Event("row", "insert", "shop", "orders", after={"id": "1"})
    >>> selection.wants(event), selection.shape(event).database
    (True, 'lake')
    """

    def __init__(self, rules: Rules) -> None:
        self._rules = Rules(rules.tables, rules.filters, rules.ddl, rules.routes)
        self._tables = TableSelector(rules.tables)
        self._filters = [TableFilter(filter) for filter in rules.filters]
        self._routers = [Router(route) for route in rules.routes]
        self._ddl = rules.ddl
        self._filters_rows = not all(filter.keeps_all for filter in rules.filters)
        self._selects_all_rows = self._tables.selects_all and not self._filters_rows
        self._selects_all = self._selects_all_rows and rules.ddl.selects_all
        self._shapes = any(router.to for router in self._routers) or any(
            filter.projection for filter in self._filters
        )
        self._has_topics = any(route.topic for route in rules.routes)
        self._has_conditions = any(filter.where for filter in rules.filters)
        self._decisions: BoundedCache[TableNames, _Decision] = BoundedCache(self._decide)

    def __reduce__(self) -> tuple[Any, ...]:
        return Selection, (self._rules,)

    def wants(self, event: Event) -> bool:
        """Whether an event is taken; watermarks, heartbeats and invalid messages always are.

        >>> selection = Selection(Rules(Tables(("shop.*",), ("shop.tmp_*",))))
        >>> selection.wants(Event("row", "insert", "shop", "tmp_1", after={"id": "1"}))
        False
        """
        if self._selects_all:
            return True
        kind = event.kind
        if kind == "row":
            return self._selects_all_rows or self._wants_row(event)
        if kind in ("watermark", "heartbeat", "invalid"):
            return True
        if kind == "ddl":
            if not self._ddl.selects(event.op):
                return False
            return self._decision(event).selected is not False
        if event.table is None:
            # The text of a statement may hold what is filtered out of the rows.
            return not (kind == "statement" and self._filters_rows)
        decision = self._decision(event)
        if decision.selected is False:
            return False
        if kind == "statement":
            return decision.filter is None
        return kind != "tombstone" or decision.ops is None or "delete" in decision.ops

    def _wants_row(self, event: Event) -> bool:
        decision = self._decision(event)
        if decision.selected is None:
            raise SelectionError(
                "no-table",
                "the row lacks the database or table name by which it is selected",
                "set them with the source's options, or include *.*",
            )
        return decision.selected and (decision.ops is None or event.op in decision.ops)

    def shape(self, event: Event) -> Event:
        """The event with its columns projected and its new names; the same one if nothing changes.

        >>> from headgate.selection.columns import Columns
        >>> rules = Rules(filters=(Filter("*.*", columns=Columns(exclude=("note",))),))
        >>> event = Event("row", "insert", "d", "t", after={"id": "1", "note": "x"})
        >>> Selection(rules).shape(event).after
        {'id': '1'}
        """
        if not self._shapes or event.kind == "invalid":
            return event
        decision = self._decision(event)
        if decision.projection is not None and event.kind == "row":
            event = decision.projection.apply(event)
        if decision.error is not None:
            raise decision.error.with_traceback(None)
        if event.kind == "ddl":
            return rename_statement(event, decision.names, self._new_name)
        if decision.names is None:
            return event
        database, schema, table = decision.names
        return msgspec.structs.replace(event, database=database, schema=schema, table=table)

    def topic_of(self, event: Event) -> str | None:
        """The topic that a route gives, for an event as it was before `shape`; None if none does.

        >>> rules = Rules(routes=(Route("shop.(.*)", topic="cdc.{table}"),))
        >>> Selection(rules).topic_of(Event("row", "insert", "shop", "orders"))
        'cdc.orders'
        """
        if not self._has_topics or event.table is None or event.kind == "invalid":
            return None
        decision = self._decision(event)
        if decision.error is not None:
            raise decision.error.with_traceback(None)
        return decision.topic

    def condition_of(self, event: Event) -> int | None:
        """The number of the filter whose `where` applies to a row; None if there is none.

        >>> rules = Rules(filters=(Filter("shop.*", where="id > 1"),))
        >>> Selection(rules).condition_of(Event("row", "insert", "shop", "orders"))
        0
        """
        if not self._has_conditions or event.kind != "row" or event.op == "truncate":
            return None
        number = self._decision(event).filter
        return number if number is not None and self._rules.filters[number].where else None

    def _decision(self, event: Event) -> _Decision:
        return self._decisions[event.database, event.schema, event.table]

    def _decide(self, names: TableNames) -> _Decision:
        database, schema, table = names
        decision = self._filtered(names)
        if table is None or (database is None and schema is None):
            return decision
        for router in self._routers:
            match = router.match(database, schema, table)
            if match is not None:
                return _routed(decision, router, match, (database, schema, table))
        return decision

    def _filtered(self, names: TableNames) -> _Decision:
        """What the tables and the first filter that matches say."""
        selected = self._tables.selects(names)
        for number, filter in enumerate(self._filters):
            matches = filter.table.matches(names)
            if matches:
                return _Decision(selected, filter.ops, number, filter.projection)
            if matches is None:  # as it is not certain that nothing is filtered out
                return _Decision(selected and None)
        return _Decision(selected)

    def _new_name(self, old: Name) -> Name:
        names = self._decisions[old[0], None, old[1]].names
        return old if names is None else (names[0], qualified(names[1], names[2]) or names[2])


def _routed(decision: _Decision, router: Router, match: Match, old: Names) -> _Decision:
    """The decision with the names and the topic that a route gives."""
    new = router.new_names(old, match)
    if router.to and "" in new:
        error = SelectionError(
            "route",
            f"the route gives {shown('.'.join(name for name in old if name is not None))} "
            "an empty name",
            "check the parentheses of its pattern",
        )
        return decision._replace(error=error)
    template = router.route.topic
    try:
        topic = None if template is None else topic_name(template, new, match.groups)
    except SelectionError as error:
        return decision._replace(error=error)
    return decision._replace(names=None if new == old else new, topic=topic)
