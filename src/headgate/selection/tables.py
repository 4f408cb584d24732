"""What a job takes of the events, and under which names: decided once per table."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import msgspec

from headgate.config.job import Ddl, Filter, Route, Tables
from headgate.core.cache import Memo
from headgate.core.errors import shown
from headgate.core.event import Event, qualified
from headgate.core.refusal import SelectionError
from headgate.schema.ddl_names import Name, renamed
from headgate.selection.columns import Columns
from headgate.selection.globs import glob_regex, in_schema, split_glob
from headgate.selection.routes import Match, Names, Router, topic_name

__all__ = ["Selection", "SelectionError"]

_DEFINITIONS = ("def", "old")
_Names = tuple["str | None", "str | None", "str | None"]
"""The database, schema and table that an event tells."""


class Rules(Protocol):
    """What a selection needs of a job."""

    @property
    def tables(self) -> Tables:
        """Which tables are taken."""

    @property
    def filters(self) -> tuple[Filter, ...]:
        """What is taken of their rows."""

    @property
    def ddl(self) -> Ddl:
        """Which statements are taken."""

    @property
    def routes(self) -> tuple[Route, ...]:
        """What they are called from then on."""


class _Rules(NamedTuple):
    tables: Tables
    filters: tuple[Filter, ...]
    ddl: Ddl
    routes: tuple[Route, ...]


class _Decision(NamedTuple):
    """What holds for one table."""

    taken: bool | None
    """None where the event does not tell the name that would decide it."""
    ops: frozenset[str] | None = None
    filter: int | None = None
    columns: Columns | None = None
    name: Names | None = None
    topic: str | None = None
    wrong: SelectionError | None = None
    """Why the table has no new name or no topic."""


class Selection:
    """A job's selection, for workers. It pickles without the job's secrets.

    All methods take an event as it was decoded, with its source's names, and may raise
    SelectionError. `shape` gives a new event and leaves the old one as it was.

    >>> from headgate.config.job import Route, Tables
    >>> rules = _Rules(Tables(("shop.*",)), (), Ddl(), (Route("shop.(.*)", "lake.$1"),))
    >>> selection = Selection(rules)
    >>> event = Event("row", "insert", "shop", "orders", after={"id": "1"})
    >>> selection.wants(event), selection.shape(event).database
    (True, 'lake')
    """

    def __init__(self, job: Rules) -> None:
        self._rules = _Rules(job.tables, job.filters, job.ddl, job.routes)
        self._include = [_pattern(pattern) for pattern in job.tables.include]
        self._exclude = [_pattern(pattern) for pattern in job.tables.exclude]
        self._filters = [_Filter(filter) for filter in job.filters]
        self._routes = [Router(route) for route in job.routes]
        self._ddl = None if job.ddl.include is None else frozenset(job.ddl.include)
        self._no_ddl = frozenset(job.ddl.exclude)
        every = any(pattern == "*.*" for pattern in job.tables.include) and not self._exclude
        cuts = [f for f in job.filters if f.ops is not None or f.where or _Filter(f).columns]
        self._takes_all_rows = every and not cuts
        self._takes_all = self._takes_all_rows and not self._no_ddl and self._ddl is None
        self._shapes = any(route.to for route in self._routes) or any(
            each.columns for each in self._filters
        )
        self._topics = any(route.route.topic for route in self._routes)
        self._conditions = any(filter.where for filter in job.filters)
        self._cuts = bool(cuts)
        self._decisions: Memo[_Names, _Decision] = Memo(self._decide)

    def __reduce__(self) -> tuple[Any, ...]:
        return Selection, (self._rules,)

    def wants(self, event: Event) -> bool:
        """Whether an event is taken; watermarks, heartbeats and invalid messages always are.

        >>> rules = _Rules(Tables(("shop.*",), ("shop.tmp_*",)), (), Ddl(), ())
        >>> Selection(rules).wants(Event("row", "insert", "shop", "tmp_1", after={"id": "1"}))
        False
        """
        if self._takes_all:
            return True
        kind = event.kind
        if kind == "row":
            if self._takes_all_rows:
                return True
            decision = self._decisions[event.database, event.schema, event.table]
            if decision.taken is None:
                raise SelectionError(
                    "no-table",
                    "the row does not tell the database and table by which it is selected",
                    "name them with the source's options, or include *.*",
                )
            return decision.taken and (decision.ops is None or event.op in decision.ops)
        if kind in ("watermark", "heartbeat", "invalid"):
            return True
        if kind == "ddl":
            if event.op in self._no_ddl or not (self._ddl is None or event.op in self._ddl):
                return False
            return self._decisions[event.database, event.schema, event.table].taken is not False
        if kind == "statement" and event.table is None and self._cuts:
            return False  # its text may hold what is filtered out of the rows
        if event.table is None:
            return True
        decision = self._decisions[event.database, event.schema, event.table]
        if decision.taken is False:
            return False
        if kind == "statement":
            return decision.filter is None
        return kind != "tombstone" or decision.ops is None or "delete" in decision.ops

    def shape(self, event: Event) -> Event:
        """The event with its columns cut and under its new names; the same one if nothing is done.

        >>> rules = _Rules(Tables(), (Filter("*.*", exclude_columns=("note",)),), Ddl(), ())
        >>> event = Event("row", "insert", "d", "t", after={"id": "1", "note": "x"})
        >>> Selection(rules).shape(event).after
        {'id': '1'}
        """
        if not self._shapes or event.kind == "invalid":
            return event
        decision = self._decisions[event.database, event.schema, event.table]
        if decision.columns is not None and event.kind == "row":
            event = decision.columns.cut(event)
        if decision.wrong is not None:
            raise decision.wrong.with_traceback(None)
        if event.kind == "ddl":
            return self._renamed_ddl(event, decision.name)
        if decision.name is None:
            return event
        database, schema, table = decision.name
        return msgspec.structs.replace(event, database=database, schema=schema, table=table)

    def topic_of(self, event: Event) -> str | None:
        """The topic that a route gives, for an event as it was before `shape`; None if none does.

        >>> rules = _Rules(Tables(), (), Ddl(), (Route("shop.(.*)", topic="cdc.{table}"),))
        >>> Selection(rules).topic_of(Event("row", "insert", "shop", "orders"))
        'cdc.orders'
        """
        if not self._topics or event.table is None or event.kind == "invalid":
            return None
        decision = self._decisions[event.database, event.schema, event.table]
        if decision.wrong is not None:
            raise decision.wrong.with_traceback(None)
        return decision.topic

    def condition_of(self, event: Event) -> int | None:
        """The number of the filter whose `where` holds for a row; None if there is none.

        >>> rules = _Rules(Tables(), (Filter("shop.*", where="id > 1"),), Ddl(), ())
        >>> Selection(rules).condition_of(Event("row", "insert", "shop", "orders"))
        0
        """
        if not self._conditions or event.kind != "row" or event.op == "truncate":
            return None
        number = self._decisions[event.database, event.schema, event.table].filter
        return number if number is not None and self._rules.filters[number].where else None

    def _decide(self, names: _Names) -> _Decision:
        database, schema, table = names
        taken = self._taken(names)
        decision = _Decision(taken)
        for number, filter in enumerate(self._filters):
            fits = _fits(filter.pattern, names)
            if fits:
                decision = _Decision(taken, filter.ops, number, filter.columns)
            elif fits is None:  # as it is not certain that nothing is filtered out
                decision = _Decision(taken and None)
            if fits is not False:
                break
        if table is None or (database is None and schema is None):
            return decision
        for route in self._routes:
            match = route.match(database, schema, table)
            if match is not None:
                return self._routed(decision, route, match, (database, schema, table))
        return decision

    def _routed(self, decision: _Decision, route: Router, match: Match, old: Names) -> _Decision:
        new = route.new_names(old, match)
        if route.to and "" in new:
            where = ".".join(name for name in old if name is not None)
            return decision._replace(
                wrong=SelectionError(
                    "route",
                    f"the route gives {shown(where)} an empty name",
                    "check the parentheses of its pattern",
                )
            )
        topic = route.route.topic
        try:
            name = None if topic is None else topic_name(topic, new, match.groups)
        except SelectionError as error:
            return decision._replace(wrong=error)
        return decision._replace(name=None if new == old else new, topic=name)

    def _taken(self, names: _Names) -> bool | None:
        included = _verdict([_fits(pattern, names) for pattern in self._include])
        excluded = _verdict([_fits(pattern, names) for pattern in self._exclude])
        if included is False or excluded is True:
            return False
        return None if included is None or excluded is None else True

    def _new_name(self, old: Name) -> Name:
        found = self._decisions[old[0], None, old[1]].name
        return old if found is None else (found[0], qualified(found[1], found[2]) or found[2])

    def _renamed_ddl(self, event: Event, name: Names | None) -> Event:
        """A statement under new names; other tables that it names may have some too.

        Statements of databases that have schemas are not MySQL's, and keep their text.
        """
        old, text = (event.database, event.table), event.ddl or ""
        database, schema, table = name or (event.database, event.schema, event.table)
        statement = None
        if event.schema is None:
            statement = renamed(text, event.database, database, self._new_name)
        if name is None and statement in (None, text):
            return event
        return msgspec.structs.replace(
            event,
            database=database,
            schema=schema,
            table=table,
            ddl=statement or event.ddl,
            extra=_definitions(event.extra, old, (database, qualified(schema, table))),
        )


# Tables


_Match = tuple[Callable[[str], object], bool]
"""What matches one name of a pattern, and whether it takes all."""


class _Pattern(NamedTuple):
    """A pattern of a table, ready to be used."""

    names: list[_Match]
    """Of two names: `database.table`, or `schema.table`."""
    in_schema: list[_Match] | None
    """Of three names, where the source has schemas: `database.schema.table`."""


def _pattern(pattern: str) -> _Pattern:
    database, table = split_glob(pattern)
    below = in_schema(table)
    return _Pattern(
        [_match(database), _match(table)],
        None if below is None else [_match(name) for name in (database, *below)],
    )


def _match(glob: str) -> _Match:
    return re.compile(glob_regex(glob), re.DOTALL).fullmatch, not glob.strip("*")


def _fits(pattern: _Pattern, names: _Names) -> bool | None:
    """Whether a pattern fits; None where that hangs on a name that is not known."""
    database, schema, table = names
    if schema is None:
        return _all_fit(pattern.names, (database, table))
    if pattern.in_schema is not None:
        return _all_fit(pattern.in_schema, names)
    first = (database, schema)
    return _verdict([_all_fit(pattern.names, (each, table)) for each in first])


def _all_fit(matches: list[_Match], names: tuple[str | None, ...]) -> bool | None:
    certain = True
    for (match, every), name in zip(matches, names):
        if name is None:
            certain = certain and every
        elif not match(name):
            return False
    return True if certain else None


def _verdict(found: list[bool | None]) -> bool | None:
    """True if one is, else None if one may be.

    >>> _verdict([False, None]), _verdict([])
    (None, False)
    """
    return True if True in found else None if None in found else False


class _Filter:
    """One filter, ready to be used."""

    def __init__(self, filter: Filter) -> None:
        self.pattern = _pattern(filter.table)
        self.ops = None if filter.ops is None else frozenset(filter.ops)
        cuts = filter.include_columns is not None or filter.exclude_columns
        self.columns = (
            Columns(filter.include_columns, filter.exclude_columns, filter.table) if cuts else None
        )


# Definitions beside a statement

_Pair = tuple["str | None", "str | None"]
"""A database and a table."""


def _definitions(extra: dict[str, str] | None, old: _Pair, new: _Pair) -> dict[str, str] | None:
    """What came beside a statement, under the new names; what cannot be renamed is left out."""
    if not extra:
        return extra
    left = {name: text for name, text in extra.items() if name != "tableChanges"}
    for name in _DEFINITIONS:
        if name in left:
            text = _definition(left.pop(name), old, new)
            if text is not None:
                left[name] = text
    return left or None


def _definition(text: str, old: _Pair, new: _Pair) -> str | None:
    """Maxwell's definition of a table under its new name."""
    try:
        told = msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        return None
    if not isinstance(told, dict) or (told.get("database"), told.get("table")) != old:
        return None
    return msgspec.json.encode({**told, "database": new[0], "table": new[1]}).decode()
