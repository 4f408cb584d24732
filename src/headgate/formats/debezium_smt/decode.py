"""Debezium's rows without their envelope (ExtractNewRecordState), and OMS's DebeziumSmt.

Vendors' documents: Debezium "New Record State Extraction"; OMS "DebeziumSmt JSON message format".
What such a row cannot say any more: docs/formats/debezium-smt.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from headgate.core.cache import Memo
from headgate.core.errors import DecodeError, shown
from headgate.core.event import Event, qualified
from headgate.core.json import members, parse, reader
from headgate.core.options import option
from headgate.core.values import convert, exact_nested, to_text
from headgate.formats._connect.columns import ValueOptions
from headgate.formats._connect.decode_values import planner
from headgate.formats._connect.keys import WRAPPER
from headgate.formats.base import Decode, Sniffed
from headgate.formats.debezium import decode as debezium
from headgate.formats.debezium.auxiliary import shape
from headgate.formats.debezium.reader import NO_SCHEMA
from headgate.formats.debezium.source import Times, flag, key_names, key_text, moment
from headgate.formats.debezium.source import tombstone as null_value
from headgate.formats.debezium.unavailable import make_remover
from headgate.schema.known_tables import KnownTables

DELETED = "__deleted"
KNOWN = {"op", "table", "db", "schema", "ts_ms", "ts_us", "ts_ns", "lsn"}
FAMILIES = ("source_", "transaction_")
POSITIONS = ("file", "pos", "row", "gtid", "server_id", "thread", "sequence")
TIMES = ("ts_ms", "ts_us", "ts_ns")
SOURCE_POSITIONS = {f"source_{n}" for n in POSITIONS}
SOURCE_TIMES = {f"source_{n}" for n in TIMES}
NAMES = ("db", "schema", "table")
HOUSED = {DELETED, "op", *NAMES, *(f"source_{n}" for n in NAMES), *TIMES}
HOUSED |= SOURCE_POSITIONS | SOURCE_TIMES
DELETED_WORDS = {"true": True, "false": False, True: True, False: False, None: False}

_NO_TOPIC = re.compile(r"[^A-Za-z0-9._-]", re.ASCII)
"""What Debezium writes as an underscore in topics' names."""
_WRAPPED = re.compile(rb'\s*\{\s*"(?:schema|payload)"\s*:')
_row = reader(dict[str, Any] | None)
_json = msgspec.json.encode


@dataclass(frozen=True)
class Options(ValueOptions):
    """Options of debezium-smt."""

    database: str | None = option(None, "the rows' database, where neither row nor topic says it")
    table: str | None = option(None, "the rows' table, where neither row nor topic says it")
    add_fields_prefix: str = option("__", "the transform's add.fields.prefix")


class Layout(NamedTuple):
    """What the member names of a row mean; made once per distinct list of names."""

    meta: dict[str, str]
    """The added fields, and their names without the prefix."""
    kept: list[str]
    """The added fields that no column of the event has."""
    fields: dict[str, str]
    timed: bool
    placed: bool
    auxiliary: bool
    envelope: bool


def make_layout(names: tuple[str, ...], prefix: str) -> Layout:
    """Tell added fields from columns.

    >>> make_layout(("id", "__op", "__lsn"), "__").meta
    {'__op': 'op', '__lsn': 'lsn'}
    """
    added = [n for n in names if is_metadata(n, prefix)]
    meta = {n: n if n == DELETED else n.removeprefix(prefix) for n in added}
    flattened = DELETED in meta or (prefix != "" and f"{prefix}op" in meta)
    return Layout(
        meta,
        [n for n, short in meta.items() if short not in HOUSED],
        {"fields": _json(added).decode()} if added else {},
        any(short in TIMES or short in SOURCE_TIMES for short in meta.values()),
        any(short in SOURCE_POSITIONS for short in meta.values()),
        not flattened and shape(names) is not None,
        not flattened and "op" in names and "source" in names,
    )


