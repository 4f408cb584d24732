"""One event as one JSON object: what `headgate decode` prints."""

from __future__ import annotations

from base64 import b64encode
from datetime import datetime, timedelta
from typing import Any

import msgspec

from headgate.core.cache import PerTypeMap
from headgate.core.event import Event, Message, Types
from headgate.core.values import EPOCH

_encode = msgspec.json.Encoder(enc_hook=str).encode  # a Number is its digits
_NOWHERE = Message(None)


def iso(micros: int | None) -> str | None:
    """ISO 8601 UTC with milliseconds, more digits only where there are more.

    >>> iso(1589373515000000), iso(1589373515000001)
    ('2020-05-13T12:38:35.000Z', '2020-05-13T12:38:35.000001Z')
    """
    if micros is None:
        return None
    at: datetime = EPOCH + timedelta(microseconds=micros)
    return at.isoformat(timespec="microseconds" if micros % 1000 else "milliseconds") + "Z"


def as_dict(event: Event, message: Message = _NOWHERE) -> dict[str, Any]:
    """An event as plain JSON values, under the column names of the event table, nulls left out.

    >>> as_dict(Event("row", "insert", after={"id": "1", "note": None}))
    {'kind': 'row', 'op': 'insert', 'after': {'id': '1', 'note': None}}
    """
    origin = {
        "format": event.format,
        "dialect": event.dialect,
        "topic": message.topic,
        "partition": message.partition,
        "offset": message.offset,
        "timestamp": iso(message.timestamp),
    }
    columns = {
        "kind": event.kind,
        "op": event.op,
        "database": event.database,
        "table": event.table,
        "schema": event.schema,
        "key": None if event.key is None else list(event.key),
        "before": event.before,
        "after": event.after,
        "types": _shared_types(event.types),
        "ddl": event.ddl,
        "commit_ts": event.commit_ts,
        "event_time": iso(event.event_time),
        "emit_time": iso(event.emit_time),
        "position": event.position,
        "origin": _present(origin) or None,
        "extra": event.extra,
        "error": event.error and {"code": event.error[0], "message": event.error[1]},
        "raw": None if event.raw is None else b64encode(event.raw).decode(),
        "raw_key": None if event.raw_key is None else b64encode(event.raw_key).decode(),
    }
    return _present(columns)


def line(event: Event, message: Message = _NOWHERE) -> bytes:
    """An event as one line of JSON.

    >>> line(Event("heartbeat", event_time=0))
    b'{"kind":"heartbeat","event_time":"1970-01-01T00:00:00.000Z"}\\n'
    """
    return _encode(as_dict(event, message)) + b"\n"


def _present(columns: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in columns.items() if value is not None}


def _types(types: Types | None) -> dict[str, Any] | None:
    return types and {name: _present(type_._asdict()) for name, type_ in types.items()}


_shared_types = PerTypeMap(_types)
