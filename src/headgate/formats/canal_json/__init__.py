"""Canal's flat JSON message and its variants by TiCDC, OceanBase OMS and Tencent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from headgate.formats._oms.type_names import TYPE_NAMES
from headgate.formats.base import ExtraMembers, Format, Traits
from headgate.formats.canal_json.decode import make_decoder, recognises
from headgate.formats.canal_json.decode_values import Options, column_reader
from headgate.formats.canal_json.encode import ENCODING
from headgate.formats.places import commit_place

TRAITS = Traits(
    empty_deletes=({},),
    extra=ExtraMembers(
        columns=frozenset({"partial_json"}),
        values=frozenset({"sql", "claimCheckLocation"}),
        partial=frozenset({"onlyHandleKey", "claimCheckLocation", "partial_json"}),
    ),
)


def implied_dialect(options: Mapping[str, str]) -> str | None:
    """The dialect implied by options that only TiCDC has.

    >>> implied_dialect({"enable-tidb-extension": "true"})
    'ticdc'
    """
    extended = options.get("enable-tidb-extension", "").lower() == "true"
    return "ticdc" if extended or "content-compatible" in options else None


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
    implied_dialect=implied_dialect,
    traits=TRAITS,
    dialect_traits={
        "canal": replace(TRAITS, enum_as_number=True),
        "ticdc": replace(
            TRAITS,
            enum_as_number=True,
            place=commit_place,
            sample_extra={"onlyHandleKey": "true"},
        ),
        "oms": replace(TRAITS, type_names=TYPE_NAMES),
    },
    column_reader=column_reader,
    unordered="mysqlType",
    reads_key=False,
)
