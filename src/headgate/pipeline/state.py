"""What a job knows from one batch to the next: a small file per batch, written when it is done."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from headgate.arrow.messages import Partition
from headgate.core.batches import SourceRange
from headgate.core.errors import UsageError
from headgate.landing.resolution import Resolved
from headgate.pipeline import catalog, dedup_store
from headgate.pipeline.counts import Counts, add_table, table_name
from headgate.pipeline.plan import BatchPlan, PartitionReport, PartitionState, PlannedDdl
from headgate.spark.state_files import damaged, read_state, write_state
from headgate.spark.storage import Storage

KEPT = 5
"""States of so many batches are kept; Spark repeats at most the last one."""
BATCHES, IDENTITY = "batches", "job.json"


class State(msgspec.Struct):
    """What is known after a batch."""

    batch: int = -1
    partitions: list[PartitionState] = []
    newest: int | None = None
    catalog: str | None = None
    """The file of the tables that DDL defined (catalog.py)."""
    announced: int | None = None
    """The watermark that was last written."""
    topics: list[list[str]] = []
    """By sink, where messages were written so far."""
    judged: list[tuple[int, int]] = []
    """Of the last batches: how many messages there were, and how many of them were rejected."""
    totals: Counts = msgspec.field(default_factory=Counts)
    """What the job has done since it was first started."""
    source: SourceRange | None = None
    """What the batch held of its source."""

    def plan(self, state_uri: str) -> BatchPlan:
        """What the first pass over the next batch has to know."""
        partitions = {each.partition: each for each in self.partitions}
        return BatchPlan(state_uri, partitions, catalog=self.catalog)

    def after(
        self,
        batch: int,
        reports: Sequence[PartitionReport],
        ddl: Iterable[PlannedDdl],
        replayed: bool = False,
    ) -> State:
        """The state after a batch; dead letters that are `replayed` have no tombstone behind them.

        The partition's own last delete, of which the tombstone may still come, is not theirs to
        replace.
        """
        partitions = {each.partition: each for each in self.partitions}
        totals = msgspec.json.decode(msgspec.json.encode(self.totals), type=Counts)
        newest = self.newest
        for report in reports:
            after = report.state
            before = partitions.get(after.partition, PartitionState(after.partition))
            partitions[after.partition] = msgspec.structs.replace(
                after,
                newest=latest(before.newest, after.newest),
                last_delete=before.last_delete if replayed else after.last_delete,
            )
            totals.add(report.counts)
            newest = latest(newest, after.newest)
        copies = Counter(each.id for r in reports for each in r.ddl if not each.rejected)
        for each in ddl:
            if each.rejected:
                continue
            totals.repeated += copies[each.id] - 1
            if each.wanted:
                add_table(totals.rows, table_name(each.event), {"ddl": 1})
            else:
                totals.filtered += 1
        return State(
            batch,
            list(partitions.values()),
            newest,
            self.catalog,
            self.announced,
            joined([self.topics, *(report.topics for report in reports)]),
            self.judged,
            totals,
        )

    def watermark(self, expected: Iterable[Partition]) -> int | None:
        """The commit up to which every partition is complete; None while that is not known."""
        known = {each.partition: each.watermark for each in self.partitions}
        watermarks = [known.get(partition) for partition in {*known, *expected}]
        complete = [w for w in watermarks if w is not None]
        return min(complete) if complete and len(complete) == len(watermarks) else None

    def transaction_end(self, expected: Iterable[Partition]) -> Resolved | None:
        """Where the last whole transaction ends; None while that is not known.

        Ends of transactions in several partitions are not a state of all of them together.
        """
        ends = [each.committed for each in self.partitions if each.committed is not None]
        partitions = {*(each.partition for each in self.partitions), *expected}
        if not ends or len(partitions) == 1:
            return ends[0] if ends else None
        raise UsageError(
            f"the source has {len(partitions)} partitions, and its messages say where transactions "
            "end, but not how those of several partitions belong together; consistency: watermark "
            "needs one topic with one partition then, or use consistency: batch"
        )


def latest(*times: int | None) -> int | None:
    """The latest of times that are known.

    >>> latest(None, 2, 1), latest(None)
    (2, None)
    """
    return max(filter(None, times), default=None)


def joined(lists: list[list[list[str]]]) -> list[list[str]]:
    """Topics by sink, from several lists of them.

    >>> joined([[], [["a"], []], [["b"], ["c"]]])
    [['a', 'b'], ['c']]
    """
    sinks = max(map(len, lists), default=0)
    return [sorted({t for each in lists if n < len(each) for t in each[n]}) for n in range(sinks)]


class Identity(msgspec.Struct):
    """The id of a job in its targets, and the query whose progress its state belongs to."""

    id: str
    query: str | None = None


class States:
    """The states of a job, in its checkpoint."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage

    def job_id(self) -> str:
        """The id of the job in its sinks; made at the first start."""
        identity = read_state(self.storage, IDENTITY, Identity)
        if identity is None:
            identity = Identity(uuid.uuid4().hex)
            write_state(self.storage, IDENTITY, identity)
        return identity.id

    def before(self, batch: int) -> State:
        """The state before a batch; the same one for a batch that is repeated."""
        numbers = self.numbers()
        if any(n > batch for n in numbers) or (batch > 0 and batch - 1 not in numbers):
            raise self.separated(f"what is known is not what was known before batch {batch}")
        return self.read(batch - 1) if batch > 0 else State()

    def belongs_to(self, query: str) -> None:
        """Refuse a state that was written beside another query's progress."""
        identity = read_state(self.storage, IDENTITY, Identity)
        if identity is None:
            raise self.separated(f"it has no {IDENTITY}")
        if identity.query is None and not self.numbers():
            write_state(self.storage, IDENTITY, Identity(identity.id, query))
        elif identity.query != query:
            raise self.separated("it was written with another query's progress")

    def separated(self, why: str) -> UsageError:
        """The error for a checkpoint of which a part was lost or restored."""
        return UsageError(
            f"{self.storage.uri}: {why}; restore the checkpoint as a whole, or start with a new "
            "one and a new target"
        )

    def latest(self) -> State:
        """The newest state."""
        numbers = self.numbers()
        return self.read(max(numbers)) if numbers else State()

    def read(self, batch: int) -> State:
        """The state after a batch."""
        name = f"{BATCHES}/{batch}.json"
        state = read_state(self.storage, name, State)
        if state is None:
            raise damaged(self.storage, name)
        return state

    def write(self, state: State) -> None:
        """Keep a state; then old ones, and the files that none names, may go."""
        write_state(self.storage, f"{BATCHES}/{state.batch}.json", state)
        numbers = sorted(n for n in self.numbers() if n <= state.batch)
        for old in numbers[:-KEPT]:
            self.storage.delete(f"{BATCHES}/{old}.json")
        self.sweep(numbers[-KEPT:])

    def sweep(self, batches: list[int]) -> None:
        """Delete the dedup files and catalogs that no kept state names."""
        states = [self.read(n) for n in batches]
        applied = {file.name for state in states for p in state.partitions for file in p.applied}
        catalogs = {state.catalog for state in states}
        for folder, named in ((dedup_store.FOLDER, applied), (catalog.FOLDER, catalogs)):
            for name in self.storage.names(folder):
                if name not in named:
                    self.storage.delete(f"{folder}/{name}")

    def numbers(self) -> list[int]:
        """The batches of which there are states."""
        names = (name.partition(".") for name in self.storage.names(BATCHES))
        return [int(stem) for stem, _, rest in names if rest == "json" and stem.isdigit()]
