"""Encode TiCDC Open Protocol as the classic TiCDC (tiflow) or the new architecture writes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from json.encoder import encode_basestring as quote
from typing import Any

import msgspec
import pyarrow as pa

from headgate.core.cache import BoundedCache
from headgate.core.errors import UsageError
from headgate.core.event import Event, Record
from headgate.core.losses import NUMBERS, SIGN
from headgate.core.options import EncodeOptions, option
from headgate.formats import extra_members
from headgate.formats._ticdc.commit_numbers import binlog_number
from headgate.formats._ticdc.ddl_codes import ddl_code
from headgate.formats._ticdc.keys import changes_key, split_update
from headgate.formats._ticdc.partitioning import CLASSIC, NEW
from headgate.formats.base import Encode, Encoding
from headgate.formats.encoding import long_escapes
from headgate.formats.open_protocol.encode_columns import layout_key_of, members, planner
from headgate.formats.open_protocol.frames import VERSION

ROW, DDL, RESOLVED = 1, 2, 3
RECORD_OVERHEAD = 36
"""Kafka's overhead per message in bytes, as TiCDC counts it."""
MAX_TIME = 2**45 * 1_000
"""The first time that does not fit a TSO, in microseconds."""
CUT_DOWN = frozenset({"onlyHandleKey", "claimCheckLocation"})
_MISSING = object()
_HTML = [(c, f"\\u{ord(c):04x}") for c in "<>&\u2028\u2029"]


@dataclass(frozen=True)
class Options(EncodeOptions):
    """Options for writing open-protocol, named as in TiCDC."""

    max_batch_size: int = option(16, "most rows in one message")
    max_message_bytes: int = option(
        10_485_760, "rows are joined into messages of at most so many bytes"
    )
    only_output_updated_columns: bool = option(False, "write only changed columns in p")
    delete_only_output_handle_key_columns: bool = option(
        False, "write only the handle key's columns of a deleted row"
    )
    output_old_value: bool = option(True, "write the row before an update")
    output_raw_change_event: bool = option(
        False, "write an update of a key as one event, not as a delete and an insert"
    )
    compression: str = option("none", "of each value body", ("none", "lz4", "snappy"))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_batch_size < 1:
            raise UsageError("option max-batch-size must be at least 1")


def make_encoder(dialect: str, options: Options) -> Encode:
    """An encoder of one dialect."""
    classic = dialect == "classic"
    row_body = row_writer(dialect, options)
    names = BoundedCache(classic_names if classic else new_names)
    tail = classic_tail if classic else new_tail
    finish = html_escapes if classic else control_escapes
    pack = compressor(options.compression)
    splits = not options.output_raw_change_event

    def record(ts: int, members: str, body: str | None) -> Record:
        key = finish(f'{{"ts":{ts}{members}}}')
        value = b"" if body is None else pack(finish(body))
        return Record(
            len(value).to_bytes(8, "big") + value, VERSION + len(key).to_bytes(8, "big") + key
        )

    def row(event: Event, lost: list[str]) -> Record:
        ts = commit_ts(event, lost)
        end = tail(event, lost) if event.extra else ',"t":1'
        return record(ts, names[event.database, event.table] + end, row_body(event, lost))

    def encode(event: Event, lost: list[str]) -> list[Record]:
        kind = event.kind
        if kind == "row":
            if splits and changes_key(event):
                lost.append("key-change")
                return [row(part, lost) for part in split_update(event)]
            return [row(event, lost)]
        if kind == "watermark":
            return [record(commit_ts(event, lost), ',"t":3', None)]
        if kind == "ddl":
            members = names[event.database, event.table] + ',"t":2'
            return [record(commit_ts(event, lost), members, ddl_body(event))]
        if kind == "tombstone":
            return [Record(None)]
        if kind == "marker" and event.op == "empty":
            if event.commit_ts is None:
                return [Record(b"", VERSION)]
            members = names[event.database, event.table] + tail(event, lost)
            return [record(event.commit_ts, members, "{}")]
        return []

    return encode


