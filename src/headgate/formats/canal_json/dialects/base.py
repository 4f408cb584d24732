"""What distinguishes a dialect of canal-json: one record, which the codec reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from headgate.core.event import ColumnType, Event
from headgate.core.mysql_types import MySqlType
from headgate.core.values import Convert
from headgate.formats._canal.values import ValueSource
from headgate.formats._oms.decode_values import TypedConvert
from headgate.formats.base import ExtraMembers, Producer, ReadColumn, Traits
from headgate.formats.canal_json import decode_values, encode_parts
from headgate.formats.canal_json.jdbc_codes import LARGE_UNSIGNED
from headgate.formats.canal_json.type_maps import Plan
from headgate.formats.canal_json.wire import Envelope
from headgate.formats.encoding import Write, to_json
from headgate.formats.partitioning import PartitionRules

CUT = frozenset({"onlyHandleKey", "claimCheckLocation", "partial_json"})
TRAITS = Traits(
    empty_deletes=({},),
    extra=ExtraMembers(
        columns=frozenset({"partial_json"}),
        values=frozenset({"sql", "claimCheckLocation"}),
        partial=CUT,
        cut=CUT,
    ),
)
ROWS = frozenset({"insert", "before", "database", "table", "event-time", "event-time-millis"})
ROWS |= {"emit-time", "emit-time-millis"}
"""The properties of rows that every dialect can represent."""
TYPED = frozenset({"key", "types"})

EncodeRow = Callable[[Event, Plan, list[str]], Any]
"""(event, plan, losses) to a message that `Dialect.to_bytes` takes."""
EncodeOther = Callable[[Event, str], Any]
"""(event that is not a row, its `type` if it is DDL) to a message; None if there is none for it."""
NameType = Callable[[ColumnType, MySqlType, bool], "str | None"]
"""(column type, the same parsed, whether it was read from this dialect) to its mysqlType."""


def as_sent(column: ColumnType, type_: MySqlType, same_dialect: bool) -> str | None:
    """The name of a type as the event has it."""
    return column.mysql


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """A dialect of canal-json. Defaults are what Canal does, or what most dialects do."""

    name: str
    summary: str
    """A line of help."""
    traits: Traits = TRAITS

    # How its messages are recognised if the dialect is not given.
    has_mark: Callable[[Envelope], bool] | None = None
    """Whether a message has a member or a type that only this dialect writes; asked first."""
    id: Literal["absent", "zero", "batch"]
    """The member `id` of messages without a mark: the number of a batch is never 0."""
    has_types: bool = True
    """Whether rows have `mysqlType`, which distinguishes dialects whose `id` is 0."""
    ddl_start: bytes = b"{"
    """How its DDL starts, which is all that distinguishes DDL of dialects whose `id` is 0."""

    # How its messages are read.
    bare_values: bool = False
    """Whether numbers are written without quotes."""
    empty_messages: bool = False
    """Whether a message of no bytes means that there were no changes."""
    unchanged_without_old: bool = False
    """Whether an update without `old` changed nothing; otherwise its before image is unknown."""
    json_functions: bool = True
    """Whether JSON columns may have a function call, where MySQL logged the change only."""
    json_converter: Callable[[str], TypedConvert | None] = lambda _: None
    """From a column type: how JSON values of it become canonical text; None if they are as is."""
    text_converter: Callable[[str, Convert | None], Convert | None] = decode_values.text_converter
    """From a column type and the conversion to UTC: how its text becomes canonical text."""
    column_reader: Callable[[Producer, decode_values.Options], ReadColumn]
    """How values are read whose type comes from a schema or from DDL (`Format.column_reader`)."""

    # How its messages are written.
    options: tuple[str, ...] = ()
    """The options for writing that not all dialects have."""
    implied_by: Callable[[Mapping[str, str]], bool] = lambda _: False
    """Whether a sink's options imply this dialect."""
    fullest: Mapping[str, Any] = field(default_factory=dict)
    """Options with which it writes more than by default."""
    carries: Callable[[encode_parts.Options], frozenset[str]]
    """The properties of events that it can represent; the rest are losses."""
    row_encoder: Callable[[encode_parts.Options], EncodeRow]
    other_encoder: Callable[[encode_parts.Options], EncodeOther]
    to_bytes: Callable[[Any], bytes] = to_json
    ddl_type: Callable[[Event, bool], str]
    """(DDL event, whether it was read from this dialect) to the `type` of its message."""
    splits_key_updates: Callable[[encode_parts.Options], bool] = lambda _: False
    """Whether an update of a primary key becomes a delete and an insert."""
    value_writer: Callable[[MySqlType, ValueSource, Write | None], Write | None]
    """(column type, source, conversion to local time) to the function that writes its values."""
    type_namer: Callable[[encode_parts.Options], NameType] = lambda _: as_sent
    jdbc_codes: Mapping[str, int] = field(default_factory=dict)
    """The codes in sqlType that differ from Canal's, by type."""
    large_unsigned: Mapping[str, tuple[str, int]] = field(default_factory=lambda: LARGE_UNSIGNED)
    """Unsigned types whose code depends on the value: the largest value, the code above it."""
    null_codes: Mapping[str, int] = field(default_factory=dict)
    """The code of NULL where it differs from that of a value, by type."""
    guesses_types: bool = False
    """Whether columns without a type are given one, because every column needs one."""
    partition_rules: PartitionRules
    """How its producer chooses Kafka partitions."""
