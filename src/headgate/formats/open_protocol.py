"""TiCDC Open Protocol: framed JSON keys and values, one pair per row change, DDL or resolved point.

Vendor's document: TiCDC Open Protocol. Where it differs from the wire:
docs/formats/open-protocol.md.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import repeat, zip_longest
from json import JSONDecoder
from struct import Struct
from typing import Any

import msgspec

from headgate import values
from headgate.compression import COMPRESSIONS, decompressor
from headgate.errors import DecodeError
from headgate.event import ColumnType, Event, Image, Types
from headgate.formats import Decode, Format, Sniffed
from headgate.limits import MAX_EVENTS_PER_MESSAGE
from headgate.options import CommonOptions, option
from headgate.strict_json import Int64, Number, Raw, describe, exact_text, members, parse, reader
from headgate.values import Convert, Converters

VERSION = (1).to_bytes(8, "big")
ROW, DDL, RESOLVED = 1, 2, 3

BINARY, PRIMARY, UNSIGNED = 1, 8, 128
NUMERIC = {1, 2, 3, 4, 5, 8, 9, 246}
FLOATS = {4, 5}
STRINGS = {15, 253, 254}
LOBS = {249, 250, 251, 252}
TIMESTAMP = 7
CODES = {
    1: "tinyint",
    2: "smallint",
    3: "int",
    4: "float",
    5: "double",
    6: "null",
    7: "timestamp",
    8: "bigint",
    9: "mediumint",
    10: "date",
    11: "time",
    12: "datetime",
    13: "year",
    14: "date",
    15: "varchar",
    16: "bit",
    225: "vector",
    245: "json",
    246: "decimal",
    247: "enum",
    248: "set",
    249: "tinytext",
    250: "mediumtext",
    251: "longtext",
    252: "text",
    253: "varchar",
    254: "char",
    255: "geometry",
}
BINARY_CODES = {
    15: "varbinary",
    249: "tinyblob",
    250: "mediumblob",
    251: "longblob",
    252: "blob",
    253: "varbinary",
    254: "binary",
}
UNUSUAL_CODES = {14, 253}
COLUMN_MEMBERS = {"t", "h", "f", "v"}

ALTERS = (5, 6, 12, 13, 15, 17, 18, 19, 20, 22, 23, 37, 38, 41, 61, 64, 71, 72)
DDL_OPS = dict.fromkeys(ALTERS, "alter") | {
    3: "create",
    4: "drop",
    7: "create_index",
    8: "drop_index",
    9: "create_index",
    10: "drop_index",
    11: "truncate",
    14: "rename",
    32: "create_index",
    33: "drop_index",
    47: "rename",
}

MAX_PLANS = 10_000
_NEGATIVE_ZERO = re.compile(rb"-0[\s,}]")
_GO_ESCAPE = re.compile(
    rb'\\(?:[abfnrtv\\"]|x[0-9a-fA-F]{2}|[0-7]{3}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})|[\\"\n]'
)
_GO_BYTES = {
    b"\\a": b"\a",
    b"\\b": b"\b",
    b"\\f": b"\f",
    b"\\n": b"\n",
    b"\\r": b"\r",
    b"\\t": b"\t",
    b"\\v": b"\v",
    b"\\\\": b"\\",
    b'\\"': b'"',
} | {b"\\x%02x" % byte: bytes([byte]) for byte in range(256)}


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


class Column(msgspec.Struct, gc=False):
    """One column: type code, handle, flags (absent in the oldest messages) and value."""

    t: int
    v: Any
    h: bool = False
    f: int | None = None


Columns = dict[str, Column]
Told = tuple[tuple[str, int, "int | None"], ...]


class Row(msgspec.Struct, gc=False):
    """The value of a row change: new columns, previous ones, deleted ones."""

    u: Columns | None = None
    p: Columns | None = None
    d: Columns | None = None


class RawPrevious(msgspec.Struct, gc=False):
    """A row change whose `p` is read with care, because it has values without a column name."""

    p: Raw
    u: Columns
    d: None = None


class Ddl(msgspec.Struct, gc=False):
    """The value of a DDL event; the document calls the type a string, the wire has a number."""

    q: str
    t: Int64 | str


class Plan(msgspec.Struct):
    """What the names, codes and flags of an image mean; made once for each distinct set of them."""

    key: tuple[str, ...] | None
    types: Types
    converters: Converters
    floats: list[str]
    unflagged_lobs: list[str]
    extra: dict[str, str] | None
    dialect: str | None
    flagged: bool
    busy: bool


_version_and_length = Struct(">QQ").unpack_from
_length = Struct(">Q").unpack_from
_key = reader(Key)
_row = reader(Row)
_raw_previous = reader(RawPrevious)
_raw_columns = reader(dict[str, dict[str, Raw]])
_ddl = reader(Ddl)
_any = reader(dict[str, Any])
_pairs = JSONDecoder(object_pairs_hook=tuple, parse_int=Number, parse_float=Number)


def frames(data: bytes, start: int = 0) -> Iterator[bytes]:
    """The bodies of a run of length-prefixed frames; each length is checked before it is used.

    >>> list(frames(bytes(7) + b"\\x02{}" + bytes(8)))
    [b'{}', b'']
    """
    end = len(data)
    while start < end:
        if end - start < 8:
            raise malformed(f"{end - start} bytes are left where an 8-byte length should be")
        length = int.from_bytes(data[start : start + 8], "big")
        start += 8
        if length > end - start:
            raise malformed(f"a frame claims {length} bytes and {end - start} are left")
        yield data[start : start + length]
        start += length


def malformed(what: str) -> DecodeError:
    """The error for bytes that are not frames."""
    return DecodeError(
        "malformed-frame", what, "check that key and value are the whole, unchanged Kafka record"
    )


def check_version(key: bytes | None) -> None:
    """Refuse a key that does not start with protocol version 1."""
    if key is not None and key[:8] == VERSION:
        return
    if not key or len(key) < 8:
        raise malformed(f"the key has {len(key or b'')} bytes, too few for a protocol version")
    if key[:1] == b"{":
        raise malformed("the key is bare JSON, without version and length")
    raise malformed(f"the protocol version is {int.from_bytes(key[:8], 'big')}, not 1")


def pairs(key: bytes, value: bytes | None) -> list[tuple[bytes, bytes | None]]:
    """Each event key with its value body; a body is None where the message has no value at all."""
    found: list[tuple[bytes, bytes | None]] = []
    nothing: Iterator[None] = repeat(None)
    keys = frames(key, 8)
    for event_key, body in zip_longest(keys, frames(value)) if value else zip(keys, nothing):
        if value and (event_key is None or body is None):
            more = "values than keys" if event_key is None else "keys than values"
            raise malformed(f"the message has more {more}")
        if not event_key:
            raise malformed("an event key is empty")
        if len(found) == MAX_EVENTS_PER_MESSAGE:
            raise DecodeError(
                "too-large", f"more than {len(found)} events in one message", "drop it"
            )
        found.append((event_key, body))
    return found


def single(key: bytes, value: bytes) -> bool:
    """Whether a message is exactly one pair, as most are; cheaper than walking the frames."""
    return (
        len(key) > 16
        and len(value) >= 8
        and _version_and_length(key) == (1, len(key) - 16)
        and _length(value) == (len(value) - 8,)
    )


def make_decoder(dialect: str | None, options: Options) -> Decode:
    """A decoder of one dialect, or of any where `dialect` is None."""
    plans: dict[Told, Plan] = {}
    to_utc = values.utc(options.timezone)
    decompress = decompressor(options.compression, options.max_message_bytes)
    most_bytes = options.max_message_bytes

    def new_plan(told: Told, columns: Columns) -> Plan:
        plan = make_plan(columns, to_utc)
        if len(plans) >= MAX_PLANS:
            plans.clear()
        if plan.flagged:  # else `h` counts too, which is no part of `told`
            plans[told] = plan
        return plan

    def row(key: Key, event_key: bytes, body: bytes) -> Event:
        change = read_row(body)
        lost, old_body = None, body
        if change.__class__ is RawPrevious:
            change, lost = recover(change)
            old_body = b""  # recovered values have their digits already
        columns = change.u or change.d
        if not columns or (change.d and (change.u or change.p)):
            raise wrong_members(change)
        told, image = lay_out(columns)
        plan = plans.get(told) or new_plan(told, columns)
        ts = key.ts
        event = Event(
            "row",
            "insert",
            key.scm or None,
            key.tbl or None,
            plan.key,
            None,
            None,
            plan.types,
            None,
            ts,
            (ts >> 18) * 1000,
            None,
            None,
            "open-protocol",
            dialect,
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
                event.op = "update"
                old_told, old = lay_out(change.p)
                same = old_told == told
                old_plan = plan if same else plans.get(old_told) or new_plan(old_told, change.p)
                if old_plan.busy:
                    finish(event, old, old_plan, old_body, "p")
                event.before = old if same else {**image, **old}
                if not same and not old.keys() <= image.keys():
                    event.types = {**old_plan.types, **plan.types}
            elif lost is not None:
                event.op = "update"
                event.extra = {**(event.extra or {}), "unnamedOld": lost}
        if dialect is None:
            quirk = old_body is not body or change.p == {}
            event.dialect = plan.dialect or ("new" if quirk else key_dialect(key, event_key))
        return event

    def event_of(event_key: bytes, body: bytes | None) -> Event:
        key = parse(_key, event_key)
        if key.t == RESOLVED:
            if body:
                raise malformed(f"a resolved event has a value of {len(body)} bytes")
            return bare("watermark", key, dialect)
        if key.t not in (ROW, DDL):
            raise DecodeError(
                "unknown-type",
                f"the event type t is {key.t}",
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
    """Parse a row; a `p` that breaks the shape may be one with values that have no column name."""
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
    """Give the nameless values of `p` their columns; where that is a guess, the text of `p`.

    A column that went to NULL lost its name, so the one NULL column of the same type is it.
    """
    text = bytes(change.p).decode()
    try:
        named, nameless = split_previous(_pairs.decode(text))
    except RecursionError as error:
        raise describe(error, b"") from None
    for column in nameless:
        found = [
            name
            for name, new in change.u.items()
            if new.v is None and (new.t, new.f) == (column.t, column.f) and name not in named
        ]
        if len(found) != 1:
            return Row(change.u), text
        named[found[0]] = column
    return Row(change.u, named), None


def split_previous(previous: tuple[tuple[str, Any], ...]) -> tuple[Columns, list[Column]]:
    """Take `p` apart: columns with a name, and runs of t, h, f, v without one."""
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


def column_of(told: dict[str, Any]) -> Column:
    """One column from members whose numbers are text."""
    try:
        return msgspec.convert(told, Column, strict=False)
    except msgspec.ValidationError as error:
        raise describe(error, b"") from None


def lay_out(columns: Columns) -> tuple[Told, Image]:
    """What an image says of its columns, and their values as text; one walk, because it is hot."""
    told = []
    image: Image = {}
    for name, column in columns.items():
        value = column.v
        kind = value.__class__
        if kind is int:
            value = str(value)
        elif kind is not str and value is not None and kind is not Number:
            value = boolean(value)
        image[name] = value
        told.append((name, column.t, column.f))
    return tuple(told), image


def boolean(value: Any) -> str:
    """The text of true or false; no column holds an object or array."""
    if value.__class__ is not bool:
        raise DecodeError("wrong-type", "a column holds an object or array", "check the producer")
    return "1" if value else "0"


def finish(event: Event, image: Image, plan: Plan, body: bytes, member: str) -> None:
    """Make canonical text of the columns whose text is not that already, in place."""
    values.convert(image, plan.converters)
    if plan.floats and _NEGATIVE_ZERO.search(body):
        keep_negative_zero(image, plan.floats, body, member)
    if plan.unflagged_lobs:
        decode_lobs(event, image, plan.unflagged_lobs)


def keep_negative_zero(image: Image, floats: list[str], body: bytes, member: str) -> None:
    """Read float columns again from their own bytes: a parsed integer zero has no sign."""
    zeros = [name for name in floats if image[name] == "0"]
    if zeros:
        exact = parse(_raw_columns, bytes(parse(members, body)[member]))
        for name in zeros:
            image[name] = exact_text(exact[name]["v"])


def decode_lobs(event: Event, image: Image, names: list[str]) -> None:
    """Without flags, a value is TEXT if it is UTF-8; the others stay base64 and are listed."""
    kept = []
    for name in names:
        value = image[name]
        if value is None:
            continue
        try:
            image[name] = values.base64_bytes(value).decode()
        except UnicodeDecodeError:
            kept.append(name)
    if kept:
        known = event.extra or {}
        before = msgspec.json.decode(known.get("base64", "[]"), type=list[str])
        event.extra = known | {"base64": json_text(list(dict.fromkeys(before + kept)))}


def make_plan(columns: Columns, to_utc: Convert | None) -> Plan:
    """What the columns of one image say of keys and types, and who converts which."""
    check_ranges(columns)
    flags = {name: c.f or 0 for name, c in columns.items()}
    flagged = all(c.f is not None for c in columns.values())
    handles = [name for name, c in columns.items() if c.h]
    extra = {}
    if flagged:
        key: tuple[str, ...] | None = tuple(n for n, f in flags.items() if f & PRIMARY)
    else:
        key = tuple(handles) or None
        if handles:
            extra["h"] = json_text(handles)
    codes = {n: c.t for n, c in columns.items() if c.t in UNUSUAL_CODES or c.t not in CODES}
    if codes:
        extra["t"] = json_text(codes)
    dialect = None
    if not flagged:
        dialect = "classic"
    elif list(columns) != sorted(columns):
        dialect = "new"
    types = {n: ColumnType(mysql_type(c.t, flags[n]), None, c.f) for n, c in columns.items()}
    converters = [(n, found) for n, c in columns.items() if (found := converter(c, to_utc))]
    floats = [n for n, c in columns.items() if c.t in FLOATS]
    lobs = [n for n, c in columns.items() if c.t in LOBS and c.f is None]
    busy = bool(converters or floats or lobs)
    return Plan(key, types, converters, floats, lobs, extra or None, dialect, flagged, busy)


def check_ranges(columns: Columns) -> None:
    """Refuse codes that are no byte and flags that no 32-bit column holds."""
    for column in columns.values():
        if not 0 <= column.t <= 255 or not 0 <= (column.f or 0) < 2**31:
            raise DecodeError(
                "wrong-type",
                "a column's type code t or flags f is out of range",
                "check the producer",
            )


def mysql_type(code: int, flags: int) -> str | None:
    """The MySQL type of a type code, or None for a code that has none.

    >>> mysql_type(3, 129), mysql_type(252, 65), mysql_type(13, 193)
    ('int unsigned', 'blob', 'year')
    """
    if flags & BINARY and code in BINARY_CODES:
        return BINARY_CODES[code]
    if flags & UNSIGNED and code in NUMERIC:
        return f"{CODES[code]} unsigned"
    return CODES.get(code)


def converter(column: Column, to_utc: Convert | None) -> Convert | None:
    """The function that makes canonical text of this column, where its text is not that already."""
    if column.t == TIMESTAMP:
        return to_utc
    if column.f is None:
        return None
    if column.t in LOBS:
        return checked_base64 if column.f & BINARY else base64_text
    if column.t in STRINGS and column.f & BINARY:
        return quoted_bytes
    return None


def checked_base64(value: str) -> str:
    """A BLOB: base64 as it was sent."""
    values.base64_bytes(value)
    return value


def base64_text(value: str) -> str:
    """A TEXT: the characters behind the base64.

    >>> base64_text("5rWL6K+VdGV4dA==")
    '测试text'
    """
    try:
        return values.base64_bytes(value).decode()
    except UnicodeDecodeError:
        raise DecodeError(
            "invalid-utf8",
            "a TEXT column holds bytes that are not UTF-8",
            "check the character set of the column in the source",
        ) from None


def quoted_bytes(value: str) -> str:
    """A BINARY or VARBINARY: base64 of the bytes behind Go's escapes."""
    return b64encode(go_unquote(value)).decode()