def row_writer(dialect: str, options: Options) -> Callable[[Event, list[str]], str]:
    """A function from a row to the JSON of its value."""
    classic = dialect == "classic"
    layouts = planner(dialect, options.timezone)
    only_updated = options.only_output_updated_columns
    only_handle = options.delete_only_output_handle_key_columns
    old_value = options.output_old_value

    def row_body(event: Event, lost: list[str]) -> str:
        op = event.op
        image = event.before if op == "delete" else event.after
        if not image:
            lost.append("before-unknown")
            return "{}"
        plans = layouts(event.types)
        key = layout_key_of(event, image)
        layout = plans[key]
        if layout.lost:
            lost += layout.lost
        if op == "delete":
            slots = layout.columns
            if only_handle and 0 < len(layout.handle) < len(slots):
                lost.append("deleted-row")
                slots = layout.handle
            return f'{{"d":{members(image, slots, lost)}}}'
        now = members(image, layout.columns, lost)
        if op != "update" or not old_value:
            return f'{{"u":{now}}}'
        before = event.before
        if before is None:
            then = None if classic else unnamed_old(event)
            if then is None:
                lost.append("before-unknown")
                then = "{}" if only_updated else now
        else:
            slots = layout.columns
            if key[3] != tuple(before):
                slots = plans[layout_key_of(event, before)].columns
            if only_updated:
                slots = [s for s in slots if before[s[0]] != image.get(s[0], _MISSING)]
            then = members(before, slots, lost)
        if classic and then == "{}":
            lost.append("before")
            return f'{{"u":{now}}}'
        return f'{{"u":{now},"p":{then}}}'

    return row_body


def commit_ts(event: Event, lost: list[str]) -> int:
    """The commit TSO; if unknown, the place in the binlog, or the time as a TSO, or 0."""
    ts, time = event.commit_ts, event.event_time
    if ts is None:
        ts = binlog_number(event)
        if ts is not None:
            lost.append("commit-ts-place")
    if ts is not None:
        if time is not None and time // 1_000 != ts >> 18:
            lost.append("event-time")
        return ts
    if time is not None:
        lost.append("commit-ts-unknown")
    if time is None:
        return 0
    if not 0 < time < MAX_TIME:
        lost.append("event-time")
        return 0
    return time // 1_000 << 18


def classic_names(names: tuple[str | None, str | None]) -> str:
    """The classic TiCDC omits a missing name.

    >>> classic_names(("shop", None))
    ',"scm":"shop"'
    """
    database, table = names
    return (f',"scm":{quote(database)}' if database else "") + (
        f',"tbl":{quote(table)}' if table else ""
    )


def new_names(names: tuple[str | None, str | None]) -> str:
    """The new TiCDC writes a missing name as an empty string.

    >>> new_names(("shop", None))
    ',"scm":"shop","tbl":""'
    """
    database, table = names
    return f',"scm":{quote(database or "")},"tbl":{quote(table or "")}'


def classic_tail(event: Event, lost: list[str]) -> str:
    """The members after the names in the key of a row; classic: rid, ptn, t, ohk, ccl."""
    numbers, cut_down, location = key_members(event, lost)
    return (
        "".join(f',"{name}":{number}' for name, number in numbers.items())
        + ',"t":1'
        + (',"ohk":true' if cut_down else "")
        + location
    )


def new_tail(event: Event, lost: list[str]) -> str:
    """The members after the names in the key of a row; new: t, ohk, ccl, ptn."""
    numbers, cut_down, location = key_members(event, lost)
    if "rid" in numbers and event.dialect is None:
        lost.append("extra")
    members = ',"t":1' + (',"ohk":true' if cut_down else "")
    if location:  # this TiCDC writes it twice; the last one counts
        members = ',"t":1,"ohk":true' + (location if cut_down else ',"ohk":false' + location)
    return members + (f',"ptn":{numbers["ptn"]}' if "ptn" in numbers else "")


