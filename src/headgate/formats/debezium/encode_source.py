"""The source of a change as Debezium's connectors write it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from headgate.core.event import Event
from headgate.formats._connect.connectors import TICDC
from headgate.formats._connect.encode_rows import (
    NOTHING,
)
from headgate.formats.debezium.encode_parts import bare, int64_or_none, nanos
from headgate.formats.debezium.messages import Source
from headgate.formats.encoding import to_json

VERSION, CONNECTOR, PREFIX = "3.6.1.Final", "mysql", "headgate"
"""The source's members in events that Debezium did not write."""
POSITION_MEMBERS = ("file", "pos", "row", "gtid", "server_id", "thread", "sequence")
OF_MYSQL = (
    *("server_id", "gtid", "file", "pos", "row", "thread", "query"),
    *("commit_ts", "cluster_id"),
)
"""Members that connectors of other databases do not have."""
TEXTS = {"scn", "commit_scn", "start_scn", "rs_id", "row_id", "user_name", "keyspace", "shard"}
"""Members of other connectors that are text, though they may look like numbers."""


def make_source(prefix: str | None) -> Callable[[Event, Mapping[str, str] | None], Source]:
    """A function from an event and its kept members to its source."""
    default_name = prefix or PREFIX

    def source(event: Event, extra: Mapping[str, str] | None) -> Source:
        time = event.event_time or 0
        block = Source(
            VERSION,
            CONNECTOR,
            default_name,
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
            member = event.position.get
            block.sequence, block.gtid = member("sequence"), member("gtid")
            block.file, block.pos = member("file"), int64_or_none(member("pos"))
            block.row, block.thread = int64_or_none(member("row")), int64_or_none(member("thread"))
            block.server_id = int64_or_none(member("server_id"))
            if event.kind == "ddl" and block.file and block.row is None:
                block.row = 0  # of the statements at a position it is the only one
        if extra is not None:
            block.version = extra.get("version", VERSION)
            block.connector = extra.get("connector", CONNECTOR)
            block.name = prefix or extra.get("name", PREFIX)
            block.snapshot = extra.get("snapshot", "false")
            block.query = extra.get("query")
            if block.connector == TICDC:
                of_ticdc(block, event, extra)
        return block

    return source


def of_ticdc(source: Source, event: Event, extra: Mapping[str, str]) -> None:
    """Set TiCDC's members: the commit timestamp, and no position in a binlog."""
    source.commit_ts, source.cluster_id = event.commit_ts, extra.get("cluster_id")
    source.file, source.server_id, source.pos, source.row, source.thread = "", 0, 0, 0, 0


def make_written_source(
    prefix: str | None,
) -> Callable[[Event, Mapping[str, str] | None], tuple[Source, Any]]:
    """The same, together with the JSON to write for it.

    The rows of a transaction share one source if their log positions are unknown.
    """
    source_of = make_source(prefix)
    latest: tuple[Any, Source, Raw] | None = None

    def source(event: Event, extra: Mapping[str, str] | None) -> tuple[Source, Any]:
        nonlocal latest
        if event.position is not None or extra is not None:
            block = source_of(event, extra)
            return block, block
        cache_key = (event.event_time, event.op == "snapshot", *names_of(event))
        if latest is None or latest[0] != cache_key:
            shared = source_of(event, None)
            latest = cache_key, shared, Raw(to_json(shared))
        return latest[1:]

    return source


def has_binlog_position(source: Source) -> bool:
    """Whether every binlog member that the connector's schema requires is known."""
    required = (source.server_id, source.file, source.pos, source.row)
    return None not in required


def with_own_members(source: Source, event: Event, extra: Mapping[str, str]) -> Any:
    """The source of another database's connector: its members in place of MySQL's."""
    members = msgspec.structs.asdict(source)
    for name in OF_MYSQL:
        del members[name]
    if source.schema is UNSET:
        del members["schema"]
    position = {n: t for n, t in (event.position or NOTHING).items() if n not in POSITION_MEMBERS}
    kept_members = {
        n.removeprefix("source."): t for n, t in extra.items() if n.startswith("source.")
    }
    others = {n: t if n in TEXTS else bare(t) for n, t in (position | kept_members).items()}
    return members | others


def names_of(event: Event) -> tuple[str | None, str | None, str | None]:
    """An event's database, schema and table."""
    return event.database, event.schema, event.table


WITHOUT_DATABASE = ("postgresql", "oracle", "db2")
"""Connectors whose topics and schemas are called `prefix.schema.table`, without the database."""


def block_names(event: Event, source: Source) -> tuple[str | None, ...]:
    """The first parts of the names of a table's schema blocks.

    >>> source = make_source("pg")(Event("row", "insert", "d", "t", schema="s"), None)
    >>> block_names(Event("row", "insert", "d", "t", schema="s"), source)
    ('pg', 'd', 's', 't')
    """
    if event.schema and source.connector in WITHOUT_DATABASE:
        return source.name, event.schema, event.table
    return source.name, *names_of(event)


_NOT_IN_TOPICS = re.compile(r"[^A-Za-z0-9._-]")


def topic_names(names: tuple[str | None, ...]) -> tuple[str | None, ...]:
    """Names as the connector has them in topics, after which it calls schemas.

    >>> topic_names(("pg", "d", None, "Täble $x"))
    ('pg', 'd', None, 'T_ble__x')
    """
    return tuple(None if name is None else _NOT_IN_TOPICS.sub("_", name) for name in names)