def go_unquote(text: str) -> bytes:
    r"""The bytes that Go's `strconv.Quote` wrote as this text, outer quotes left out.

    >>> go_unquote(r"\x89PNG\r\n\x1a\n")
    b'\x89PNG\r\n\x1a\n'
    """
    return _GO_ESCAPE.sub(unescape, text.encode())


def unescape(match: re.Match[bytes]) -> bytes:
    """The bytes of one Go escape."""
    escape = match.group()
    known = _GO_BYTES.get(escape)
    if known is not None:
        return known
    digits = escape[2:]
    if escape[1:2] == b"x":
        return bytes([int(digits, 16)])
    if len(escape) == 1:
        raise broken_escape()
    if escape[1:2] not in b"uU":
        number = int(escape[1:], 8)
        if number > 255:
            raise broken_escape()
        return bytes([number])
    try:
        return chr(int(digits, 16)).encode()
    except (ValueError, OverflowError):  # a surrogate, or beyond U+10FFFF
        raise broken_escape() from None


def broken_escape() -> DecodeError:
    """The error for text that Go's `strconv.Quote` cannot have written."""
    return DecodeError(
        "invalid-binary",
        "a binary column holds an escape, quote or line break that Go does not write",
        "check that the producer is TiCDC",
    )


def wrong_members(change: Row) -> DecodeError:
    """The error for a row that is neither an insert, nor an update, nor a delete."""
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
    """Whose row this is, where something in its key tells for certain."""
    if key.rid is not None:
        return "classic"
    if key.ptn is not None:
        partition_first = event_key.find(b'"ptn":') < event_key.find(b'"t":')
        return "classic" if partition_first else "new"
    return "new" if key.ccl and event_key.count(b'"ohk":') > 1 else None


