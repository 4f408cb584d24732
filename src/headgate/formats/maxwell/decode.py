"""Maxwell's JSON message, and what OceanBase OMS and TiCDC made of it.

Vendors' documents: Maxwell "Data Format"; OMS "Maxwell JSON message format". Where they differ from
the wire: docs/formats/maxwell.md.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from headgate.core import values
from headgate.core.errors import DecodeError
from headgate.core.event import ColumnType, Event, Types
from headgate.core.json import Int64, Number, Raw, members, objects, parse, reader
from headgate.core.limits import MAX_EVENTS_PER_MESSAGE
from headgate.core.options import CommonOptions, option
from headgate.core.values import Convert, micros
from headgate.formats._connect.columns import declared
from headgate.formats._ticdc.ddl_codes import DDL_OPS as TIDB_OPS
from headgate.formats._ticdc.ddl_codes import ddl_code
from headgate.formats.base import Decode, Sniffed
from headgate.formats.maxwell.decode_values import (
    NO_COLUMNS,
    Plan,
    apply,
    as_text,
    is_local,
    planner,
    read_typed,
)
from headgate.formats.maxwell.keys import kafka_key, key_names
from headgate.formats.maxwell.words import (
    ATTRIBUTE,
    FULL_SYNC_TS,
    MARKER_OPS,
    OWN_NAMES,
    ROW_OPS,
    is_tso,
)
from headgate.formats.open_protocol.frames import VERSION

DDL_OPS = {
    "table-create": "create",
    "table-alter": "alter",
    "table-drop": "drop",
    "database-create": "create",
    "database-alter": "alter",
    "database-drop": "drop",
}
TYPES = [*ROW_OPS, *MARKER_OPS, *DDL_OPS, "heartbeat"]
TYPE_WORDS = frozenset(f'"{word}"'.encode() for word in TYPES)

NULL = Raw(b"null")
_MICROSECONDS = re.compile(r"[1-9][0-9]{9}\.[0-9]{6}")


@dataclass(frozen=True)
class Options(CommonOptions):
    """Options of maxwell."""

    columns: str | None = option(
        None, "MySQL types of columns, as in CREATE TABLE: 'tags SET, shop.t.flags BIT(8)'"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        declared(self.columns)


class Wire(msgspec.Struct, gc=False):
    """All members that Maxwell and OMS have, also under their camelCase names."""

    type: str
    database: str | None = None
    table: str | None = None
    ts: Int64 | None = None
    data: dict[str, Any] | None = None
    old: dict[str, Any] | None = None
    xid: int | str | None = None
    xoffset: int | None = None
    commit: bool | None = None
    position: str | None = None
    gtid: str | None = None
    server_id: int | None = None
    thread_id: int | None = None
    schema_id: int | None = None
    push_ts: Any = None  # a float would lose digits
    primary_key: Raw = NULL
    primary_key_columns: Raw = NULL
    serverId: int | None = None
    threadId: int | None = None
    schemaId: int | None = None
    pushTs: Any = None
    primaryKey: Raw = NULL
    primaryKeyColumns: Raw = NULL
    query: str | None = None
    comment: str | None = None
    reason: str | None = None
    uuid: str | UnsetType | None = UNSET
    mesh: str | None = None
    charset: str | None = None
    sql: str | UnsetType | None = UNSET
    def_: Raw | UnsetType = msgspec.field(name="def", default=UNSET)


class KnownWire(Wire, gc=False, forbid_unknown_fields=True):
    """The same, refusing a member that would otherwise be skipped unseen."""


class Definition(msgspec.Struct, gc=False):
    """The part of a table definition that an event has columns for."""

    database: str | None = None
    table: str | None = None
    columns: list[Any] | None = None
    primary_key: list[str] | None = msgspec.field(name="primary-key", default=None)


class DdlOld(msgspec.Struct, gc=False):
    """The definition before an ALTER, as its own bytes."""

    old: Raw = NULL


_known = reader(KnownWire)
_any = reader(Wire)
_definition = reader(Definition | None)
_ddl_old = reader(DdlOld)
MEMBERS = {field.encode_name for field in msgspec.structs.fields(Wire)}


def make_decoder(dialect: str | None, options: Options) -> Decode:
    """A decoder of one dialect, or of any where `dialect` is None."""
    plan_of = planner(options.columns)
    lean = options.lean and options.schema is None  # what tells how values came is needed then
    to_utc = values.utc(options.timezone)

    def decode(key: bytes | None, value: bytes | None, topic: str | None) -> list[Event]:
        if value is None:
            return [Event("tombstone", format="maxwell", dialect=dialect)]
        if dialect == "ticdc" or (key == VERSION and dialect is None):
            return several(key, value)
        return [one(key, value, dialect)]

    def several(key: bytes | None, value: bytes) -> list[Event]:
        """The rows of a message of TiCDC, which joins what it sends at a time."""
        found = objects(value)
        if len(found) > MAX_EVENTS_PER_MESSAGE:
            raise DecodeError("too-large", f"{len(found)} events in one message", "drop it")
        events = [one(key, each, "ticdc") for each in found]
        if len(events) > 1 and not lean:
            for index, event in enumerate(events):
                event.position = {"row": str(index)}
        return events

    def one(key: bytes | None, value: bytes, dialect: str | None) -> Event:
        message, attributes = read(value)
        name = dialect or dialect_of(message)
        op = ROW_OPS.get(message.type)
        ts = message.ts
        event = Event(
            "row",
            op,
            message.database or None,
            message.table or None,
            None,
            None,
            None,
            None,
            None,
            None,
            None if name == "oms" and ts == FULL_SYNC_TS else micros(ts),
            None,
            None if lean else position_of(message),
            "maxwell",
            name,
        )
        if name == "ticdc" and ts is not None and is_tso(ts):
            event.commit_ts, event.event_time = ts, (ts >> 18) * 1000
        extra = {} if lean else extra_of(message, attributes)
        pushed = message.push_ts if message.pushTs is None else message.pushTs
        if pushed is not None:
            event.emit_time = pushed_at(pushed, extra)
        if op is None:
            describe_other(event, message, value, extra)
        else:
            place(event, message, value, extra, plan_of and plan_of(event), to_utc)
            event.key = key_of(message, key)
        if extra and not lean:
            event.extra = extra
        return event

    return decode


def read(value: bytes) -> tuple[Any, dict[str, Raw]]:
    """Parse a message; the second part holds the members that are not Maxwell's own."""
    try:
        if not value.isascii():
            str(value, "utf-8")
        return _known.decode(value), {}
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        pass
    found: dict[str, Raw] = parse(members, value)
    if "encrypted" in found:
        raise DecodeError(
            "encrypted",
            "the message is encrypted: Maxwell ran with encrypt=data or encrypt=all",
            "turn Maxwell's option encrypt off, or decrypt the topic before Headgate reads it",
        )
    return parse(_any, value), {n: raw for n, raw in found.items() if n not in MEMBERS}


