"""Debezium's messages other than rows: schema changes, transactions, heartbeats, notifications."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

import msgspec

from headgate.core.errors import DecodeError
from headgate.core.event import Event
from headgate.core.json import Int64, Raw, exact_text, members, parse, reader
from headgate.formats._connect.keys import key_members
from headgate.formats.debezium.source import (
    NO_SOURCE,
    Millis,
    Source,
    Times,
    describe_source,
    is_oms,
    moment,
    position_of,
    source_moment,
)
from headgate.schema.statement import HEAD_WORDS, alter_actions, first_statement

FORMAT_NAME = "debezium"
TIME_MEMBERS = {"ts_ms", "ts_us", "ts_ns"}
STATUS_OPS = {"BEGIN": "begin", "END": "commit"}
SNAPSHOT_OPS = {"STARTED": "snapshot_begin", "COMPLETED": "snapshot_end"}
CHANGE_OPS = {"CREATE": "create", "ALTER": "alter", "DROP": "drop"}

_NAME = re.compile(r'\.?"((?:[^"]|"")*+)"')


class TableChange(msgspec.Struct, gc=False):
    """One table of a schema change; its columns are kept in `extra` as sent."""

    type: str | None = None
    id: str | None = None


class Column(msgspec.Struct, gc=False):
    """One column of a table's definition."""

    name: str
    typeName: str
    charsetName: str | None = None
    length: int | None = None
    scale: int | None = None
    optional: bool = True
    generated: bool = False
    enumValues: list[str] | None = None


class Definition(msgspec.Struct, gc=False):
    """A table after a schema change."""

    columns: list[Column]
    primaryKeyColumnNames: list[str] = []


class DefinedTable(msgspec.Struct, gc=False):
    """One table of a schema change, with its columns; none if it was dropped."""

    id: str
    table: Definition | None = None


class SchemaChange(Times, gc=False):
    """A message of the topic `<prefix>`."""

    source: Source | None = None
    databaseName: str | None = None
    schemaName: str | None = None
    ddl: str | None = None
    tableChanges: Raw = Raw(b"null")


class Boundary(Times, gc=False):
    """A message of the topic `<prefix>.transaction`."""

    status: str = ""
    id: str | None = None
    event_count: Int64 | None = None
    data_collections: Raw = Raw(b"null")


class Notification(msgspec.Struct, gc=False):
    """A message of the notification channel."""

    id: str | None = None
    type: str | None = None
    aggregate_type: str | None = None
    timestamp: Millis | None = None


_schema_change = reader(SchemaChange)
_table_changes = reader(list[TableChange] | None)
_defined = reader(list[DefinedTable])
_boundary = reader(Boundary)
_heartbeat = reader(Times)
_notification = reader(Notification)


def shape(names: Collection[str]) -> str | None:
    """The kind of auxiliary message that has these members; None if there is none.

    >>> shape(["ts_ms"]), shape(["op", "after"])
    ('heartbeat', None)
    """
    if "status" in names and "id" in names and "data_collections" in names:
        return "transaction"
    if "tableChanges" in names or ("ddl" in names and "databaseName" in names):
        return "schema-change"
    if names and TIME_MEMBERS.issuperset(names):
        return "heartbeat"
    if "aggregate_type" in names and "type" in names and "id" in names:
        return "notification"
    return None


def decode_auxiliary(key: bytes | None, payload: bytes, dialect: str | None) -> Event:
    """The event of a message without `op`; the error suggests other formats."""
    raw_members = parse(members, payload)
    kind = shape(raw_members)
    if kind is None:
        raise not_an_envelope(raw_members)
    event = Event("marker", format=FORMAT_NAME, dialect=dialect or "debezium")
    _DECODERS[kind](event, key, payload)
    return event


def _transaction(event: Event, key: bytes | None, payload: bytes) -> None:
    message = parse(_boundary, payload)
    event.op = STATUS_OPS.get(message.status)
    if event.op is None:
        raise DecodeError(
            "unknown-type", "status is neither BEGIN nor END", "check the format and the producer"
        )
    event.event_time = moment(message)
    event.position = {"id": message.id} if message.id else None
    extra = {"data_collections": exact_text(message.data_collections)}
    if message.event_count is not None:
        extra["event_count"] = str(message.event_count)
    event.extra = without_nulls(extra)


def _schema(event: Event, key: bytes | None, payload: bytes) -> None:
    message = parse(_schema_change, payload)
    changes = parse(_table_changes, bytes(message.tableChanges)) or []
    source = message.source or NO_SOURCE
    first = changes[0] if changes else TableChange()
    names = table_names(first.id or "")
    event.kind = "ddl"
    event.ddl = message.ddl or ""
    event.op = statement_op(event.ddl) or CHANGE_OPS.get((first.type or "").upper(), "query")
    event.database = message.databaseName or source.db or source.keyspace or None
    event.schema = message.schemaName or source.schema or (names[-2] if len(names) > 2 else None)
    event.table = (names[-1] if len(names) > 1 else source.table) or None
    event.commit_ts = source.commit_ts
    event.event_time = source_moment(source, is_oms(source))
    event.emit_time = moment(message)
    event.position = position_of(source)
    extra: dict[str, Any] = describe_source(source)
    extra["query"] = source.query
    extra["tableChanges"] = exact_text(message.tableChanges)
    event.extra = without_nulls(extra)


