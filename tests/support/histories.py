"""Histories of a small MySQL server, for hypothesis: every kind of change, in any order.

A history is a list of steps, each with a seed that fills in tables, rows and values. Hypothesis
shrinks a failure by leaving steps out.
"""

from __future__ import annotations

from typing import NamedTuple

from history_author import ROW_STEPS, Limits
from history_ddl import DDL_STEPS, TableAuthor
from hypothesis import strategies as st
from mysql_model import Server

WEIGHTS = {"insert": 6, "update": 4, "delete": 2, "alter": 3}
"""Steps that are drawn more often than others."""


class History(NamedTuple):
    """What happened, and the tables at the end."""

    server: Server
    schema: str
    """The CREATE TABLE statements of the tables at the beginning."""


@st.composite
def histories(draw: st.DrawFn, limits: Limits = Limits()) -> History:  # noqa: B008
    """A history within limits; without DDL in it, `schema` has all tables."""
    seeds = st.integers(0, 2**32 - 1)
    first = draw(st.lists(seeds, min_size=1, max_size=limits.tables))
    names = [*ROW_STEPS, "snapshot", *(DDL_STEPS if limits.ddl else ())]
    weighted = [name for name in names for _ in range(WEIGHTS.get(name, 1))]
    steps = draw(
        st.lists(st.tuples(st.sampled_from(weighted), seeds), min_size=1, max_size=limits.steps)
    )
    return written(first, steps, limits)


def written(tables: list[int], steps: list[tuple[str, int]], limits: Limits) -> History:
    """The history of these tables and steps."""
    server = Server()
    author = TableAuthor(server, limits)
    for seed in tables:
        author.step("create", seed)
    schema = ";\n".join(table.definition(name) for name, table in server.tables.items())
    if not limits.ddl:
        server.log.clear()
        server.states.clear()
    for name, seed in steps:
        author.step(name, seed)
    return History(server, schema)
