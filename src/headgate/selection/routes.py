"""New names for tables, and the topics of their messages."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from headgate.codec.topic_names import checked_topic
from headgate.core.errors import UsageError, shown
from headgate.core.keys import key, not_empty
from headgate.core.names import MAX_TOPIC, safe, words
from headgate.selection.errors import SelectionError
from headgate.selection.flink import flink_regex, replace_symbol
from headgate.selection.regexes import check_groups, groups, regex_in_schema, split_regex

_PLACE = re.compile(r"\{(database|schema|table)\}|\$(\d+)")
Names = tuple["str | None", "str | None", str]
"""A table's database, schema and name."""


@dataclass(frozen=True)
class Route:
    """New names for tables that match a regular expression; the first that matches counts."""

    table: str = key(
        "a regular expression for the whole `database.table`. The first dot outside brackets "
        "without `*`, `+` or `?` after it is the dot between the two. Where the source has "
        "schemas: `database.schema.table`, `schema.table` or `database.table`, as above",
        aliases={"source-table": flink_regex},
        missing="the route has no table; add table: 'database.(.*)'",
    )
    to: str | None = key(
        "the new `database.table` or `database.schema.table`; `$1`, `$2` … are the groups in "
        "parentheses, `{database}`, `{schema}` and `{table}` the old names",
        None,
        aliases={"sink-table": str},
    )
    topic: str | None = key(
        "the topic: `{database}`, `{schema}` and `{table}` are the new names, `$1` … the groups",
        None,
        read=checked_topic,
    )

    def __post_init__(self) -> None:
        if self.to is None and self.topic is None:
            raise UsageError("the route has no target; add to: database.table or topic: …")
        count = sum(map(groups, split_regex(self.table)))
        if self.to is not None:
            split_target(self.to)
            check_groups(self.to, count)
        if self.topic is not None:
            check_groups(self.topic, count)


@dataclass(frozen=True)
class FlinkRoute(Route):
    """A route in a job file, where Flink CDC's words may stand beside ours."""

    replace_symbol: str | None = key(
        "the placeholder of the table's name in `sink-table`",
        None,
        name="replace-symbol",
        read=not_empty,
    )
    description: None = key("a comment", None)

    def __post_init__(self) -> None:
        """Nothing: what is checked is the route that it stands for."""

    def as_rule(self) -> Route:
        """The route that it stands for."""
        if self.replace_symbol is None or (self.to is None and self.topic is None):
            return Route(self.table, self.to, self.topic)
        table, to = replace_symbol(self.table, self.to, self.replace_symbol)
        return Route(table, to, self.topic)


class Match(NamedTuple):
    """How a route matches a table."""

    groups: tuple[str, ...]
    """The texts of the groups of its pattern."""
    in_schema: bool
    """Whether the pattern names the schema of the table, rather than any."""


class Router:
    """A compiled route."""

    def __init__(self, route: Route) -> None:
        self.route = route
        database, table = split_regex(route.table)
        self.names = _compiled(database, table)
        below = regex_in_schema(table)
        self.in_schema = None if below is None else _compiled(database, *below)
        self.to = split_target(route.to) if route.to is not None else None

    def match(self, database: str | None, schema: str | None, table: str) -> Match | None:
        """How the route matches a table; None if it does not.

        Where the source has schemas, two names are `database.table`, of any schema, or
        `schema.table`.

        >>> Router(Route("shop.(.*)", "lake.$1")).match("shop", "public", "orders")
        Match(groups=('orders',), in_schema=False)
        """
        if schema is not None and self.in_schema is not None:
            matched = _groups(self.in_schema, (database, schema, table))
            return None if matched is None else Match(matched, True)
        matched = _groups(self.names, (database, table))
        if matched is not None:
            return Match(matched, False)
        matched = None if schema is None else _groups(self.names, (schema, table))
        return None if matched is None else Match(matched, True)

    def new_names(self, old: Names, match: Match) -> Names:
        """The new names of a table that the route matches.

        A target of two names keeps a schema that the pattern does not name.
        """
        if self.to is None:
            return old
        words = {"database": old[0], "schema": old[1] or old[0], "table": old[2]}
        new = [filled(part, words, match.groups) for part in self.to]
        if len(new) == 3:
            return new[0], new[1], new[2]
        return new[0], None if match.in_schema else old[1], new[1]


def _compiled(*expressions: str) -> list[re.Pattern[str]]:
    return [re.compile(regex, re.DOTALL) for regex in expressions]  # a name may hold a line feed


def _groups(
    patterns: list[re.Pattern[str]], names: tuple[str | None, ...]
) -> tuple[str, ...] | None:
    """The groups of all patterns, if every one matches its name."""
    matched: list[str] = []
    for pattern, name in zip(patterns, names):
        match = None if name is None else pattern.fullmatch(name)
        if match is None:
            return None
        matched += match.groups("")
    return tuple(matched)


def split_target(template: str) -> tuple[str, ...]:
    """The names of a route's target: database and table, or database, schema and table.

    >>> split_target("lake.$1"), split_target("lake.raw.$1")
    (('lake', '$1'), ('lake', 'raw', '$1'))
    """
    names = tuple(template.split("."))
    if not 2 <= len(names) <= 3 or not all(names):
        raise UsageError(
            f"invalid target {shown(template)}; write database.table, as in 'lake.$1', or "
            "database.schema.table"
        )
    return names


def filled(
    template: str,
    words: Mapping[str, str | None],
    groups: tuple[str, ...],
    write: Callable[[str], str] = str,
) -> str:
    """A template with its names and `$1`, `$2` … replaced.

    >>> filled("lake_$1_{table}", {"table": "t"}, ("orders",))
    'lake_orders_t'
    """

    def place(match: re.Match[str]) -> str:
        return write(groups[int(match[2]) - 1] if match[2] else words[match[1]] or "")

    return _PLACE.sub(place, template)


def topic_name(template: str, names: Names, groups: tuple[str, ...]) -> str:
    """A topic name; characters that topic names cannot have are written as `_x` and their bytes.

    Different names stay different: where a name itself has such an `_x41`, its `_` is escaped.

    >>> topic_name("cdc.{database}.{table}", ("shop", None, "été"), ())
    'cdc.shop._xc3_xa9t_xc3_xa9'
    """
    topic = filled(template, words(template, *names), groups, safe)
    if len(topic) > MAX_TOPIC or topic in ("", ".", ".."):
        raise SelectionError(
            "route",
            f"{shown(topic)} is not a valid topic name",
            f"topic names have 1 to {MAX_TOPIC} characters: give the table a route of its own",
        )
    return topic
