"""The tables that DDL's message defines beside the statement."""

from __future__ import annotations

from headgate.core.event import Event
from headgate.formats import find


def table_definitions(event: Event) -> str:
    """The tables that a DDL event's message defines, as CREATE TABLE statements; may be empty.

    >>> table_definitions(Event("ddl", "create", ddl="CREATE TABLE t (id INT)", format="maxwell"))
    ''
    """
    format = find(event.format)
    return "" if format is None or format.definitions is None else format.definitions(event)