def dialect_of(message: Wire) -> str:
    """Whose message this is: OMS writes members that Maxwell leaves out or does not have."""
    if message.uuid is not UNSET or message.xid.__class__ is str or message.type == "heartbeat":
        return "oms"
    if message.ts is not None and is_tso(message.ts):
        return "ticdc"
    if message.sql is UNSET or message.def_ is UNSET:
        # Of a deleted row, Maxwell has the values in `data`.
        old_alone = message.type == "delete" and message.data is None and message.old is not None
        return "ticdc" if old_alone else "maxwell"
    # Maxwell's DDL has `sql` and `def` too, but no row member.
    return "maxwell" if message.type in DDL_OPS and message.commit is None else "oms"


def position_of(message: Wire) -> dict[str, str] | None:
    """Where in the source's log the change is, as far as Maxwell was told to say it."""
    position: dict[str, str] = {}
    if message.xid is not None:
        position["xid"] = str(message.xid)
    if message.xoffset is not None:
        position["xoffset"] = str(message.xoffset)
    if message.position is not None:
        file, _, offset = message.position.rpartition(":")
        if file and offset.isdigit() and offset.isascii():
            position["file"], position["pos"] = file, offset
        else:
            position["position"] = message.position
    if message.gtid:
        position["gtid"] = message.gtid
    server = message.server_id if message.serverId is None else message.serverId
    if server is not None:
        position["server_id"] = str(server)
    thread = message.thread_id if message.threadId is None else message.threadId
    if thread is not None:
        position["thread_id"] = str(thread)
    return position or None


