"""Maxwell's JSON message as Maxwell and OMS write it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from msgspec import Raw

from headgate.core.errors import UsageError
from headgate.core.event import Event, Record
from headgate.core.losses import Lossy
from headgate.core.options import EncodeOptions, names, option, spelled
from headgate.formats.base import Encode, Encoding
from headgate.formats.encoding import changed, is_numbered, number, whole, written
from headgate.formats.maxwell import oms as maxwell_oms
from headgate.formats.maxwell.camel_case import in_camel_case
from headgate.formats.maxwell.ddl import Definitions, change_of
from headgate.formats.maxwell.encode_keys import array_key, hash_key, key_values
from headgate.formats.maxwell.encode_values import (
    NOTHING,
    Message,
    Plan,
    attributes,
    embed,
    finish,
    is_own,
    planner,
    withdraw_loss,
)
from headgate.formats.maxwell.partitioning import MAXWELL
from headgate.formats.maxwell.words import MARKER_OPS, ROW_OPS

ROW_TYPES = {op: word for word, op in ROW_OPS.items()}
MARKER_TYPES = {op: word for word, op in MARKER_OPS.items()}
DDL_PLACES = frozenset({"file", "pos", "position", "gtid", "row"})

Head = Callable[[Event, Mapping[str, str], str, "list[str]"], Message]
Row = Callable[[Event, Mapping[str, str], Plan, "list[str]"], Record]
Other = Callable[[Event, Mapping[str, str], "list[str]"], "Message | None"]


@dataclass(frozen=True)
class Options(EncodeOptions):
    """Options of maxwell when it is written, named as Maxwell names them."""

    output_commit_info: bool = option(True, "write xid, xoffset and commit where they are known")
    output_xoffset: bool = option(True, "write xoffset where it is known")
    output_binlog_position: bool = option(True, "write position where it is known")
    output_gtid_position: bool | None = option(
        None, "write gtid, null where it is unknown; if unset, only where it is known"
    )
    output_server_id: bool = option(True, "write server_id where it is known")
    output_thread_id: bool = option(True, "write thread_id where it is known")
    output_schema_id: bool = option(True, "write schema_id where it is known")
    output_push_timestamp: bool = option(True, "write push_ts where it is known")
    output_row_query: bool = option(True, "write query where it is known")
    output_primary_keys: bool | None = option(
        None, "write primary_key; if unset, only where the message that was read had it"
    )
    output_primary_key_columns: bool = option(True, "write primary_key_columns where it is known")
    output_nulls: bool = option(True, "write columns that are NULL")
    output_null_zerodates: bool = option(False, "write NULL for 0000-00-00")
    output_naming_strategy: str | None = option(
        None, "how members and columns are named", ("underscore_to_camelcase",)
    )
    output_ddl: bool = option(True, "write DDL")
    kafka_key_format: str = option("hash", "form of the Kafka key", ("hash", "array"))


def make_encoder(dialect: str, options: Options) -> Encode:
    """An encoder of one dialect."""
    rows: Row = maxwell_oms.row
    others: Other = maxwell_oms.other
    if dialect == "oms":
        refuse_native(options)
    else:
        head = native_head(options)
        rows, others = native_rows(options, head), native_others(options, head)
    plans = {
        (same_dialect, numbered): planner(
            dialect, options.timezone, options.output_null_zerodates, same_dialect, numbered
        )
        for same_dialect in (False, True)
        for numbered in (False, True)
    }

    def encode(event: Event, lost: list[str]) -> list[Record]:
        same_dialect = is_own(event, dialect)
        extra = event.extra or NOTHING if same_dialect else NOTHING
        if event.format is None and event.extra and "commit" in event.extra:
            extra = {"commit": event.extra["commit"]}  # captured from a binlog, as Maxwell does
        if event.kind == "row":
            if event.op not in ROW_TYPES:
                return []
            return [rows(event, extra, plans[same_dialect, is_numbered(event)](event.types), lost)]
        if event.kind == "tombstone":
            return [Record(None)]
        message = others(event, extra, lost)
        return [] if message is None else [Record(finish(message))]

    return encode


def refuse_native(options: Options) -> None:
    """Refuse options that OMS does not have."""
    for field in dataclasses.fields(options):
        common = field.name in names(EncodeOptions)
        if not common and getattr(options, field.name) != field.default:
            raise UsageError(f"option {spelled(field.name)} is Maxwell's; write maxwell:maxwell")


def native_head(options: Options) -> Head:
    """A function that makes the members of a row's message before its key and data."""
    commits = options.output_commit_info
    counts = [n for n in ("xid", "xoffset") if commits and (n == "xid" or options.output_xoffset)]
    ids = [n for n in ("server_id", "thread_id") if getattr(options, f"output_{n}")]
    gtids = options.output_gtid_position
    switched_off = {
        "query": not options.output_row_query,
        "commit": not commits,
        "schema_id": not options.output_schema_id,
        "push_ts": not options.output_push_timestamp,
        "primary_key": options.output_primary_keys is False,
    }
    unwanted = frozenset(name for name, off in switched_off.items() if off)

    def head(event: Event, extra: Mapping[str, str], type_: str, lost: list[str]) -> Message:
        message: Message = {"database": event.database, "table": event.table}
        if extra and not unwanted.isdisjoint(extra):
            extra = {n: v for n, v in extra.items() if n not in unwanted}
            lost.append("extra")
        if "query" in extra:
            message["query"] = extra["query"]
        message["type"] = type_
        if event.event_time is not None:
            message["ts"] = event.event_time // 1_000_000
        position = event.position
        if position:
            # Of a captured transaction the last row has no number, as with Maxwell.
            is_last = event.format is None and extra.get("commit") == "true"
            put_numbers(message, position, counts[:1] if is_last else counts, lost)
        if "commit" in extra:
            message["commit"] = extra["commit"] == "true"
        if position or gtids:
            put_place(message, position or NOTHING, options, lost)
        if position:
            put_numbers(message, position, ids, lost)
        if extra:
            put_numbers(message, extra, ("schema_id",), lost)
        if options.output_push_timestamp:
            pushed = push_time(event.emit_time, extra.get("push_ts"))
            if pushed is not None:
                message["push_ts"] = pushed
        if extra:
            if "comment" in extra:
                message["comment"] = extra["comment"]
            message.update(attributes(extra, lost))
            if "reason" in extra:  # a dead letter, which has few of the other members
                message["reason"] = extra["reason"]
                withdraw_loss("incomplete", lost)
        return message

    return head


