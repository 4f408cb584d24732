"""The definition of a format: its name, its codec, and what the rest of Headgate needs to know."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from msgspec import Raw

from headgate.core.event import Event, Image, Record, Types
from headgate.core.options import CommonOptions, EncodeOptions
from headgate.formats.partitioning import PartitionRules

Decode = Callable[["bytes | None", "bytes | None", "str | None"], list[Event]]
"""(key, value, topic) to events; raises DecodeError."""


class Producer(NamedTuple):
    """Who wrote an event's values, which determines how they are read."""

    format: str | None
    dialect: str | None = None
    op: str | None = None
    program: str | None = None
    """The name that the producer gives itself (`Traits.producer_member`)."""
    binary: bool = False
    """Whether the message calls some column binary."""


ReadColumn = Callable[["str | None", str], "Callable[[Any], Any] | None"]
"""(a column's type in the message, its type in the table) to a function that makes canonical text
of a JSON value. A result that is not text leaves the value unchanged; None leaves all unchanged."""

Encode = Callable[[Event, "list[str]"], "list[Record]"]
"""(event, losses) to messages; appends the code of each value it cannot write (losses.VALUES)."""


class Sniffed(NamedTuple):
    """A message as detection sees it: the members of its JSON object, not yet parsed."""

    key: bytes | None
    members: Mapping[str, Raw]


class Packer(Protocol):
    """Joins messages of rows of one table and partition into one message."""

    def size(self, record: Record) -> int:
        """The bytes that one record adds to a message."""

    def fits(self, records: int, size: int) -> bool:
        """Whether this many records with this total size fit into one message."""

    def join(self, records: list[Record]) -> Record:
        """The records as one record."""


Place = tuple[str, ...]
"""A change's position in the log of its source."""


TableName = tuple["str | None", "str | None"]
"""A database and a table."""


class TypeNames(NamedTuple):
    """A vendor's own names for MySQL's types."""

    to_mysql: Callable[[Types | None], Types | None]
    tells_sign: frozenset[str]
    """MySQL's types that have different names for signed and unsigned."""


class ExtraMembers(NamedTuple):
    """Members of `extra` that code outside the format has to know."""

    columns: frozenset[str] = frozenset()
    """Lists of columns, or objects by column, as JSON."""
    values: frozenset[str] = frozenset()
    """Members that hold column values, or reveal them."""
    partial: frozenset[str] = frozenset()
    """Members that mark a row as incomplete."""
    cut: frozenset[str] = frozenset()
    """Those of them by which columns that did change are missing, or have no value but a change."""


@dataclass(frozen=True)
class Traits:
    """Properties of the events of a format, or of one of its dialects."""

    place: Callable[[Event], Place | None] | None = None
    """A change's place in the source's log, by which duplicates are recognised; None if it has no
    place of its own."""
    watermarks: bool = False
    """Whether a producer of it can send watermarks: every change with a commit number up to that of
    the watermark was sent, on its partition."""
    ends_transaction: Callable[[Event], bool] | None = None
    """Whether an event is the last of its transaction; None if messages do not tell."""
    snapshot_server: str | None = None
    """The server id that all snapshot rows have, of every server."""
    row_in_log: bool = False
    """Whether `row` in an event's position numbers rows of the source's log, not of a message."""
    enum_as_number: bool = False
    """Whether ENUM and SET are sent as numbers instead of labels."""
    type_names: TypeNames | None = None
    """The vendor's own names for types, if it has any."""
    value_encoding: str | None = None
    """Who defines the value encoding that only a column's type reveals; None if there is none."""
    empty_deletes: tuple[Image | None, ...] = ()
    """The before images without columns that a delete may have."""
    tombstones: bool = False
    """Whether a message without a value has a meaning: the row of its key is gone."""
    tombstone_by_row: bool = False
    """Whether the row before a tombstone decides if that tombstone is written."""
    producer_member: str | None = None
    """The member of `extra` that names the program that wrote the message."""
    extra: ExtraMembers = field(default_factory=ExtraMembers)
    renamed_extra: Callable[[dict[str, str], TableName, TableName], dict[str, str]] | None = None
    """`extra` of a DDL event whose table is renamed, from the old name and the new one."""
    sample_extra: Mapping[str, str] = field(default_factory=dict)
    """Format-specific `extra` of the sample rows that reveal losses (codec/loss_samples.py)."""


@dataclass(frozen=True)
class Encoding:
    """How a format is written: its options, its encoder, and what it can represent."""

    options: type[EncodeOptions]
    encoder: Callable[[str, Any], Encode]
    carries: Callable[[str, Any], frozenset[str]]
    partition_rules: Mapping[str, PartitionRules] = field(default_factory=dict)
    """By dialect: how its producer chooses partitions; otherwise Kafka does, by message key."""
    broadcasts_ddl: bool = False
    packer: Callable[[Any], Packer] | None = None
    """From the options: what joins the messages of several rows into one."""
    binary: bool = False
    """Whether messages are binary, so that they cannot be lines of text."""
    kafka_only: bool = False
    """Whether its producers write it to Kafka and to no other message queue."""
    has_placeholder: bool = False
    """Whether it has a placeholder for a value that the source's log did not contain."""
    fullest: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By dialect: options with which a producer writes more than by default."""


@dataclass(frozen=True)
class Format:
    """One wire format: its name, its properties, and how its codec is made."""

    name: str
    summary: str
    dialects: Mapping[str, str]
    options: type[CommonOptions]
    decoder: Callable[[str | None, Any], Decode]
    recognises: Callable[[Sniffed], bool]
    kinds: str
    aliases: tuple[str, ...] = ()
    """Other names that people know it by."""
    encoding: Encoding | None = None
    """None if the format is read-only."""
    implied_dialect: Callable[[Mapping[str, str]], str | None] = lambda _: None
    """The dialect that a sink's options imply if the sink names none."""
    read_only: Mapping[str, str] = field(default_factory=dict)
    """Dialects that can be read but not written."""
    first_object: Callable[[bytes | None, bytes], bytes | None] | None = None
    """For detection, from key and value: the first JSON object in the frames of such a message,
    b"" if it has none; None if the message has no such frames."""
    probes: tuple[str, ...] = ()
    """Texts with a special meaning, which the fast path has to test."""
    varying: tuple[str, ...] = ()
    """The members of a row's message whose values differ from row to row (splice)."""
    unspliced: frozenset[str] = frozenset()
    """Options that give a value a meaning unknown to the splicer's probes."""
    unordered: str | None = None
    """A map of texts that a producer may write in a different order each time (splice)."""
    reads_key: bool = True
    """Whether decoding looks at a message's key."""
    traits: Traits = Traits()
    dialect_traits: Mapping[str, Traits] = field(default_factory=dict)
    """The traits of dialects that differ from `traits`."""
    definitions: Callable[[Event], str] | None = None
    """The table definitions in a DDL message besides its statement, as CREATE TABLE statements."""
    column_reader: Callable[[Producer, Any], ReadColumn] | None = None
    """From producer and options: how values are read whose type is not in the message; None if
    messages contain all types."""
