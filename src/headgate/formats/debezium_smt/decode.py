"""Debezium's rows without their envelope (ExtractNewRecordState), and OMS's DebeziumSmt.

Vendors' documents: Debezium "New Record State Extraction"; OMS "DebeziumSmt JSON message format".
What such a row no longer contains: docs/formats/debezium-smt.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from headgate.core.cache import BoundedCache
from headgate.core.errors import DecodeError, shown
from headgate.core.event import Event, qualified
from headgate.core.json import members, parse, reader
from headgate.core.options import option
from headgate.core.values import convert, exact_nested, to_text
from headgate.formats._connect.columns import DecodedValueOptions, Writer
from headgate.formats._connect.decode_values import Plan, planner
from headgate.formats._connect.keys import WRAPPER
from headgate.formats.base import Decode, Sniffed
from headgate.formats.debezium import decode as debezium
from headgate.formats.debezium.auxiliary import shape
from headgate.formats.debezium.reader import NO_SCHEMA
from headgate.formats.debezium.source import Times, flag, key_names, key_text, moment
from headgate.formats.debezium.source import tombstone as null_value
from headgate.formats.debezium.unavailable import make_remover
from headgate.schema.known_tables import KnownTables

MODES = ("rewrite", "rewrite-with-tombstone", "tombstone", "delete-to-tombstone", "drop")
"""What the transform makes of a delete."""
DELETED = "__deleted"
KNOWN = {"op", "table", "db", "schema", "ts_ms", "ts_us", "ts_ns", "lsn"}
FAMILIES = ("source_", "transaction_")
POSITIONS = ("file", "pos", "row", "gtid", "server_id", "thread", "sequence")
TIMES = ("ts_ms", "ts_us", "ts_ns")
SOURCE_POSITIONS = {f"source_{n}" for n in POSITIONS}
SOURCE_TIMES = {f"source_{n}" for n in TIMES}
NAMES = ("db", "schema", "table")
IN_EVENT = {DELETED, "op", *NAMES, *(f"source_{n}" for n in NAMES), *TIMES}
IN_EVENT |= SOURCE_POSITIONS | SOURCE_TIMES
DELETED_WORDS = {"true": True, "false": False, True: True, False: False, None: False}

_INVALID_IN_TOPIC = re.compile(r"[^A-Za-z0-9._-]", re.ASCII)
"""Characters that Debezium replaces with an underscore in topic names."""
_WRAPPED = re.compile(rb'\s*\{\s*"(?:schema|payload)"\s*:')
_row = reader(dict[str, Any] | None)
_json = msgspec.json.encode


@dataclass(frozen=True)
class Options(DecodedValueOptions):
    """Options of debezium-smt."""

    database: str | None = option(None, "the rows' database, if neither row nor topic contains it")
    table: str | None = option(None, "the rows' table, if neither row nor topic contains it")
    add_fields_prefix: str = option("__", "the transform's add.fields.prefix")
    delete_tombstone_handling_mode: str | None = option(
        None,
        "the transform's delete.tombstone.handling.mode, where it leaves a null value of a delete",
        MODES,
    )

    @property
    def nulls_are_deletes(self) -> bool:
        """Whether a null value is all that is sent of a delete."""
        return self.delete_tombstone_handling_mode in ("tombstone", "delete-to-tombstone")


class Layout(NamedTuple):
    """The meaning of a row's member names, made once per distinct list of names."""

    meta: dict[str, str]
    """The added fields, with their names without the prefix."""
    extra_fields: list[str]
    """The added fields that are kept in `extra`."""
    fields: dict[str, str]
    timed: bool
    placed: bool
    auxiliary: bool
    envelope: bool


