"""OMS's method SharePlex: `data`, `key` and `meta`, as in the document's samples."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, timedelta
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
from msgspec import UNSET

from headgate.core.event import Event, Record
from headgate.core.losses import Lossy
from headgate.core.options import EncodeOptions
from headgate.core.values import EPOCH, is_repeated
from headgate.formats._oms.encode_values import key_values, row_writers
from headgate.formats.base import Encode, Encoding
from headgate.formats.encoding import Writers, changed, to_json, whole, written

FORMAT = "shareplex"
ROW_OPS = {"insert": "ins", "update": "upd", "delete": "del", "snapshot": "ins"}
NO_SCN = "null"
"""What OMS writes if it has no sequence number."""
FOREIGN = {"size": "0"}
"""Replaces `extra` of an event from another format."""
UNPLACED = {"seq": "0", "idx": "0/0"}
"""Defaults for the position of an event from another format."""
NOTHING: dict[str, str] = {}

WriteTime = Callable[["int | None", "list[str]"], "str | None"]


# One class per order of members; UNSET members are not written.


class Meta(msgspec.Struct, gc=False):
    """`meta` of rows and DDL."""

    posttime: str | None
    op: str
    size: Any
    time: str | None
    idx: str | None
    seq: Any
    table: str | None
    rowid: str | None
    trans: str | None
    scn: str


class HeartbeatMeta(msgspec.Struct, gc=False):
    """`meta` of heartbeats."""

    time: str | None
    op: str
    rowid: str | None
    trans: str | None
    seq: Any
    size: Any
    table: str | None
    idx: str | None
    posttime: str | None
    scn: str


class Message(msgspec.Struct, gc=False):
    """A row or a DDL statement."""

    data: dict[str, Any]
    meta: Meta
    key: Any = UNSET
    sql: Any = UNSET


class Heartbeat(msgspec.Struct, gc=False):
    """A heartbeat."""

    meta: HeartbeatMeta
    data: dict[str, Any]


def make_encoder(dialect: str, options: EncodeOptions) -> Encode:
    """An encoder of OMS's SharePlex message; `options.timezone` is the zone of its times."""
    writers_of = row_writers("SharePlex", FORMAT)
    write_time = time_writer(options.timezone)

    def encode(event: Event, lost: list[str]) -> list[Record]:
        message: Any
        if event.kind == "row":
            row, data, key = images(event, writers_of(event, lost), lost)
            meta = describe(event, ROW_OPS[event.op or ""], row, write_time, lost)
            message = Message(data, meta, key)
            check_name(event, lost)
        elif event.kind == "ddl":
            meta = describe(event, "ddl", {}, write_time, lost)
            message = Message({}, meta, sql={"ddl": event.ddl or ""})
            check_name(event, lost)
        elif event.kind == "heartbeat":
            meta = describe(event, "heartbeat", {}, write_time, lost)
            message = Heartbeat(HeartbeatMeta(**msgspec.structs.asdict(meta)), {})
        else:
            return [Record(None)] if event.kind == "tombstone" else []
        return [Record(to_json(message))]

    return encode


def images(
    event: Event, writers: Writers, lost: list[str]
) -> tuple[dict[str, Any], dict[str, Any], Any]:
    """The row, `data` and `key`; for an update, these are what changed and the row before."""
    image = event.before if event.op == "delete" else event.after
    row = written(image or {}, writers, lost)
    if event.op != "update":
        return row, row, UNSET
    if event.before is None:
        if event.format == FORMAT:  # as it was read: only what changed is known
            return row, row, UNSET
        lost.append("before-unknown")
        return row, row, row
    old = written(event.before, writers, lost)
    if not row.keys() >= old.keys():
        lost.append("incomplete")
    return row, changed(row, old), old


def describe(
    event: Event, op: str, row: dict[str, Any], write_time: WriteTime, lost: list[str]
) -> Meta:
    """The member `meta`."""
    same_format = event.format == FORMAT
    extra = (event.extra or NOTHING) if same_format else FOREIGN
    place = event.position or NOTHING
    if not same_format:
        place = UNPLACED | place
    table = full_name(event)
    scn = place.get("scn", NO_SCN) if event.commit_ts is None else str(event.commit_ts)
    return Meta(
        write_time(event.emit_time, lost),
        op,
        bare(extra.get("size")),
        write_time(event.event_time, lost),
        place.get("idx"),
        bare(place.get("seq")),
        table,
        extra.get("rowid") if same_format else row_id(event, table, row),
        place.get("trans"),
        scn,
    )


def full_name(event: Event) -> str | None:
    """The member `table`: database and table, joined by a dot.

    >>> full_name(Event("row", "insert", "shop", "orders"))
    'shop.orders'
    """
    if event.database is None:
        return event.table
    return f"{event.database}.{event.table or ''}"


def check_name(event: Event, lost: list[str]) -> None:
    """Note a name that is read back differently, because it is split at the first dot."""
    if "." in (event.table or "" if event.database is None else event.database):
        lost.append("database")


def row_id(event: Event, table: str | None, row: dict[str, Any]) -> str | None:
    """The member `rowid`: the table and the values of the key."""
    if table is None:
        return None
    image = event.before if event.after is None else event.after
    if not event.key or not image:
        return f"{table}-"
    return f"{table}-{key_values(event.key, image, row) or ''}"


@lru_cache(maxsize=1024)
def bare(text: str | None) -> Any:
    """Digits as a number; other text stays text."""
    try:
        return None if text is None else whole(text)
    except Lossy:
        return text


def time_writer(zone_name: str) -> WriteTime:
    """A function from microseconds since the epoch to local ISO text in whole seconds.

    >>> time_writer("Asia/Shanghai")(1_999_999, [])
    '1970-01-01T08:00:01'
    """
    zone = ZoneInfo(zone_name)

    @lru_cache(maxsize=1024)
    def local_time(second: int) -> tuple[str | None, bool]:
        try:
            at = (EPOCH + timedelta(seconds=second)).replace(tzinfo=UTC).astimezone(zone)
        except OverflowError:  # the first and the last day of the calendar
            return None, False
        return at.replace(tzinfo=None, fold=0).isoformat(), is_repeated(at)

    def write(micros: int | None, lost: list[str]) -> str | None:
        if micros is None:
            return None
        text, repeated = local_time(micros // 1_000_000)
        if repeated:
            lost.append("repeated-hour")
        return text

    return write


CARRIED = frozenset({"insert", "before", "database", "table", "bare-values", "commit-ts"})
CARRIED |= {"event-time", "emit-time", "ddl", "heartbeat"}
CARRIED |= {"position.seq", "position.idx", "position.trans", "position.scn"}


def carries(dialect: str, options: EncodeOptions) -> frozenset[str]:
    """What the format can represent."""
    return CARRIED


ENCODING = Encoding(EncodeOptions, make_encoder, carries)