def extra_of(message: Wire, attributes: dict[str, Raw]) -> dict[str, str]:
    """What a re-encode needs and no column holds."""
    extra: dict[str, str] = {}
    if message.commit is not None:
        extra["commit"] = "true" if message.commit else "false"
    if message.query is not None:
        extra["query"] = message.query
    if message.comment is not None:
        extra["comment"] = message.comment
    if message.uuid:
        extra["uuid"] = message.uuid
    if message.mesh is not None:
        extra["mesh"] = message.mesh
    schema = message.schema_id if message.schemaId is None else message.schemaId
    if schema is not None:
        extra["schema_id"] = str(schema)
    if message.reason is not None:
        extra["reason"], extra["partial"] = message.reason, "true"
    keys = message.primary_key if message.primaryKey is NULL else message.primaryKey
    if keys is not NULL and bytes(keys) != b"null":
        extra["primary_key"] = one_line(keys)
    for name, raw in attributes.items():
        extra[ATTRIBUTE + name if name in OWN_NAMES else name] = one_line(raw)
    return extra


def one_line(raw: Raw) -> str:
    """JSON as it was sent, without the spaces of one that is laid out in lines.

    >>> one_line(Raw(b'{"a": 1.10}')), one_line(Raw(b'{\\n"a": 1.10}'))
    ('{"a": 1.10}', '{"a":1.10}')
    """
    text = bytes(raw).decode()
    return msgspec.json.format(text, indent=-1) if "\n" in text or "\r" in text else text


def pushed_at(sent: object, extra: dict[str, str]) -> int | None:
    """Microseconds from `push_ts`: whole seconds with up to six decimals, digit by digit.

    >>> pushed_at(Number("1700000000.000001"), {}), pushed_at(1700000000, {})
    (1700000000000001, 1700000000000000)
    """
    if isinstance(sent, Number) and _MICROSECONDS.fullmatch(sent):
        return int(sent.replace(".", ""))
    if not isinstance(sent, (str, int)):
        raise DecodeError("wrong-type", "push_ts is not a number", "check the producer")
    text = values.plain(str(sent))
    whole, _, fraction = text.partition(".")
    seconds = whole.removeprefix("-")
    digits = f"{seconds}{fraction}"
    at = None
    if 0 < len(seconds) <= 11 and digits.isascii() and digits.isdigit():
        at = int(seconds) * 1_000_000 + int(fraction[:6].ljust(6, "0"))
        if whole[0] == "-":
            at = -at if -at >= values.YEAR_ONE else None
    if at is None or fraction[6:].strip("0"):
        extra["push_ts"] = str(sent)
    return at


def place(
    event: Event,
    message: Wire,
    value: bytes,
    extra: dict[str, str],
    plan: Plan | None,
    to_utc: Convert | None,
) -> None:
    """Put the row's images into its event; a partial `old` is completed from `data`."""
    data, old = message.data, message.old
    if data is None and event.op == "delete":
        data, old = old, None
    if data is None:
        raise DecodeError(
            "missing-member", f"{message.type} has no data", "check the format and the producer"
        )
    if event.op != "update":
        old = None
    if plan is None:
        as_text(data, old, value, extra, NO_COLUMNS)
    else:
        event.types = plan.types
        images = (data,) if old is None else (data, old)
        for image in images:
            read_typed(image, plan)
        # Maxwell has JSON as a value of its own, the others as text.
        embedded = plan.documents if event.dialect == "maxwell" else NO_COLUMNS
        as_text(data, old, value, extra, embedded)
        zone = to_utc if is_local(event.dialect, event.op) else None
        for image in images:
            apply(image, plan, zone)
    if event.op == "delete":
        event.before = data
    else:
        event.after = data
        if old is not None:
            event.before = {**data, **old}


def key_of(message: Wire, key: bytes | None) -> tuple[str, ...] | None:
    """The primary key's columns: the value says it, else the Kafka key does, else nothing."""
    told = message.primary_key_columns
    if told is NULL:
        told = message.primaryKeyColumns
    if told is not NULL:
        names = key_names(bytes(told))
        if names is not None:
            return names
    if key is None:
        return None
    row = message.data if message.data is not None else message.old
    return kafka_key(key, row or {})


