"""The fast path of a pass: changes whose messages look alike are spliced, not decoded.

Only what needs no more than its own message to be written: rows that no row condition looks at. All
others are decoded. Where changes have a place in the source's log, what identifies them is spliced
too, as one more message; a batch with a change that came before is decoded.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.events import decode_columns, most_bytes_of
from headgate.arrow.headers import from_text, header_bytes, to_text
from headgate.arrow.messages import Partition
from headgate.codec.decoder import decode_message
from headgate.codec.encoder import Encoder
from headgate.codec.schemas import Schemas
from headgate.config.job import Job
from headgate.core.event import Event, qualified
from headgate.fastpath.convert import (
    answer,
    can_compile,
    has_templates,
    is_compiled,
    reads_key,
    shared_splicer,
    unordered,
)
from headgate.formats import traits_of
from headgate.pipeline.change import offset_names
from headgate.pipeline.codecs import job_decoder, job_encoders
from headgate.pipeline.counts import full_name
from headgate.pipeline.dedup import digest, identity, identity_text
from headgate.pipeline.delivery import Fitting
from headgate.pipeline.ordering import commit_time
from headgate.pipeline.plan import KnownTopics
from headgate.selection.selection import Selection, SelectionError

if TYPE_CHECKING:
    from headgate.fastpath.program import Spliced
    from headgate.fastpath.splicer import Splicer
    from headgate.fastpath.templates import Answer, Ask, Template, WrittenRecord

DEPENDENT = {"ddl", "tombstone"}
"""Events that concern others of their batch."""


IDENTITY = -1
"""The sink, so to speak, of what identifies a change: that is the value, its commit the key, its
table the topic."""


@dataclass
class PlacedChanges:
    """What was spliced and has a place in the source's log."""

    rows: list[int]
    """The numbers of their messages, ascending."""
    ids: list[bytes]
    tables: list[str]
    commits: list[int | None]
    times: list[int]
    """In microseconds."""

    def newest(self, until: int) -> int:
        """The newest time of a change by the source's clock, of those not beyond a limit."""
        commits = [commit for commit in self.commits if commit is not None]
        times = [time for time in self.times if time <= until]
        return commit_time(max(commits)) if commits else max(times, default=0)


@dataclass
class FastPathResult:
    """What was spliced of a batch, and the events of the rest."""

    spliced: Spliced
    templates: list[tuple[Template, int]]
    """The templates of what was spliced, and how often."""
    names: pa.Array
    """What the changes of all rows are known by."""
    headers: CarriedHeaders | None
    """The headers of all rows, if any has some."""
    rows: Any
    """The numbers of the rows that were not spliced."""
    rest: pa.RecordBatch
    """Those rows."""
    events: list[Event]
    """Their events."""
    counts: list[int]
    """How many events each of them has."""
    placed: PlacedChanges

    @property
    def ids(self) -> list[bytes]:
        """The identities of all changes that have one, spliced or not."""
        others = [identity(event) for event in self.events if event.kind == "row"]
        return [*self.placed.ids, *(id_ for id_ in others if id_ is not None)]

    def last_change(self) -> int | None:
        """The row of the batch's last change, if that was spliced."""
        spliced = np.flatnonzero(self.spliced.templates >= 0)
        others = np.repeat(self.rows, self.counts)[[e.kind == "row" for e in self.events]]
        if not len(spliced) or (len(others) and others[-1] > spliced[-1]):
            return None
        return int(spliced[-1])

    def newest(self, until: int) -> int:
        """The newest time of a change, of those not beyond a limit."""
        times = self.spliced.times[self.spliced.templates >= 0]
        times = times[times <= until]
        return int(times.max()) if len(times) else 0

    def counted(self) -> tuple[Counter[Any], Counter[tuple[str, ...]]]:
        """Changes by database, table and operation; and what was lost, by sink."""
        changes: Counter[Any] = Counter()
        losses: Counter[tuple[str, ...]] = Counter()
        for template, count in self.templates:
            ((op, database, table),) = template.answer.about
            changes[database, table, op] += count
            for codes in template.answer.lost:
                if codes:
                    losses[codes] += count
        return changes, losses

    def messages(self, sink: int) -> tuple[Any, dict[str, pa.Array]]:
        """What was spliced for a sink: the rows it comes of, and its columns."""
        from headgate.fastpath.splicer import binary_array, by_kind

        spliced, fixed = self.spliced, self.spliced.columns
        kinds, rows = spliced.kinds, spliced.rows
        columns = {
            "key": binary_array(spliced.keys, spliced.key_ends, fixed.no_key[kinds]),
            "value": binary_array(spliced.values, spliced.value_ends, fixed.no_value[kinds]),
        }
        of_sink = fixed.sink[kinds] == sink
        if not of_sink.all():
            mask = pa.array(of_sink)
            columns = {name: column.filter(mask) for name, column in columns.items()}
            kinds, rows = kinds[of_sink], rows[of_sink]
        columns["id"] = with_numbers(self.names.take(pa.array(rows)), rows)
        columns["partition"] = by_kind(fixed.partition, kinds)
        columns["topic"] = by_kind(fixed.topic, kinds)
        if fixed.table.null_count < len(fixed.table):
            columns["table"] = by_kind(fixed.table, kinds)
        if self.headers is not None:
            columns["headers"] = self.headers.texts.take(pa.array(rows))
        return rows, columns


