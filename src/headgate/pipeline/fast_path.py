"""The fast path of a pass: changes whose messages look alike are spliced, not decoded.

Only what needs no more than its own message to be written: rows that no row condition looks at. All
others are decoded. Where changes have a place in the source's log, what identifies them is spliced
too, as one more message; a batch with a change that came before is decoded.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pyarrow as pa

from headgate.arrow.events import decode_columns, most_bytes_of
from headgate.arrow.messages import Partition
from headgate.codec.decoder import decode_message
from headgate.codec.encoder import Encoder
from headgate.codec.schemas import Schemas
from headgate.config.job import Job
from headgate.core.event import Event, qualified
from headgate.fastpath.compilation import SPLICING
from headgate.fastpath.convert import (
    answer,
    has_templates,
    reads_key,
    shared_splicer,
    unordered,
)
from headgate.formats import traits_of
from headgate.landing.row_texts import row_text
from headgate.pipeline.codecs import job_decoder, job_encoders
from headgate.pipeline.counts import full_name
from headgate.pipeline.dedup import digest, identity_text
from headgate.pipeline.delivery import Fitting
from headgate.pipeline.plan import KnownTopics
from headgate.pipeline.spliced_batch import (
    IDENTITY,
    ROW,
    CarriedHeaders,
    FastPathResult,
    PlacedChanges,
    carried_headers,
)
from headgate.selection.selection import Selection, SelectionError
from headgate.sinks.base import TableSink

if TYPE_CHECKING:
    from headgate.fastpath.program import Spliced
    from headgate.fastpath.splicer import Splicer
    from headgate.fastpath.templates import Answer, Ask, WrittenRecord

DEPENDENT = {"ddl", "tombstone"}
"""Events that concern others of their batch."""


def commit_text(event: Event) -> bytes:
    """The commit number of a change; empty where it has none."""
    return b"" if event.commit_ts is None else str(event.commit_ts).encode()


def lands_by_row(sink: TableSink) -> bool:
    """Whether a sink of tables needs no more of a change than its row and its place."""
    return sink.may_splice and not (sink.takes_times or sink.waits_for_watermarks)


def row_record(event: Event) -> Iterator[WrittenRecord]:
    """The row of a change as a message of its own, if it can be spliced."""
    from headgate.fastpath.templates import WrittenRecord

    row = row_text(event)
    if row is not None:
        layout, text = row
        name = msgspec.json.encode(layout, order="sorted").decode()
        yield WrittenRecord(text, commit_text(event), None, name, None, sink=ROW)


def identity_record(event: Event) -> Iterator[WrittenRecord]:
    """What identifies a change as a message of its own, if it has a place in the source's log."""
    from headgate.fastpath.templates import WrittenRecord

    text = identity_text(event)
    if text is not None:
        commit = commit_text(event)
        table = full_name(event.database, qualified(event.schema, event.table))
        yield WrittenRecord(text, commit, None, table, None, sink=IDENTITY)


