"""Maxwell's JSON message, and the variants of it that OceanBase OMS and TiCDC write."""

from __future__ import annotations

from dataclasses import replace

from headgate.formats.base import ExtraMembers, Format, Traits
from headgate.formats.maxwell.decode import Options, make_decoder, recognises
from headgate.formats.maxwell.decode_values import column_reader
from headgate.formats.maxwell.definitions import renamed_definitions
from headgate.formats.maxwell.encode import ENCODING
from headgate.formats.maxwell.places import is_commit, transaction_place
from headgate.formats.places import commit_place

TRAITS = Traits(
    renamed_extra=renamed_definitions,
    extra=ExtraMembers(
        values=frozenset({"query"}), partial=frozenset({"partial"}), cut=frozenset({"partial"})
    ),
)

FORMAT = Format(
    name="maxwell",
    aliases=("maxwell-json",),
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
    traits=replace(TRAITS, place=transaction_place, ends_transaction=is_commit),
    dialect_traits={
        "oms": TRAITS,
        "ticdc": replace(TRAITS, place=commit_place, enum_as_number=True),
    },
    column_reader=column_reader,
)
