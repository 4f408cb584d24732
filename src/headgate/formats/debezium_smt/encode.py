"""Debezium's rows without their envelope (ExtractNewRecordState), and OMS's DebeziumSmt."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import UNSET

from headgate.core.errors import UsageError
from headgate.core.event import Event, Record, flattened
from headgate.core.options import option
from headgate.formats._connect import schema as connect_schema
from headgate.formats._connect.encode_rows import (
    CONNECT_FORMATS,
    NOTHING,
    Layout,
    declared,
    declared_key,
    oms_planner,
    planner,
    put_unavailable,
    writers_of,
)
from headgate.formats._connect.options import ValueOptions
from headgate.formats.base import Encode, Encoding
from headgate.formats.debezium.encode import (
    NEW_KEY,
    NO_SCHEMA,
    OLD_KEY,
    OPS,
    OTHERS,
    Starts,
    changes_key,
    finish_key,
    headed,
    key_values,
    type_codes,
)
from headgate.formats.debezium.encode_auxiliary import auxiliary, note, tombstone
from headgate.formats.debezium.encode_oms import oms_encoder, reject_debezium_options
from headgate.formats.debezium.encode_parts import finish, retract
from headgate.formats.debezium.encode_source import PLACES, block_names, make_source
from headgate.formats.debezium_smt.added_fields import (
    REWRITTEN,
    Added,
    added,
    codes_of,
    make_own_fields,
)
from headgate.formats.encoding import written

MODES = ("rewrite", "rewrite-with-tombstone", "tombstone", "delete-to-tombstone", "drop")


@dataclass(frozen=True)
class Options(ValueOptions):
    """Options of debezium-smt when it is written; the transform's own have its names."""

    add_fields: str | None = option(
        None, "metadata put beside the columns: 'op,table,source.ts_ms', as the transform has it"
    )
    add_fields_prefix: str = option("__", "what the names of added fields start with")
    delete_tombstone_handling_mode: str = option(
        "rewrite",
        "how a delete is written: as a row, a row and a null value, a null value, or not at all",
        MODES,
    )


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


def make_encoder(dialect: str, options: Options) -> Encode:
    """An encoder of one dialect."""
    oms = dialect == "oms"
    if oms:
        reject_debezium_options("oms-smt", options)
    schemas = not oms and options.schemas_enable is not False
    rows = row_writer(oms, schemas, options)
    others = oms_encoder(True, False) if oms else auxiliary(options.topic_prefix, schemas)
    own_fields = make_own_fields(options.add_fields_prefix)
    mode = options.delete_tombstone_handling_mode
    usual = [REWRITTEN] if mode.startswith("rewrite") else []
    usual += [added(name, path) for name, path in asked(options).items()]
    carried = carried_by(options)

    def encode(event: Event, lost: list[str]) -> list[Record]:
        own = event.format == "debezium-smt" and event.dialect in (dialect, None)
        if event.kind == "tombstone":
            if own:
                return own_tombstone(event, lost)
            return tombstone(event, lost) if mode == "rewrite-with-tombstone" else []
        if oms and event.kind == "heartbeat":
            retract(lost, BEAT_CODES)  # it has its envelope, and the rows have none
            note(event, lost, "event-time-micros", "emit-time-micros")
        if event.kind != "row":
            return others(event, lost)
        if event.op not in OPS or event.op == "truncate":
            return []
        fields, told = own_fields(event) if own else (usual, carried)
        retract(lost, told)  # the options do not know which fields the row has
        if event.schema is not None and "schema-name" not in told:
            event = flattened(event)
            lost.append("schema-name")
        return rows(event, fields, own, lost)

    return encode


Keyed = tuple[list[Record], Any]
"""The messages of a row, and the values of its key."""
BEAT_CODES = ("database", "table", "event-time", "emit-time")
replace = msgspec.structs.replace


