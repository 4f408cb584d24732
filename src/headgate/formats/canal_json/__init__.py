"""Canal's flat JSON message, and what TiCDC, OceanBase OMS and Tencent made of it."""

from __future__ import annotations

from headgate.formats.base import Format
from headgate.formats.canal_json.decode import Options, column_reader, make_decoder, recognises
from headgate.formats.canal_json.encode import ENCODING

FORMAT = Format(
    name="canal-json",
    summary="Canal's flat JSON message and its relatives",
    dialects={
        "canal": "Alibaba Canal, all versions",
        "ticdc": "TiCDC Canal-JSON, with and without the TiDB extension",
        "oms": "OceanBase Migration Service, method Canal",
        "tencent": "Tencent's Canal-compatible format",
    },
    options=Options,
    decoder=make_decoder,
    recognises=recognises,
    kinds="rows, DDL, statements, watermarks, heartbeats, XA markers",
    encoding=ENCODING,
    varying=("data", "old", "es", "ts", "id", "gtid", "_tidb.commitTs"),
    column_reader=column_reader,
    unordered="mysqlType",
    reads_key=False,
)