def extra_of(key: Key, plan: Plan | None) -> dict[str, str]:
    """What has no column of its own but is needed to write the same message again."""
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
    """An event with what the key alone says."""
    return Event(
        kind,
        database=key.scm or None,
        table=key.tbl or None,
        commit_ts=key.ts,
        event_time=(key.ts >> 18) * 1000,
        format="open-protocol",
        dialect=dialect,
        extra=extra_of(key, None) or None,
    )


def ddl(key: Key, body: bytes, dialect: str | None) -> Event:
    """A DDL statement, with TiDB's number for what it does."""
    told = parse(_ddl, body)
    code = str(told.t)
    if not re.fullmatch(r"-?[0-9]{1,19}", code):
        raise DecodeError("wrong-type", "the DDL type t is not a number", "check the producer")
    event = bare("ddl", key, dialect)
    event.op, event.ddl = DDL_OPS.get(int(code), "query"), told.q
    event.extra = {**(event.extra or {}), "ddlType": code}
    if dialect is None:
        event.dialect = ddl_dialect(key)
    return event


def ddl_dialect(key: Key) -> str | None:
    """A name that is not there is left out by one TiCDC and written empty by the other."""
    if key.scm is None or key.tbl is None:
        return "classic"
    return None if key.scm and key.tbl else "new"


def json_text(value: Any) -> str:
    """Compact JSON, for `extra`."""
    return msgspec.json.encode(value).decode()


def recognises(message: Sniffed) -> bool:
    """A key that starts with protocol version 1."""
    return message.key is not None and message.key[:8] == VERSION


FORMAT = Format(
    name="open-protocol",
    summary="TiCDC Open Protocol: framed keys and values",
    dialects={
        "classic": "TiCDC of the tiflow repository, up to the classic v8.5",
        "new": "TiCDC of the new architecture",
    },
    options=Options,
    decoder=make_decoder,
    recognises=recognises,
    kinds="rows, DDL, resolved timestamps",
)
