"""OMS's method SharePlex: `data`, `key` and `meta`, after Quest SharePlex's JSON.

Vendor's document: OMS "JSON message format of SharePlex". Where it differs from itself:
docs/formats/shareplex.md.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

import msgspec

from headgate.core.errors import DecodeError
from headgate.core.event import Event
from headgate.core.json import Int64, Raw, parse, reader
from headgate.core.options import CommonOptions
from headgate.core.values import EPOCH
from headgate.formats._oms.decode_values import (
    Bare,
    image_text,
    sequence,
    unknown,
)
from headgate.formats.base import Decode, Sniffed
from headgate.schema.statement import ddl_op

ROW_OPS = {"ins": "insert", "upd": "update", "del": "delete"}
OPS = [*ROW_OPS, "ddl", "heartbeat"]
_MICROSECOND = timedelta(microseconds=1)

ReadTime = Callable[["str | None"], "int | None"]


class Meta(msgspec.Struct, gc=False):
    """The change's origin; `seq` is text in the document and a number in its samples."""

    op: str
    table: str | None = None
    time: str | None = None
    posttime: str | None = None
    seq: str | int | None = None
    idx: str | None = None
    size: Int64 | None = None
    rowid: str | None = None
    trans: str | None = None
    scn: str | int | None = None


class Statement(msgspec.Struct, gc=False):
    """The member `sql`."""

    ddl: str | None = None


class Message(msgspec.Struct, gc=False):
    """The whole message."""

    meta: Meta
    data: dict[str, Any] | None = None
    key: dict[str, Any] | None = None
    sql: Statement | None = None


class RawMessage(msgspec.Struct, gc=False):
    """The images alone, each value as its own bytes."""

    data: dict[str, Raw] | None = None
    key: dict[str, Raw] | None = None


_message = reader(Message)
_raw_message = reader(RawMessage)


def make_decoder(dialect: str | None, options: CommonOptions) -> Decode:
    """A decoder of OMS's SharePlex message; `options.timezone` is the zone of its times."""
    read_time = time_reader(options.timezone)

    def decode(key: bytes | None, value: bytes | None, topic: str | None) -> list[Event]:
        if value is None:
            return [Event("tombstone", format="shareplex", dialect="oms")]
        message = parse(_message, value)
        meta = message.meta
        database, dot, table = (meta.table or "").partition(".")
        if not dot:
            database, table = "", database
        event = Event(
            "row",
            ROW_OPS.get(meta.op),
            database or None,
            table or None,
            event_time=read_time(meta.time),
            emit_time=read_time(meta.posttime),
            format="shareplex",
            dialect="oms",
        )
        extra = describe(event, meta)
        if event.op is None:
            other(event, message)
        else:
            row(event, message, value, extra)
        event.extra = extra or None
        return [event]

    return decode


def time_reader(zone_name: str) -> ReadTime:
    """A function from local ISO text to microseconds since the epoch.

    >>> time_reader("Asia/Shanghai")("1970-01-01T08:00:01")
    1000000
    """
    zone = ZoneInfo(zone_name)

    @lru_cache(maxsize=1024)
    def read(text: str | None) -> int | None:
        if not text:
            return None
        try:
            if text[4:14:3] not in ("--T:", "-- :"):  # other ISO forms, such as 2024-W10-1
                raise ValueError
            at = datetime.fromisoformat(text.removesuffix("Z") + "+00:00" * text.endswith("Z"))
            at = (at if at.tzinfo else at.replace(tzinfo=zone)).astimezone(UTC)
        except (ValueError, OverflowError):
            raise DecodeError(
                "invalid-value",
                "meta.time or meta.posttime is not YYYY-MM-DDTHH:mm:ss",
                "check the producer",
            ) from None
        return (at.replace(tzinfo=None) - EPOCH) // _MICROSECOND

    return read


def describe(event: Event, meta: Meta) -> dict[str, str]:
    """Set the event's position in the source; return what only re-encoding needs."""
    position = {}
    if meta.seq is not None:
        position["seq"] = str(meta.seq)
    if meta.idx is not None:
        position["idx"] = meta.idx
    if meta.trans is not None:
        position["trans"] = meta.trans
    event.position = position or None
    if meta.scn is not None:
        sequence(event, "scn", meta.scn)
    extra = {}
    if meta.rowid is not None:
        extra["rowid"] = meta.rowid
    if meta.size is not None:
        extra["size"] = str(meta.size)
    return extra


def row(event: Event, message: Message, value: bytes, extra: dict[str, str]) -> None:
    """Complete the images: an update's `key` is the row before, its `data` only what changed."""
    data, old = message.data or {}, message.key or {}
    check(event.op, data, old)
    bare = Bare([], [])
    if old:
        event.before = image_text(old, (), bare, lambda: raw(value).key)
    image = image_text(data, (), bare, lambda: raw(value).data)
    bare.describe(extra)
    if event.op == "delete":
        event.before = image
    elif old:
        event.after = {**old, **image}
    else:
        event.after = image
        if event.op == "update":
            extra["partial"] = "after"


def check(op: str | None, data: dict[str, Any], old: dict[str, Any]) -> None:
    """Reject a record without a row; only an update has a `key`, and it may have nothing else."""
    if not data and not (op == "update" and old):
        raise DecodeError(
            "missing-member", f"the {op} has no data", "check the format and the producer"
        )
    if old and op != "update":
        raise DecodeError(
            "invalid-value",
            f"the {op} has a key, which the format says it cannot have",
            "check the producer",
        )


def raw(value: bytes) -> Any:
    """The images again, with each value as its own bytes."""
    return parse(_raw_message, value)


def other(event: Event, message: Message) -> None:
    """Complete an event that is not a row: DDL or a heartbeat."""
    op = message.meta.op
    if op == "heartbeat":
        event.kind = "heartbeat"
    elif op == "ddl":
        statement = message.sql.ddl if message.sql is not None else None
        if statement is None:
            raise DecodeError("missing-member", "the ddl has no sql.ddl", "check the producer")
        event.kind, event.op, event.ddl = "ddl", ddl_op(statement), statement
    else:
        raise unknown("meta.op", OPS)


def recognises(message: Sniffed) -> bool:
    """An object `meta` beside `data` or `sql`, and nothing of Canal or OMS Default."""
    members = message.members
    return (
        "meta" in members
        and ("data" in members or "sql" in members)
        and bytes(members["meta"])[:1] == b"{"
        and "recordType" not in members
        and "isDdl" not in members
    )
