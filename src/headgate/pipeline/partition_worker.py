"""A pass over the messages of partitions: decode, deduplicate, select, encode.

A pass has no side effects but new files that nobody knows yet, so it can run twice; where it lacked
something that only the whole batch tells (the DDL of another partition, a disorder), it is run
again with that.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.events import (
    bounded,
    decode_columns,
    decode_parts,
    most_bytes_of,
)
from headgate.arrow.headers import ID_HEADER, from_text, header_bytes, to_text
from headgate.arrow.messages import DEAD_LETTER, DEAD_LETTER_COLUMNS, Partition
from headgate.codec.encoder import Encoded, Encoder, packed
from headgate.config.job import Job, Sink
from headgate.core.errors import internal_error, shown
from headgate.core.event import Event, Record, qualified
from headgate.core.limits import BATCH_BYTES, SPLICED_ROWS
from headgate.core.losses import kind_of
from headgate.fastpath.convert import in_rows
from headgate.fastpath.job_fastpath import (
    ShortCut,
    Taken,
    counted,
    job_decoder,
    job_encoders,
    most_bytes,
)
from headgate.pipeline.catalog import known_tables, read_catalog
from headgate.pipeline.counts import add_counts, add_table, full_name, table_name
from headgate.pipeline.dedup import comes_before, commit_time, identity, placed_identity
from headgate.pipeline.dedup_store import Ledger
from headgate.pipeline.plan import (
    BatchPlan,
    KnownTopics,
    PartitionReport,
    PartitionState,
    PlannedDdl,
)
from headgate.pipeline.tombstones import TombstonePairs
from headgate.selection.selection import Selection, SelectionError
from headgate.spark.api import fast_worker
from headgate.spark.row_packing import PACK_SCHEMA, flat_rows, packs
from headgate.spark.storage import Storage

AN_HOUR = 3_600_000_000
KEEP, DROP, UNKNOWN = "keep", "drop", "unknown-signature"
"""What is said of a change by a row condition (row_filter.py); else a dead letter's reason."""
WORK_SCHEMA = pa.schema([*PACK_SCHEMA, ("dead_letter", DEAD_LETTER)])
"""A row is messages for a sink, or a dead letter."""

Named = tuple[list[Record], list[str], list["str | None"]]
"""Messages, what each is known by, and its headers as text."""


