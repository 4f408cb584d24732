"""The source of a change as Debezium's connectors write it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from headgate.core.event import Event
from headgate.formats._connect.connectors import TICDC
from headgate.formats._connect.encode_rows import (
    NOTHING,
)
from headgate.formats.debezium.encode_parts import bare, nanos, small
from headgate.formats.debezium.messages import Source
from headgate.formats.encoding import to_json

VERSION, CONNECTOR, PREFIX = "3.6.1.Final", "mysql", "headgate"
"""What the source is called in events that no Debezium wrote."""
PLACES = ("file", "pos", "row", "gtid", "server_id", "thread", "sequence")
OF_MYSQL = (
    *("server_id", "gtid", "file", "pos", "row", "thread", "query"),
    *("commit_ts", "cluster_id"),
)
"""Members that connectors of other databases do not have."""
TEXTS = {"scn", "commit_scn", "start_scn", "rs_id", "row_id", "user_name", "keyspace", "shard"}
"""Members of other connectors that are text, though they may look like numbers."""


def make_source(prefix: str | None) -> Callable[[Event, Mapping[str, str] | None], Source]:
    """A function from an event and what was kept of it to its source."""
    usual_name = prefix or PREFIX

    def source(event: Event, kept: Mapping[str, str] | None) -> Source:
        time = event.event_time or 0
        found = Source(
            VERSION,
            CONNECTOR,
            usual_name,
            time // 1_000,
            "true" if event.op == "snapshot" else "false",
            event.database or "",
            None,
            time,
            nanos(time),
            event.schema or UNSET,
            event.table,
        )
        if event.position is not None:
            place = event.position.get
            found.sequence, found.gtid, found.file = place("sequence"), place("gtid"), place("file")
            found.server_id, found.pos = small(place("server_id")), small(place("pos"))
            found.row, found.thread = small(place("row")), small(place("thread"))
        if kept is not None:
            found.version = kept.get("version", VERSION)
            found.connector = kept.get("connector", CONNECTOR)
            found.name = prefix or kept.get("name", PREFIX)
            found.snapshot = kept.get("snapshot", "false")
            found.query = kept.get("query")
            if found.connector == TICDC:
                of_ticdc(found, event, kept)
        return found

    return source


def of_ticdc(source: Source, event: Event, kept: Mapping[str, str]) -> None:
    """Give a source TiCDC's members: the commit number, and no place in a binlog."""
    source.commit_ts, source.cluster_id = event.commit_ts, kept.get("cluster_id")
    source.file, source.server_id, source.pos, source.row, source.thread = "", 0, 0, 0, 0


def make_written_source(
    prefix: str | None,
) -> Callable[[Event, Mapping[str, str] | None], tuple[Source, Any]]:
    """The same, and what is written for it.

    The rows of a transaction have one and the same where nobody tells their places in the log.
    """
    source_of = make_source(prefix)
    latest: tuple[Any, Source, Raw] | None = None

    def source(event: Event, kept: Mapping[str, str] | None) -> tuple[Source, Any]:
        nonlocal latest
        if event.position is not None or kept is not None:
            own = source_of(event, kept)
            return own, own
        told = (event.event_time, event.op == "snapshot", *names_of(event))
        if latest is None or latest[0] != told:
            shared = source_of(event, None)
            latest = told, shared, Raw(to_json(shared))
        return latest[1:]

    return source


def is_placed(source: Source) -> bool:
    """Whether all of the place in the binlog is known that the connector's schema requires."""
    required = (source.server_id, source.file, source.pos, source.row)
    return None not in required


def with_own_members(source: Source, event: Event, kept: Mapping[str, str]) -> Any:
    """The source of another database's connector: its members in place of MySQL's."""
    found = msgspec.structs.asdict(source)
    for name in OF_MYSQL:
        del found[name]
    if source.schema is UNSET:
        del found["schema"]
    place = {n: t for n, t in (event.position or NOTHING).items() if n not in PLACES}
    own = {n.removeprefix("source."): t for n, t in kept.items() if n.startswith("source.")}
    others = {n: t if n in TEXTS else bare(t) for n, t in (place | own).items()}
    return found | others


def names_of(event: Event) -> tuple[str | None, str | None, str | None]:
    """An event's database, schema and table."""
    return event.database, event.schema, event.table


WITHOUT_DATABASE = ("postgresql", "oracle", "db2")
"""Connectors whose topics and schemas are called `prefix.schema.table`, without the database."""


def block_names(event: Event, source: Source) -> tuple[str | None, ...]:
    """What the names of a table's schema blocks begin with.

    >>> source = make_source("pg")(Event("row", "insert", "d", "t", schema="s"), None)
    >>> block_names(Event("row", "insert", "d", "t", schema="s"), source)
    ('pg', 'd', 's', 't')
    """
    if event.schema and source.connector in WITHOUT_DATABASE:
        return source.name, event.schema, event.table
    return source.name, *names_of(event)