def describe_other(event: Event, message: Wire, value: bytes, extra: dict[str, str]) -> None:
    """Everything that is not a row: DDL, heartbeat, the begin and end of a bootstrap."""
    type_ = message.type
    if type_ in MARKER_OPS:
        event.kind, event.op = "marker", MARKER_OPS[type_]
    elif type_ == "heartbeat":
        event.kind = "heartbeat"
    elif type_ in DDL_OPS or (event.dialect == "ticdc" and message.sql.__class__ is str):
        event.kind, event.op, event.ddl = "ddl", DDL_OPS.get(type_), message.sql or ""
        if event.dialect == "ticdc":
            event.op = ticdc_op(type_, event.ddl)
            if type_ not in DDL_OPS:
                extra["type"] = type_
        if message.charset is not None:
            extra["charset"] = message.charset
        before = parse(_ddl_old, value).old
        if bytes(before) != b"null":
            extra["old"] = one_line(before)
        describe_definition(event, message, extra)
    else:
        raise DecodeError(
            "unknown-type",
            "type is none that Maxwell has",
            f"known: {', '.join(TYPES)}",
        )


def ticdc_op(type_: str, statement: str) -> str:
    """What a statement does: TiCDC calls many `table-alter`, and has TiDB's own words for others.

    >>> ticdc_op("table-alter", "TRUNCATE TABLE t"), ticdc_op("create view", "CREATE VIEW v AS …")
    ('truncate', 'query')
    """
    if type_.startswith("database-"):
        return DDL_OPS.get(type_, "query")
    return TIDB_OPS.get(ddl_code(statement, DDL_OPS.get(type_)), "query")


def describe_definition(event: Event, message: Wire, extra: dict[str, str]) -> None:
    """What `def` says of the table after the statement: its name, its key, its columns' types."""
    sent = NULL if isinstance(message.def_, UnsetType) else message.def_
    definition = parse(_definition, bytes(sent))
    if definition is None:
        return
    extra["def"] = one_line(sent)
    if event.dialect == "ticdc":
        return  # its types are too rough to be believed: TINYINT is `int`, BLOB is `string`
    if message.type == "table-alter" and (
        (definition.table or message.table) != message.table
        or (definition.database or message.database) != message.database
    ):
        event.op = "rename"
    if definition.columns:  # OMS fills neither the columns nor the key
        event.types = definition_types(definition.columns)
        if definition.primary_key is not None:
            event.key = tuple(definition.primary_key)


def definition_types(columns: list[Any]) -> Types:
    """MySQL type texts from the columns of a table definition.

    >>> definition_types([{"name": "id", "type": "int", "signed": False}])["id"].mysql
    'int unsigned'
    """
    types: Types = {}
    for column in columns:
        if not isinstance(column, dict) or not isinstance(column.get("name"), str):
            raise DecodeError("wrong-type", "a column of def has no name", "check the producer")
        types[column["name"]] = ColumnType(definition_type(column))
    return types


def definition_type(column: dict[str, Any]) -> str | None:
    """One column's MySQL type, as far as a definition tells it."""
    name, labels = column.get("type"), column.get("enum-values")
    if not isinstance(name, str):
        return None
    if isinstance(labels, list) and all(isinstance(label, str) for label in labels):
        quoted = ("'" + s.replace("\\", "\\\\").replace("'", "''") + "'" for s in labels)
        return f"{name}({','.join(quoted)})"
    digits = column.get("column-length")
    if isinstance(digits, int) and digits:
        return f"{name}({digits})"
    return f"{name} unsigned" if column.get("signed") is False else name


def recognises(message: Sniffed) -> bool:
    """Maxwell's members, or `encrypted` alone; Canal shares most, but its `data` is an array."""
    found = message.members
    if "type" not in found or "database" not in found:
        return list(found) == ["encrypted"]
    data = bytes(found.get("data", NULL))[:1]
    if "isDdl" in found or "mysqlType" in found or data == b"[":
        return False
    own = data == b"{" or "def" in found or "encrypted" in found
    return own or bytes(found["type"]) in TYPE_WORDS
