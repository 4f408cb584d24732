"""Conversion of batches: spliced where templates are known, by the codecs where not."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headgate.arrow.events import OVERSIZE, decode_columns, decode_parts, most_bytes_of
from headgate.arrow.records import RECORD_SCHEMA, record_batch
from headgate.codec.decoder import decode_message, decoder
from headgate.codec.encoder import Encoded, Encoder, spread
from headgate.core.errors import SpliceError
from headgate.core.event import Event, qualified
from headgate.formats import MODULES, load, split
from headgate.formats.base import Decode

if TYPE_CHECKING:
    from headgate.fastpath.program import Spliced
    from headgate.fastpath.splicer import Splicer
    from headgate.fastpath.templates import Answer, Ask

log = logging.getLogger("headgate.splice")
WARM = 4_000
"""So many messages must have come before templates are worth their while."""


@dataclass
class Halves:
    """A batch, taken apart: what was spliced, and the events of the rest."""

    batch: pa.RecordBatch
    spliced: Spliced | None
    rows: Any
    """The numbers of the rows that were not spliced."""
    rest: pa.RecordBatch
    """Those rows."""
    events: list[Event]
    counts: list[int]
    lost: Counter[str]
    """What was lost in splicing."""


class Converter:
    """Converts messages of a stream, in order, as a decoder and an encoder would.

    >>> converter = Converter("maxwell", {}, "canal-json", {})
    >>> message = b'{"database":"d","table":"t","type":"insert","ts":1,"data":{"id":1.10}}'
    >>> (halves,) = converter.take(pa.record_batch({"value": [message]}))
    >>> converter.records(halves, converter.outcomes(halves)).num_rows
    1
    """

    def __init__(
        self,
        format: str,
        options: Mapping[str, Any],
        target: str,
        target_options: Mapping[str, Any],
    ) -> None:
        reading = dict(options)
        if reading.get("schema") == target_options.get("schema"):
            # The encoder follows the schema as DDL changes it; a decoder stays with its beginning.
            reading.pop("schema", None)
        self.told = (format, reading, target, dict(target_options))
        self.decode = decoder(format, **reading)
        self.encoder = Encoder(target, reading, **target_options)
        self.most = most_bytes_of(options)
        self.taught: list[Event] = []
        self.since_taught = 0
        self.splicer: Splicer | None = None
        self.last: pa.RecordBatch | None = None
        """The last message of the batch before."""
        self.possible = self.encoder.may_splice and has_templates(format, options)

    def take(self, batch: pa.RecordBatch) -> Iterator[Halves]:
        """Splice a batch as far as possible, and decode the rest; in parts, where that is much."""
        spliced = self.spliced(batch)
        if spliced is not None:
            rows = np.flatnonzero(spliced.templates < 0)
            rest = batch.take(pa.array(rows))
            events, counts = decode_columns(rest, self.decode, self.most)
            if any(event.format == "debezium-smt" for event in events):
                self.possible = False  # whether a tombstone was written hangs on the row before it
            elif len(counts) == len(rows) and not any(event.kind == "ddl" for event in events):
                yield Halves(batch, spliced, rows, rest, events, counts, self.losses(spliced))
                return
        # What follows DDL in the batch has to be encoded after it was learnt.
        for part, events, counts in decode_parts(batch, self.decode, self.most):
            self.learn(event for event in events if event.kind == "ddl")
            yield Halves(part, None, range(part.num_rows), part, events, counts, Counter())

    def outcomes(self, halves: Halves) -> list[Encoded]:
        """What the encoder makes of the events that were not spliced."""
        encoder, batch = self.encoder, halves.batch
        rows = np.repeat(halves.rows, halves.counts).tolist()
        found = [
            encoder.tombstone(event, self.deleted_before(batch, row))
            if event.kind == "tombstone"
            else encoder(event)
            for event, row in zip(halves.events, rows)
        ]
        self.last = batch.slice(max(batch.num_rows - 1, 0))
        return found

    def deleted_before(self, batch: pa.RecordBatch, row: int) -> Event | None:
        """The delete that a tombstone follows: the message before it, if that has its key."""
        before = batch.slice(row - 1, 1) if row else self.last
        if "key" not in batch.schema.names or before is None or not before.num_rows:
            return None
        key = batch.column("key")[row]
        if not key.is_valid or before.column("key")[0] != key:
            return None
        event = decode_columns(before, self.decode, self.most)[0][-1]
        return event if event.op == "delete" else None

    def learn(self, ddl: Iterable[Event]) -> None:
        """Templates made before DDL are not those after it."""
        before = len(self.taught)
        self.taught += ddl
        if len(self.taught) > before:
            self.splicer, self.since_taught = None, 0

    def spliced(self, batch: pa.RecordBatch) -> Spliced | None:
        """What can be spliced of a batch."""
        if not self.possible or OVERSIZE in batch.schema.names:
            return None
        if self.splicer is None:
            self.splicer = self.find_splicer(batch.num_rows)
        if self.splicer is None:
            return None
        keys = batch.column("key") if "key" in batch.schema.names else None
        spliced = self.splicer.run(keys, batch.column("value"))
        if self.splicer.wrong:
            raise SpliceError
        return spliced

    def find_splicer(self, rows: int) -> Splicer | None:
        """This process's splicer for the conversion, once enough messages have come."""
        if self.taught:
            self.since_taught += rows
            return self.new_splicer() if self.since_taught > WARM and can_compile() else None
        return shared(repr(self.told), rows, self.new_splicer)

    def new_splicer(self) -> Splicer:
        """A splicer with codecs of its own."""
        from headgate.fastpath.splicer import Splicer

        format, options, target, target_options = self.told
        encoder = Encoder(target, options, **target_options)
        for event in self.taught:
            encoder.learn(event)
        ask = asking(decoder(format, **options), encoder, self.most)
        return Splicer(ask, reads_key(format), self.most, unordered(format))

    def losses(self, spliced: Spliced) -> Counter[str]:
        """What was lost in splicing, counted."""
        lost: Counter[str] = Counter()
        for template, count in self.splicer.program.met(spliced) if self.splicer else ():
            for codes in template.answer.lost:
                for code in codes:
                    lost[code] += count
        return lost

    def records(self, halves: Halves, outcomes: Iterable[Encoded]) -> pa.RecordBatch:
        """The messages of both halves, in the order of the batch."""
        if halves.spliced is None:
            return record_batch(self.encoder, halves.events, outcomes)
        first = spliced_records(halves.spliced)
        if not halves.events:
            return first
        outcomes = list(outcomes)
        second = record_batch(self.encoder, halves.events, outcomes)
        per_event = np.repeat(halves.rows, halves.counts)
        rows = np.repeat(per_event, [len(outcome.records) for outcome in outcomes])
        return in_rows(first, halves.spliced.rows, second, rows)


