"""OMS's method DataWorks: the DataWorks V2.0 message, as in the document's samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from headgate.core.event import Event, Record, Types
from headgate.core.losses import Lossy
from headgate.core.options import EncodeOptions
from headgate.formats._oms.decode_values import FIRST_MICROS
from headgate.formats._oms.encode_values import row_writers, type_name
from headgate.formats.base import Encode, Encoding
from headgate.formats.dataworks.messages import (
    DDL_OPS,
    MARKER_OPS,
    ROW_OPS,
    VERSION,
    Image,
    Payload,
    Source,
    Statement,
    Times,
)
from headgate.formats.encoding import PerTypeMap, json_value, to_json, whole, written

FORMAT = "dataworks"
ROW_WORDS = {op: word for word, op in ROW_OPS.items()} | {"snapshot": "INSERT"}
DDL_WORDS = {op: word for word, op in DDL_OPS.items()}
MARKER_WORDS = {op: word for word, op in reversed(MARKER_OPS.items())}
"""The first word of each operation."""
NO_SCN = "null"
"""What OMS writes if it has no sequence number."""
FOREIGN = {"dbType": "mysql", "extend": "{}"}
"""Replaces `extra` of an event from another format."""
NOTHING: dict[str, str] = {}


class Schema(msgspec.Struct, gc=False):
    """Source, columns and key."""

    source: Source
    column: Any
    pk: tuple[str, ...] | None


class Message(msgspec.Struct, gc=False):
    """The whole message."""

    version: str
    schema: Schema
    payload: Payload
    extend: Any


class EventTime(msgspec.Struct, gc=False):
    """The time of a short heartbeat."""

    eventTime: int | None


class ShortPayload(msgspec.Struct, gc=False):
    """The payload of a short heartbeat."""

    timestamp: EventTime
    op: str


class ShortHeartbeat(msgspec.Struct, gc=False):
    """The heartbeat of the document's template; its sample has all members."""

    version: str
    payload: ShortPayload


def make_encoder(dialect: str, options: EncodeOptions) -> Encode:
    """An encoder of DataWorks V2.0, the only version."""
    writers_of = row_writers("DataWorks", FORMAT)
    columns = {
        same_format: PerTypeMap(column_planner(same_format)) for same_format in (False, True)
    }

    def encode(event: Event, lost: list[str]) -> list[Record]:
        same_format = event.format == FORMAT
        extra = (event.extra or NOTHING) if same_format else FOREIGN
        if event.kind == "tombstone":
            return [Record(None)]
        if event.kind == "heartbeat" and same_format and is_short(event):
            at = stamp(event.event_time, "event-time-micros", lost)
            beat = ShortPayload(EventTime(at), "HEARTBEAT")
            return [Record(to_json(ShortHeartbeat(VERSION, beat)))]
        op = word(event, extra)
        if op is None:
            return []
        before = after = None
        if event.kind == "row":
            writers = writers_of(event, lost)
            if event.before is not None:
                before = Image(written(event.before, writers, lost))
            if event.after is not None:
                after = Image(written(event.after, writers, lost))
        schema = Schema(
            Source(
                extra.get("dbType"),
                extra.get("dbVersion"),
                event.database,
                event.schema,
                event.table,
            ),
            None if event.types is None else columns[same_format](event.types),
            event.key,
        )
        payload = Payload(
            before=before,
            after=after,
            op=op,
            timestamp=times(event, lost),
            ddl=statement(event, extra),
            scn=scn(event),
        )
        return [Record(to_json(Message(VERSION, schema, payload, extend(extra))))]

    return encode


def column_planner(same_format: bool) -> Callable[[Types | None], Raw]:
    """A function from type map to `column`; this format's own types are written unchanged."""

    def make(types: Types | None) -> Raw:
        columns = (types or {}).items()
        return Raw(to_json([{"name": n, "type": type_name(t, same_format)} for n, t in columns]))

    return make


def is_short(event: Event) -> bool:
    """Whether a heartbeat has nothing but its time."""
    others = (event.extra, event.position, event.commit_ts, event.emit_time)
    return all(other is None for other in others)


def word(event: Event, extra: Mapping[str, str]) -> str | None:
    """`op` of an event; None if the format has no message for it."""
    if event.kind == "row":
        return ROW_WORDS.get(event.op or "")
    if event.kind == "ddl":
        return DDL_WORDS.get(event.op or "", "QUERY")
    if event.kind == "marker":
        return extra.get("op") or MARKER_WORDS.get(event.op or "")
    return "HEARTBEAT" if event.kind == "heartbeat" else None


def stamp(micros: int | None, code: str, lost: list[str]) -> int | None:
    """Milliseconds since the epoch, or microseconds if milliseconds are not enough.

    Microseconds too small to be distinguished from milliseconds are lost, under `code`.

    >>> [stamp(t, "event-time-micros", []) for t in (1620457659000000, 1620457659000001)]
    [1620457659000, 1620457659000001]
    """
    if micros is None:
        return None
    if micros % 1_000:
        if abs(micros) >= FIRST_MICROS:
            return micros
        lost.append(code)
    return micros // 1_000


def times(event: Event, lost: list[str]) -> Times:
    """The member `timestamp`; unknown times are null."""
    checkpoint: Any = (event.position or NOTHING).get("checkpointTime")
    if checkpoint is not None:
        try:
            checkpoint = whole(checkpoint)
        except Lossy:
            checkpoint = None
    return Times(
        stamp(event.event_time, "event-time-micros", lost),
        stamp(event.emit_time, "emit-time-micros", lost),
        checkpoint,
    )


def statement(event: Event, extra: Mapping[str, str]) -> Statement | None:
    """The member `ddl`, which markers may have too."""
    if event.kind == "ddl":
        return Statement(event.ddl or "")
    if event.kind == "marker" and "ddl" in extra:
        return Statement(extra["ddl"])
    return None


def scn(event: Event) -> str:
    """The sequence number, as text."""
    if event.commit_ts is not None:
        return str(event.commit_ts)
    return (event.position or NOTHING).get("scn", NO_SCN)


def extend(extra: Mapping[str, str]) -> Any:
    """The member `extend`: JSON as it was sent."""
    text = extra.get("extend")
    if text is None:
        return UNSET
    return EMPTY if text == "{}" else json_value(text) or text


EMPTY = Raw(b"{}")
CARRIED = frozenset({"insert", "before", "database", "schema-name", "table", "key", "types"})
CARRIED |= {"bare-values"}
CARRIED |= {"commit-ts", "event-time", "event-time-millis", "event-time-micros"}
CARRIED |= {"emit-time", "emit-time-millis", "emit-time-micros"}
CARRIED |= {"ddl", "heartbeat", "transaction"}
CARRIED |= {"position.checkpointTime", "position.scn"}


def carries(dialect: str, options: EncodeOptions) -> frozenset[str]:
    """What the format can represent."""
    return CARRIED


ENCODING = Encoding(EncodeOptions, make_encoder, carries)
