"""OMS's method SharePlex: `data`, `key` and `meta`, after Quest SharePlex's JSON."""

from __future__ import annotations

from headgate.core.options import CommonOptions
from headgate.formats._oms.decode_values import column_reader
from headgate.formats.base import ExtraMembers, Format, Traits
from headgate.formats.shareplex.decode import make_decoder, recognises
from headgate.formats.shareplex.encode import ENCODING

FORMAT = Format(
    name="shareplex",
    summary="OceanBase Migration Service, method SharePlex",
    dialects={"oms": "SharePlex as OMS writes it"},
    options=CommonOptions,
    decoder=make_decoder,
    recognises=recognises,
    kinds="rows, DDL, heartbeats",
    encoding=ENCODING,
    traits=Traits(extra=ExtraMembers(partial=frozenset({"partial"}))),
    column_reader=column_reader,
)