def passing(
    job: Job, plan: BatchPlan, report: Callable[[list[bytes]], None]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that Spark runs over each partition of a batch's messages.

    It calls `report` once, at its end, with a `PartitionReport` as JSON for each topic partition.
    """

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with fast_worker():
            worker = Worker(job, plan)
            for batch in batches:
                for part in bounded(batch, SPLICED_ROWS):
                    for partition, messages in by_partition(part):
                        if partition[1] is not None or plan.by_place:  # else they are paths
                            yield from worker.take(partition, messages)
            yield from worker.finish()
            report(worker.reports)

    return run


def by_partition(batch: pa.RecordBatch) -> Iterator[tuple[Partition, pa.RecordBatch]]:
    """A batch cut where its partition changes."""
    topics, numbers = batch.column("topic"), batch.column("partition")
    start = 0
    while start < batch.num_rows:
        partition = (topics[start].as_py(), numbers[start].as_py())
        same = pc.and_(_equal(topics, partition[0]), _equal(numbers, partition[1]))
        end = pc.index(same.slice(start), False).as_py()
        end = batch.num_rows if end < 0 else start + end
        yield partition, batch.slice(start, end - start)
        start = end


def _equal(column: pa.Array, value: Any) -> pa.Array:
    return pc.is_null(column) if value is None else pc.fill_null(pc.equal(column, value), False)


class Worker:
    """The state of one pass over some partitions."""

    def __init__(self, job: Job, plan: BatchPlan) -> None:
        self.job, self.plan = job, plan
        self.decode = job_decoder(job.source)
        self.limit = most_bytes_of(job.source.options)
        self.selection = Selection(job)
        self.storage = Storage(plan.state_uri, job.settings)
        self.partitions: dict[Partition, PartitionPass] = {}
        self.reports: list[bytes] = []
        self.catalog = read_catalog(self.storage, plan.catalog)
        self.tables = known_tables(self.storage, plan.catalog, job.source)
        self.ddl_encoders = self.encoders()
        self.short_cut = ShortCut(job, self.tables, plan.catalog, plan.topics)

    def encoders(self) -> list[Encoder]:
        """An encoder for each sink; rows are completed before they come to it."""
        return job_encoders(self.job, self.plan.topics)

    def take(self, partition: Partition, messages: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Process messages of a partition."""
        if partition not in self.partitions:
            self.partitions[partition] = PartitionPass(self, partition)
        return self.partitions[partition].take(messages)

    def finish(self) -> Iterator[pa.RecordBatch]:
        """What was held back, and the tallies."""
        for partition in self.partitions.values():
            yield from partition.finish()


class Entry(msgspec.Struct, gc=False):
    """An event on its way, with the message it came in."""

    event: Event
    id: bytes | None
    name: str
    """What the event is known by, to a reader of its message."""
    batch: int
    row: int
    topic: str | None = None
    """Where a route sends it."""
    deleted: Event | None = None
    """The delete of a tombstone."""
    again: bool = False
    """Whether it came before in this batch: a repeat, unless the first one is refused."""
    untyped: list[str] | None = None
    """Columns whose values are none of their type; None where the table is not known."""


class Beside(NamedTuple):
    """What was spliced of a batch, beside the events of the rest; and what all rows are called."""

    taken: Taken
    names: pa.Array


class PartitionPass:
    """A pass over one partition."""

    def __init__(self, worker: Worker, partition: Partition) -> None:
        self.worker, self.partition, self.at = worker, partition, 0
        known = worker.plan.partitions.get(partition, PartitionState(partition))
        self.report = PartitionReport(msgspec.structs.replace(known))
        self.encoders = worker.encoders()
        self.tables = worker.tables
        self.ledger = Ledger(worker.storage, known.applied)
        self.watermark = known.watermark
        self.sorted = partition in worker.plan.disordered
        self.held: list[Entry] = []
        self.batches: list[pa.RecordBatch] = []
        self.headers: list[list[str | None] | None] = []
        self.last: dict[tuple[str | None, ...], int] = {}
        self.counts: Counter[tuple[str | None, str | None, str]] = Counter()
        self.lost: Counter[tuple[str, ...]] = Counter()
        self.dead: Counter[tuple[str, str]] = Counter()
        self.topics: list[set[str]] = [set() for _ in self.encoders]
        self.last_ddl: int | None = None
        self.newest = known.newest or 0
        self.future = int(time.time() * 1_000_000) + AN_HOUR
        self.steps: set[int] = set()
        self.pairs = TombstonePairs(known.last_delete)

    def take(self, messages: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Process messages that follow those before."""
        self.report.counts.messages += messages.num_rows
        taken = self.short_cut(messages)
        if taken is not None:
            beside = Beside(taken, self.names(messages))
            self.report.counts.events += messages.num_rows - taken.rest.num_rows
            yield from self.process(taken.events, taken.counts, taken.rest, beside)
            self.note_last_spliced(messages, taken)
            return
        worker = self.worker
        for several in bounded(messages):
            for part, events, counts in decode_parts(several, worker.decode, worker.limit):
                yield from self.process(events, counts, part)

    def process(
        self,
        events: list[Event],
        counts: Sequence[int],
        messages: pa.RecordBatch,
        beside: Beside | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Process the events of messages; `beside` has what was spliced of others among them."""
        self.report.counts.events += len(events)
        self.batches.append(messages)
        headers = messages.column("headers")
        self.headers.append(None if headers.null_count == len(headers) else headers.to_pylist())
        entries = self.fresh(events, counts, messages)
        if self.sorted:
            self.held += entries
            return
        yield from self.emit(entries, beside)
        self.batches[-1] = self.headers[-1] = None  # not needed again

    def short_cut(self, messages: pa.RecordBatch) -> Taken | None:
        """What of a batch can be spliced; nothing where messages depend on others."""
        plan = self.worker.plan
        # The short cut knows the tables as they were before the batch.
        if self.sorted or plan.by_place or plan.ddl:
            return None
        return self.worker.short_cut.take(messages)

    def note_last_spliced(self, messages: pa.RecordBatch, taken: Taken) -> None:
        """Decode the last change of a batch if it was spliced: it may be a delete."""
        row = taken.last_change()
        if row is not None:
            last, worker = messages.slice(row, 1), self.worker
            events, _ = decode_columns(last, worker.decode, worker.limit)
            self.pairs.take(events, [0], last.column("key"), [None], [KEEP])

    def names(self, messages: pa.RecordBatch) -> pa.Array:
        """What changes without a place in the source's log are known by."""
        topic, partition = self.partition
        offsets = messages.column("offset").cast(pa.string())
        return pc.binary_join_element_wise(f"{topic}-{partition}-", offsets, "")

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Process what was held back for sorting, and tell what was done."""
        if self.held:
            yield from self.emit(in_order(self.held))
        report = self.report
        for (database, table, op), n in self.counts.items():
            add_table(report.counts.rows, full_name(database, table), {op: n})
        for (table, code), n in self.dead.items():
            add_table(report.counts.rejected, table, {code: n})
        for codes, n in self.lost.items():
            for code in codes:
                add_counts(report.counts.losses, {code: n})
        report.topics, report.steps = list(map(sorted, self.topics)), sorted(self.steps)
        report.fastpath_wrong = self.worker.short_cut.wrong
        report.state.last_delete, report.state.newest = self.pairs.last, self.newest or None
        report.state.applied = self.ledger.write(self.worker.job.remember)
        self.worker.reports.append(msgspec.json.encode(report))

    def fresh(
        self, events: list[Event], counts: Sequence[int], messages: pa.RecordBatch
    ) -> list[Entry]:
        """The events that were not applied before; watermarks are noted and end here."""
        places = self.places(messages)
        rows = [row for row, count in enumerate(counts) for _ in range(count)]
        own = list(map(identity, events))
        ids = own.copy()
        if self.worker.plan.by_place:
            ids = by_place(events, own, counts, places)
        verdicts = self.verdicts(events, rows, messages)
        deletes = self.pairs.take(events, rows, messages.column("key"), ids, verdicts)
        for n, deleted in deletes.items():
            ids[n], verdicts[n] = deleted.tombstone_id(), deleted.verdict
        known = self.ledger.known(ids)
        applied = self.ledger.fresh
        number_of_batch = len(self.batches) - 1
        entries: list[Entry] = []
        before = number = -1
        for n, (event, row, id_, verdict) in enumerate(zip(events, rows, ids, verdicts)):
            number = number + 1 if row == before else 0
            before = row
            kind = event.kind
            if kind == "watermark":
                self.report.counts.watermarks += 1
                if event.commit_ts is not None:
                    self.watermark = max(self.watermark or 0, event.commit_ts)
                continue
            again = False
            if kind == "ddl":  # whether it was applied, the whole job knows
                id_ = None
                if event.commit_ts is not None:
                    self.last_ddl = max(self.last_ddl or 0, event.commit_ts)
            elif id_ is not None:
                again = id_ in applied
                if known[n] or (again and verdict == DROP):
                    self.report.counts.repeated += 1
                    continue
            if id_ is not None and not again:
                self.note_time(event)
                self.ledger.add(id_, self.source_time(event))
                self.look_at_order(event)
            if verdict == DROP:
                self.report.counts.filtered += 1
                continue
            if verdict != KEEP:
                code, _, said = verdict.partition("|")
                if code == UNKNOWN and kind == "row":
                    rule = self.worker.selection.condition_of(event) or 0
                    self.report.signatures.append((rule, said))
                event = msgspec.structs.replace(event, kind="invalid", error=(code, said))
            in_log = own[n]
            if in_log is not None:
                name = in_log.hex()
            else:
                name = f"{places[row]}.{number}" if number else places[row]
            entry = Entry(event, id_, name, number_of_batch, row, again=again)
            if n in deletes:
                entry.deleted = deletes[n].event
            entries.append(entry)
        self.report.state.watermark = self.watermark
        return entries

    def places(self, messages: pa.RecordBatch) -> list[str]:
        """What changes without a place in the source's log are known by: their place in Kafka."""
        if "place" in messages.schema.names and messages.column("place").null_count == 0:
            return list(messages.column("place").to_pylist())
        return list(self.names(messages).to_pylist())

    def verdicts(self, events: list[Event], rows: list[int], messages: pa.RecordBatch) -> list[str]:
        """What the job's row conditions say of each event."""
        if "verdicts" not in messages.schema.names:
            return [KEEP] * len(events)
        judged = [iter(each or ()) for each in messages.column("verdicts").to_pylist()]
        condition_of = self.worker.selection.condition_of
        return [
            KEEP if event.kind != "row" or condition_of(event) is None else next(judged[row])
            for event, row in zip(events, rows)
        ]

    def look_at_order(self, event: Event) -> None:
        """Note a change that comes after a later one, or behind the watermark.

        By commit only: what has a place in a binlog comes in its order, and where the numbers go
        back, the source is another server or began anew.
        """
        commit = event.commit_ts
        if commit is None:
            return
        table = (event.database, event.schema, event.table)
        last = max(self.last.get(table, 0), self.last_ddl or 0)
        if commit < last:
            self.report.disordered = True
        else:
            self.last[table] = commit
        if self.watermark is not None and commit <= self.watermark:
            self.report.counts.late += 1

    def source_time(self, event: Event) -> int | None:
        """When a change happened, in microseconds: by its commit number, where it has one."""
        if event.commit_ts is not None:
            return commit_time(event.commit_ts)
        return None if (event.event_time or 0) > self.future else event.event_time

    def note_time(self, event: Event) -> None:
        """Take in the time of a change; one in the future says nothing."""
        time_ = event.event_time
        if time_ is not None and self.newest < time_ <= self.future:
            self.newest = time_

    def emit(self, entries: list[Entry], beside: Beside | None = None) -> Iterator[pa.RecordBatch]:
        """Select and encode events in order; what comes before DDL is encoded before it is met.

        `beside` has what was spliced of the batch; there is no DDL then.
        """
        chosen: list[Entry] = []
        selection = self.worker.selection
        for entry in entries:
            event = entry.event
            if entry.id is None:
                self.note_time(event)
            if event.kind == "ddl":
                yield from self.encode(chosen)
                chosen = []
                yield from self.meet(entry)
                continue
            chosen_by = event if entry.deleted is None else entry.deleted
            if self.is_behind(event):
                yield from self.encode(chosen)
                chosen = []
                while self.is_behind(event):
                    self.pass_by(self.at)
            try:
                if not selection.wants(chosen_by):
                    self.report.counts.repeated += entry.again
                    self.report.counts.filtered += not entry.again
                    continue
                entry.topic = selection.topic_of(chosen_by)
                if entry.deleted is None:
                    entry.untyped = self.tables.complete(event)
                    entry.event = selection.shape(event)
                else:
                    deleted = msgspec.structs.replace(entry.deleted)
                    self.tables.complete(deleted)
                    entry.deleted = selection.shape(deleted)
            except Exception as error:
                entry.event = refused_event(event, error)
            chosen.append(entry)
        yield from self.encode(chosen, beside)

    def is_behind(self, event: Event) -> bool:
        """Whether the next DDL of the schedule comes before a change."""
        schedule = self.worker.plan.ddl
        if self.at >= len(schedule):
            return False
        found = schedule[self.at]
        if found.partition == self.partition and not self.sorted:
            return False  # it is met in its place
        return bool(comes_before(found.event, event))

    def meet(self, entry: Entry) -> Iterator[pa.RecordBatch]:
        """Note DDL; where the schedule has it, what follows comes after it."""
        event, selection = entry.event, self.worker.selection
        id_ = entry.name
        try:
            wanted, topic = selection.wants(event), selection.topic_of(event)
            found = PlannedDdl(selection.shape(event), event, id_, wanted, topic, self.partition)
        except Exception as error:
            refused = refused_event(event, error)
            found = PlannedDdl(refused, event, id_, False, partition=self.partition)
        entry.topic = found.topic
        if self.worker.catalog.is_repeat(id_):
            self.report.counts.repeated += 1
            return
        self.report.ddl.append(found)
        ids = [each.id for each in self.worker.plan.ddl]
        at = ids.index(id_) if id_ in ids else -1
        if found.wanted or found.event.error:
            # The driver writes it; here it shows whether every sink takes it.
            shaped = msgspec.structs.replace(entry, event=found.event)
            outcomes = [[encoded(encoder, shaped)] for encoder in self.worker.ddl_encoders]
            dead = self.refused([entry], outcomes)
            for topics, (outcome,) in zip(self.topics, outcomes):
                topics.update({r.topic for r in outcome.records if r.topic and not dead})
            if dead:
                found.wanted, found.rejected = False, True
                self.report.counts.rejected_events += 1
                yield from self.letters(dead)
        while self.at <= at:
            self.pass_by(self.at)

    def pass_by(self, step: int) -> None:
        """Learn the next DDL of the schedule."""
        found = self.worker.plan.ddl[step]
        if found.id not in self.worker.catalog.met:
            if self.tables is self.worker.tables:
                self.tables = self.tables.copy()
            self.tables.learn(found.source)
        self.at = step + 1

    def encode(
        self, entries: list[Entry], beside: Beside | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Messages for every sink; a message of which an event is refused goes to none."""
        if not entries and beside is None:
            return
        outcomes = [[encoded(encoder, entry) for entry in entries] for encoder in self.encoders]
        dead = self.refused(entries, outcomes)
        if dead or any(entry.again for entry in entries):
            kept = self.sifted(entries, dead)
            yield from self.letters(dead)
            entries = [entries[n] for n in kept]
            outcomes = [[each[n] for n in kept] for each in outcomes]
        counts = self.counts
        for event in (e.event for e in entries):
            table = qualified(event.schema, event.table)
            counts[event.database, table, event.op or event.kind] += 1
        if entries or beside is not None:
            self.steps.add(self.at)
        if beside is not None:
            self.note_spliced(beside.taken)
        for sink, found in enumerate(outcomes):
            yield from self.messages(sink, entries, found, beside)

    def sifted(
        self, entries: list[Entry], dead: dict[tuple[int, int], tuple[str, str, str]]
    ) -> list[int]:
        """The numbers of the events that are written; repeats are no dead letters.

        What is refused was not applied: when it comes again, that is no repeat.
        """
        applied = self.ledger.fresh
        for entry in entries:
            if entry.id is not None and not entry.again and (entry.batch, entry.row) in dead:
                applied.discard(entry.id)
        fresh = [n for n, entry in enumerate(entries) if not entry.again or entry.id not in applied]
        for where in dead.keys() - {(entries[n].batch, entries[n].row) for n in fresh}:
            del dead[where]
        kept = [n for n in fresh if (entries[n].batch, entries[n].row) not in dead]
        for n in kept:
            if (id_ := entries[n].id) is not None:
                applied.add(id_)
        self.report.counts.repeated += len(entries) - len(fresh)
        self.report.counts.rejected_events += len(fresh) - len(kept)
        return kept

    def note_spliced(self, taken: Taken) -> None:
        """Count what was spliced."""
        changes, lost = counted(taken)
        self.counts.update(changes)
        self.lost.update(lost)
        self.newest = max(self.newest, taken.newest(self.future))

    def refused(
        self, entries: list[Entry], outcomes: list[list[Encoded]]
    ) -> dict[tuple[int, int], tuple[str, str, str]]:
        """The messages of which some sink refuses an event: code, sentence, table."""
        found: dict[tuple[int, int], tuple[str, str, str]] = {}
        known = self.worker.plan.topics or [KnownTopics()] * len(outcomes)
        for sink, topics, each in zip(self.worker.job.sinks, known, outcomes):
            for entry, outcome in zip(entries, each):
                error = outcome.error
                if error is None and sink.kind == "kafka":
                    came = self.headers[entry.batch]
                    carried = None if came is None else came[entry.row]
                    error = undeliverable(sink, topics.refused, entry, outcome, carried)
                if error is not None:
                    code, said = error
                    if len(outcomes) > 1 and entry.event.error is None:
                        said = f"{sink.name}: {said}"
                    where = (entry.batch, entry.row)
                    found.setdefault(where, (code, said, table_name(entry.event)))
        return found

    def letters(
        self, dead: dict[tuple[int, int], tuple[str, str, str]]
    ) -> Iterator[pa.RecordBatch]:
        """Dead letters: the messages as they were, and why."""
        letters = []
        for (batch, row), (code, said, table) in dead.items():
            message = self.batches[batch].slice(row, 1).to_pylist()[0]
            if self.worker.job.redact:
                message["key"] = message["value"] = message["headers"] = None
            letters.append({**message, "code": code, "message": said, "table": table})
            self.dead[table, code] += 1
            self.report.rejection = self.report.rejection or (code, said)
        for part in parts(
            [len(each["key"] or b"") + len(each["value"] or b"") for each in letters]
        ):
            found = [
                {name: each.get(name) for name in DEAD_LETTER_COLUMNS} for each in letters[part]
            ]
            yield work_rows(dead_letter=pa.array(found, DEAD_LETTER))

    def messages(
        self, sink: int, entries: list[Entry], outcomes: list[Encoded], beside: Beside | None
    ) -> Iterator[pa.RecordBatch]:
        """The messages of encoded events for one sink, and those that were spliced beside them."""
        encoder = self.encoders[sink]
        lost = self.lost
        for outcome in outcomes:
            if outcome.lost:
                lost[tuple(outcome.lost)] += 1
        if encoder.packer is None:
            records, names, headers = self.named(entries, outcomes)
        else:
            records, names, headers = self.packed(encoder, entries, outcomes)
        self.topics[sink].update({r.topic for r in records if r.topic is not None})
        self.report.with_headers |= any(headers)
        if beside is not None:
            rows, spliced = beside.taken.messages(sink, beside.names)
            self.topics[sink].update(pc.unique(spliced["topic"].drop_null()).to_pylist())
            if len(rows):
                first = flat_rows(len(rows), **spliced)
                own = [e.row for e, o in zip(entries, outcomes) for _ in o.records]
                others = message_rows(records, names, headers)
                found = in_rows(first, rows, others, beside.taken.rows[own])
                yield work_rows(**packs(sink, self.at, found))
                return
        for part in parts([len(r.key or b"") + len(r.value or b"") for r in records]):
            found = message_rows(records[part], names[part], headers[part])
            yield work_rows(**packs(sink, self.at, found))

    def named(self, entries: list[Entry], outcomes: list[Encoded]) -> Named:
        """Messages with what they are known by, and the headers that came or are the format's."""
        records: list[Record] = []
        names: list[str] = []
        headers: list[str | None] = []
        for entry, outcome in zip(entries, outcomes):
            came = self.headers[entry.batch]
            carried = None if came is None else came[entry.row]
            for n, record in enumerate(outcome.records):
                if entry.topic is not None:
                    record.topic = entry.topic
                records.append(record)
                names.append(f"{entry.name}.{n}" if n else entry.name)
                if carried or record.headers:
                    headers.append(to_text((*from_text(carried), *(record.headers or ()))))
                else:
                    headers.append(None)
        return records, names, headers

    def packed(self, encoder: Encoder, entries: list[Entry], outcomes: list[Encoded]) -> Named:
        """Rows joined into messages; a message has the name of its first row."""
        for entry, outcome in zip(entries, outcomes):
            for n, record in enumerate(outcome.records):
                if entry.topic is not None:
                    record.topic = entry.topic
                name = f"{entry.name}.{n}" if n else entry.name
                record.headers = ((ID_HEADER, name.encode()),)
        records, _ = packed(encoder, [e.event for e in entries], outcomes)
        names = [dict(record.headers or ())[ID_HEADER].decode() for record in records]
        return records, names, [None] * len(records)


def encoded(encoder: Encoder, entry: Entry) -> Encoded:
    """What an encoder makes of an event, or of a tombstone and the delete before it."""
    encoder.topic = entry.topic
    if entry.event.kind == "tombstone":
        return encoder.tombstone(entry.event, entry.deleted)
    return encoder(entry.event, entry.untyped)


def undeliverable(
    sink: Sink, refused: dict[str, str], entry: Entry, outcome: Encoded, headers: str | None
) -> tuple[str, str] | None:
    """What keeps a message from Kafka: it has no topic, or one that is refused, or is too large.

    `headers` are those that it came with, as text.
    """
    records = outcome.records
    if not records:
        return None
    if entry.topic is None and records[0].topic is None:
        if entry.event.kind in ("row", "ddl"):
            return ("no-topic", "no route names a topic for it; add one, or give the sink a topic")
        # A marker, heartbeat or tombstone of no table: there is nowhere to send it.
        outcome.records, outcome.lost = [], [kind_of(entry.event)]
        return None
    if refused:
        topic = entry.topic or records[0].topic or ""
        if topic in refused:
            return (
                "refused-topic",
                f"Kafka does not take the topic {shown(topic)}: {refused[topic]}; send the table "
                "to another one by a route, or by the sink's topic",
            )
    most = most_bytes(sink.kafka)
    for record in records:
        size = len(record.value or b"") + len(record.key or b"")
        if headers is not None or record.headers:
            size += header_bytes((*from_text(headers), *(record.headers or ())))
        if size > most:
            return (
                "too-large",
                f"the message would be larger than the {most} bytes that the sink takes, its "
                "headers included; set max-message-bytes there and on the broker",
            )
    return None


def by_place(
    events: list[Event], ids: list[bytes | None], counts: Sequence[int], places: list[str]
) -> list[bytes | None]:
    """Identities, where a row has none by the place of its message."""
    numbered = ((row, n) for row, count in enumerate(counts) for n in range(count))
    return [
        placed_identity(places[row], n) if id_ is None and event.kind == "row" else id_
        for event, id_, (row, n) in zip(events, ids, numbered)
    ]


def refused_event(event: Event, error: Exception) -> Event:
    """An event that cannot be processed, and why."""
    told = (error.code, str(error)) if isinstance(error, SelectionError) else internal_error(error)
    return msgspec.structs.replace(event, kind="invalid", error=told)


def in_order(entries: list[Entry]) -> list[Entry]:
    """Events by their commits; one that has none stays with the one before it."""
    keyed: list[tuple[int, Entry]] = []
    last = 0
    for entry in entries:
        last = last if entry.event.commit_ts is None else entry.event.commit_ts
        keyed.append((last, entry))
    return [entry for _, entry in sorted(keyed, key=lambda pair: pair[0])]


def parts(sizes: list[int]) -> Iterator[slice]:
    """Cut messages into runs that one Arrow batch can hold: no column may grow past 2 GiB.

    >>> list(parts([1, 2])), list(parts([]))
    ([slice(0, 2, None)], [])
    """
    start = held = 0
    for at, size in enumerate(sizes):
        held += size
        if held > BATCH_BYTES and at > start:
            yield slice(start, at)
            start, held = at, size
    if sizes:
        yield slice(start, len(sizes))


def message_rows(
    records: list[Record], names: list[str], headers: list[str | None]
) -> pa.RecordBatch:
    """Messages for a sink, with what they are known by and their headers as text."""
    return flat_rows(
        len(records),
        key=pa.array([r.key for r in records], pa.binary()),
        value=pa.array([r.value for r in records], pa.binary()),
        id=pa.array(names, pa.string()),
        partition=pa.array([r.partition for r in records], pa.int32()),
        topic=pa.array([r.topic for r in records], pa.string()),
        headers=pa.array(headers, pa.string()),
    )


def work_rows(**columns: Any) -> pa.RecordBatch:
    """Rows of the work schema; the columns that are not given are null."""
    rows = len(next(iter(columns.values())))
    arrays = []
    for each in WORK_SCHEMA:
        given = columns.get(each.name)
        if given is None:
            arrays.append(pa.nulls(rows, each.type))
        else:
            arrays.append(given if isinstance(given, pa.Array) else pa.array(given, each.type))
    return pa.RecordBatch.from_arrays(arrays, schema=WORK_SCHEMA)
