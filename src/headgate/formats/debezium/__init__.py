"""Debezium's change event envelope, and what OceanBase OMS made of it."""

from __future__ import annotations

from headgate.formats._connect.decode_values import column_reader
from headgate.formats.base import Format
from headgate.formats.debezium.auxiliary import definitions
from headgate.formats.debezium.decode import Options, make_decoder, recognises
from headgate.formats.debezium.encode import ENCODING

FORMAT = Format(
    name="debezium",
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
    encodings={"debezium": "debezium", "oms": "oms", "oms-flatten": "oms"},
    unspliced=frozenset({"unavailable_value_placeholder"}),
    varying=(
        *("before", "after", "ts_ms", "ts_us", "ts_ns"),
        *(f"source.{name}" for name in ("ts_ms", "ts_us", "ts_ns", "pos", "row", "gtid", "thread")),
        "source.commit_ts",
    ),
    definitions=definitions,
    column_reader=column_reader,
)
