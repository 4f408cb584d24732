"""Events to messages of one format: the losses counted, the partition chosen, rows packed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from headgate.codec.event_checks import (
    details_finder,
    lacks_types,
    malformed,
    truncation,
    unlabelled,
    unlabelled_columns,
    without_unavailable,
)
from headgate.codec.routing import router
from headgate.codec.schemas import Schemas
from headgate.core.cache import BoundedCache, PerTypeMap
from headgate.core.errors import UsageError, internal_error
from headgate.core.event import Event, Record, Types, flattened
from headgate.core.json import exact_text
from headgate.core.losses import NUMBERS, PLACE, PRESENT, SENTENCES, checks, kind_of
from headgate.core.options import build
from headgate.formats import encoding_of, extra_members, load, split, traits_of, writable
from headgate.formats._connect.keys import key_members
from headgate.formats.base import Encoding, TypeNames
from headgate.formats.partitioning import DispatchError

IN_A_SCHEMA = {"key", "types", "type-details", "bare-values"}
"""What is not lost where a schema tells it."""
NULL_DELETE = (
    "no-message",
    "the delete would be a message without a value, which the sink does not take; choose another "
    "way of writing deletes among the format's options",
)
"""Why a delete is not written whose tombstone is all there is of it."""
BY_NAME = ("bare-values", "extra")
"""What is known to be lost by the names in an event's `extra`, as "incomplete" is."""


class Encoded(msgspec.Struct, gc=False):
    """What became of one event: its messages, what they do not carry, or why there are none."""

    records: list[Record]
    lost: list[str]
    error: tuple[str, str] | None = None


class Losses:
    """The codes of what is lost of one event; a code is there as often as it is lost.

    >>> losses = Losses()
    >>> losses.add("key"), losses.add("untyped", 2), losses.retract({"key"}), losses.codes
    (None, None, None, ['untyped', 'untyped'])
    """

    __slots__ = ("codes",)

    def __init__(self) -> None:
        self.codes: list[str] = []

    def add(self, code: str, times: int = 1) -> None:
        """Count a loss."""
        self.codes += [code] * times

    def retract(self, codes: Collection[str]) -> None:
        """Take back what turned out not to be lost."""
        self.codes = [code for code in self.codes if code not in codes]


class Outlook(NamedTuple):
    """What is known of an event before its values are read."""

    same_format: bool
    """Whether it is of the format to be written."""
    same_dialect: bool
    """Whether it is of that dialect too."""
    to_mysql: Callable[[Types | None], Types | None] | None
    """What makes MySQL's types of a vendor's own names, if they have those."""
    numbered: bool
    """Whether its ENUM and SET are numbers, and labels are wanted."""
    lost: list[str]
    """What is lost of `position` and `extra`."""
    encoded: bool
    """Whether values of columns without a type are in encodings that the target does not have."""


EventShape = tuple[str | None, str | None, bool, tuple[str, ...], tuple[str, ...]]
"""An event's format and dialect, whether it has types, the names in its `position` and `extra`."""


