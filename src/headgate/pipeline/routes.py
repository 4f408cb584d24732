"""New names for tables, and the topics of their messages."""

from __future__ import annotations

import re

from headgate.errors import UsageError, shown
from headgate.pipeline.job import Route
from headgate.pipeline.patterns import check_groups, groups, split_regex
from headgate.pipeline.refusal import SelectionError
from headgate.topics import safe

MAX_TOPIC = 249
_PLACE = re.compile(r"\{(database|schema|table)\}|\$(\d+)")


class Router:
    """One route, ready to be used."""

    def __init__(self, route: Route) -> None:
        self.route = route
        database, table = split_regex(route.table)
        self.database, self.table = re.compile(database), re.compile(table)
        self.to = split_target(route.to) if route.to is not None else None

    def match(self, database: str, table: str) -> tuple[str, ...] | None:
        """What the groups of the pattern are for a table; None if it does not fit."""
        first, second = self.database.fullmatch(database), self.table.fullmatch(table)
        if first is None or second is None:
            return None
        return (*first.groups(""), *second.groups(""))


def split_target(template: str) -> tuple[str, str]:
    """The database and the table of a route's target.

    >>> split_target("lake.$1")
    ('lake', '$1')
    """
    database, dot, table = template.partition(".")
    if not dot or not database or not table or "." in table:
        raise UsageError(f"{shown(template)} is no target; write database.table, as in 'lake.$1'")
    return database, table


def check_route(route: Route) -> None:
    """Refuse a route whose pattern or templates are wrong.

    >>> check_route(Route("shop.(.*)", "lake.$1"))
    """
    count = sum(map(groups, split_regex(route.table)))
    if route.to is not None:
        split_target(route.to)
        check_groups(route.to, count)
    if route.topic is not None:
        check_groups(route.topic, count)


def topic_name(template: str, names: tuple[str, str], found: tuple[str, ...]) -> str:
    """A topic's name; characters that topics cannot have are written as `_x` and their bytes.

    Different names stay different: where a name itself has such an `_x41`, its `_` is escaped.

    >>> topic_name("cdc.{database}.{table}", ("shop", "été"), ())
    'cdc.shop._xc3_xa9t_xc3_xa9'
    """

    def place(match: re.Match[str]) -> str:
        if match[2]:
            return safe(found[int(match[2]) - 1])
        return safe(names[1] if match[1] == "table" else names[0])

    topic = _PLACE.sub(place, template)
    if len(topic) > MAX_TOPIC or topic in ("", ".", ".."):
        raise SelectionError(
            "route",
            f"no topic can be called {shown(topic)}",
            f"a topic's name has 1 to {MAX_TOPIC} characters: give the table a route of its own",
        )
    return topic
