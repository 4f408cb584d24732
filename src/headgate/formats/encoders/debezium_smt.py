"""Debezium's rows without their envelope (ExtractNewRecordState), and OMS's DebeziumSmt."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from headgate.errors import UsageError
from headgate.event import Event, Record
from headgate.formats import Encode, Encoding
from headgate.formats.encoders import connect_schema
from headgate.formats.encoders.common import name_list, written
from headgate.formats.encoders.connect_rows import (
    CONNECT_FORMATS,
    NOTHING,
    Layout,
    columns_of,
    oms_planner,
    planner,
    writers_of,
)
from headgate.formats.encoders.connect_values import ValueOptions
from headgate.formats.encoders.debezium import (
    NO_SCHEMA,
    OPS,
    OTHERS,
    PLACES,
    Starts,
    auxiliary,
    changes_key,
    discard,
    finish,
    finish_key,
    key_values,
    make_source,
    nanos,
    oms_encoder,
    refuse_others,
    small,
    thousandth,
    tombstone,
    type_codes,
)
from headgate.memo import Memo
from headgate.options import option

DELETED = "__deleted"
LONGS = {"ts_ms", "ts_us", "ts_ns", "pos", "server_id", "thread", "lsn"}
LONGS |= {"total_order", "data_collection_order"}
MODES = ("rewrite", "rewrite-with-tombstone", "tombstone")


@dataclass(frozen=True)
class Options(ValueOptions):
    """Options of debezium-smt when it is written; the transform's own have its names."""

    add_fields: str | None = option(
        None, "metadata put beside the columns: 'op,table,source.ts_ms', as the transform has it"
    )
    add_fields_prefix: str = option("__", "what the names of added fields start with")
    delete_tombstone_handling_mode: str = option(
        "rewrite",
        "how a delete is written: as a row, a row and a null value, or a null value",
        MODES,
    )


Get = Callable[[Event, Any, Mapping[str, str]], Any]
"""From an event, its source and what was kept of it to the value of an added field."""

ENVELOPE: dict[str, Get] = {
    "op": lambda event, source, kept: OPS[event.op or ""],
    "ts_ms": lambda event, source, kept: thousandth(event.emit_time),
    "ts_us": lambda event, source, kept: event.emit_time,
    "ts_ns": lambda event, source, kept: nanos(event.emit_time),
}
CARRIED = {
    "op": ("insert", "snapshot"),
    "db": ("database",),
    "table": ("table",),
    "ts_ms": ("emit-time", "emit-time-millis"),
    "ts_us": ("emit-time", "emit-time-millis", "emit-time-micros"),
    "ts_ns": ("emit-time", "emit-time-millis", "emit-time-micros"),
    "source.db": ("database",),
    "source.table": ("table",),
    "source.ts_ms": ("event-time", "event-time-millis"),
    "source.ts_us": ("event-time", "event-time-millis", "event-time-micros"),
    "source.ts_ns": ("event-time", "event-time-millis", "event-time-micros"),
    **{f"source.{name}": (f"position.{name}",) for name in PLACES},
}
"""What each added field carries."""


class Added(NamedTuple):
    """One added field: its name, its type in the schema, and what finds its value."""

    name: str
    type: str
    get: Get


def added(name: str, path: str) -> Added:
    """An added field from `op`, `source.ts_ms`, or a member of the source by its own name.

    >>> added("__op", "op").get(Event("row", "insert"), None, {})
    'c'
    """
    family, _, member = path.rpartition(".")
    wire = "int64" if member in LONGS else "int32" if member == "row" else "string"
    if path in ENVELOPE:
        return Added(name, wire, ENVELOPE[path])
    if family == "transaction":
        return Added(name, wire, lambda event, source, kept: typed(kept.get(path), wire))
    return Added(name, wire, lambda event, source, kept: getattr(source, member, None))


