"""Debezium's messages that are no rows: schema changes, transactions, heartbeats, notifications."""

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
    """One table of a schema change; its columns stay in `extra` as they were sent."""

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


class Defined(msgspec.Struct, gc=False):
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
_defined = reader(list[Defined])
_boundary = reader(Boundary)
_heartbeat = reader(Times)
_notification = reader(Notification)


def shape(names: Collection[str]) -> str | None:
    """Which auxiliary message has these members; None where none has.

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
    """The event of a message without `op`, or the error that says what it may be instead."""
    found = parse(members, payload)
    kind = shape(found)
    if kind is None:
        raise no_envelope(found)
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
    event.extra = present(extra)


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
    told: dict[str, Any] = describe_source(source)
    told["query"] = source.query
    told["tableChanges"] = exact_text(message.tableChanges)
    event.extra = present(told)


def table_names(id: str) -> list[str]:
    """The names in a table's id; of a renamed table's two, the first.

    >>> table_names('"shop"."a","shop"."b"'), table_names('"db"."dbo"."t"')
    (['shop', 'a'], ['db', 'dbo', 't'])
    """
    names, at = [], 0
    while match := _NAME.match(id, at):
        names.append(match[1].replace('""', '"'))
        at = match.end()
    return names


def definitions(event: Event) -> str:
    """The tables that a schema change tells beside its statement, as CREATE TABLE statements.

    >>> told = '[{"id":"t","table":{"columns":[{"name":"n","typeName":"INT"}]}}]'
    >>> told = told.replace('"t"', r'"\\"d\\".\\"t\\""')
    >>> definitions(Event("ddl", extra={"tableChanges": told}))
    'CREATE TABLE `d`.`t` (`n` INT)'
    """
    told = (event.extra or {}).get("tableChanges")
    if told is None:
        return ""
    statements = []
    for each in parse(_defined, told.encode()):
        names = list(map(quoted, table_names(each.id)))
        # With three names it is no table of MySQL; a renamed table has its two names here.
        if each.table is not None and len(names) == 2 and '","' not in each.id:
            parts = list(map(column_text, each.table.columns))
            key = ", ".join(map(quoted, each.table.primaryKeyColumnNames))
            parts += [f"PRIMARY KEY ({key})"] if key else []
            statements.append(f"CREATE TABLE {'.'.join(names)} ({', '.join(parts)})")
    return ";\n".join(statements)


def column_text(column: Column) -> str:
    """A column as CREATE TABLE has it.

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


def _beat(event: Event, key: bytes | None, payload: bytes) -> None:
    event.kind = "heartbeat"
    event.emit_time = moment(parse(_heartbeat, payload))
    server = (key_members(key) or {}).get("serverName")
    event.extra = present({"serverName": exact_text(server)}) if server is not None else None


def _notice(event: Event, key: bytes | None, payload: bytes) -> None:
    message = parse(_notification, payload)
    event.op = "empty"
    if message.aggregate_type == "Initial Snapshot":
        event.op = SNAPSHOT_OPS.get(message.type or "", "empty")
    event.emit_time = message.timestamp * 1000 if message.timestamp else None
    found = parse(members, payload)
    event.extra = present({n: exact_text(raw) for n, raw in found.items() if n != "timestamp"})


_DECODERS = {
    "transaction": _transaction,
    "schema-change": _schema,
    "heartbeat": _beat,
    "notification": _notice,
}


def present(told: dict[str, Any]) -> dict[str, str] | None:
    """The members that are there; None where there is none."""
    return {name: value for name, value in told.items() if value is not None} or None


def statement_op(ddl: str) -> str | None:
    """What a DDL statement does, by its first words; None where they do not say.

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


def no_envelope(found: dict[str, Raw]) -> DecodeError:
    """The error for a message that has no `op` and is no auxiliary message either."""
    if "isDdl" in found or "mysqlType" in found:
        return DecodeError("missing-member", "the message has no op", "it looks like canal-json")
    if "type" in found and "database" in found:
        return DecodeError("missing-member", "the message has no op", "it looks like maxwell")
    if "__deleted" in found or "__op" in found:
        return DecodeError("missing-member", "the message has no op", "it is debezium-smt")
    return DecodeError(
        "missing-member",
        "the message has no op",
        "a Debezium envelope has one; rows without an envelope are format debezium-smt",
    )
