"""TiCDC Open Protocol: framed JSON keys and values, one pair per row, DDL or resolved event."""

from __future__ import annotations

from headgate.formats.base import ExtraMembers, Format, Traits
from headgate.formats.open_protocol.decode import Options, first_object, make_decoder, recognises
from headgate.formats.open_protocol.encode import ENCODING
from headgate.formats.places import commit_place

FORMAT = Format(
    name="open-protocol",
    aliases=("ticdc-open-protocol",),
    summary="TiCDC Open Protocol: framed keys and values",
    dialects={
        "classic": "TiCDC of the tiflow repository, up to the classic v8.5",
        "new": "TiCDC of the new architecture",
    },
    options=Options,
    decoder=make_decoder,
    recognises=recognises,
    kinds="rows, DDL, resolved timestamps",
    encoding=ENCODING,
    first_object=first_object,
    traits=Traits(
        place=commit_place,
        watermarks=True,
        enum_as_number=True,
        extra=ExtraMembers(
            columns=frozenset({"h", "t", "base64"}),
            values=frozenset({"unnamedOld", "claimCheckLocation"}),
            partial=frozenset({"onlyHandleKey", "claimCheckLocation"}),
            cut=frozenset({"onlyHandleKey", "claimCheckLocation"}),
        ),
        sample_extra={"onlyHandleKey": "true"},
    ),
)
