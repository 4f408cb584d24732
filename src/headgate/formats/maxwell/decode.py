"""Maxwell's JSON message, and the variants of it that OceanBase OMS and TiCDC write.

Vendors' documents: Maxwell "Data Format"; OMS "Maxwell JSON message format". Where they differ from
the wire: docs/formats/maxwell.md.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from msgspec import UNSET

from headgate.core import values
from headgate.core.errors import DecodeError
from headgate.core.event import Event
from headgate.core.json import Number, Raw, objects
from headgate.core.limits import MAX_EVENTS_PER_MESSAGE
from headgate.core.options import CommonOptions, option
from headgate.core.values import Convert, micros
from headgate.formats._connect.declared_columns import declared
from headgate.formats.base import Decode, Sniffed
from headgate.formats.maxwell.decode_ddl import DDL_OPS, TYPES, describe_other, one_line
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
from headgate.formats.maxwell.wire import NULL, Wire, read
from headgate.formats.maxwell.words import (
    ATTRIBUTE,
    FULL_SYNC_TS,
    OWN_NAMES,
    ROW_OPS,
    is_tso,
)
from headgate.formats.open_protocol.frames import VERSION

TYPE_WORDS = frozenset(f'"{word}"'.encode() for word in TYPES)
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


LAST_ROW = {"commit": "true"}
"""What places the last row of a transaction, which has no number (codec/sequence.py)."""


def make_decoder(dialect: str | None, options: Options) -> Decode:
    """A decoder of one dialect, or of any where `dialect` is None."""
    plan_of = planner(options.columns)
    lean = options.lean and options.schema is None  # a schema needs to know how values were sent
    to_utc = values.utc(options.timezone)

    def decode(key: bytes | None, value: bytes | None, topic: str | None) -> list[Event]:
        if value is None:
            return [Event("tombstone", format="maxwell", dialect=dialect)]
        if dialect == "ticdc" or (key == VERSION and dialect is None):
            return several(key, value)
        return [one(key, value, dialect)]

    def several(key: bytes | None, value: bytes) -> list[Event]:
        """The rows of a TiCDC message, which may hold several JSON objects."""
        rows = objects(value)
        if len(rows) > MAX_EVENTS_PER_MESSAGE:
            raise DecodeError("too-large", f"{len(rows)} events in one message", "drop it")
        events = [one(key, row, "ticdc") for row in rows]
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
            event_time=None if name == "oms" and ts == FULL_SYNC_TS else micros(ts),
            position=position_of(message),
            format="maxwell",
            dialect=name,
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
        if lean:
            event.extra = LAST_ROW if message.commit else None
        elif extra:
            event.extra = extra
        return event

    return decode


def dialect_of(message: Wire) -> str:
    """Which dialect a message is: OMS writes members that Maxwell omits or does not have."""
    if message.uuid is not UNSET or message.xid.__class__ is str or message.type == "heartbeat":
        return "oms"
    if message.ts is not None and is_tso(message.ts):
        return "ticdc"
    if message.sql is UNSET or message.def_ is UNSET:
        # Maxwell puts the values of a deleted row into `data`.
        old_alone = message.type == "delete" and message.data is None and message.old is not None
        return "ticdc" if old_alone else "maxwell"
    # Maxwell's DDL has `sql` and `def` too, but no row member.
    return "maxwell" if message.type in DDL_OPS and message.commit is None else "oms"


def position_of(message: Wire) -> dict[str, str] | None:
    """The change's position in the source's log, as far as Maxwell was configured to write it."""
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
    """What re-encoding needs and no other field of the event holds."""
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
        # Maxwell embeds JSON documents; the others send them as text.
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
    """The primary key's columns: from the message if it names them, else from the Kafka key."""
    columns = message.primary_key_columns
    if columns is NULL:
        columns = message.primaryKeyColumns
    if columns is not NULL:
        names = key_names(bytes(columns))
        if names is not None:
            return names
    if key is None:
        return None
    row = message.data if message.data is not None else message.old
    return kafka_key(key, row or {})


def recognises(message: Sniffed) -> bool:
    """Maxwell's members, or `encrypted` alone; Canal shares most, but its `data` is an array."""
    members = message.members
    if "type" not in members or "database" not in members:
        return list(members) == ["encrypted"]
    data = bytes(members.get("data", NULL))[:1]
    if "isDdl" in members or "mysqlType" in members or data == b"[":
        return False
    has_member = data == b"{" or "def" in members or "encrypted" in members
    return has_member or bytes(members["type"]) in TYPE_WORDS