def typed(text: str | None, wire: str) -> Any:
    """A kept value as what it is in the schema."""
    found = None if wire == "string" else small(text)
    return text if found is None else found


def deleted(event: Event, source: Any, kept: Mapping[str, str]) -> str:
    """Whether the row is gone, as text."""
    return "true" if event.op == "delete" else "false"


REWRITTEN = Added(DELETED, "string", deleted)


def asked(options: Options) -> dict[str, str]:
    """The added fields that the options ask for: their names, and where each comes from.

    >>> asked(Options(add_fields="op,source.ts_ms,table:tbl"))
    {'__op': 'op', '__source_ts_ms': 'source.ts_ms', '__tbl': 'table'}
    """
    found: dict[str, str] = {}
    for part in (options.add_fields or "").split(","):
        path, _, name = part.strip().partition(":")
        family, dot, _ = path.rpartition(".")
        if dot and family not in ("source", "transaction"):
            raise UsageError(
                f"option add-fields cannot hold {path!r}; it may hold op, ts_ms, the source's "
                "members, source.<member> and transaction.<member>"
            )
        if path:
            found[options.add_fields_prefix + (name or path.replace(".", "_"))] = path
    return found


def path_of(name: str, prefix: str) -> str:
    """Where an added field of a decoded row came from.

    >>> path_of("__source_ts_ms", "__"), path_of("__op", "__")
    ('source.ts_ms', 'op')
    """
    short = name.removeprefix(prefix)
    for family in ("source_", "transaction_"):
        if short.startswith(family):
            return f"{family[:-1]}.{short[len(family) :]}"
    return short


def own_field(name: str, prefix: str, is_boolean: bool) -> Added:
    """An added field of a row that this format has decoded: from the event, or as it was kept."""
    if name == DELETED:
        if is_boolean:
            return Added(name, "boolean", lambda event, source, kept: event.op == "delete")
        return REWRITTEN
    path = path_of(name, prefix)
    found = added(name, path)
    if path in CARRIED:
        return found
    return found._replace(get=lambda event, source, kept: typed(kept.get(name), found.type))


Fields = tuple[list[Added], frozenset[str]]
"""The added fields in their order, and what they carry."""


def codes_of(paths: Iterable[str]) -> frozenset[str]:
    """What added fields carry."""
    return frozenset(code for path in paths for code in CARRIED.get(path, ()))


def make_own_fields(prefix: str) -> Callable[[Event], Fields]:
    """A function from a row that this format has decoded to its added fields."""

    def make(told: tuple[str | None, str | None]) -> Fields:
        names, booleans = map(name_list, told)
        found = [own_field(name, prefix, DELETED in booleans) for name in names]
        return found, codes_of(path_of(name, prefix) for name in names)

    known = Memo(make)

    def own_fields(event: Event) -> Fields:
        extra = event.extra or NOTHING
        return known[(extra.get("fields"), extra.get("booleans"))]

    return own_fields


