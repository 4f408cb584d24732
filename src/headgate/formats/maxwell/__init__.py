"""Maxwell's JSON message, and what OceanBase OMS and TiCDC made of it."""

from __future__ import annotations

from headgate.formats.base import Format
from headgate.formats.maxwell.decode import Options, make_decoder, recognises
from headgate.formats.maxwell.decode_values import column_reader
from headgate.formats.maxwell.encode import ENCODING

FORMAT = Format(
    name="maxwell",
    summary="Zendesk Maxwell's JSON message",
    dialects={
        "maxwell": "Maxwell, all versions",
        "oms": "OceanBase Migration Service, method Maxwell",
    },
    read_only={"ticdc": "TiCDC, protocol maxwell"},
    options=Options,
    decoder=make_decoder,
    recognises=recognises,
    kinds="rows, DDL, heartbeats, bootstrap markers",
    encoding=ENCODING,
    varying=("data", "old", "ts", "xid", "xoffset", "position", "gtid", "thread_id"),
    column_reader=column_reader,
)
