"""What a conversion loses: each kind of loss has a code and a description, and is counted.

Each format declares what it carries. What the source carries and the target does not is the loss
of the pair; what an event has of it is counted when it is encoded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from headgate.core.event import Event

KINDS = {
    "ddl": "DDL statements have no message; they are skipped",
    "statement": "the text of DML statements has no message; it is skipped",
    "watermark": "watermarks have no message; they are skipped",
    "heartbeat": "heartbeats have no message; they are skipped",
    "transaction": "transaction begin, commit and rollback have no message; they are skipped",
    "snapshot-marker": "the begin and end of a snapshot have no message; they are skipped",
    "empty": "messages that hold no change have no counterpart; they are skipped",
    "tombstone": "tombstones have no message; they are skipped",
    "truncate": "TRUNCATE is not a row change: it is written as DDL, or skipped",
    "row": "the options skip row changes: deletes, in the mode drop",
}
"""Kinds of event that a format may have no message for."""

MEMBERS = {
    "snapshot": "a snapshot row cannot be distinguished from an insert",
    "insert": "an insert cannot be distinguished from an update",
    "before": "the row before an update is not written",
    "database": "the database name is not written",
    "table": "the table name is not written",
    "schema-name": "the schema name has no member of its own: it is written before the table "
    "name, as in public.orders",
    "key": "the names of the primary-key columns are not written",
    "types": "column types are not written",
    "type-details": "only the names of column types are written, without length, precision, labels "
    "or, in some formats, sign",
    "bare-values": "whether a value was a JSON number, boolean or string is not written",
    "commit-ts": "the commit number is not written",
    "event-time": "the time of the change is not written",
    "event-time-millis": "the time of the change is written in whole seconds",
    "event-time-micros": "the time of the change is written without microseconds",
    "emit-time": "the time at which the producer wrote the message is not written",
    "emit-time-millis": "the producer's time is written in whole seconds",
    "emit-time-micros": "the producer's time is written without microseconds",
    "position": "the position in the source's log (file, offset, GTID, transaction) is not written",
    "ddl-op": "the type of a DDL statement is not written and has to be read from its text",
    "extra": "members that only the source's format has are not written",
    "incomplete": "that a row is incomplete (handle key only, unavailable values) is not marked",
}
"""Parts of an event that a format may have no place for."""

VALUES = {
    "enum-labels": "an ENUM's or SET's labels are not known: its number, or its label, is written "
    "as it came; give a schema",
    "zero-dates": "an invalid or zero date (0000-00-00) cannot be written",
    "datetime-micros": "DATETIME is written without microseconds",
    "time-micros": "TIME is written without microseconds",
    "repeated-hour": "a time in the repeated hour at the end of daylight saving time is written as "
    "local text, which is ambiguous",
    "bigint-unsigned": "BIGINT UNSIGNED above 9223372036854775807 wraps to a negative number; "
    "give bigint-unsigned-handling-mode=precise",
    "decimal-scale": "a DECIMAL's scale is not known; give a schema",
    "datetime-precision": "a DATETIME's precision is not known: its digits decide between "
    "milliseconds and microseconds; give a schema",
    "float-digits": "FLOAT or DOUBLE is written with different digits or in another notation",
    "before-unknown": "the row before an update is not known; it is written as if nothing changed",
    "key-change": "an update of the key is written as a delete and an insert",
    "deleted-row": "only the key of a deleted row is written",
    "column-name": "a column has the name of a field that the transform adds, and is not written",
    "null-columns": "NULL cannot be distinguished from a missing column",
    "types-guessed": "a column's type is not known: it is written as VARCHAR, or as the number "
    "that its value looks like; give a schema",
    "key-unknown": "the primary key is not known; it is written as if there were none; "
    "give a schema",
    "commit-ts-unknown": "the commit number is not known; the time of the change is written "
    "instead",
    "commit-ts-place": "the commit number is not known; the place in the binlog is written "
    "instead, as a number that grows as commit numbers do but holds no time",
    "json-null": "JSON null is written as SQL NULL",
    "untyped": "a value is written as its producer encoded it (base64, days or microseconds since "
    "1970), because the column type is not known, or the value does not match it; give a "
    "schema (--schema FILE), or columns='price DECIMAL(9,2)' as an option of the source format",
    "misfit": "a value that does not fit its column's type is written as text",
    "misfit-null": "a value that does not fit its column's type is landed as NULL (on-misfit=null)",
}
"""Values that a format may be unable to write."""

SENTENCES = KINDS | MEMBERS | VALUES
NUMBERS = "enum-numbers"
"""Declared by a format that writes ENUM and SET as numbers, not as labels."""
SIGN = "unsigned"
"""Declared by a format that writes whether a number is unsigned, but no other type details."""
PLACE = "position."
"""A format declares `position.file` if it carries that part of a position, and so on."""


class Loss(NamedTuple):
    """One thing that a conversion cannot carry."""

    code: str
    sentence: str


class Lossy(Exception):
    """Raised by a converter that has to write another value; `value` is what it writes."""

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
"""Members of `extra` that record how values were sent, a weak form of their types."""

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
}
"""Whether an event has what a target may lack; encoders find the other losses themselves."""

IMPLIED = {
    "types": ("type-details",),
    "event-time": ("event-time-millis", "event-time-micros"),
    "event-time-millis": ("event-time-micros",),
    "emit-time": ("emit-time-millis", "emit-time-micros"),
    "emit-time-millis": ("emit-time-micros",),
}
"""A loss, and the weaker losses that it implies."""


def strongest(codes: Iterable[str]) -> list[str]:
    """The codes, in order, without those that others imply.

    >>> strongest(["types", "type-details", "key"])
    ['types', 'key']
    """
    all_codes = list(codes)
    implied = {weaker for code in all_codes for weaker in IMPLIED.get(code, ())}
    return [code for code in all_codes if code not in implied]


def checks(carried: frozenset[str]) -> list[tuple[str, Callable[[Event], object]]]:
    """What to look for in each event that goes to a target which carries only so much."""
    return [(code, PRESENT[code]) for code in strongest(c for c in PRESENT if c not in carried)]