def row_writer(
    oms: bool, schemas: bool, options: Options
) -> Callable[[Event, list[Added], bool, list[str]], list[Record]]:
    """A function from a row, its added fields and whose it is to its messages."""
    plans = {
        own: oms_planner(own) if oms else planner(options, schemas, own) for own in (False, True)
    }
    source_of = make_source(options.topic_prefix)
    mode = options.delete_tombstone_handling_mode

    def rows(event: Event, fields: list[Added], own: bool, lost: list[str]) -> list[Record]:
        if event.op != "update" or not changes_key(event):
            return one(event, fields, own, lost)[0]
        lost.append("key-change")
        gone, old = one(replace(event, op="delete", after=None), fields, own, lost)
        come, new = one(replace(event, op="insert", before=None), fields, own, lost)
        if not gone:
            lost.append("row")
        return [*headed(gone, NEW_KEY, new), *headed(come, OLD_KEY, old)]

    def one(event: Event, fields: list[Added], own: bool, lost: list[str]) -> Keyed:
        layout = plans[event.format in CONNECT_FORMATS](event.types).of(event)
        row = written(event.after or event.before or {}, writers_of(event, layout), lost)
        if not oms:
            put_unavailable(event, row)
        kept = event.extra or NOTHING if event.format in CONNECT_FORMATS else NOTHING
        gone = event.op == "delete"
        bare = gone and not own and not mode.startswith("rewrite")
        source = None
        if schemas or any(field is not REWRITTEN for field in fields):
            source = source_of(event, kept if event.dialect == "debezium" else None)
        told = [] if bare else list(present(event, source, kept, fields))
        starts = NO_SCHEMA
        if schemas and source:
            starts = make_starts(event, layout, source, row, [f for f, _ in told], bare, lost)
        values = None
        if own and "key" in kept:
            key: bytes | None = kept["key"].encode()
        elif oms:
            key = None
        else:
            values = key_values(event, row, lost)
            key = finish_key(starts, values)
        if bare:
            return deletion(mode, starts, key, lost), values
        row |= {field.name: value for field, value in told}
        records = [Record(finish(starts[0], row, starts[2]), key)]
        # A delete that Debezium wrote has its tombstone behind it in the stream.
        followed = own or (event.format == "debezium" and event.dialect == "debezium")
        if gone and mode == "rewrite-with-tombstone" and key is not None and not followed:
            records.append(Record(None, key))
        return records, values

    return rows


def own_tombstone(event: Event, lost: list[str]) -> list[Record]:
    """A null that this format has decoded, as it came: Kafka's own, or the converter's."""
    (record,) = tombstone(event, lost)
    sent = (event.extra or NOTHING).get("value")
    return [record] if sent is None else [Record(sent.encode(), record.key)]


def present(
    event: Event, source: Any, kept: Mapping[str, str], fields: list[Added]
) -> Iterator[tuple[Added, Any]]:
    """The added fields that there are, and their values; the transform leaves out the others."""
    for field in fields:
        value = field.get(event, source, kept)
        if value is UNSET:
            continue
        if value.__class__ is int and field.type == "string":
            field = field._replace(type="int64")
        elif value.__class__ is str and field.type.startswith("int"):
            field = field._replace(type="string")
        yield field, value


def deletion(mode: str, starts: Starts, key: bytes | None, lost: list[str]) -> list[Record]:
    """A delete of which no row is left: nothing, Kafka's null, or a null that has a schema."""
    if mode == "drop":
        return []
    lost.append("deleted-row")
    if mode == "delete-to-tombstone":
        return [Record(None, key)]
    return [Record(starts[0] + b"null" + starts[2], key)]


def make_starts(
    event: Event,
    layout: Layout,
    source: Any,
    row: dict[str, Any],
    fields: list[Added],
    optional: bool,
    lost: list[str],
) -> Starts:
    """The schema blocks of a row, or of what is null in its place."""
    agreed = declared(event, layout, ((row, event.after or event.before),), lost)
    table = block_names(event, source)
    told: tuple[Any, ...] = (table, event.key, optional, tuple(field[:2] for field in fields))
    if agreed[0] is not layout.columns or agreed[1] is not layout.nullable:
        told += declared_key(agreed)

    def make() -> Starts:
        found = connect_schema.columns(agreed[0], event.key or (), agreed[1])
        by_name = {field["field"]: field for field in found}
        key = [by_name[name] for name in event.key or () if name in by_name]
        found += [connect_schema.metadata(name, wire) for name, wire, _ in fields]
        return connect_schema.flat(found, table, optional), connect_schema.key(key, table), b"}"

    starts: Starts = layout.block(told, make)
    return starts


def carried_by(options: Options) -> frozenset[str]:
    """What the added fields carry, and the topic's name."""
    found = codes_of(asked(options).values())
    if (options.topic or "").endswith(".{database}.{table}"):
        found |= {"database", "table"}
    return found


def carries(dialect: str, options: Options) -> frozenset[str]:
    """What a dialect has a place for."""
    if dialect == "oms":
        return frozenset({"bare-values", "heartbeat"})
    found = OTHERS | {"bare-values", "key", "incomplete"} | type_codes(options)
    if options.delete_tombstone_handling_mode != "rewrite-with-tombstone":
        found -= {"tombstone"}
    # The schema's name is counted by the encoder, which knows the fields that a row has.
    return found | carried_by(options) | {"schema-name"}


ENCODING = Encoding(
    Options,
    make_encoder,
    carries,
    has_placeholder=True,
    fullest={
        "debezium": {
            "column_propagate_source_type": True,
            "add_fields": "op,db,schema,table,ts_us,source.ts_us,"
            + ",".join(f"source.{name}" for name in PLACES),
            "delete_tombstone_handling_mode": "rewrite-with-tombstone",
        }
    },
)
