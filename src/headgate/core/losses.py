"""What a conversion cannot carry: named, said in a sentence, and counted where it happens.

Each format says which of these it carries. What the source carries and the target does not is the
loss of the pair; what an event has of it is counted as it is encoded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from headgate.core.event import Event

KINDS = {
    "ddl": "DDL statements have no message; they are left out",
    "statement": "the text of DML statements has no message; it is left out",
    "watermark": "watermarks have no message; they are left out",
    "heartbeat": "heartbeats have no message; they are left out",
    "transaction": "transaction begin, commit and rollback have no message; they are left out",
    "snapshot-marker": "the begin and end of a snapshot have no message; they are left out",
    "empty": "messages that hold no change have no counterpart; they are left out",
    "tombstone": "tombstones have no message; they are left out",
    "truncate": "truncation of a table is no row change: it is written as DDL, or left out",
    "row": "the options leave row changes out: deletes, in the mode drop",
}
"""Kinds of event that a format may have no message for."""

MEMBERS = {
    "snapshot": "a snapshot's row cannot be told from an insert",
    "insert": "an insert cannot be told from an update",
    "before": "the row before an update is not written",
    "database": "the database's name is not written",
    "table": "the table's name is not written",
    "schema-name": "the schema's name has no member: it is written before the table's, as in "
    "public.orders",
    "key": "the names of the primary-key columns are not written",
    "types": "column types are not written",
    "type-details": "of column types only the name is written, without length, precision, labels "
    "or, in some formats, sign",
    "bare-values": "whether a value was a number, true/false or text is not written",
    "commit-ts": "the commit number is not written",
    "event-time": "the time of the change is not written",
    "event-time-millis": "the time of the change is written in whole seconds",
    "event-time-micros": "the time of the change is written without microseconds",
    "emit-time": "the time at which the producer wrote the message is not written",
    "emit-time-millis": "the producer's time is written in whole seconds",
    "emit-time-micros": "the producer's time is written without microseconds",
    "position": "the place in the source's log (file, offset, GTID, transaction) is not written",
    "ddl-op": "what a DDL statement does is not written and has to be read from its text",
    "extra": "members that only the source's format has are not written",
    "incomplete": "that a row is incomplete (handle key only, unavailable values) is not written",
}
"""Parts of an event that a format may have no place for."""

VALUES = {
    "enum-labels": "an ENUM's or SET's labels are not known: its number, or its label, is written "
    "as it came; give a schema",
    "zero-dates": "a date that is no date (0000-00-00) cannot be written",
    "datetime-micros": "DATETIME is written without microseconds",
    "time-micros": "TIME is written without microseconds",
    "repeated-hour": "a time in the hour that comes twice when summer time ends is written as "
    "local text, which does not tell which of the two it is",
    "bigint-unsigned": "BIGINT UNSIGNED above 9223372036854775807 wraps to a negative number; "
    "give bigint-unsigned-handling-mode=precise",
    "decimal-scale": "a DECIMAL's scale is not known; give a schema",
    "datetime-precision": "a DATETIME's precision is not known: its digits decide between "
    "milliseconds and microseconds; give a schema",
    "float-digits": "FLOAT or DOUBLE is written with other digits, or in another notation",
    "before-unknown": "the row before an update is not known; it is written as if nothing changed",
    "key-change": "an update of the key is written as a delete and an insert",
    "deleted-row": "of a deleted row only the key is written",
    "null-columns": "NULL cannot be told from a column that is not there",
    "types-guessed": "a column's type is not known: it is written as VARCHAR, or as the number "
    "that its value looks like; give a schema",
    "key-unknown": "the primary key is not known; it is written as if there were none; "
    "give a schema",
    "commit-ts-unknown": "the commit number is not known; the time of the change stands for it",
    "json-null": "JSON's null is written as NULL",
    "untyped": "a value is written as its producer encoded it (base64, days or microseconds since "
    "1970), because its column's type is not known, or the value is none of that type; give a "
    "schema (--schema FILE), or columns='price DECIMAL(9,2)' as an option of what is read",
    "misfit": "a value that does not fit its column's type is written as text",
}
"""Values that a format may be unable to write."""

SENTENCES = KINDS | MEMBERS | VALUES
NUMBERS = "enum-numbers"
"""Said by a format that writes ENUM and SET as numbers, not as labels."""
SIGN = "unsigned"
"""Said by a format that writes whether a number is unsigned, though no other details of types."""
PLACE = "position."
"""A format says `position.file` if it carries that part of a position, and so on."""


class Loss(NamedTuple):
    """One thing that a conversion cannot carry."""

    code: str
    sentence: str


class Lossy(Exception):
    """Raised by a value's converter that has to write something else; `value` is what."""

    def __init__(self, code: str, value: object) -> None:
        super().__init__(code)
        self.code, self.value = code, value


