"""Maxwell's JSON message as OMS writes it: every member is present, `old` is the whole row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headgate.core.event import Event, Image, Record
from headgate.formats._oms.encode_values import key_text
from headgate.formats.encoding import written
from headgate.formats.maxwell.ddl import change_of
from headgate.formats.maxwell.encode_values import (
    NOTHING,
    Message,
    Plan,
    attributes,
    embed,
    finish,
    withdraw_loss,
)
from headgate.formats.maxwell.words import FULL_SYNC_TS

ROW_TYPES = {"insert": "insert", "update": "update", "delete": "delete", "snapshot": "insert"}


def head(event: Event, extra: Mapping[str, str], type_: str, ts: int | None) -> Message:
    """The members that all messages begin with."""
    position = event.position or NOTHING
    # OMS puts a time here: that of the change, or the second before it.
    place = None if event.event_time is None else str(event.event_time // 1_000_000)
    return {
        "database": event.database,
        "table": event.table,
        "type": type_,
        "ts": ts,
        "xid": position.get("xid"),
        "commit": extra.get("commit") != "false",
        "position": position.get("position", place),
    }


def end(message: Message, extra: Mapping[str, str], lost: list[str]) -> Message:
    """The message with its optional members."""
    if extra:
        for name in ("uuid", "mesh"):
            if name in extra:
                message[name] = extra[name]
        message.update(attributes(extra, lost))
    return message


def seconds(event: Event) -> int | None:
    """The event time in seconds."""
    return None if event.event_time is None else event.event_time // 1_000_000


def row(event: Event, extra: Mapping[str, str], plan: Plan, lost: list[str]) -> Record:
    """A row; if its time is unknown, it has the `ts` of a full synchronization."""
    op, key = event.op or "", event.key
    ts = FULL_SYNC_TS if event.event_time is None else seconds(event)
    message = head(event, extra, ROW_TYPES[op], ts)
    writers = plan.of(event, lost)
    image = (event.before if op == "delete" else event.after) or {}
    old: Any = None
    if op == "update" and event.before is not None:
        old = written(event.before, writers, lost)
        if not image.keys() <= event.before.keys():
            lost.append("incomplete")
    data = written(image, writers, lost)
    message["primary_key"] = (
        embed(extra["primary_key"], lost) if "primary_key" in extra else key_texts(key, image, data)
    )
    message["primary_key_columns"] = key
    message["data"] = data
    message["old"] = old
    message["sql"] = message["def"] = None
    return Record(finish(end(message, extra, lost)))


def key_texts(
    key: tuple[str, ...] | None, image: Image, row: Mapping[str, Any]
) -> list[str | None] | None:
    """The key's values as the row shows them, but as text, as in OMS's samples.

    >>> key_texts(("id",), {"id": "1"}, {"id": 1}), key_texts((), {}, {}), key_texts(None, {}, {})
    (['1'], [], None)
    """
    if key is None:
        return None
    texts = [(image.get(name), row.get(name)) for name in key]
    return [None if text is None else key_text(shown, text) for text, shown in texts]


def other(event: Event, extra: Mapping[str, str], lost: list[str]) -> Message | None:
    """A DDL statement or a heartbeat."""
    if event.kind == "heartbeat":
        return end(heartbeat(event, extra, lost), extra, lost)
    change = change_of(event) if event.kind == "ddl" else None
    if change is None or (change.type.startswith("database-") and event.format != "maxwell"):
        return None  # OMS documents no type for databases
    database, table = change.after
    defined: Any = {"database": database, "table": table, "primary-key": [], "columns": []}
    if "def" in extra:
        defined = embed(extra["def"], lost)
    elif event.op == "rename" and change.before == change.after:
        lost.append("ddl-op")
    message = head(event, extra, change.type, seconds(event))
    message["database"], message["table"] = change.before
    message["primary_key"] = message["primary_key_columns"] = None
    message["data"] = message["old"] = None
    message["sql"], message["def"] = event.ddl, defined
    return end(message, extra, lost)


def heartbeat(event: Event, extra: Mapping[str, str], lost: list[str]) -> Message:
    """A heartbeat: its time is in milliseconds, and its members come in another order."""
    ts = None
    if event.event_time is not None:
        ts = event.event_time // 1_000
        if withdraw_loss("event-time-millis", lost) and event.event_time % 1_000:
            lost.append("event-time-micros")
    message = head(event, extra, "heartbeat", ts)
    for name in ("data", "old", "sql", "def", "primary_key", "primary_key_columns"):
        message[name] = None
    return message
