"""Encoders of OMS's methods Debezium and DebeziumFlatten."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from msgspec import UNSET

from headgate.core.errors import UsageError
from headgate.core.event import Event, Record
from headgate.core.losses import HINTS
from headgate.core.options import EncodeOptions, names, spelled
from headgate.formats._connect import schema as connect_schema
from headgate.formats._connect.encode_rows import (
    CONNECT_FORMATS,
    NOTHING,
    Layout,
    columns_of,
    oms_planner,
    written_images,
)
from headgate.formats._connect.options import EncodedValueOptions
from headgate.formats.base import Encode
from headgate.formats.debezium.encode_parts import bare, finish, millis, retract
from headgate.formats.debezium.messages import OmsHeartbeat, OmsHeartbeatSource, OmsRow, OmsSource

OMS_CONNECTOR, OMS = "OB_MYSQL", "OMS"
OMS_OPS = {"insert": "c", "update": "u", "delete": "d", "snapshot": "c"}


def reject_debezium_options(dialect: str, options: EncodedValueOptions) -> None:
    """Reject options that OMS does not have."""
    common = names(EncodeOptions) | {"schemas_enable"}
    for option in fields(options):
        if option.name not in common and getattr(options, option.name) != option.default:
            raise UsageError(
                f"option {spelled(option.name)} is not supported by OMS, only by Debezium"
            )
    if options.schemas_enable and dialect != "oms":
        raise UsageError(f"dialect {dialect} has no schema; remove schemas-enable")


def of_oms(event: Event) -> bool:
    """Whether OMS wrote the message."""
    return event.format in CONNECT_FORMATS and event.dialect not in ("debezium", None)


def oms_origin(event: Event) -> tuple[Any, Any, Any, Any]:
    """The connector, name, version and pos of a message's source; pos is OMS's own."""
    if not of_oms(event):
        return OMS_CONNECTOR, OMS, "", UNSET
    member = (event.extra or NOTHING).get
    position = (event.position or NOTHING).get("pos", UNSET)
    return member("connector", UNSET), member("name", UNSET), member("version", UNSET), position


def retract_oms_losses(event: Event, lost: list[str]) -> None:
    """Remove the losses of members that all of OMS's methods have."""
    if lost and of_oms(event):
        if (event.position or NOTHING).keys() <= {"pos"}:
            retract(lost, ("position",))
        if (event.extra or NOTHING).keys() <= {"connector", "name", "version", *HINTS}:
            retract(lost, ("extra",))


def oms_encoder(wrapped: bool, schemas: bool) -> Encode:
    """OMS's methods Debezium (`wrapped`) and DebeziumFlatten."""
    plans = {same_format: oms_planner(same_format) for same_format in (False, True)}
    plain_start, end = (b'{"payload":', b"}") if wrapped else (b"", b"")

    def encode(event: Event, lost: list[str]) -> list[Record]:
        retract_oms_losses(event, lost)
        if event.kind == "heartbeat":
            return [Record(finish(plain_start, oms_heartbeat(event), end))]
        if event.kind != "row" or event.op not in OMS_OPS:
            return []
        layout = plans[event.format in CONNECT_FORMATS](event.types).of(event)
        before, after = written_images(event, layout, lost)
        start = oms_start(event, layout, lost) if schemas else plain_start
        connector, name, version, pos = oms_origin(event)
        source = OmsSource(
            connector,
            pos,
            name,
            version,
            millis(event.event_time),
            event.database or UNSET,
            event.table or UNSET,
        )
        message = OmsRow(
            OMS_OPS[event.op],
            UNSET if before is None else before,
            source,
            UNSET if after is None else after,
            UNSET if event.emit_time is None else event.emit_time // 1_000,
        )
        return [Record(finish(start, message, end))]

    return encode


def oms_start(event: Event, layout: Layout, lost: list[str]) -> bytes:
    """OMS's schema block."""
    columns = columns_of(event, layout, lost)
    types = {name: column.head["type"] for name, column in columns.items()}
    cache_key = None if columns is layout.columns else tuple(types.items())
    start: bytes = layout.block(cache_key, lambda: connect_schema.oms_envelope(types))
    return start


def oms_heartbeat(event: Event) -> OmsHeartbeat:
    """OMS's heartbeat, whose pos is a number."""
    connector, name, version, pos = oms_origin(event)
    source = OmsHeartbeatSource(
        version,
        connector,
        name,
        millis(event.event_time),
        event.database or UNSET,
        event.table or UNSET,
        pos if pos is UNSET else bare(pos),
    )
    emitted = UNSET if event.emit_time is None else event.emit_time // 1_000
    return OmsHeartbeat(source, "HEARTBEAT", emitted, {}, {})