def in_rows(
    first: pa.RecordBatch, first_rows: Any, second: pa.RecordBatch, second_rows: Any
) -> pa.RecordBatch:
    """Two parts of a batch in the order of the rows that they come of.

    >>> parts = [pa.record_batch({"value": values}) for values in (["a", "c"], ["b"])]
    >>> in_rows(parts[0], [0, 2], parts[1], [1]).column("value").to_pylist()
    ['a', 'b', 'c']
    """
    if not second.num_rows:
        return first
    order = np.argsort(np.concatenate([first_rows, second_rows]), kind="stable")
    both = pa.Table.from_batches([first, second]).combine_chunks().take(pa.array(order))
    (found,) = both.combine_chunks().to_batches()
    return found


MOST_SPLICERS = 8
_splicers: dict[str | bytes, Splicer] = {}
_seen: Counter[str | bytes] = Counter()


def shared(told: str | bytes, rows: int, make: Callable[[], Splicer]) -> Splicer | None:
    """This process's splicer of that name; None until enough messages have come for it."""
    _seen[told] += rows
    if told not in _splicers and _seen[told] > WARM and can_compile():
        if len(_splicers) >= MOST_SPLICERS:
            _splicers.clear()
        _splicers[told] = make()
    return _splicers.get(told)


@cache
def can_compile() -> bool:
    """Whether there is the compiler; a worker without it does all by the codecs."""
    try:
        import_module("numba")
    except ImportError as error:
        log.warning("messages are not spliced, because numba cannot be imported: %s", error)
        return False
    return True


def has_templates(format: str, options: Mapping[str, Any]) -> bool:
    """Whether messages of a format that is read with such options can be spliced at all.

    >>> has_templates("canal-json", {}), has_templates("open-protocol", {})
    (True, False)
    """
    name, _ = split(format)
    given = {option.replace("-", "_") for option in options}
    if any(not load(each).unspliced.isdisjoint(given) for each in MODULES):
        return False
    return name == "auto" or bool(load(name).varying)


def reads_key(format: str) -> bool:
    """Whether decoding looks at keys."""
    name, _ = split(format)
    return name == "auto" or load(name).reads_key


def unordered(format: str) -> str | None:
    """The map whose order means nothing, in messages of a format.

    >>> unordered("auto"), unordered("maxwell")
    ('mysqlType', None)
    """
    name, _ = split(format)
    names = MODULES if name == "auto" else (name,)
    return next((member for each in names if (member := load(each).unordered)), None)


def spliced_records(spliced: Spliced) -> pa.RecordBatch:
    """What was spliced, in Kafka's columns."""
    from headgate.fastpath.splicer import binary_array, by_kind

    fixed, kinds = spliced.columns, spliced.kinds
    columns = [
        binary_array(spliced.keys, spliced.key_ends, fixed.no_key[kinds]),
        binary_array(spliced.values, spliced.value_ends, fixed.no_value[kinds]),
        *(
            by_kind(each, kinds)
            for each in (fixed.partition, fixed.topic, fixed.headers, fixed.losses)
        ),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=RECORD_SCHEMA)


def asking(decode: Decode, encoder: Encoder, most: int) -> Ask:
    """What the codecs say of a message, for learning."""

    def ask(key: bytes | None, value: bytes) -> Answer | None:
        events = decode_message(decode, key, value, None, most)
        if any(event.kind != "row" for event in events):
            return None
        outcomes = [encoder(event) for event in events]
        if any(outcome.error for outcome in outcomes):
            return None
        return answer(events, [outcomes], encoder.informed)

    return ask


def answer(events: list[Event], outcomes: list[list[Encoded]], informed: bool) -> Answer:
    """Events and what each sink's encoder made of them, as an answer.

    `informed` says that encoders know tables' schemas, so that each table is a case of its own.
    """
    from headgate.fastpath.templates import Answer, Made

    first = events[0]
    records = tuple(
        Made(r.value, r.key, r.headers, r.topic, r.partition, losses, sink)
        for sink, own in enumerate(outcomes)
        for outcome in own
        for r, losses in zip(outcome.records, spread(outcome.records, outcome.lost))
    )
    tables = tuple((e.op, e.database, qualified(e.schema, e.table)) for e in events)
    return Answer(
        records,
        tuple(tuple(outcome.lost) for own in outcomes for outcome in own),
        tables,
        first.event_time,
        first.format,
        (first.format, first.dialect, first.op, len(events), *(tables if informed else ())),
        first.types or {},
        first.key or (),
    )