def put_numbers(
    message: Message, texts: Mapping[str, str], wanted: Iterable[str], lost: list[str]
) -> None:
    """Write members that are whole numbers."""
    for name in wanted:
        text = texts.get(name)
        if text is not None:
            try:
                message[name] = whole(text)
            except Lossy:
                lost.append("extra" if name == "schema_id" else "position")


def put_place(
    message: Message, position: Mapping[str, str], options: Options, lost: list[str]
) -> None:
    """Write a change's position in the binlog."""
    if options.output_binlog_position:
        file, offset = position.get("file"), position.get("pos")
        if file and offset and offset.isdigit():
            message["position"] = f"{file}:{offset}"
        elif ":" in position.get("position", ""):  # OMS puts a time there
            message["position"] = position["position"]
        elif file or offset:
            lost.append("position")
    gtid = position.get("gtid")
    if options.output_gtid_position or (gtid and options.output_gtid_position is None):
        message["gtid"] = gtid


def push_time(micros: int | None, sent: str | None) -> Any:
    """Seconds with the digits that Java's sum of two decimals has.

    >>> [bytes(push_time(t, None)).decode() for t in (1_500_000, 2_000_000, 3_000_001)]
    ['1.5', '2.0', '3.0000010']
    """
    if sent is not None:  # finer than microseconds, or not a number
        try:
            return number(sent)
        except Lossy:
            return sent
    if micros is None:
        return None
    seconds, part = divmod(abs(micros), 1_000_000)
    digits = f"{part:06d}".rstrip("0")
    # Below a thousandth, Java writes the fraction as 1.0E-6, whose zero stays.
    zero = "0" if part < 1_000 and len(digits.lstrip("0")) < 2 else ""
    return Raw(f"{'-' if micros < 0 else ''}{seconds}.{digits}{zero}".encode())


