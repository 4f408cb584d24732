"""Debezium's rows without their envelope (ExtractNewRecordState), and OMS's DebeziumSmt."""

from __future__ import annotations

from headgate.formats._connect.decode_values import column_reader
from headgate.formats.base import Format
from headgate.formats.debezium_smt.decode import Options, make_decoder, recognises
from headgate.formats.debezium_smt.encode import ENCODING

FORMAT = Format(
    name="debezium-smt",
    summary="Debezium's rows without the envelope (ExtractNewRecordState)",
    dialects={
        "debezium": "Debezium with the transform ExtractNewRecordState",
        "oms": "OceanBase Migration Service, method DebeziumSmt",
    },
    options=Options,
    decoder=make_decoder,
    recognises=recognises,
    kinds="rows, tombstones, and what the transform lets pass",
    encoding=ENCODING,
    encodings={"debezium": "debezium", "oms": "oms"},
    column_reader=column_reader,
)