def make_decoder(dialect: str | None, options: Options) -> Decode:
    """A decoder of one dialect, or of any where `dialect` is None."""
    prefix = options.add_fields_prefix
    plan_of = planner(options, lambda name: not is_metadata(name, prefix))
    envelope = debezium.make_decoder(dialect, value_options(options))
    layouts: Memo[tuple[str, ...], Layout] = Memo(lambda names: make_layout(names, prefix))
    remove_unavailable = make_remover(options.unavailable_value_placeholder)
    table_of = topic_tables(options.schema)
    oms = dialect == "oms"

    def decode(key: bytes | None, value: bytes | None, topic: str | None) -> list[Event]:
        if value is None:
            return [null_value(key, "debezium-smt", dialect)]
        schema, payload = unwrap(value)
        row = parse(_row, payload)
        if row is None:
            event = null_value(key, "debezium-smt", dialect)
            event.extra = {**(event.extra or {}), "value": value.decode()}
            return [event]
        layout = layouts[tuple(row)]
        if layout.auxiliary or (layout.envelope and isinstance(row["source"], dict)):
            return envelope(key, value, topic)
        if options.strict and dialect is None:
            refuse_guess(layout, schema)
        told = take_metadata(row, layout)
        database, home, table = place(told, topic if not oms else None, options, table_of)
        plan = plan_of(schema, "oms" if oms else "debezium", database, qualified(home, table))
        event = Event(
            "row",
            None,
            database,
            table,
            schema=home,
            key=key_names(key),
            types=plan.types,
            format="debezium-smt",
            dialect=dialect or "debezium",
        )
        missing = remove_unavailable(payload, row, None)
        extra = dict(layout.fields)
        for name in layout.kept:
            member = told[layout.meta[name]]
            if member is not None:
                extra[name] = scalar(name, member)
        convert(row, plan.converters)
        typed = plan.booleans if schema != NO_SCHEMA else None
        extra |= row_to_text(row, payload, typed, told.get(DELETED).__class__ is bool)
        if event.key is not None and debezium.lacks(row, event.key):
            extra |= key_text(key)
        operate(event, row, told, extra)
        if layout.timed or layout.placed:
            describe_times(event, told)
        if missing is not None:
            extra["unavailable"] = missing
        event.extra = extra or None
        return [event]

    return decode


def take_metadata(row: dict[str, Any], layout: Layout) -> dict[str, Any]:
    """Take the members that the transform added out of a row."""
    told = {short: row.pop(name) for name, short in layout.meta.items()}
    if not row:
        raise DecodeError(
            "missing-member", "the row has no columns", "check that the format is right"
        )
    return told


def row_to_text(
    row: dict[str, Any],
    payload: bytes,
    booleans_by_schema: Iterable[str] | None,
    bare_deleted: bool,
) -> dict[str, str]:
    """Turn a row's values into canonical text, and tell how they came."""
    numbers: list[str] = []
    booleans: list[str] = []
    nested: list[str] = []
    if to_text(row, numbers, booleans):
        nested = debezium.nested_names(row)
        exact_nested(row, parse(members, payload))
    if booleans_by_schema is not None:
        numbers, booleans, nested = [], [*booleans_by_schema], []
    if bare_deleted:
        booleans.append(DELETED)
    return noted(numbers, booleans, nested)


def value_options(options: Options) -> debezium.Options:
    """The part of the options that the envelope's decoder has too."""
    given = {f: getattr(options, f) for f in debezium.Options.__dataclass_fields__}
    return debezium.Options(**given)


def unwrap(value: bytes) -> tuple[bytes, bytes]:
    """The schema's and the row's bytes.

    >>> unwrap(b'{"payload":{"id":1}}'), unwrap(b'{"id":1}')
    ((b'null', b'{"id":1}'), (b'null', b'{"id":1}'))
    """
    if _WRAPPED.match(value):
        found = parse(members, value)
        if "payload" in found and found.keys() <= WRAPPER:
            payload = bytes(found["payload"])
            if payload[:1] == b"{" or payload == b"null":
                return bytes(found.get("schema", b"null")), payload
    return b"null", value


def is_metadata(name: str, prefix: str) -> bool:
    """Whether the transform added this member; any other is a column.

    >>> [n for n in ("id", "__op", "__mine", "__source_ts_ms") if is_metadata(n, "__")]
    ['__op', '__source_ts_ms']
    """
    if not name.startswith(prefix):
        return name == DELETED
    short = name[len(prefix) :]
    return name == DELETED or short in KNOWN or short.startswith(FAMILIES)


def refuse_guess(layout: Layout, schema: bytes) -> None:
    """Refuse a row that Debezium and OMS write alike."""
    if schema == NO_SCHEMA and not layout.meta.keys() - {DELETED}:
        raise DecodeError(
            "ambiguous-dialect",
            "a bare row can be of dialect debezium or oms",
            "name the dialect, as in debezium-smt:oms",
        )


