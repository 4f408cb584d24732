"""OMS's method DataWorks: the DataWorks V2.0 message, with the table's schema in each message."""

from __future__ import annotations

from headgate.core.options import CommonOptions
from headgate.formats._oms.decode_values import column_reader
from headgate.formats._oms.type_names import TYPE_NAMES
from headgate.formats.base import Format, Traits
from headgate.formats.dataworks.decode import make_decoder, recognises
from headgate.formats.dataworks.encode import ENCODING
from headgate.formats.places import is_commit_marker

FORMAT = Format(
    name="dataworks",
    summary="OceanBase Migration Service, method DataWorks",
    dialects={"v2.0": "DataWorks V2.0, the one version documented"},
    options=CommonOptions,
    decoder=make_decoder,
    recognises=recognises,
    kinds="rows, DDL, transaction markers, heartbeats",
    encoding=ENCODING,
    dialect_traits={"v2.0": Traits(type_names=TYPE_NAMES, ends_transaction=is_commit_marker)},
    column_reader=column_reader,
)
