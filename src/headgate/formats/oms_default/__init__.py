"""OMS's own message: method Default, and DefaultExtendColumnType, which adds `__light_type`."""

from __future__ import annotations

from headgate.core.options import CommonOptions
from headgate.formats._oms.decode_values import column_reader
from headgate.formats._oms.type_names import TYPE_NAMES
from headgate.formats.base import Format, Traits
from headgate.formats.oms_default.decode import make_decoder, recognises
from headgate.formats.oms_default.encode import ENCODING
from headgate.formats.oms_default.places import sequence_place

FORMAT = Format(
    name="oms-default",
    summary="OceanBase Migration Service, methods Default and DefaultExtendColumnType",
    dialects={
        "default": "method Default: values without types",
        "extend-column-type": "method DefaultExtendColumnType: types in __light_type",
    },
    options=CommonOptions,
    decoder=make_decoder,
    recognises=recognises,
    kinds="rows, DDL, heartbeats",
    encoding=ENCODING,
    traits=Traits(place=sequence_place),
    dialect_traits={
        "extend-column-type": Traits(place=sequence_place, type_names=TYPE_NAMES),
    },
    column_reader=column_reader,
)
