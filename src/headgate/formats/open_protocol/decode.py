"""Decode TiCDC Open Protocol: framed JSON keys and values, a pair per row, DDL or resolved event.

Vendor documentation: TiCDC Open Protocol. Where the actual messages differ:
docs/formats/open-protocol.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from json import JSONDecoder
from typing import Any

import msgspec

from headgate.core import values
from headgate.core.cache import weight
from headgate.core.compression import COMPRESSIONS, decompressor
from headgate.core.errors import DecodeError
from headgate.core.event import Event
from headgate.core.json import Int64, Number, Raw, describe, objects, parse, reader
from headgate.core.limits import CACHED_KEY_BYTES
from headgate.core.options import CommonOptions, option
from headgate.core.values import Convert
from headgate.formats._ticdc.ddl_codes import DDL_OPS
from headgate.formats.base import Decode, Sniffed
from headgate.formats.open_protocol.decode_columns import (
    Column,
    Columns,
    Plan,
    Signature,
    finish,
    make_plan,
    signature_and_image,
)
from headgate.formats.open_protocol.frames import (
    VERSION,
    check_version,
    malformed,
    pairs,
    single,
)

ROW, DDL, RESOLVED = 1, 2, 3

COLUMN_MEMBERS = {"t", "h", "f", "v"}

MAX_PLANS = 10_000


@dataclass(frozen=True)
class Options(CommonOptions):
    """Options of open-protocol."""

    compression: str = option("auto", "of each value body, as TiCDC compresses", COMPRESSIONS)


class Key(msgspec.Struct, gc=False):
    """One event key. TiCDC can write `ohk` twice; the last one counts."""

    ts: Int64
    t: Int64
    scm: str | None = None
    tbl: str | None = None
    rid: Int64 | None = None
    ptn: Int64 | None = None
    ohk: bool = False
    ccl: str | None = None


class Row(msgspec.Struct, gc=False):
    """The value of a row change: new columns, previous columns, deleted columns."""

    u: Columns | None = None
    p: Columns | None = None
    d: Columns | None = None


class RawPrevious(msgspec.Struct, gc=False):
    """A row change whose `p` stays unparsed, because it has values without a column name."""

    p: Raw
    u: Columns
    d: None = None


class Ddl(msgspec.Struct, gc=False):
    """The value of a DDL event; its type is documented as a string but sent as a number."""

    q: str
    t: Int64 | str


_key = reader(Key)
_row = reader(Row)
_raw_previous = reader(RawPrevious)
_ddl = reader(Ddl)
_any = reader(dict[str, Any])
_pairs = JSONDecoder(object_pairs_hook=tuple, parse_int=Number, parse_float=Number)


PlanOf = Callable[[Signature, Columns], Plan]


def planner(to_utc: Convert | None) -> PlanOf:
    """A function from columns to their plan, with a cache."""
    plans: dict[Signature, Plan] = {}

    def plan_of(signature: Signature, columns: Columns) -> Plan:
        plan = plans.get(signature)
        if plan is not None:
            return plan
        plan = make_plan(columns, to_utc)
        if len(plans) >= MAX_PLANS:
            plans.clear()
        # Without flags the plan also depends on `h`, which the signature does not include.
        if plan.flagged and weight(signature) <= CACHED_KEY_BYTES:
            plans[signature] = plan
        return plan

    return plan_of


def row_reader(dialect: str | None, to_utc: Convert | None) -> Callable[[Key, bytes, bytes], Event]:
    """A function from a row's key, the key's bytes and the value to its event."""
    plan_of = planner(to_utc)

    def row(key: Key, event_key: bytes, body: bytes) -> Event:
        change = read_row(body)
        lost, old_body = None, body
        if change.__class__ is RawPrevious:
            change, lost = recover(change)
            old_body = b""  # recovered values already have their exact digits
        columns = change.u or change.d
        if not columns or (change.d and (change.u or change.p)):
            if body != b"{}":
                raise wrong_members(change)
            nothing = bare("marker", key, dialect or key_dialect(key, event_key))
            nothing.op = "empty"  # tiflow#2612: inserted and deleted in one transaction
            return nothing
        signature, image = signature_and_image(columns)
        plan = plan_of(signature, columns)
        ts = key.ts
        event = Event(
            "row",
            "insert",
            key.scm or None,
            key.tbl or None,
            key=plan.key,
            types=plan.types,
            commit_ts=ts or None,  # 0 is not a valid TSO
            event_time=(ts >> 18) * 1000 if ts else None,
            format="open-protocol",
            dialect=dialect,
        )
        if plan.extra or key.rid is not None or key.ptn is not None or key.ohk or key.ccl:
            event.extra = extra_of(key, plan)
        if plan.busy:
            finish(event, image, plan, body, "u" if change.u else "d")
        if change.d:
            event.op, event.before = "delete", image
        else:
            event.after = image
            if change.p is not None:
                previous(event, change.p, (signature, plan), plan_of, old_body)
            elif lost is not None:
                event.op = "update"
                event.extra = {**(event.extra or {}), "unnamedOld": lost}
        if dialect is None:
            quirk = old_body is not body or change.p == {}
            event.dialect = plan.dialect or ("new" if quirk else key_dialect(key, event_key))
        return event

    return row


def previous(
    event: Event, columns: Columns, now: tuple[Signature, Plan], plan_of: PlanOf, body: bytes
) -> None:
    """Turn an event into an update: add the old row, completed with the unchanged columns."""
    signature, plan = now
    image = event.after or {}
    old_signature, old = signature_and_image(columns)
    same = old_signature == signature
    old_plan = plan if same else plan_of(old_signature, columns)
    if old_plan.busy:
        finish(event, old, old_plan, body, "p")
    event.op, event.before = "update", old if same else {**image, **old}
    if not same and not old.keys() <= image.keys():
        event.types = {**old_plan.types, **plan.types}


def make_decoder(dialect: str | None, options: Options) -> Decode:
    """A decoder of one dialect, or of all of them if `dialect` is None."""
    row = row_reader(dialect, values.utc(options.timezone))
    decompress = decompressor(options.compression, options.max_message_bytes)
    most_bytes = options.max_message_bytes

    def event_of(event_key: bytes, body: bytes | None) -> Event:
        key = parse(_key, event_key)
        if key.t == RESOLVED:
            if body:
                raise malformed(f"a resolved event has a value of {len(body)} bytes")
            return bare("watermark", key, dialect)
        if key.t not in (ROW, DDL):
            raise DecodeError(
                "unknown-type",
                "the event type t is not known",
                "known: 1 (row), 2 (DDL), 3 (resolved)",
            )
        if body is None:
            raise malformed("a row or DDL key has no value")
        return row(key, event_key, body) if key.t == ROW else ddl(key, body, dialect)

    def decode(key: bytes | None, value: bytes | None, topic: str | None) -> list[Event]:
        if key and value and single(key, value):
            only = value[8:]
            return [event_of(key[16:], only and decompress(only))]
        if value is None and (not key or key[:7] != VERSION[:7]):
            return [Event("tombstone", format="open-protocol", dialect=dialect)]
        check_version(key)
        events: list[Event] = []
        unpacked = 0
        for event_key, body in pairs(key or b"", value):
            if body:
                body = decompress(body)
                unpacked += len(body)
                if unpacked > most_bytes:
                    raise DecodeError(
                        "too-large",
                        f"the message unpacks to more than {most_bytes} bytes",
                        "raise max-message-bytes if it is real",
                    )
            events.append(event_of(event_key, body))
        if len(events) > 1:
            for index, event in enumerate(events):
                event.position = {"row": str(index)}
        return events or [Event("marker", "empty", format="open-protocol", dialect=dialect)]

    return decode


def read_row(body: bytes) -> Any:
    """Parse a row; a malformed `p` may be one whose values have no column name."""
    try:
        return parse(_row, body)
    except DecodeError as error:
        if error.code != "wrong-type":
            raise
        try:
            change = parse(_raw_previous, body)
            previous = parse(_any, bytes(change.p))
        except DecodeError:
            raise error from None
        loose = {name for name, member in previous.items() if not isinstance(member, dict)}
        if not loose or not loose <= COLUMN_MEMBERS:
            raise
        return change


def recover(change: RawPrevious) -> tuple[Row, str | None]:
    """Assign the nameless values of `p` to their columns; if ambiguous, return the text of `p`.

    A column that became NULL lost its name, so it is the only NULL column of the same type.
    """
    text = bytes(change.p).decode()
    try:
        named, nameless = split_previous(_pairs.decode(text))
    except RecursionError as error:
        raise describe(error, b"") from None
    nulls: dict[tuple[int, int | None], list[str]] = {}
    for name, new in change.u.items():
        if new.v is None and name not in named:
            nulls.setdefault((new.t, new.f), []).append(name)
    for column in nameless:
        candidates = nulls.pop((column.t, column.f), [])
        if len(candidates) != 1:
            return Row(change.u), text
        named[candidates[0]] = column
    return Row(change.u, named), None


def split_previous(previous: tuple[tuple[str, Any], ...]) -> tuple[Columns, list[Column]]:
    """Split `p` into columns with a name and groups of t, h, f, v without one."""
    named: Columns = {}
    groups: list[dict[str, Any]] = []
    for name, value in previous:
        if value.__class__ is tuple:
            named[name] = column_of(dict(value))
        elif name == "t" or not groups:
            groups.append({name: value})
        else:
            groups[-1][name] = value
    return named, [column_of(group) for group in groups]


def column_of(members: dict[str, Any]) -> Column:
    """A column from its members, whose numbers are text."""
    try:
        return msgspec.convert(members, Column, strict=False)
    except msgspec.ValidationError as error:
        raise describe(error, b"") from None


def wrong_members(change: Row) -> DecodeError:
    """The error for a row that is not an insert, update or delete."""
    if change.d:
        return DecodeError(
            "invalid-value",
            "the row has d next to u or p",
            "no TiCDC writes this; check the producer",
        )
    return DecodeError(
        "missing-member", "the row has no columns in u or d", "check that the value is a row's"
    )


def key_dialect(key: Key, event_key: bytes) -> str | None:
    """The dialect of a row, if its key identifies it for certain."""
    if key.rid is not None:
        return "classic"
    if key.ptn is not None:
        partition_first = event_key.find(b'"ptn":') < event_key.find(b'"t":')
        return "classic" if partition_first else "new"
    return "new" if key.ccl and event_key.count(b'"ohk":') > 1 else None


def extra_of(key: Key, plan: Plan | None) -> dict[str, str]:
    """Members without a field in the event that are needed to write the same message again."""
    extra = dict(plan.extra) if plan and plan.extra else {}
    if key.rid is not None:
        extra["rid"] = str(key.rid)
    if key.ptn is not None:
        extra["ptn"] = str(key.ptn)
    if key.ohk:
        extra["onlyHandleKey"] = "true"
    if key.ccl:
        extra["claimCheckLocation"] = key.ccl
    return extra


def bare(kind: str, key: Key, dialect: str | None) -> Event:
    """An event with only the data of its key."""
    return Event(
        kind,
        database=key.scm or None,
        table=key.tbl or None,
        commit_ts=key.ts or None,
        event_time=(key.ts >> 18) * 1000 if key.ts else None,
        format="open-protocol",
        dialect=dialect,
        extra=extra_of(key, None) or None,
    )


def ddl(key: Key, body: bytes, dialect: str | None) -> Event:
    """A DDL event, with TiDB's action number in `extra`."""
    message = parse(_ddl, body)
    code = str(message.t)
    if not re.fullmatch(r"-?[0-9]{1,19}", code):
        raise DecodeError("wrong-type", "the DDL type t is not a number", "check the producer")
    event = bare("ddl", key, dialect)
    event.op, event.ddl = DDL_OPS.get(int(code), "query"), message.q
    event.extra = {**(event.extra or {}), "ddlType": code}
    if dialect is None:
        event.dialect = ddl_dialect(key)
    return event


def ddl_dialect(key: Key) -> str | None:
    """The dialect of a DDL event: classic omits a missing name, the new TiCDC writes it empty."""
    if key.scm is None or key.tbl is None:
        return "classic"
    return None if key.scm and key.tbl else "new"


def recognises(message: Sniffed) -> bool:
    """Whether the key starts with protocol version 1.

    The key of TiCDC's Maxwell messages is only the version, and their value is JSON.
    """
    key = message.key
    return key is not None and key[:8] == VERSION and (len(key) > 8 or not message.members)


def first_object(key: bytes | None, value: bytes) -> bytes | None:
    """The first object of a value whose key is only the version, for detecting other formats."""
    if not recognises(Sniffed(key, {})):
        return None
    return objects(value)[0] if key == VERSION and value else b""
