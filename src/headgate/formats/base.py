"""What a format is: its name, its codec, and what the rest of Headgate needs to know of it."""

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
    """What of an event says how its values were written."""

    format: str | None
    dialect: str | None = None
    op: str | None = None
    program: str | None = None
    """The name that the producer gives itself (`Traits.producer_member`)."""
    binary: bool = False
    """Whether the message calls some column binary."""


ReadColumn = Callable[["str | None", str], "Callable[[Any], Any] | None"]
"""(the type that the message told of a column, its type in the table) to what makes canonical text
of a JSON value as it came. What it gives that is no text stays as it came; so does all for None."""

Encode = Callable[[Event, "list[str]"], "list[Record]"]
"""(event, losses) to messages; appends the code of each value it cannot write (losses.VALUES)."""


class Sniffed(NamedTuple):
    """A message as detection sees it: the members of its JSON object unread, if it is one."""

    key: bytes | None
    members: Mapping[str, Raw]


class Packer(Protocol):
    """Joins messages of rows of one table and partition into one message."""

    def size(self, record: Record) -> int:
        """The bytes that one record adds to a message."""

    def fits(self, records: int, size: int) -> bool:
        """Whether so many records of so many bytes can be one message."""

    def join(self, held: list[Record]) -> Record:
        """The records as one."""


Place = tuple[str, ...]
"""Where a change stands in the log of its source."""


TableName = tuple["str | None", "str | None"]
"""A database and a table."""


class TypeNames(NamedTuple):
    """A vendor's own names for MySQL's types."""

    to_mysql: Callable[[Types | None], Types | None]
    tells_sign: frozenset[str]
    """MySQL's types that have one name if they are signed and another if they are not."""


class ExtraMembers(NamedTuple):
    """Members of `extra` that somebody else than the format itself has to know."""

    columns: frozenset[str] = frozenset()
    """Lists of columns, or objects by column, as JSON."""
    values: frozenset[str] = frozenset()
    """What holds values of columns, or leads to them."""
    partial: frozenset[str] = frozenset()
    """What says that a row is incomplete."""


@dataclass(frozen=True)
class Traits:
    """What is to be known of the events of a format, or of one of its dialects."""

    place: Callable[[Event], Place | None] | None = None
    """A change's place in the source's log, by which a repeat is recognised; None where it has no
    place of its own."""
    row_in_log: bool = False
    """Whether `row` in an event's position numbers rows of the source's log, not of a message."""
    enum_as_number: bool = False
    """Whether ENUM and SET come as numbers in place of labels."""
    type_names: TypeNames | None = None
    """Where types have names of the vendor's own."""
    value_encoding: str | None = None
    """Whose encoding values are in that only a column's type reveals; None where there is none."""
    empty_deletes: tuple[Image | None, ...] = ()
    """The before images without a column that a delete may have."""
    tombstones: bool = False
    """Whether a message without a value has a meaning: the row of its key is gone."""
    tombstone_by_row: bool = False
    """Whether the row before a tombstone decides if that tombstone is written."""
    producer_member: str | None = None
    """The member of `extra` that names the program which wrote the message."""
    extra: ExtraMembers = field(default_factory=ExtraMembers)
    renamed_extra: Callable[[dict[str, str], TableName, TableName], dict[str, str]] | None = None
    """`extra` of a DDL event whose table gets another name, from the old name and the new one."""
    sample_extra: Mapping[str, str] = field(default_factory=dict)
    """What a row's `extra` has of its own by which losses are found out (codec/loss_samples.py)."""


@dataclass(frozen=True)
class Encoding:
    """How a format is written: its options, its encoder, and what it can carry."""

    options: type[EncodeOptions]
    encoder: Callable[[str, Any], Encode]
    carries: Callable[[str, Any], frozenset[str]]
    partition_rules: Mapping[str, PartitionRules] = field(default_factory=dict)
    """By dialect: how its producer chooses partitions; else Kafka does, by the message's key."""
    broadcasts_ddl: bool = False
    packer: Callable[[Any], Packer] | None = None
    """Makes, from the options, what joins the messages of several rows into one."""
    binary: bool = False
    """Whether a message cannot be a line of text."""
    has_placeholder: bool = False
    """Whether it has a word for a value that the source's log did not hold."""
    fullest: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By dialect: options with which a producer writes more than with the default ones."""


@dataclass(frozen=True)
class Format:
    """One wire format: what it is called, what it knows, and how its codec is made."""

    name: str
    summary: str
    dialects: Mapping[str, str]
    options: type[CommonOptions]
    decoder: Callable[[str | None, Any], Decode]
    recognises: Callable[[Sniffed], bool]
    kinds: str
    encoding: Encoding | None = None
    """None where the format is read only."""
    implied_dialect: Callable[[Mapping[str, str]], str | None] = lambda _: None
    """The dialect that options of a sink imply which names none."""
    read_only: Mapping[str, str] = field(default_factory=dict)
    """Dialects that are read and not written."""
    first_object: Callable[[bytes | None, bytes], bytes | None] | None = None
    """For detection, from key and value: the first JSON object in the frames of such a message,
    b"" where it has none; None where the message has no such frames."""
    probes: tuple[str, ...] = ()
    """Texts with a meaning of their own, which the fast path has to try."""
    varying: tuple[str, ...] = ()
    """The members of a row's message whose values differ from row to row (splice)."""
    unspliced: frozenset[str] = frozenset()
    """Options that give a value a meaning which the splicer's probes do not know."""
    unordered: str | None = None
    """A map of texts that a producer may write in another order each time (splice)."""
    reads_key: bool = True
    """Whether decoding looks at a message's key."""
    traits: Traits = Traits()
    dialect_traits: Mapping[str, Traits] = field(default_factory=dict)
    """The traits of dialects that have other ones."""
    definitions: Callable[[Event], str] | None = None
    """What DDL's message tells of tables beside the statement, as CREATE TABLE statements."""
    column_reader: Callable[[Producer, Any], ReadColumn] | None = None
    """From producer and options: how values are read whose type the message does not tell; None
    where messages tell all types."""