def topic_tables(sql: str | None) -> Mapping[str, tuple[str, str]]:
    """The tables of a schema, by the end of their topic's name, where those are told apart.

    >>> topic_tables("CREATE TABLE shop.`a.b ü` (id INT)")
    {'shop.a.b__': ('shop', 'a.b ü')}
    """
    if sql is None:
        return {}
    found: dict[str, list[tuple[str, str]]] = {}
    for database, table in KnownTables(sql).names():
        if database is not None:
            found.setdefault(_NO_TOPIC.sub("_", f"{database}.{table}"), []).append(
                (database, table)
            )
    return {end: tables[0] for end, tables in found.items() if len(tables) == 1}


def place(
    told: dict[str, Any],
    topic: str | None,
    options: Options,
    tables: Mapping[str, tuple[str, str]],
) -> tuple[str | None, str | None, str | None]:
    """Database, schema and table: from the options, else the added fields, else the topic.

    The topic's last parts are database and table, or `schema.table` where the row tells that it
    has a schema, with a database before them in SQL Server's. Names may have dots themselves and
    letters that topics have not: a table that a schema tells is known by its topic's end.
    """
    database, schema, table = (told.get(n) or told.get(f"source_{n}") for n in NAMES)
    for name in (database, schema, table):
        if name is not None and not isinstance(name, str):
            raise wrong("the added field for database, schema or table is no text")
    parts = topic.split(".") if topic else []
    if schema is None and tables and (known := topic_table(parts, tables)):
        database, table = database or known[0], table or known[1]
    elif len(parts) > 2:
        last = parts.pop()
        table = table or last
        if schema is not None and parts[-1] == schema:
            parts = parts[1:-1]
        database = database or (parts[-1] if parts else None)
    return options.database or database or None, schema or None, options.table or table or None


def topic_table(parts: list[str], tables: Mapping[str, tuple[str, str]]) -> tuple[str, str] | None:
    """The table whose topic has such parts, of those that are known."""
    ends = (".".join(parts[at:]) for at in range(1, len(parts)))
    return next((tables[end] for end in ends if end in tables), None)


def operate(event: Event, row: dict[str, Any], told: dict[str, Any], extra: dict[str, str]) -> None:
    """Set the operation and put the row into the image that it is."""
    word = told.get(DELETED)
    deleted = DELETED_WORDS.get(word) if word is None or isinstance(word, str | bool) else None
    code = told.get("op")
    op = debezium.OPS.get(code) if isinstance(code, str) else None
    if deleted is None:
        raise wrong("__deleted is neither true nor false")
    if code is not None and (op is None or op == "truncate"):
        raise DecodeError("unknown-type", "the added op is no row's", "known: c, u, d, r")
    if deleted or op == "delete":
        event.op, event.before = "delete", row
        return
    if op == "insert" and flag(told.get("source_snapshot")):
        op = "snapshot"
    if op is None:
        op = "update"  # all that is known is that the row now looks like this
        extra["upsert"] = "true"
    event.op, event.after = op, row


def noted(numbers: list[str], booleans: list[str], nested: list[str]) -> dict[str, str]:
    """Which columns of a row without types came as bare numbers, true/false, objects or arrays."""
    found = (("numbers", numbers), ("booleans", booleans), ("nested", nested))
    return {name: _json(columns).decode() for name, columns in found if columns}


def scalar(name: str, value: Any) -> str:
    """The text of an added field."""
    if isinstance(value, dict | list):
        raise wrong(f"the added field {shown(name, 40)} is no text or number")
    return str(value) if not isinstance(value, bool) else str(value).lower()


def describe_times(event: Event, told: dict[str, Any]) -> None:
    """Set times and position from the added fields."""
    event.emit_time = moment(times(told, ""))
    event.event_time = moment(times(told, "source_"))
    position = {
        n: scalar(n, told[f"source_{n}"]) for n in POSITIONS if told.get(f"source_{n}") is not None
    }
    event.position = position or None


def times(told: dict[str, Any], family: str) -> Times:
    """The added times of one family, checked."""
    given = {n: told[f"{family}{n}"] for n in TIMES if told.get(f"{family}{n}") is not None}
    if not given:
        return NO_TIMES
    try:
        return msgspec.convert(given, Times)
    except msgspec.ValidationError:
        raise wrong(f"{family}{next(iter(given))} is no time") from None


NO_TIMES = Times()


def wrong(what: str) -> DecodeError:
    """The error for an added field of the wrong type."""
    return DecodeError("wrong-type", what, "check add-fields-prefix, or whether it is a column")


def recognises(message: Sniffed) -> bool:
    """The transform's own members, bare or under `payload`."""
    found = message.members
    if "payload" in found and found.keys() <= WRAPPER:
        payload = bytes(found["payload"])
        if payload[:1] != b"{":
            return False
        found = parse(members, payload)
    return DELETED in found or "__op" in found
