"""Debezium's rows without their envelope (ExtractNewRecordState), and OMS's DebeziumSmt."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import UNSET

from headgate.core.cache import BoundedCache
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
from headgate.formats._connect.options import EncodedValueOptions
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
    key_values,
    type_codes,
    with_header,
)
from headgate.formats.debezium.encode_auxiliary import auxiliary, note, tombstone
from headgate.formats.debezium.encode_oms import oms_encoder, reject_debezium_options
from headgate.formats.debezium.encode_parts import finish, retract
from headgate.formats.debezium.encode_source import POSITION_MEMBERS, block_names, make_source
from headgate.formats.debezium_smt.added_fields import (
    REWRITTEN,
    Added,
    added,
    codes_of,
    make_own_fields,
)
from headgate.formats.debezium_smt.decode import MODES, is_metadata
from headgate.formats.encoding import written


@dataclass(frozen=True)
class Options(EncodedValueOptions):
    """Options for encoding debezium-smt, named as in the transform."""

    add_fields: str | None = option(
        None, "metadata added to the columns: 'op,table,source.ts_ms', as in the transform"
    )
    add_fields_prefix: str = option("__", "the prefix of the names of added fields")
    delete_tombstone_handling_mode: str = option(
        "rewrite",
        "how a delete is written: as a row, a row and a null value, a null value, or not at all",
        MODES,
    )


def requested_fields(options: Options) -> dict[str, str]:
    """The names and paths of the added fields that the options request.

    >>> requested_fields(Options(add_fields="op,source.ts_ms,table:tbl"))
    {'__op': 'op', '__source_ts_ms': 'source.ts_ms', '__tbl': 'table'}
    """
    paths: dict[str, str] = {}
    for part in (options.add_fields or "").split(","):
        path, _, name = part.strip().partition(":")
        family, dot, _ = path.rpartition(".")
        if dot and family not in ("source", "transaction"):
            raise UsageError(
                f"option add-fields: unknown field {path!r}; known: op, ts_ms, the source's "
                "members, source.<member> and transaction.<member>"
            )
        if path:
            paths[options.add_fields_prefix + (name or path.replace(".", "_"))] = path
    return paths


def make_encoder(dialect: str, options: Options) -> Encode:
    """An encoder of one dialect."""
    oms = dialect == "oms"
    if oms:
        reject_debezium_options("oms-smt", options)
    schemas = not oms and options.schemas_enable is not False
    rows = with_key_changes(row_writer(oms, schemas, options))
    others = oms_encoder(True, False) if oms else auxiliary(options.topic_prefix, schemas)
    own_fields = make_own_fields(options.add_fields_prefix)
    mode = options.delete_tombstone_handling_mode
    default_fields = [REWRITTEN] if mode.startswith("rewrite") else []
    default_fields += [added(name, path) for name, path in requested_fields(options).items()]
    default_codes = carried_by(options)

    def encode(event: Event, lost: list[str]) -> list[Record]:
        same_dialect = event.format == "debezium-smt" and event.dialect in (dialect, None)
        if event.kind == "tombstone":
            if same_dialect:
                return own_tombstone(event, lost)
            return tombstone(event, lost) if mode == "rewrite-with-tombstone" else []
        if oms and event.kind == "heartbeat":
            retract(lost, HEARTBEAT_CODES)  # unlike rows, heartbeats have an envelope
            note(event, lost, "event-time-micros", "emit-time-micros")
        if event.kind != "row":
            return others(event, lost)
        if event.op not in OPS or event.op == "truncate":
            return []
        if same_dialect and event.op == "delete" and "fields" not in (event.extra or NOTHING):
            if "key" in (event.extra or NOTHING):
                return own_tombstone(event, lost)  # a null value was all that was sent of it
            same_dialect = False
        fields, codes = own_fields(event) if same_dialect else (default_fields, default_codes)
        retract(lost, codes)  # the row's fields are not known from the options
        if event.schema is not None and "schema-name" not in codes:
            event = flattened(event)
            lost.append("schema-name")
        return rows(event, fields, same_dialect, lost)

    return encode


Keyed = tuple[list[Record], Any]
"""The messages of a row, and the values of its key."""
HEARTBEAT_CODES = ("database", "table", "event-time", "emit-time")
RowWriter = Callable[[Event, list[Added], bool, list[str]], Keyed]
"""(row, its added fields, whether this format decoded it, losses) to its messages."""
replace = msgspec.structs.replace


def row_writer(oms: bool, schemas: bool, options: Options) -> RowWriter:
    """The function that writes rows."""
    plans = {
        same_dialect: oms_planner(same_dialect) if oms else planner(options, schemas, same_dialect)
        for same_dialect in (False, True)
    }
    source_of = make_source(options.topic_prefix)
    mode = options.delete_tombstone_handling_mode
    reserved: BoundedCache[tuple[str, ...], frozenset[str]] = BoundedCache(
        lambda names: frozenset(n for n in names if is_metadata(n, options.add_fields_prefix))
    )

    def records_of(event: Event, fields: list[Added], same_dialect: bool, lost: list[str]) -> Keyed:
        layout = plans[event.format in CONNECT_FORMATS](event.types).of(event)
        row = written(event.after or event.before or {}, writers_of(event, layout), lost)
        if not oms:
            put_unavailable(event, row)
        extra = event.extra or NOTHING if event.format in CONNECT_FORMATS else NOTHING
        is_delete = event.op == "delete"
        bare = is_delete and not same_dialect and not mode.startswith("rewrite")
        source = None
        if schemas or any(field is not REWRITTEN for field in fields):
            source = source_of(event, extra if event.dialect == "debezium" else None)
        field_values = [] if bare else list(present_fields(event, source, extra, fields))
        # Readers take a column of such a name for what the transform says of the row.
        taken = frozenset() if bare else reserved[tuple(row)]
        taken |= row.keys() & {field.name for field, _ in field_values}
        if taken:
            lost.append("column-name")
        starts = NO_SCHEMA
        if schemas and source:
            starts = make_starts(
                event, layout, source, row, [f for f, _ in field_values], taken, bare, lost
            )
        values = None
        if same_dialect and "key" in extra:
            key: bytes | None = extra["key"].encode()
        elif oms:
            key = None
        else:
            values = key_values(event, row, lost)
            key = finish_key(starts, values)
        if bare:
            return deletion(mode, starts, key, lost), values
        if taken:
            row = {name: value for name, value in row.items() if name not in taken}
        row |= {field.name: value for field, value in field_values}
        records = [Record(finish(starts[0], row, starts[2]), key)]
        # A delete from Debezium is followed by its own tombstone in the stream.
        followed = same_dialect or (event.format == "debezium" and event.dialect == "debezium")
        if is_delete and mode == "rewrite-with-tombstone" and key is not None and not followed:
            records.append(Record(None, key))
        return records, values

    return records_of


def with_key_changes(records_of: RowWriter) -> Callable[..., list[Record]]:
    """The function that writes a change of the key as a delete and an insert."""

    def rows(
        event: Event, fields: list[Added], same_dialect: bool, lost: list[str]
    ) -> list[Record]:
        if event.op != "update" or not changes_key(event):
            return records_of(event, fields, same_dialect, lost)[0]
        lost.append("key-change")
        deletes, old = records_of(
            replace(event, op="delete", after=None), fields, same_dialect, lost
        )
        inserts, new = records_of(
            replace(event, op="insert", before=None), fields, same_dialect, lost
        )
        if not deletes:
            lost.append("row")
        return [*with_header(deletes, NEW_KEY, new), *with_header(inserts, OLD_KEY, old)]

    return rows


def own_tombstone(event: Event, lost: list[str]) -> list[Record]:
    """A null that this format decoded, as it was sent: Kafka's or the converter's."""
    (record,) = tombstone(event, lost)
    value = (event.extra or NOTHING).get("value")
    return [record] if value is None else [Record(value.encode(), record.key)]


def present_fields(
    event: Event, source: Any, extra: Mapping[str, str], fields: list[Added]
) -> Iterator[tuple[Added, Any]]:
    """The added fields that the message has, and their values; the transform omits the others."""
    for field in fields:
        value = field.get(event, source, extra)
        if value is UNSET:
            continue
        if value.__class__ is int and field.type == "string":
            field = field._replace(type="int64")
        elif value.__class__ is str and field.type.startswith("int"):
            field = field._replace(type="string")
        yield field, value


def deletion(mode: str, starts: Starts, key: bytes | None, lost: list[str]) -> list[Record]:
    """A delete without its row: no message, Kafka's null, or a null with a schema."""
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
    taken: frozenset[str],
    optional: bool,
    lost: list[str],
) -> Starts:
    """The schema blocks of a row without the columns `taken`, or of the null in its place."""
    agreed = declared(event, layout, ((row, event.after or event.before),), lost)
    table = block_names(event, source)
    added_fields = tuple(field[:2] for field in fields)
    cache_key: tuple[Any, ...] = (table, event.key, optional, taken, added_fields)
    if agreed[0] is not layout.columns or agreed[1] is not layout.nullable:
        cache_key += declared_key(agreed)

    def make() -> Starts:
        row_fields = connect_schema.columns(agreed[0], event.key or (), agreed[1])
        by_name = {field["field"]: field for field in row_fields}
        key = [by_name[name] for name in event.key or () if name in by_name]
        names = taken | {field.name for field in fields}
        row_fields = [field for field in row_fields if field["field"] not in names]
        row_fields += [connect_schema.metadata(name, wire) for name, wire, _ in fields]
        return (
            connect_schema.flat(row_fields, table, optional),
            connect_schema.key(key, table),
            b"}",
        )

    starts: Starts = layout.block(cache_key, make)
    return starts


def carried_by(options: Options) -> frozenset[str]:
    """The codes of what the added fields and the topic's name can represent."""
    codes = codes_of(requested_fields(options).values())
    if (options.topic or "").endswith(".{database}.{table}"):
        codes |= {"database", "table"}
    return codes


def carries(dialect: str, options: Options) -> frozenset[str]:
    """The codes of what a dialect can represent."""
    if dialect == "oms":
        return frozenset({"bare-values", "heartbeat"})
    codes = OTHERS | {"bare-values", "key", "incomplete"} | type_codes(options)
    if options.delete_tombstone_handling_mode != "rewrite-with-tombstone":
        codes -= {"tombstone"}
    # The encoder counts the loss of the schema's name, because it depends on the row's fields.
    return codes | carried_by(options) | {"schema-name"}


ENCODING = Encoding(
    Options,
    make_encoder,
    carries,
    has_placeholder=True,
    fullest={
        "debezium": {
            "column_propagate_source_type": True,
            "add_fields": "op,db,schema,table,ts_us,source.ts_us,"
            + ",".join(f"source.{name}" for name in POSITION_MEMBERS),
            "delete_tombstone_handling_mode": "rewrite-with-tombstone",
        }
    },
)