def table_names(id: str) -> list[str]:
    """The names in a table's id; of a renamed table, those of the first id.

    >>> table_names('"shop"."a","shop"."b"'), table_names('"db"."dbo"."t"')
    (['shop', 'a'], ['db', 'dbo', 't'])
    """
    names, at = [], 0
    while match := _NAME.match(id, at):
        names.append(match[1].replace('""', '"'))
        at = match.end()
    return names


def definitions(event: Event) -> str:
    """The tables that a schema change defines next to its statement, as CREATE TABLE statements.

    >>> changes = '[{"id":"t","table":{"columns":[{"name":"n","typeName":"INT"}]}}]'
    >>> changes = changes.replace('"t"', r'"\\"d\\".\\"t\\""')
    >>> definitions(Event("ddl", extra={"tableChanges": changes}))
    'CREATE TABLE `d`.`t` (`n` INT)'
    """
    changes = (event.extra or {}).get("tableChanges")
    if changes is None:
        return ""
    statements = []
    for change in parse(_defined, changes.encode()):
        names = list(map(quoted, table_names(change.id)))
        # An id with three names is not from MySQL; a renamed table has two ids.
        if change.table is not None and len(names) == 2 and '","' not in change.id:
            parts = list(map(column_text, change.table.columns))
            key = ", ".join(map(quoted, change.table.primaryKeyColumnNames))
            parts += [f"PRIMARY KEY ({key})"] if key else []
            statements.append(f"CREATE TABLE {'.'.join(names)} ({', '.join(parts)})")
    return ";\n".join(statements)


def column_text(column: Column) -> str:
    """A column as in CREATE TABLE.

    >>> column_text(Column("n", "BIGINT UNSIGNED", length=20, optional=False))
    '`n` BIGINT(20) UNSIGNED NOT NULL'
    """
    base, space, rest = column.typeName.partition(" ")
    numbers = [n for n in (column.length, column.scale) if n is not None and n >= 0]
    parameters = column.enumValues or numbers
    if parameters:
        base += f"({','.join(map(str, parameters))})"
    charset = f" CHARACTER SET {column.charsetName}" if column.charsetName else ""
    generated = " AS (NULL)" if column.generated else ""
    nullable = "" if column.optional else " NOT NULL"
    return f"{quoted(column.name)} {base}{space}{rest}{charset}{generated}{nullable}"


def quoted(name: str) -> str:
    """A name in backquotes."""
    return "`" + name.replace("`", "``") + "`"


def _heartbeat_event(event: Event, key: bytes | None, payload: bytes) -> None:
    event.kind = "heartbeat"
    event.emit_time = moment(parse(_heartbeat, payload))
    server = (key_members(key) or {}).get("serverName")
    event.extra = without_nulls({"serverName": exact_text(server)}) if server is not None else None


def _notification_event(event: Event, key: bytes | None, payload: bytes) -> None:
    message = parse(_notification, payload)
    event.op = "empty"
    if message.aggregate_type == "Initial Snapshot":
        event.op = SNAPSHOT_OPS.get(message.type or "", "empty")
    event.emit_time = message.timestamp * 1000 if message.timestamp else None
    raw_members = parse(members, payload)
    event.extra = without_nulls(
        {n: exact_text(raw) for n, raw in raw_members.items() if n != "timestamp"}
    )


_DECODERS = {
    "transaction": _transaction,
    "schema-change": _schema,
    "heartbeat": _heartbeat_event,
    "notification": _notification_event,
}


def without_nulls(extra: dict[str, Any]) -> dict[str, str] | None:
    """The members that are not null; None if there are none."""
    return {name: value for name, value in extra.items() if value is not None} or None


def statement_op(ddl: str) -> str | None:
    """The operation of a DDL statement by its first words; None if it is unknown.

    >>> statement_op("/* x */ CREATE UNIQUE INDEX i ON t (a)"), statement_op("GRANT ALL")
    ('create_index', None)
    """
    statement = first_statement(ddl, HEAD_WORDS)
    if not statement.is_ddl:
        return None
    if statement.op == "alter":
        first = next(alter_actions(statement), None)
        return "rename" if first is not None and first.kind == "RENAME TABLE" else "alter"
    return statement.verb.lower() if statement.op == "query" else statement.op


def not_an_envelope(raw_members: dict[str, Raw]) -> DecodeError:
    """The error for a message that has no `op` and is not an auxiliary message."""
    if "isDdl" in raw_members or "mysqlType" in raw_members:
        return DecodeError("missing-member", "the message has no op", "it looks like canal-json")
    if "type" in raw_members and "database" in raw_members:
        return DecodeError("missing-member", "the message has no op", "it looks like maxwell")
    if "__deleted" in raw_members or "__op" in raw_members:
        return DecodeError("missing-member", "the message has no op", "it is debezium-smt")
    return DecodeError(
        "missing-member",
        "the message has no op",
        "a Debezium envelope has one; rows without an envelope are format debezium-smt",
    )
