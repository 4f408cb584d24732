"""Messages with schema blocks that Headgate writes, of everything the tests have to decode."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from cases import FOLDERS, content, settings_of
from recorded import lines, unpacked

from headgate.codec.decoder import decode_message, decoder
from headgate.codec.encoder import Encoder
from headgate.core.event import Event
from headgate.core.limits import MAX_MESSAGE_BYTES

FORMATS = ("debezium", "debezium-smt")
SETTINGS: list[dict[str, Any]] = [
    {},
    {"column_propagate_source_type": True, "bigint_unsigned_handling_mode": "precise"},
    {"time_precision_mode": "connect", "decimal_handling_mode": "double"},
    {"time_precision_mode": "isostring", "decimal_handling_mode": "string",
     "binary_handling_mode": "hex"},
    {"time_precision_mode": "nanoseconds", "decimal_format": "numeric",
     "binary_handling_mode": "base64"},
]  # fmt: skip


class Written(NamedTuple):
    """One message: where it comes from, whether it is a key, and its bytes."""

    origin: str
    is_key: bool
    content: bytes


def written(
    origin: str, events: Iterable[Event], settings: Iterable[dict[str, Any]], **more: Any
) -> Iterator[Written]:
    """The messages of events, with every format and setting."""
    all_events = list(events)
    for format in FORMATS:
        for options in settings:
            encoder = Encoder(format, **options, **more)
            for event in all_events:
                # A key or a null that came without a schema block is written as it came.
                kept = (event.extra or {}).get("key")
                for record in encoder(event).records:
                    where = f"{origin} {format} {options}"
                    if record.value is not None and event.kind != "tombstone":
                        yield Written(where, False, record.value)
                    if record.key is not None and kept is None:
                        yield Written(where, True, record.key)


def golden() -> Iterator[Written]:
    """Every golden case."""
    for folder in FOLDERS:
        settings = settings_of(folder)
        events = decode_message(
            decoder(settings.get("format", folder.parent.name), **settings.get("options", {})),
            content(folder, "key"),
            content(folder, "value"),
            settings.get("topic"),
            MAX_MESSAGE_BYTES,
        )
        valid = [event for event in events if event.kind != "invalid"]
        yield from written(f"{folder.parent.name}/{folder.name}", valid, SETTINGS)


def recorded(path: Path, settings: Iterable[dict[str, Any]], **more: Any) -> Iterator[Written]:
    """Every message of a recording."""
    decode = decoder("auto")
    events: list[Event] = []
    for line in lines(path):
        key, value = unpacked(line.get("key")), unpacked(line.get("value"))
        events += decode_message(decode, key, value, line.get("topic"), MAX_MESSAGE_BYTES)
    valid = [event for event in events if event.kind != "invalid"]
    yield from written(path.name, valid, settings, **more)
