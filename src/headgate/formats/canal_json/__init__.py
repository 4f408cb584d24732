"""Canal's flat JSON message and its variants by TiCDC, OceanBase OMS and Tencent."""

from __future__ import annotations

from collections.abc import Mapping

from headgate.formats.base import Encoding, Format
from headgate.formats.canal_json.decode import column_reader, make_decoder, recognises
from headgate.formats.canal_json.decode_values import Options
from headgate.formats.canal_json.dialects import DIALECTS
from headgate.formats.canal_json.dialects.base import TRAITS
from headgate.formats.canal_json.encode import carries, make_encoder
from headgate.formats.canal_json.encode_parts import Options as EncodeOptions


def implied_dialect(options: Mapping[str, str]) -> str | None:
    """The dialect implied by options that only it has.

    >>> implied_dialect({"enable-tidb-extension": "true"})
    'ticdc'
    """
    return next((d.name for d in DIALECTS.values() if d.implied_by(options)), None)


FORMAT = Format(
    name="canal-json",
    aliases=("canal", "canal-flat"),
    summary="Canal's flat JSON message and its relatives",
    dialects={d.name: d.summary for d in DIALECTS.values()},
    options=Options,
    decoder=make_decoder,
    recognises=recognises,
    kinds="rows, DDL, statements, watermarks, heartbeats, XA markers",
    encoding=Encoding(
        EncodeOptions,
        make_encoder,
        carries,
        partition_rules={d.name: d.partition_rules for d in DIALECTS.values()},
        fullest={d.name: d.fullest for d in DIALECTS.values() if d.fullest},
    ),
    varying=("data", "old", "es", "ts", "id", "gtid", "_tidb.commitTs"),
    implied_dialect=implied_dialect,
    traits=TRAITS,
    dialect_traits={d.name: d.traits for d in DIALECTS.values()},
    column_reader=column_reader,
    unordered="mysqlType",
    reads_key=False,
)