def make_encoder(dialect: str, options: Options) -> Encode:
    """An encoder of one dialect."""
    oms = dialect == "oms"
    if oms:
        refuse_others("oms-smt", options)
    schemas = not oms and options.schemas_enable is not False
    plans = {
        own: oms_planner(own) if oms else planner(options, schemas, own) for own in (False, True)
    }
    others = oms_encoder(True, False) if oms else auxiliary(options.topic_prefix, schemas)
    source_of = make_source(options.topic_prefix)
    own_fields = make_own_fields(options.add_fields_prefix)
    mode = options.delete_tombstone_handling_mode
    usual = [] if mode == "tombstone" else [REWRITTEN]
    usual += [added(name, path) for name, path in asked(options).items()]

    def encode(event: Event, lost: list[str]) -> list[Record]:
        own = event.format == "debezium-smt" and event.dialect in (dialect, None)
        if event.kind == "tombstone":
            return tombstone(event, lost) if own or (mode != "rewrite" and not oms) else []
        if event.kind != "row":
            return others(event, lost)
        if event.op not in OPS or event.op == "truncate":
            return []
        if not own:
            return rows(event, usual, False, lost)
        fields, carried = own_fields(event)
        discard(lost, carried)  # the options do not know which fields the row has
        return rows(event, fields, True, lost)

    def rows(event: Event, fields: list[Added], own: bool, lost: list[str]) -> list[Record]:
        if event.op != "update" or not changes_key(event):
            return one(event, fields, own, lost)
        lost.append("key-change")
        gone = msgspec.structs.replace(event, op="delete", after=None)
        come = msgspec.structs.replace(event, op="insert", before=None)
        return [*one(gone, fields, own, lost), *one(come, fields, own, lost)]

    def one(event: Event, fields: list[Added], own: bool, lost: list[str]) -> list[Record]:
        layout = plans[event.format in CONNECT_FORMATS](event.types).of(event)
        row = written(event.after or event.before or {}, writers_of(event, layout), lost)
        kept = event.extra or NOTHING if event.format in CONNECT_FORMATS else NOTHING
        source = None
        if schemas or len(fields) > 1 or not usual:
            source = source_of(event, kept if event.dialect == "debezium" else None)
        starts = (
            make_starts(event, layout, source.name, fields, lost)
            if schemas and source
            else NO_SCHEMA
        )
        if own and "key" in kept:
            key: bytes | None = kept["key"].encode()
        else:
            key = None if oms else finish_key(starts, key_values(event, row, lost))
        gone = event.op == "delete"
        if gone and mode == "tombstone" and not own:
            lost.append("deleted-row")
            return [Record(None, key)]
        for name, _, get in fields:
            row[name] = get(event, source, kept)
        records = [Record(finish(starts[0], row, starts[2]), key)]
        # A delete that Debezium wrote has its tombstone behind it in the stream.
        followed = own or (event.format == "debezium" and event.dialect == "debezium")
        if gone and mode == "rewrite-with-tombstone" and key is not None and not followed:
            records.append(Record(None, key))
        return records

    return encode


def make_starts(
    event: Event, layout: Layout, name: str, fields: list[Added], lost: list[str]
) -> Starts:
    """The schema blocks of a row."""
    columns = columns_of(event, layout, lost)
    table = (name, event.database, event.table)
    told: tuple[Any, ...] = (table, event.key, tuple(field[:2] for field in fields))
    if columns is not layout.columns:
        told += (tuple((n, c.head["type"]) for n, c in columns.items()),)

    def make() -> Starts:
        found = connect_schema.columns(columns, event.key or (), layout.nullable)
        by_name = {field["field"]: field for field in found}
        key = [by_name[name] for name in event.key or () if name in by_name]
        found += [connect_schema.field(name, wire, True) for name, wire, _ in fields]
        return connect_schema.flat(found, table), connect_schema.key(key, table), b"}"

    starts: Starts = layout.block(told, make)
    return starts


def carries(dialect: str, options: Options) -> frozenset[str]:
    """What a dialect has a place for."""
    if dialect == "oms":
        return frozenset({"bare-values", "heartbeat"})
    found = OTHERS | {"bare-values", "key", "incomplete"} | type_codes(options)
    if options.delete_tombstone_handling_mode == "rewrite":
        found -= {"tombstone"}
    if (options.topic or "").endswith(".{database}.{table}"):
        found |= {"database", "table"}
    return found | codes_of(asked(options).values())


ENCODING = Encoding(
    Options,
    make_encoder,
    carries,
    producer="kafka",
    fullest={
        "debezium": {
            "column_propagate_source_type": True,
            "add_fields": "op,db,table,ts_us,source.ts_us,"
            + ",".join(f"source.{name}" for name in PLACES),
            "delete_tombstone_handling_mode": "rewrite-with-tombstone",
        }
    },
)