def make_layout(names: tuple[str, ...], prefix: str) -> Layout:
    """Separate added fields from columns.

    >>> make_layout(("id", "__op", "__lsn"), "__").meta
    {'__op': 'op', '__lsn': 'lsn'}
    """
    added = [n for n in names if is_metadata(n, prefix)]
    meta = {n: n if n == DELETED else n.removeprefix(prefix) for n in added}
    flattened = DELETED in meta or (prefix != "" and f"{prefix}op" in meta)
    return Layout(
        meta,
        [n for n, short in meta.items() if short not in IN_EVENT],
        {"fields": _json(added).decode()} if added else {},
        any(short in TIMES or short in SOURCE_TIMES for short in meta.values()),
        any(short in SOURCE_POSITIONS for short in meta.values()),
        not flattened and shape(names) is not None,
        not flattened and "op" in names and "source" in names,
    )


class Rows:
    """Makes the events of rows, without their values."""

    def __init__(self, dialect: str | None, options: Options, plan_of: Callable[..., Plan]) -> None:
        self.dialect, self.options, self.plan_of = dialect, options, plan_of
        self.writer: Writer = "oms" if dialect == "oms" else "debezium"
        self.tables = topic_tables(options.schema)

    def event(
        self, key: bytes | None, topic: str | None, schema: bytes, metadata: dict[str, Any]
    ) -> tuple[Event, Plan]:
        """An event with its names and types, and how its values are read."""
        topic = None if self.dialect == "oms" else topic
        database, namespace, table = table_names(metadata, topic, self.options, self.tables)
        plan = self.plan_of(schema, self.writer, database, qualified(namespace, table))
        event = Event(
            "row",
            None,
            database,
            table,
            schema=namespace,
            key=key_names(key),
            types=plan.types,
            format="debezium-smt",
            dialect=self.dialect or "debezium",
        )
        return event, plan

    def null(self, key: bytes | None, topic: str | None) -> Event:
        """The event of a null value: a tombstone, or a delete of which only the key is left."""
        if key is None or not self.options.nulls_are_deletes or not key_names(key):
            return null_value(key, "debezium-smt", self.dialect)
        schema, payload = unwrap(key)
        row = parse(_row, payload) or {}
        event, plan = self.event(key, topic, schema, {})
        convert(row, plan.converters)
        booleans = plan.booleans if schema != NO_SCHEMA else None
        event.op, event.before = "delete", row
        event.extra = row_to_text(row, payload, booleans, False) | key_text(key)
        return event


def make_decoder(dialect: str | None, options: Options) -> Decode:
    """A decoder of one dialect, or of any where `dialect` is None."""
    prefix = options.add_fields_prefix
    plan_of = planner(options, lambda name: not is_metadata(name, prefix))
    envelope = debezium.make_decoder(dialect, value_options(options))
    layouts: BoundedCache[tuple[str, ...], Layout] = BoundedCache(
        lambda names: make_layout(names, prefix)
    )
    remove_unavailable = make_remover(options.unavailable_value_placeholder)
    rows = Rows(dialect, options, plan_of)

    def decode(key: bytes | None, value: bytes | None, topic: str | None) -> list[Event]:
        if value is None:
            return [rows.null(key, topic)]
        schema, payload = unwrap(value)
        row = parse(_row, payload)
        if row is None:
            event = rows.null(key, topic)
            event.extra = {**(event.extra or {}), "value": value.decode()}
            return [event]
        layout = layouts[tuple(row)]
        if layout.auxiliary or (layout.envelope and isinstance(row["source"], dict)):
            return envelope(key, value, topic)
        if options.strict and dialect is None:
            reject_ambiguous(layout, schema)
        metadata = remove_metadata(row, layout)
        event, plan = rows.event(key, topic, schema, metadata)
        unavailable = remove_unavailable(payload, row, None)
        extra = dict(layout.fields)
        for name in layout.extra_fields:
            member = metadata[layout.meta[name]]
            if member is not None:
                extra[name] = scalar(name, member)
        convert(row, plan.converters)
        schema_booleans = plan.booleans if schema != NO_SCHEMA else None
        extra |= row_to_text(row, payload, schema_booleans, metadata.get(DELETED).__class__ is bool)
        if event.key is not None and debezium.lacks(row, event.key):
            extra |= key_text(key)
        set_operation(event, row, metadata, extra)
        if layout.timed or layout.placed:
            describe_times(event, metadata)
        if unavailable is not None:
            extra["unavailable"] = unavailable
        event.extra = extra or None
        return [event]

    return decode


