"""Debezium's change event envelope, also as written by OceanBase OMS."""

from __future__ import annotations

from dataclasses import replace

from headgate.formats._connect.decode_values import column_reader
from headgate.formats.base import ExtraMembers, Format, TableName, Traits
from headgate.formats.debezium.auxiliary import definitions
from headgate.formats.debezium.decode import Options, make_decoder, recognises
from headgate.formats.debezium.encode import ENCODING
from headgate.formats.debezium.unavailable import FORMS
from headgate.formats.places import binlog_place, is_commit_marker


def without_table_changes(extra: dict[str, str], old: TableName, new: TableName) -> dict[str, str]:
    """A schema change's extra members without the definitions, which have the table's old name."""
    return {name: text for name, text in extra.items() if name != "tableChanges"}


TRAITS = Traits(
    place=binlog_place,
    snapshot_server="0",
    producer_member="connector",
    tombstones=True,
    extra=ExtraMembers(
        columns=frozenset({"unavailable"}),
        values=frozenset({"query"}),
        partial=frozenset({"unavailable"}),
    ),
    renamed_extra=without_table_changes,
    empty_deletes=(None, {}),
    row_in_log=True,
)
DEBEZIUM = replace(
    TRAITS,
    value_encoding="debezium",
    watermarks=True,  # of TiCDC
    ends_transaction=is_commit_marker,
)
OMS = replace(TRAITS, value_encoding="oms")

FORMAT = Format(
    name="debezium",
    aliases=("debezium-json",),
    summary="Debezium's change event envelope, with or without its schema",
    dialects={
        "debezium": "Debezium 0.9 to 3.x, of MySQL and of databases with schemas; TiCDC's debezium",
        "oms": "OceanBase Migration Service, method Debezium",
        "oms-flatten": "OceanBase Migration Service, method DebeziumFlatten",
    },
    options=Options,
    decoder=make_decoder,
    recognises=recognises,
    kinds="rows, truncations, DDL, watermarks, heartbeats, transaction and snapshot markers, "
    "tombstones",
    encoding=ENCODING,
    traits=TRAITS,
    dialect_traits={"debezium": DEBEZIUM, "oms": OMS, "oms-flatten": OMS},
    probes=FORMS,
    unspliced=frozenset({"unavailable_value_placeholder"}),
    varying=(
        *("before", "after", "ts_ms", "ts_us", "ts_ns"),
        *(f"source.{name}" for name in ("ts_ms", "ts_us", "ts_ns", "pos", "row", "gtid", "thread")),
        "source.commit_ts",
    ),
    definitions=definitions,
    column_reader=column_reader,
)