MARKERS = {
    "begin": "transaction",
    "commit": "transaction",
    "rollback": "transaction",
    "snapshot_begin": "snapshot-marker",
    "snapshot_end": "snapshot-marker",
    "empty": "empty",
}


def kind_of(event: Event) -> str:
    """Which of KINDS an event is; rows that are not truncations are `row`.

    >>> kind_of(Event("marker", "begin")), kind_of(Event("row", "insert"))
    ('transaction', 'row')
    """
    if event.kind == "row":
        return "truncate" if event.op == "truncate" else "row"
    if event.kind == "marker":
        return MARKERS.get(event.op or "", "empty")
    return event.kind


HINTS = frozenset({"numbers", "booleans", "nested"})
"""Members of `extra` that say how values came, which is a weak form of their types."""
INCOMPLETE = frozenset(
    {"onlyHandleKey", "claimCheckLocation", "partial", "unavailable", "partial_json"}
)

PRESENT: dict[str, Callable[[Event], object]] = {
    "snapshot": lambda e: e.op == "snapshot",
    "insert": lambda e: e.op == "insert",
    "before": lambda e: e.before is not None and e.op == "update",
    "database": lambda e: e.database is not None,
    "table": lambda e: e.table is not None,
    "schema-name": lambda e: e.schema is not None,
    "key": lambda e: e.key is not None,
    "types": lambda e: e.types is not None,
    "commit-ts": lambda e: e.commit_ts is not None,
    "event-time": lambda e: e.event_time is not None,
    "event-time-millis": lambda e: e.event_time is not None and e.event_time % 1_000_000,
    "event-time-micros": lambda e: e.event_time is not None and e.event_time % 1_000,
    "emit-time": lambda e: e.emit_time is not None,
    "emit-time-millis": lambda e: e.emit_time is not None and e.emit_time % 1_000_000,
    "emit-time-micros": lambda e: e.emit_time is not None and e.emit_time % 1_000,
    "bare-values": lambda e: (
        e.types is None and e.extra is not None and not HINTS.isdisjoint(e.extra)
    ),
    "extra": lambda e: e.extra is not None and not HINTS.issuperset(e.extra),
    "incomplete": lambda e: e.extra is not None and not INCOMPLETE.isdisjoint(e.extra),
}
"""Whether an event has what a target may not carry; the others are found by their encoder."""

IMPLIED = {
    "types": ("type-details",),
    "event-time": ("event-time-millis", "event-time-micros"),
    "event-time-millis": ("event-time-micros",),
    "emit-time": ("emit-time-millis", "emit-time-micros"),
    "emit-time-millis": ("emit-time-micros",),
}
"""Who loses the first need not be told of the others."""


def strongest(codes: Iterable[str]) -> list[str]:
    """The codes, in order, without those that others imply.

    >>> strongest(["types", "type-details", "key"])
    ['types', 'key']
    """
    found = list(codes)
    implied = {weaker for code in found for weaker in IMPLIED.get(code, ())}
    return [code for code in found if code not in implied]


def checks(carried: frozenset[str]) -> list[tuple[str, Callable[[Event], object]]]:
    """What to look for in each event that goes to a target which carries only so much."""
    return [(code, PRESENT[code]) for code in strongest(c for c in PRESENT if c not in carried)]
