"""Encoding shared by all dialects of canal-json: options, key names, times and images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headgate.core.event import Event
from headgate.core.options import EncodeOptions, option
from headgate.formats.canal_json.type_maps import Plan
from headgate.formats.encoding import hinted, written

ROW_TYPES = {"insert": "INSERT", "update": "UPDATE", "delete": "DELETE", "snapshot": "INSERT"}


@dataclass(frozen=True)
class Options(EncodeOptions):
    """Options for writing canal-json; all but the common ones are TiCDC's."""

    enable_tidb_extension: bool = option(False, "write _tidb, and watermarks")
    content_compatible: bool = option(
        False, "write mysqlType with its parameters, and only changed columns in old"
    )
    only_output_updated_columns: bool = option(False, "write only changed columns in old")
    delete_only_output_handle_key_columns: bool = option(
        False, "write only the key's columns of a deleted row"
    )
    old_value_in_delete: bool = option(False, "write a deleted row in old as well, as before 5.4")
    output_raw_change_event: bool = option(
        False, "write an update of a key as one message, not as a delete and an insert"
    )


def images(event: Event, plan: Plan, lost: list[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The row after the change (or the deleted row) and before an update, as JSON values."""
    writers = plan.writers
    if plan.bare_as_sent:
        writers = hinted(event.extra)
    row = written((event.before if event.op == "delete" else event.after) or {}, writers, lost)
    if event.op != "update":
        return row, row
    if event.before is None:
        lost.append("before-unknown")
        return row, row
    return row, written(event.before, writers, lost)


def names(event: Event, row: dict[str, Any]) -> list[str] | None:
    """The primary key in the order of the columns."""
    if event.key is None:
        return None
    if len(event.key) < 2:
        return list(event.key)
    order = {name: i for i, name in enumerate(row)}
    return sorted(event.key, key=lambda name: order.get(name, len(order)))


def time_of(micros: int | None) -> int:
    """Milliseconds; 0 if the time is unknown."""
    return (micros or 0) // 1_000
