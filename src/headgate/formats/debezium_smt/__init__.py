"""Debezium's rows without their envelope (ExtractNewRecordState), and OMS's DebeziumSmt."""

from __future__ import annotations

from dataclasses import replace

from headgate.formats._connect.decode_values import column_reader
from headgate.formats.base import ExtraMembers, Format, Traits
from headgate.formats.debezium_smt.decode import Options, make_decoder, recognises
from headgate.formats.debezium_smt.encode import ENCODING
from headgate.formats.places import binlog_place

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
    tombstone_by_row=True,
)
DEBEZIUM = replace(TRAITS, value_encoding="debezium")
OMS = replace(TRAITS, value_encoding="oms")

FORMAT = Format(
    name="debezium-smt",
    aliases=("debezium-unwrapped",),
    summary="Debezium's rows without the envelope (ExtractNewRecordState)",
    dialects={
        "debezium": "Debezium with the transform ExtractNewRecordState",
        "oms": "OceanBase Migration Service, method DebeziumSmt",
    },
    options=Options,
    decoder=make_decoder,
    recognises=recognises,
    kinds="rows, tombstones, and messages that the transform passes through",
    encoding=ENCODING,
    traits=TRAITS,
    dialect_traits={"debezium": DEBEZIUM, "oms": OMS},
    column_reader=column_reader,
)