def key_members(event: Event, lost: list[str]) -> tuple[dict[str, str], bool, str]:
    """From `extra`: rid and ptn, whether the row is cut down, and where the whole row is."""
    extra = event.extra or {}
    if event.format != "open-protocol":
        # A claim check's file is in the original format: its location is useless in another.
        cut_down = not CUT_DOWN.isdisjoint(extra)
        if not cut_down and not extra_members().partial.isdisjoint(extra):
            lost.append("incomplete")
        return {}, cut_down, ""
    numbers = {name: extra[name] for name in ("rid", "ptn") if is_int64(extra.get(name))}
    location = extra.get("claimCheckLocation")
    ccl = f',"ccl":{quote(location)}' if location else ""
    return numbers, extra.get("onlyHandleKey") == "true", ccl


def is_int64(text: str | None) -> bool:
    """Whether a text is a 64-bit integer as JSON writes it.

    >>> is_int64("-7"), is_int64("07"), is_int64(None)
    (True, False, False)
    """
    try:
        return text is not None and len(text) <= 20 and str(int(text)) == text
    except ValueError:
        return False


def unnamed_old(event: Event) -> str | None:
    """A `p` of the new TiCDC without column names, exactly as it was received."""
    text = (event.extra or {}).get("unnamedOld") if event.format == "open-protocol" else None
    try:
        if text is not None and msgspec.json.decode(text).__class__ is dict:
            return text
    except (msgspec.MsgspecError, RecursionError):
        pass
    return None


def ddl_body(event: Event) -> str:
    """A DDL statement and TiDB's action number."""
    ddl_type = (event.extra or {}).get("ddlType") if event.format == "open-protocol" else None
    statement = event.ddl or ""
    code = ddl_type if is_int64(ddl_type) else ddl_code(statement, event.op)
    return f'{{"q":{quote(statement)},"t":{code}}}'


def html_escapes(text: str) -> bytes:
    """The escapes of Go's encoding/json, from Go 1.22.

    >>> html_escapes('"<\\\\b"')
    b'"\\\\u003c\\\\b"'
    """
    for character, escape in _HTML:
        if character in text:
            text = text.replace(character, escape)
    return text.encode()


def control_escapes(text: str) -> bytes:
    """The escapes of json-iterator without HTML: no short form for backspace and form feed.

    >>> control_escapes('"<\\\\b"')
    b'"<\\\\u0008"'
    """
    return long_escapes(text.encode())


def compressor(name: str) -> Callable[[bytes], bytes]:
    """A function that compresses one value body."""
    if name == "none":
        return lambda body: body

    def compress(body: bytes) -> bytes:
        packed: bytes = pa.compress(body, codec=name, asbytes=True)
        return packed

    return compress


class Batches:
    """Joins rows into messages, within TiCDC's limits of rows and bytes."""

    def __init__(self, options: Options) -> None:
        self.most_rows, self.most_bytes = options.max_batch_size, options.max_message_bytes

    def size(self, record: Record) -> int:
        """The bytes that one row adds to a message."""
        return len(record.key or b"") - len(VERSION) + len(record.value or b"")

    def fits(self, records: int, size: int) -> bool:
        """Whether this many rows, of this many bytes in total, fit into one message."""
        return (
            records <= self.most_rows and len(VERSION) + RECORD_OVERHEAD + size <= self.most_bytes
        )

    def join(self, records: list[Record]) -> Record:
        """One message: the version and all keys as its key, all values as its value."""
        if len(records) == 1:
            return records[0]
        return msgspec.structs.replace(
            records[0],
            key=VERSION + b"".join([(r.key or b"")[8:] for r in records]),
            value=b"".join([r.value or b"" for r in records]),
        )


CARRIED = frozenset({"ddl", "watermark", "database", "table", "key", "types", "bare-values"})
CARRIED |= {"commit-ts", "event-time", "event-time-millis", "incomplete", NUMBERS, SIGN}


def carries(dialect: str, options: Any) -> frozenset[str]:
    """What the protocol can represent; without old values, updates look like inserts."""
    return CARRIED | {"insert", "before"} if options.output_old_value else CARRIED


ENCODING = Encoding(
    Options,
    make_encoder,
    carries,
    partition_rules={"classic": CLASSIC, "new": NEW},
    broadcasts_ddl=True,
    packer=Batches,
    binary=True,
    fullest={dialect: {"output_raw_change_event": True} for dialect in ("classic", "new")},
)