class Encoder:
    """Encodes events of a stream, in order; it learns tables' schemas from the DDL it sees.

    >>> encoder = Encoder("maxwell")
    >>> encoder(Event("row", "insert", "d", "t", after={"id": "1"})).records[0].value
    b'{"database":"d","table":"t","type":"insert","data":{"id":"1"}}'
    >>> encoder(Event("watermark", commit_ts=1)).lost
    ['watermark']
    """

    def __init__(self, spec: str, source: Mapping[str, Any] | None = None, **options: Any) -> None:
        """An encoder of a format; `source` has the options with which the events were decoded."""
        self.name, dialect, self.encoding = target(spec)
        self.dialect = dialect
        chosen = build(self.encoding.options, options)
        carried = self.encoding.carries(dialect, chosen)
        self.carried = carried
        self.checks = checks(carried | {*BY_NAME})
        self.places = {c.removeprefix(PLACE) for c in carried if c.startswith(PLACE)}
        self.has_placeholder = self.encoding.has_placeholder and "incomplete" in carried
        """Whether the format has a word for a value that the source's log did not hold."""
        self.encode = self.encoding.encoder(dialect, chosen)
        self.strict = chosen.strict
        self.schemas = Schemas(chosen.schema, source)
        self.informed = chosen.schema is not None
        self.route = router(chosen, dialect, self.encoding)
        self.partitions: Mapping[str, int] = {}
        """How many partitions topics have, where that is not `partition_num`."""
        self.topic: str | None = None
        """Where the next event goes, if that is not the option's to say."""
        self.outlooks = BoundedCache(self.outlook)
        self.names_only = "types" in carried and "type-details" not in carried
        self.mysql_types: BoundedCache[TypeNames, PerTypeMap[Types | None]] = BoundedCache(
            lambda type_names: PerTypeMap(type_names.to_mysql)
        )
        type_names = traits_of(self.name, dialect).type_names
        self.has_details = PerTypeMap(
            details_finder(carried, type_names.tells_sign if type_names else frozenset())
        )
        self.labels = NUMBERS not in carried
        self.flat = "schema-name" not in carried
        self.unlabelled = PerTypeMap(unlabelled_columns)
        self.packer = self.encoding.packer and self.encoding.packer(chosen)
        self.writes_tombstones = True
        """Whether messages without a value can be written where the messages go."""
        self.deleted: Event | None = None
        """The row before, if it was a delete."""
        self.may_splice = chosen.splice and self.packer is None

    def __call__(self, event: Event, untyped: Sequence[str] | None = None) -> Encoded:
        """Encode one event; a tombstone right behind its delete belongs to that.

        `untyped` is what completing it from a schema elsewhere has returned (`Schemas.complete`).
        """
        if event.kind == "tombstone":
            deleted = self.deleted
            return self.tombstone(event, deleted if deleted and follows(event, deleted) else None)
        if event.kind == "row":
            self.deleted = event if event.op == "delete" else None
        return self.outcome(event, untyped)

    def tombstone(self, event: Event, deleted: Event | None) -> Encoded:
        """Encode a tombstone; that of a known delete has the key, topic and partition of it.

        >>> deleted = Event("row", "delete", "d", "t", ("id",), before={"id": "1"})
        >>> tombstone = Event("tombstone", format="debezium", extra={"key": '{"id":1}'})
        >>> encoder = Encoder("debezium", schemas_enable=False)
        >>> encoder.tombstone(tombstone, deleted).records  # it was written with the delete
        []
        """
        if deleted is None:
            return self.outcome(event)
        gone = self.outcome(deleted)
        if gone.error is not None or any(record.value is None for record in gone.records):
            return Encoded([], [], gone.error)
        outcome = self.outcome(event)
        for record in outcome.records if gone.records else ():
            last = gone.records[-1]
            record.key, record.topic, record.partition = last.key, last.topic, last.partition
        return outcome

    def outcome(self, event: Event, untyped: Sequence[str] | None = None) -> Encoded:
        """Encode one event; an exception that no encoder means to raise is its error."""
        try:
            return self.encoded(event, untyped)
        except Exception as error:
            return Encoded([], [], internal_error(error))

    def encoded(self, event: Event, untyped: Sequence[str] | None) -> Encoded:
        """Encode one event, step by step."""
        outlook = self.outlook_of(event)
        if outlook.to_mysql is not None and event.types is not None:
            event = msgspec.structs.replace(event, types=outlook.to_mysql(event.types))
        kind = "row" if event.kind == "row" and event.op != "truncate" else kind_of(event)
        if kind == "invalid":
            return Encoded([], [], event.error or ("invalid", "the event is invalid"))
        wrong = malformed(event, outlook.same_format)
        if wrong is not None:
            return Encoded([], [], ("malformed-event", f"{wrong}; check what made the event"))
        losses = Losses()
        if kind != "row":
            written = self.as_carried(event, kind, outlook.same_format, losses)
            if written is None:
                return self.judge([], [kind])
            event = written
        self.find_losses(event, outlook, losses)
        if event.op == "update" and not self.has_placeholder:
            event = without_unavailable(event)
        event = self.completed(event, kind, untyped, losses)
        self.find_unreadable(event, kind, outlook, losses)
        return self.written(event, kind, losses)

    def outlook_of(self, event: Event) -> Outlook:
        """What is known of an event before its values are read."""
        return self.outlooks[
            event.format,
            event.dialect,
            event.types is not None,
            tuple(event.position or ()),
            tuple(event.extra or ()),
        ]

    def as_carried(
        self, event: Event, kind: str, same_format: bool, losses: Losses
    ) -> Event | None:
        """An event other than a row, as one that the format carries; None where it carries none."""
        if kind == "ddl":
            self.learn(event)
        if kind in self.carried or (kind != "truncate" and same_format):
            return event
        if kind != "truncate" or "ddl" not in self.carried:
            return None
        losses.add(kind)
        return truncation(event)

    def find_losses(self, event: Event, outlook: Outlook, losses: Losses) -> None:
        """Add what the event has and the format has no place for."""
        for code, present in self.checks:
            if present(event):
                losses.add(code)
        losses.codes += outlook.lost
        types = event.types
        if (
            self.names_only
            and types is not None
            and not outlook.same_dialect
            and self.has_details(types)
        ):
            losses.add("type-details")

    def completed(
        self, event: Event, kind: str, untyped: Sequence[str] | None, losses: Losses
    ) -> Event:
        """The event with what its table's schema tells; that is not lost, then."""
        if self.informed and untyped is None:
            if kind == "row":
                event = msgspec.structs.replace(event)
                untyped = self.schemas.complete(event)
            elif self.schemas.table(event.database, event.table, event.schema) is not None:
                untyped = ()
        if untyped is not None:
            losses.retract(IN_A_SCHEMA)
            losses.add("untyped", len(untyped))
        return event

    def find_unreadable(self, event: Event, kind: str, outlook: Outlook, losses: Losses) -> None:
        """Add the values that nobody can read without a type or labels that are not known."""
        unreadable = outlook.encoded and kind == "row" and lacks_types(event)
        if unreadable and "untyped" not in losses.codes:
            losses.add("untyped")
        if outlook.numbered and event.types is not None:
            columns = self.unlabelled(event.types)
            if columns:
                losses.add("enum-labels", unlabelled(event, columns))

    def written(self, event: Event, kind: str, losses: Losses) -> Encoded:
        """The messages of an event, with their topic and partition."""
        flat = flattened(event) if event.schema and self.flat else event
        records = self.encode(flat, losses.codes)
        if not self.writes_tombstones and any(record.value is None for record in records):
            if kind == "row" and records[0].value is None:
                return Encoded([], losses.codes, NULL_DELETE)
            records = [record for record in records if record.value is not None]
        if not records:
            return self.judge([], [kind])
        if self.route is not None:
            try:
                records = self.route(event, records, self.topic, self.partitions)
            except DispatchError as error:
                return Encoded([], losses.codes, (error.code, str(error)))
        return self.judge(records, losses.codes) if self.strict else Encoded(records, losses.codes)

    def learn(self, event: Event) -> None:
        """Follow a DDL event without writing it."""
        self.schemas.learn(event)
        self.informed = True

    def judge(self, records: list[Record], lost: list[str]) -> Encoded:
        """The outcome; under `strict`, none that loses anything."""
        if not (lost and self.strict):
            return Encoded(records, lost)
        reasons = "; ".join(SENTENCES[code] for code in dict.fromkeys(lost))
        return Encoded(
            [], lost, ("lossy", f"{reasons}; leave strict out, or choose another format")
        )

    def outlook(self, shape: EventShape) -> Outlook:
        """What is to be expected of events of this shape."""
        format, dialect, typed, position, extra = shape
        same_format = format == self.name
        same_dialect = same_format and dialect in (None, self.dialect)
        like = Event("row", format=format, dialect=dialect, types={} if typed else None)
        like.extra = dict.fromkeys(extra, "")
        traits, target = traits_of(format, dialect), traits_of(self.name, self.dialect)
        lost = []
        if "bare-values" not in self.carried and PRESENT["bare-values"](like):
            lost.append("bare-values")
        if "incomplete" not in self.carried and not extra_members().partial.isdisjoint(extra):
            lost.append("incomplete")
        # The number of a row within its message is no place in the source's log.
        if any(n not in self.places and (n != "row" or traits.row_in_log) for n in position):
            lost.append("position")
        if not same_dialect and PRESENT["extra"](like):
            lost.append("extra")
        to_mysql = (
            None if same_dialect or not traits.type_names else self.mysql_types[traits.type_names]
        )
        encoded = traits.value_encoding not in (None, target.value_encoding)
        return Outlook(
            same_format,
            same_dialect,
            to_mysql,
            self.labels and traits.enum_as_number,
            lost,
            encoded,
        )


def follows(tombstone: Event, deleted: Event) -> bool:
    """Whether a tombstone's key is that of a deleted row, as far as can be seen from its values.

    >>> deleted = Event("row", "delete", "d", "t", ("id",), before={"id": "1"})
    >>> [follows(Event("tombstone", extra={"key": f'{{"id":{n}}}'}), deleted) for n in (1, 2)]
    [True, False]
    """
    sent = key_members((tombstone.extra or {}).get("key", "").encode())
    if not sent or not deleted.key or sent.keys() != set(deleted.key):
        return False
    row = deleted.before or {}
    return all(exact_text(value) == row.get(name) for name, value in sent.items())


def target(spec: str) -> tuple[str, str, Encoding]:
    """A format that is to be written: its name, its dialect (the first, if none is named).

    >>> target("canal-json")[:2]
    ('canal-json', 'canal')
    """
    name, dialect = split(spec)
    if name == "auto":
        raise UsageError(f"a format to write must be named; choose one of: {', '.join(writable())}")
    format = load(name)
    if dialect in format.read_only:
        raise UsageError(
            f"{spec} is read and not written; to write it, choose {' or '.join(format.dialects)}"
        )
    return name, dialect or next(iter(format.dialects)), encoding_of(format)