class CarriedHeaders(NamedTuple):
    """The headers of messages, which go on with what is made of them."""

    texts: pa.Array
    sizes: Any
    """How many bytes of a message they take."""

    @property
    def text_sizes(self) -> Any:
        """How many bytes their texts have."""
        return pc.binary_length(self.texts).fill_null(0).to_numpy()


def carried_headers(column: pa.Array) -> CarriedHeaders | None:
    """The headers of messages without the ids of an earlier job; None where no message has any.

    >>> found = carried_headers(pa.array(['[{"key":"trace","value":"AQ=="}]', None]))
    >>> found.texts.to_pylist(), found.sizes.tolist()
    (['[{"key":"trace","value":"AQ=="}]', None], [16, 0])
    """
    if column.null_count == len(column):
        return None
    encoded = column.dictionary_encode()
    each = [*map(from_text, encoded.dictionary.to_pylist()), ()]
    rows = encoded.indices.fill_null(len(each) - 1)
    texts = pa.array(map(to_text, each), pa.string(), size=len(each)).take(rows)
    return CarriedHeaders(texts, np.array([*map(header_bytes, each)])[rows.to_numpy()])


def identity_record(event: Event) -> Iterator[WrittenRecord]:
    """What identifies a change as a message of its own, if it has a place in the source's log."""
    from headgate.fastpath.templates import WrittenRecord

    text = identity_text(event)
    if text is not None:
        commit = b"" if event.commit_ts is None else str(event.commit_ts).encode()
        table = full_name(event.database, qualified(event.schema, event.table))
        yield WrittenRecord(text, commit, None, table, None, sink=IDENTITY)


def with_numbers(names: pa.Array, rows: Any) -> pa.Array:
    """The names of messages: that of the row, and behind its first message a number.

    >>> with_numbers(pa.array(["a", "b", "b"]), np.array([0, 1, 1])).to_pylist()
    ['a', 'b', 'b.1']
    """
    if not len(rows) or not (rows[1:] == rows[:-1]).any():
        return names
    starts = np.flatnonzero(np.concatenate([[True], rows[1:] != rows[:-1]]))
    sizes = np.diff(np.append(starts, len(rows)))
    numbers = np.arange(len(rows)) - np.repeat(starts, sizes)
    suffixes = pa.array(["", *(f".{n}" for n in range(1, int(sizes.max())))], pa.string())
    return pc.binary_join_element_wise(names, suffixes.take(pa.array(numbers)), "")


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
        )
        self.splicer: Splicer | None = None
        self.wrong = False
        """Whether splicing and the codecs disagree, now or earlier in this process."""

    @cached_property
    def name(self) -> bytes:
        """What a splicer for this job and this catalog is known by in its process."""
        job = self.job
        sinks = [(s.connector, s.format, s.options) for s in job.sinks]
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

        Until then the codecs do the work: no batch waits for the compiler.
        """
        if not (can_compile() and is_compiled()):
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
            found = answer([event], [[outcome] for outcome in outcomes], untyped is not None)
            records = (*found.records, *identities)
            return found._replace(time=decoded.event_time, records=records)

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
        names = offset_names(partition, messages)
        if placed.rows:
            known_by = names.to_pylist()
            for row, id_ in zip(placed.rows, placed.ids):
                known_by[row] = id_.hex()
            names = pa.array(known_by, pa.string())
        return FastPathResult(
            spliced, templates, names, headers, rows, rest, events, counts, placed
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
