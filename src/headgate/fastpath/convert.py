"""Conversion of batches: by templates where they are known, by the codecs where not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headgate.arrow.conversion import CodecConverter, Converted, Converter
from headgate.arrow.events import OVERSIZE, decode_columns, decode_parts
from headgate.arrow.records import RECORD_SCHEMA
from headgate.codec.decoder import decode_message, decoder
from headgate.codec.encoder import Encoded, Encoder
from headgate.codec.packing import spread
from headgate.core.errors import SpliceError
from headgate.core.event import Event, qualified
from headgate.fastpath.compilation import SPLICING
from headgate.formats import load, registered, split, traits_of
from headgate.formats.base import Decode

if TYPE_CHECKING:
    from headgate.fastpath.program import Spliced
    from headgate.fastpath.splicer import Splicer
    from headgate.fastpath.templates import Answer, Ask

WARM = 4_000
"""The number of messages after which learning templates pays."""


class FastConverter:
    """Converts messages by templates where these are known, and by the codecs where not.

    >>> converter = FastConverter(CodecConverter("maxwell", {}, "canal-json", {}))
    >>> message = b'{"database":"d","table":"t","type":"insert","ts":1,"data":{"id":1.10}}'
    >>> [c.records.num_rows for c in converter.convert(pa.record_batch({"value": [message]}))]
    [1]
    """

    def __init__(self, codecs: CodecConverter) -> None:
        self.codecs = codecs
        self.encoder, self.most_bytes = codecs.encoder, codecs.most_bytes
        self.enabled = True
        self.ddl: list[Event] = []
        self.rows_since_ddl = 0
        self.splicer: Splicer | None = None

    def convert(self, batch: pa.RecordBatch) -> Iterator[Converted]:
        """Convert a batch with Kafka's columns; in several parts, where it holds many rows."""
        codecs = self.codecs
        spliced = self.splice(batch)
        if spliced is not None:
            rows = np.flatnonzero(spliced.templates < 0)
            rest = batch.take(pa.array(rows))
            events, counts = decode_columns(rest, codecs.decode, codecs.most_bytes)
            if any(traits_of(name).tombstone_by_row for name in {e.format for e in events}):
                self.enabled = False  # whether a tombstone was written depends on the row before it
            elif len(counts) == len(rows) and not any(event.kind == "ddl" for event in events):
                outcomes = codecs.encode(batch, rows, events, counts)
                converted = codecs.converted(rest, events, counts, outcomes)
                yield self.merged(spliced, converted, rows, counts, outcomes)
                return
        # What follows DDL in the batch has to be encoded after the schema was changed.
        for part, events, counts in decode_parts(batch, codecs.decode, codecs.most_bytes):
            self.learn(event for event in events if event.kind == "ddl")
            outcomes = codecs.encode(part, range(part.num_rows), events, counts)
            yield codecs.converted(part, events, counts, outcomes)

    def merged(
        self,
        spliced: Spliced,
        converted: Converted,
        rows: Any,
        counts: list[int],
        outcomes: list[Encoded],
    ) -> Converted:
        """What was spliced together with what the codecs converted, in the order of the batch."""
        rows_of_events = np.repeat(rows, counts)
        rows_of_records = np.repeat(rows_of_events, [len(o.records) for o in outcomes])
        records = in_rows(
            spliced_records(spliced), spliced.rows, converted.records, rows_of_records
        )
        losses = self.losses(spliced) + converted.losses
        return Converted(records, converted.rejected, converted.reasons, losses)

    def learn(self, ddl: Iterable[Event]) -> None:
        """Forget the templates at DDL: a table's messages are not as before."""
        before = len(self.ddl)
        self.ddl += ddl
        if len(self.ddl) > before:
            self.splicer, self.rows_since_ddl = None, 0

    def splice(self, batch: pa.RecordBatch) -> Spliced | None:
        """What the templates make of a batch."""
        if not self.enabled or OVERSIZE in batch.schema.names:
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
        if self.ddl:
            self.rows_since_ddl += rows
            return (
                self.new_splicer() if self.rows_since_ddl > WARM and SPLICING.is_ready() else None
            )
        codecs = self.codecs
        name = repr((codecs.format, codecs.options, codecs.target, codecs.target_options))
        return shared_splicer(name, rows, self.new_splicer)

    def new_splicer(self) -> Splicer:
        """A splicer with codecs of its own."""
        from headgate.fastpath.splicer import Splicer

        codecs = self.codecs
        encoder = Encoder(codecs.target, codecs.options, **codecs.target_options)
        for event in self.ddl:
            encoder.learn(event)
        decode = decoder(codecs.format, **codecs.options)
        ask = asking(decode, encoder, codecs.most_bytes)
        format = codecs.format
        return Splicer(ask, reads_key(format), codecs.most_bytes, unordered(format))

    def losses(self, spliced: Spliced) -> Counter[str]:
        """What was lost in splicing, counted."""
        lost: Counter[str] = Counter()
        for template, count in (
            self.splicer.program.template_counts(spliced) if self.splicer else ()
        ):
            for codes in template.answer.lost:
                for code in codes:
                    lost[code] += count
        return lost