def native_rows(options: Options, head: Head) -> Row:
    """A function that makes the message and the Kafka key of a row."""
    keys, columns = options.output_primary_keys, options.output_primary_key_columns
    nulls, camel = options.output_nulls, options.output_naming_strategy is not None
    key_bytes = hash_key if options.kafka_key_format == "hash" else array_key

    def row(event: Event, extra: Mapping[str, str], plan: Plan, lost: list[str]) -> Record:
        op, key = event.op or "", event.key
        message = head(event, extra, ROW_TYPES[op], lost)
        writers = plan.of(event, lost)
        image = (event.before if op == "delete" else event.after) or {}
        data = written(image, writers, lost)
        kafka: bytes | None = None
        if key:
            values = key_values(key, data, extra)
            if values is not None:
                kafka = key_bytes(event, key, values)
            if keys and values is not None and "primary_key" not in extra:
                message["primary_key"] = values
        elif key is not None and keys and "primary_key" not in extra:
            message["primary_key"] = []
        if "primary_key" in extra and keys is not False:
            message["primary_key"] = embed(extra["primary_key"], lost)
        if key is not None:
            if columns:
                message["primary_key_columns"] = key
            elif kafka is None:
                lost.append("key")
        message["data"] = data
        before = event.before
        if op == "update" and before is not None:
            old = changed(before, image)
            if old:
                message["old"] = written(old, writers, lost)
            if not old or not image.keys() <= before.keys():
                lost.append("before" if not old else "incomplete")
        if not nulls:
            leave_nulls_out(message, lost)
        return Record(finish(in_camel_case(message) if camel else message), kafka)

    return row


def leave_nulls_out(message: Message, lost: list[str]) -> None:
    """Remove the columns that are NULL from a message."""
    for name in ("data", "old"):
        image = message.get(name)
        if image and None in image.values():
            message[name] = {n: v for n, v in image.items() if v is not None}
            lost.append("null-columns")


def native_others(options: Options, head: Head) -> Other:
    """A function that makes the message of a DDL statement or of a bootstrap's start and end."""
    definitions = Definitions(options.schema)

    def other(event: Event, extra: Mapping[str, str], lost: list[str]) -> Message | None:
        if event.kind == "ddl":
            return ddl(event, extra, definitions, options, lost) if options.output_ddl else None
        if event.op not in MARKER_TYPES:
            return None
        message = head(event, extra, MARKER_TYPES[event.op], lost)
        message["data"] = {}
        return in_camel_case(message) if options.output_naming_strategy else message

    return other


def ddl(
    event: Event,
    extra: Mapping[str, str],
    definitions: Definitions,
    options: Options,
    lost: list[str],
) -> Message | None:
    """A DDL message, with its time in milliseconds and the table's definition."""
    change = change_of(event)
    old, new = definitions.follow(event, change)
    if change is None:
        return None
    message: Message = {"type": change.type, "database": change.before[0]}
    if change.type.startswith("database-"):
        if "charset" in extra:
            message["charset"] = extra["charset"]
    else:
        message["table"] = change.before[1]
        if change.type == "table-alter":
            if "old" in extra or old:
                message["old"] = embed(extra["old"], lost) if "old" in extra else old
            if event.op == "rename" and "def" not in extra and change.before == change.after:
                lost.append("ddl-op")
        if "def" in extra:
            message["def"] = embed(extra["def"], lost)
            withdraw_loss("types", lost)
        elif change.type != "table-drop":
            message["def"] = new
            if withdraw_loss("types", lost):
                lost.append("type-details")
    if event.event_time is not None:
        message["ts"] = event.event_time // 1_000
        if withdraw_loss("event-time-millis", lost) and event.event_time % 1_000:
            lost.append("event-time-micros")
    if event.ddl:
        message["sql"] = event.ddl
    message.update(attributes(extra, lost))
    position = event.position or NOTHING
    put_place(message, position, options, lost)
    if "position" not in lost and not position.keys() <= DDL_PLACES:
        lost.append("position")
    if options.output_schema_id:
        put_numbers(message, extra, ("schema_id",), lost)
    if event.emit_time is not None and options.output_push_timestamp:
        lost.append("emit-time")
    return message


ROWS = frozenset({"insert", "before", "database", "table", "key", "bare-values", "event-time"})
PLACES = {
    "output_binlog_position": ("file", "pos", "position"),
    "output_gtid_position": ("gtid",),
    "output_commit_info": ("xid", "xoffset"),
    "output_server_id": ("server_id",),
    "output_thread_id": ("thread_id",),
}


def carries(dialect: str, options: Options) -> frozenset[str]:
    """What a dialect can represent."""
    if dialect == "oms":
        return ROWS | {"ddl", "heartbeat", "position.xid", "position.position"}
    carried = ROWS | {"snapshot", "snapshot-marker"}
    for switch, places in PLACES.items():
        if getattr(options, switch) is not False:
            carried |= {f"position.{name}" for name in places}
    if not options.output_xoffset:
        carried -= {"position.xoffset"}
    if options.output_push_timestamp:
        carried |= {"emit-time", "emit-time-millis", "emit-time-micros"}
    if options.output_ddl:
        carried |= {"ddl"}
    return carried


ENCODING = Encoding(
    Options, make_encoder, carries, {"maxwell": MAXWELL, "oms": MAXWELL}, kafka_only=True
)
