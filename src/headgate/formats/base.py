"""What a format is: its name, its codec, and what the rest of Headgate needs to know of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from msgspec import Raw

from headgate.core.event import Event, Record
from headgate.core.options import CommonOptions, EncodeOptions

Decode = Callable[["bytes | None", "bytes | None", "str | None"], list[Event]]
"""(key, value, topic) to events; raises DecodeError."""


class Producer(NamedTuple):
    """What of an event says how its values were written."""

    format: str | None
    dialect: str | None = None
    op: str | None = None
    connector: str | None = None
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


@dataclass(frozen=True)
class Encoding:
    """How a format is written: its options, its encoder, and what it can carry."""

    options: type[EncodeOptions]
    encoder: Callable[[str, Any], Encode]
    carries: Callable[[str, Any], frozenset[str]]
    producer: str
    """Whose partition hash its messages go by (dispatch.py)."""
    broadcasts_ddl: bool = False
    packer: Callable[[Any], Packer] | None = None
    """Makes, from the options, what joins the messages of several rows into one."""
    binary: bool = False
    """Whether a message cannot be a line of text."""
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
    encoding: Encoding
    read_only: Mapping[str, str] = field(default_factory=dict)
    """Dialects that are read and not written."""
    varying: tuple[str, ...] = ()
    """The members of a row's message whose values differ from row to row (splice)."""
    unspliced: frozenset[str] = frozenset()
    """Options that give a value a meaning which the splicer's probes do not know."""
    unordered: str | None = None
    """A map of texts that a producer may write in another order each time (splice)."""
    reads_key: bool = True
    """Whether decoding looks at a message's key."""
    encodings: Mapping[str, str] = field(default_factory=dict)
    """By dialect: whose encodings its values come in that nothing but a column's type tells."""
    definitions: Callable[[Event], str] | None = None
    """What DDL's message tells of tables beside the statement, as CREATE TABLE statements."""
    column_reader: Callable[[Producer, Any], ReadColumn] | None = None
    """From producer and options: how values are read whose type the message does not tell; None
    where messages tell all types."""