def remove_metadata(row: dict[str, Any], layout: Layout) -> dict[str, Any]:
    """Remove the fields that the transform added from a row, and return them."""
    metadata = {short: row.pop(name) for name, short in layout.meta.items()}
    if not row:
        raise DecodeError(
            "missing-member", "the row has no columns", "check that the format is right"
        )
    return metadata


def row_to_text(
    row: dict[str, Any],
    payload: bytes,
    booleans_by_schema: Iterable[str] | None,
    bare_deleted: bool,
) -> dict[str, str]:
    """Convert a row's values to canonical text; returns how they were sent."""
    numbers: list[str] = []
    booleans: list[str] = []
    nested: list[str] = []
    if to_text(row, numbers, booleans):
        nested = debezium.nested_names(row)
        exact_nested(row, parse(members, payload))
    if booleans_by_schema is not None:
        numbers, booleans, nested = [], [*booleans_by_schema], []
    if bare_deleted:
        booleans.append(DELETED)
    return bare_columns(numbers, booleans, nested)


def value_options(options: Options) -> debezium.Options:
    """The options that the envelope's decoder has too."""
    shared = {f: getattr(options, f) for f in debezium.Options.__dataclass_fields__}
    return debezium.Options(**shared)


def unwrap(value: bytes) -> tuple[bytes, bytes]:
    """The schema's and the row's bytes.

    >>> unwrap(b'{"payload":{"id":1}}'), unwrap(b'{"id":1}')
    ((b'null', b'{"id":1}'), (b'null', b'{"id":1}'))
    """
    if _WRAPPED.match(value):
        raw_members = parse(members, value)
        if "payload" in raw_members and raw_members.keys() <= WRAPPER:
            payload = bytes(raw_members["payload"])
            if payload[:1] == b"{" or payload == b"null":
                return bytes(raw_members.get("schema", b"null")), payload
    return b"null", value


def is_metadata(name: str, prefix: str) -> bool:
    """Whether the transform added this member; any other is a column.

    >>> [n for n in ("id", "__op", "__mine", "__source_ts_ms") if is_metadata(n, "__")]
    ['__op', '__source_ts_ms']
    """
    if not name.startswith(prefix):
        return name == DELETED
    short = name[len(prefix) :]
    return name == DELETED or short in KNOWN or short.startswith(FAMILIES)


def reject_ambiguous(layout: Layout, schema: bytes) -> None:
    """Reject a row that Debezium and OMS write alike."""
    if schema == NO_SCHEMA and not layout.meta.keys() - {DELETED}:
        raise DecodeError(
            "ambiguous-dialect",
            "a bare row can be of dialect debezium or oms",
            "specify the dialect, as in debezium-smt:oms",
        )


def topic_tables(sql: str | None) -> Mapping[str, tuple[str, str]]:
    """The tables of a schema by the end of their topic's name, if that is unique.

    >>> topic_tables("CREATE TABLE shop.`a.b ü` (id INT)")
    {'shop.a.b__': ('shop', 'a.b ü')}
    """
    if sql is None:
        return {}
    by_topic_end: dict[str, list[tuple[str, str]]] = {}
    for database, table in KnownTables(sql).names():
        if database is not None:
            by_topic_end.setdefault(_INVALID_IN_TOPIC.sub("_", f"{database}.{table}"), []).append(
                (database, table)
            )
    return {end: tables[0] for end, tables in by_topic_end.items() if len(tables) == 1}