def converter(
    format: str,
    options: Mapping[str, Any],
    target: str,
    target_options: Mapping[str, Any],
    whole_messages: bool = True,
) -> Converter:
    """The fastest converter between two formats with these options."""
    codecs = CodecConverter(format, options, target, target_options, whole_messages)
    if codecs.encoder.may_splice and has_templates(format, options):
        return FastConverter(codecs)
    return codecs


def in_rows(
    first: pa.RecordBatch, first_rows: Any, second: pa.RecordBatch, second_rows: Any
) -> pa.RecordBatch:
    """Two parts of a batch in the order of their source rows.

    >>> parts = [pa.record_batch({"value": values}) for values in (["a", "c"], ["b"])]
    >>> in_rows(parts[0], [0, 2], parts[1], [1]).column("value").to_pylist()
    ['a', 'b', 'c']
    """
    if not second.num_rows:
        return first
    order = np.argsort(np.concatenate([first_rows, second_rows]), kind="stable")
    both = pa.Table.from_batches([first, second]).combine_chunks().take(pa.array(order))
    (merged,) = both.combine_chunks().to_batches()
    return merged


MAX_SPLICERS = 8
_splicers: dict[str | bytes, Splicer] = {}
_seen: Counter[str | bytes] = Counter()


def shared_splicer(name: str | bytes, rows: int, make: Callable[[], Splicer]) -> Splicer | None:
    """This process's splicer of that name; None until enough messages have come for it.

    And None until the loop is compiled: until then the codecs do the work, and no batch waits.
    """
    _seen[name] += rows
    if name not in _splicers and _seen[name] > WARM and SPLICING.is_ready():
        if len(_splicers) >= MAX_SPLICERS:
            _splicers.clear()
        _splicers[name] = make()
    return _splicers.get(name)


def has_templates(format: str, options: Mapping[str, Any]) -> bool:
    """Whether messages of a format that is read with such options can be spliced at all.

    >>> has_templates("canal-json", {}), has_templates("open-protocol", {})
    (True, False)
    """
    name, _ = split(format)
    given = {option.replace("-", "_") for option in options}
    if any(not load(each).unspliced.isdisjoint(given) for each in registered()):
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
    names = registered() if name == "auto" else (name,)
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
    """The codecs' answer for a message, from which templates are learnt."""

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
    from headgate.fastpath.templates import Answer, WrittenRecord

    first = events[0]
    records = tuple(
        WrittenRecord(r.value, r.key, r.headers, r.topic, r.partition, losses, sink, r.table)
        for sink, sink_outcomes in enumerate(outcomes)
        for outcome in sink_outcomes
        for r, losses in zip(outcome.records, spread(outcome.records, outcome.lost))
    )
    tables = tuple((e.op, e.database, qualified(e.schema, e.table)) for e in events)
    return Answer(
        records,
        tuple(tuple(outcome.lost) for sink_outcomes in outcomes for outcome in sink_outcomes),
        tables,
        first.event_time,
        first.format,
        (first.format, first.dialect, first.op, len(events), *(tables if informed else ())),
        first.types or {},
        first.key or (),
    )