class FastPath:
    """Splices the messages of a job."""

    def __init__(
        self,
        job: Job,
        tables: Schemas,
        catalog: str | None,
        topics: Sequence[KnownTopics],
        encoders: Sequence[Encoder],
    ) -> None:
        self.job, self.tables, self.catalog, self.topics = job, tables, catalog, topics
        self.decode = job_decoder(job.source)
        self.limit = most_bytes_of(job.source.options)
        self.possible = (
            has_templates(job.source.format, job.source.options)
            and not any(each.where for each in job.filters)
            and all(encoder.may_splice for encoder in encoders)
            and all(lands_by_row(sink.connector) for sink in job.table_sinks)
        )
        self.splicer: Splicer | None = None
        self.wrong = False
        """Whether splicing and the codecs disagree, now or earlier in this process."""

    @cached_property
    def name(self) -> bytes:
        """What a splicer for this job and this catalog is known by in its process."""
        job = self.job
        sinks = [(s.connector, s.format, s.options) for s in job.sinks] or "tables"
        rules = (job.source.format, job.source.options, job.tables, job.filters, job.routes)
        topics = [
            ({t: n for t, n in known.partitions.items() if n != usual}, known.refused)
            for known, usual in zip(
                self.topics, (s.options.get("partition_num") for s in job.sinks)
            )
        ]
        return blake2b(pickle.dumps((sinks, rules, self.catalog, topics))).digest()

    def find_splicer(self, messages: pa.RecordBatch) -> Splicer | None:
        """The splicer, once it is compiled, and enough messages have come.

        The first batch has it compiled: a job has more messages than it takes to pay.
        """
        if not SPLICING.is_ready():
            return None
        return shared_splicer(self.name, messages.num_rows, self.new_splicer)

    def new_splicer(self) -> Splicer:
        """A splicer with codecs of its own."""
        from headgate.fastpath.splicer import Splicer

        source = self.job.source.format
        return Splicer(self.asking(), reads_key(source), self.limit, unordered(source))

    def asking(self) -> Ask:
        """What the codecs and the job's selection make of a message."""
        decode, tables = job_decoder(self.job.source), self.tables
        selection = Selection(self.job)
        encoders = job_encoders(self.job, self.topics)
        fittings = [Fitting(sink, each) for sink, each in zip(self.job.sinks, encoders)]
        uses_topics = [sink.connector.uses_topics for sink in self.job.sinks]
        refused = {topic for known in self.topics for topic in known.refused}
        lands = bool(self.job.table_sinks)

        def ask(key: bytes | None, value: bytes) -> Answer | None:
            events = decode_message(decode, key, value, None, self.limit)
            try:
                if len(events) != 1 or events[0].kind != "row":
                    return None
                (decoded,) = events
                if not selection.wants(decoded):
                    return None
                # As in a pass, before the table's columns and key are known from elsewhere.
                identities = tuple(identity_record(decoded))
                untyped = tables.complete(decoded)
                topic, event = selection.topic_of(decoded), selection.shape(decoded)
            except SelectionError:
                return None
            for encoder in encoders:
                encoder.topic = topic
            outcomes = [encoder(event, untyped) for encoder in encoders]
            for outcome, fit, needs_topic in zip(outcomes, fittings, uses_topics):
                fit(event, outcome)
                if outcome.error is not None:
                    return None
                for record in outcome.records:
                    record.topic = record.topic if topic is None else topic
                    if record.headers or (needs_topic and record.topic is None):
                        return None
                    if record.topic in refused:
                        return None
            rows: tuple[WrittenRecord, ...] = ()
            if lands:
                rows = tuple(row_record(event))
                if untyped or not rows:
                    return None
            informed = lands or untyped is not None
            result = answer([event], [[outcome] for outcome in outcomes], informed)
            records = (*result.records, *identities, *rows)
            return result._replace(time=decoded.event_time, records=records)

        return ask

    def take(self, partition: Partition, messages: pa.RecordBatch) -> FastPathResult | None:
        """Splice a batch as far as possible; None if all of it has to be decoded."""
        if not self.possible:
            return None
        if self.splicer is None:
            self.splicer = self.find_splicer(messages)
        if self.splicer is None:
            return None
        spliced = self.splicer.run(messages.column("key"), messages.column("value"))
        self.wrong |= self.splicer.wrong
        if spliced is None:
            return None
        headers = carried_headers(messages.column("headers"))
        if self.too_large(spliced, headers):
            return None
        rows = np.flatnonzero(spliced.templates < 0)
        rest = messages.take(pa.array(rows))
        events, counts = decode_columns(rest, self.decode, self.limit)
        templates = self.splicer.program.template_counts(spliced)
        timeless = any(t.answer.time is not None and t.time_leaf < 0 for t, _ in templates)
        if any(traits_of(name).tombstone_by_row for name in {e.format for e in events}):
            self.possible = False  # whether a tombstone was written hangs on the row before it
            return None
        if timeless or len(counts) < len(rows) or any(event.kind in DEPENDENT for event in events):
            return None
        placed = self.placed(spliced)
        return FastPathResult(
            spliced, templates, partition, messages, headers, rows, rest, events, counts, placed
        )

    def placed(self, spliced: Spliced) -> PlacedChanges:
        """The changes that have a place in the source's log."""
        from headgate.fastpath.splicer import by_kind

        records = np.flatnonzero(spliced.columns.sink[spliced.kinds] == IDENTITY)
        rows = spliced.rows[records]
        texts, ends = memoryview(spliced.values), spliced.value_ends
        starts = zip(ends[records].tolist(), ends[records + 1].tolist())
        ids = [digest(texts[start:end]) for start, end in starts]
        numbers, ends = spliced.keys.tobytes(), spliced.key_ends
        starts = zip(ends[records].tolist(), ends[records + 1].tolist())
        commits = [int(numbers[start:end]) if start < end else None for start, end in starts]
        tables = by_kind(spliced.columns.topic, spliced.kinds[records]).to_pylist()
        return PlacedChanges(rows.tolist(), ids, tables, commits, spliced.times[rows].tolist())

    def too_large(self, spliced: Spliced, headers: CarriedHeaders | None) -> bool:
        """Whether any message, or its key and headers, is larger than a sink takes."""
        if not len(spliced.rows):
            return False
        head = np.diff(spliced.key_ends)
        whole = head + np.diff(spliced.value_ends)
        if headers is not None:
            head = head + headers.text_sizes[spliced.rows]
            whole = whole + headers.sizes[spliced.rows]
        sinks = [sink.connector for sink in self.job.sinks]
        return any(
            limit is not None and bool(sizes.max() > limit)
            for sink in sinks
            for sizes, limit in ((whole, sink.max_bytes), (head, sink.max_header_bytes))
        )
