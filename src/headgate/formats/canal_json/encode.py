"""Encode canal-json in any of its dialects; what distinguishes them is in `dialects/`."""

from __future__ import annotations

from headgate.core.cache import BoundedCache
from headgate.core.errors import UsageError
from headgate.core.event import Event, Record
from headgate.core.options import spelled
from headgate.formats._ticdc.keys import changes_key, split_update
from headgate.formats.base import Encode
from headgate.formats.canal_json.dialects import DIALECTS
from headgate.formats.canal_json.dialects.base import Dialect
from headgate.formats.canal_json.encode_parts import Options
from headgate.formats.canal_json.encode_plan import Origin, planner
from headgate.formats.canal_json.type_maps import Plan
from headgate.formats.encoding import PerTypeMap


def make_encoder(name: str, options: Options) -> Encode:
    """An encoder of one dialect."""
    dialect = DIALECTS[name]
    check_options(dialect, options)
    encode_row = dialect.row_encoder(options)
    encode_other = dialect.other_encoder(options)
    to_bytes, ddl_type = dialect.to_bytes, dialect.ddl_type
    splits = dialect.splits_key_updates(options)
    plans: BoundedCache[tuple[str | None, str | None, bool], PerTypeMap[Plan]] = BoundedCache(
        lambda origin: planner(dialect, Origin(*origin), options)
    )

    def encode(event: Event, lost: list[str]) -> list[Record]:
        if event.kind == "tombstone":
            return [Record(None)]
        if event.kind != "row":
            same_dialect = event.format == "canal-json" and event.dialect == name
            type_ = ddl_type(event, same_dialect) if event.kind == "ddl" else ""
            message = encode_other(event, type_)
            return [] if message is None else [Record(to_bytes(message))]
        split = splits and changes_key(event)
        several = split or (event.position is not None and "row" in event.position)
        plan = plans[event.format, event.dialect, several](event.types)
        if split:
            lost.append("key-change")
            return [Record(to_bytes(encode_row(part, plan, lost))) for part in split_update(event)]
        return [Record(to_bytes(encode_row(event, plan, lost)))]

    return encode


def check_options(dialect: Dialect, options: Options) -> None:
    """Reject options that only other dialects have."""
    for other in DIALECTS.values():
        for name in other.options:
            if name not in dialect.options and getattr(options, name):
                raise UsageError(
                    f"option {spelled(name)} is only for canal-json:{other.name}; "
                    "write that dialect or remove the option"
                )


def carries(name: str, options: Options) -> frozenset[str]:
    """The properties of events that a dialect can represent."""
    return DIALECTS[name].carries(options)