def table_names(
    metadata: dict[str, Any],
    topic: str | None,
    options: Options,
    tables: Mapping[str, tuple[str, str]],
) -> tuple[str | None, str | None, str | None]:
    """Database, schema and table: from the options, else the added fields, else the topic.

    The topic ends with database and table, or with `schema.table` if the row has a schema (SQL
    Server's has the database before them). Names may contain dots and characters that topics do not
    allow: a table of the schema file is recognised by the end of its topic.
    """
    database, schema, table = (metadata.get(n) or metadata.get(f"source_{n}") for n in NAMES)
    for name in (database, schema, table):
        if name is not None and not isinstance(name, str):
            raise wrong_type("the added field for database, schema or table is not a string")
    parts = topic.split(".") if topic else []
    if schema is None and tables and (known := topic_table(parts, tables)):
        database, table = database or known[0], table or known[1]
    elif len(parts) > 2:
        last = parts.pop()
        table = table or last
        if schema is not None and parts[-1] == schema:
            parts = parts[1:-1]
        database = database or (parts[-1] if parts else None)
    return options.database or database or None, schema or None, options.table or table or None


def topic_table(parts: list[str], tables: Mapping[str, tuple[str, str]]) -> tuple[str, str] | None:
    """The known table whose topic has these parts."""
    ends = (".".join(parts[at:]) for at in range(1, len(parts)))
    return next((tables[end] for end in ends if end in tables), None)


def set_operation(
    event: Event, row: dict[str, Any], metadata: dict[str, Any], extra: dict[str, str]
) -> None:
    """Set the operation, and the row as the image before or after."""
    word = metadata.get(DELETED)
    deleted = DELETED_WORDS.get(word) if word is None or isinstance(word, str | bool) else None
    code = metadata.get("op")
    op = debezium.OPS.get(code) if isinstance(code, str) else None
    if deleted is None:
        raise wrong_type("__deleted is neither true nor false")
    if code is not None and (op is None or op == "truncate"):
        raise DecodeError("unknown-type", "the added op is not a row change", "known: c, u, d, r")
    if deleted or op == "delete":
        event.op, event.before = "delete", row
        return
    if op == "insert" and flag(metadata.get("source_snapshot")):
        op = "snapshot"
    if op is None:
        op = "update"  # insert or update: only the row's new content is known
        extra["upsert"] = "true"
    event.op, event.after = op, row


def bare_columns(numbers: list[str], booleans: list[str], nested: list[str]) -> dict[str, str]:
    """The untyped columns that were sent as numbers, as true/false, and as objects or arrays."""
    by_kind = (("numbers", numbers), ("booleans", booleans), ("nested", nested))
    return {name: _json(columns).decode() for name, columns in by_kind if columns}


def scalar(name: str, value: Any) -> str:
    """The text of an added field."""
    if isinstance(value, dict | list):
        raise wrong_type(f"the added field {shown(name, 40)} is neither a string nor a number")
    return str(value) if not isinstance(value, bool) else str(value).lower()


def describe_times(event: Event, metadata: dict[str, Any]) -> None:
    """Set times and position from the added fields."""
    event.emit_time = moment(times(metadata, ""))
    event.event_time = moment(times(metadata, "source_"))
    position = {
        n: scalar(n, metadata[f"source_{n}"])
        for n in POSITIONS
        if metadata.get(f"source_{n}") is not None
    }
    event.position = position or None


def times(metadata: dict[str, Any], family: str) -> Times:
    """The added times of one family, validated."""
    sent = {n: metadata.get(f"{family}{n}") for n in TIMES}
    present = {n: time for n, time in sent.items() if time is not None}
    if not present:
        return NO_TIMES
    try:
        return msgspec.convert(present, Times)
    except msgspec.ValidationError:
        raise wrong_type(f"{family}{next(iter(present))} is not a valid time") from None


NO_TIMES = Times()


def wrong_type(what: str) -> DecodeError:
    """The error for an added field of the wrong type."""
    return DecodeError("wrong-type", what, "check add-fields-prefix, or whether it is a column")


def recognises(message: Sniffed) -> bool:
    """The transform's own members, bare or under `payload`."""
    raw_members = message.members
    if "payload" in raw_members and raw_members.keys() <= WRAPPER:
        payload = bytes(raw_members["payload"])
        if payload[:1] != b"{":
            return False
        raw_members = parse(members, payload)
    return DELETED in raw_members or "__op" in raw_members
