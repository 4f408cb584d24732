"""What a job knows from one batch to the next: a small file per batch, written when it is done."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterable

import msgspec

from headgate.core.errors import UsageError
from headgate.pipeline import catalog, dedup_store
from headgate.pipeline.counts import add_counts, add_table
from headgate.pipeline.dedup_store import Run
from headgate.pipeline.partition_worker import Found, Knowledge, Lane, Tally, table_name
from headgate.pipeline.tombstones import Deleted
from headgate.spark.state_files import damaged, read_state, write_state
from headgate.spark.storage import Storage

KEPT = 5
"""States of so many batches are kept; Spark repeats at most the last one."""
BATCHES, IDENTITY = "batches", "job.json"


class LaneState(msgspec.Struct):
    """What is known of one lane."""

    lane: Lane
    ledger: tuple[Run, ...] = ()
    watermark: int | None = None
    newest: int | None = None
    deleted: Deleted | None = None


class Totals(msgspec.Struct):
    """What the job has done since it was first started."""

    messages: int = 0
    events: int = 0
    watermarks: int = 0
    repeated: int = 0
    late: int = 0
    left_out: int = 0
    rows: dict[str, dict[str, int]] = {}
    dead: dict[str, dict[str, int]] = {}
    dead_events: int = 0
    losses: dict[str, int] = {}

    def add(self, tally: Tally) -> None:
        """Count what a pass did."""
        self.messages += tally.messages
        self.events += tally.events
        self.watermarks += tally.watermarks
        self.dead_events += tally.dead_events
        self.repeated += tally.repeated
        self.late += tally.late
        self.left_out += tally.left_out
        for mine, its in ((self.rows, tally.rows), (self.dead, tally.dead)):
            for table, counts in its.items():
                add_table(mine, table, counts)
        add_counts(self.losses, tally.losses)

    @property
    def accounted(self) -> dict[str, int]:
        """What became of events: each is in one of these."""
        return {
            "written": sum(n for counts in self.rows.values() for n in counts.values()),
            "repeated": self.repeated,
            "left out": self.left_out,
            "dead": self.dead_events,
            "watermarks": self.watermarks,
        }

    @property
    def dead_letters(self) -> int:
        """How many messages became dead letters."""
        return sum(n for counts in self.dead.values() for n in counts.values())


class State(msgspec.Struct):
    """What is known after a batch."""

    batch: int = -1
    lanes: list[LaneState] = []
    newest: int | None = None
    catalog: str | None = None
    """The file of the tables that DDL told (catalog.py)."""
    announced: int | None = None
    """The watermark that was last written."""
    topics: list[list[str]] = []
    """By sink, where messages were written so far."""
    judged: list[tuple[int, int]] = []
    """Of the last batches: how many messages there were, and how many of them are dead."""
    totals: Totals = msgspec.field(default_factory=Totals)

    def knowledge(self, state_uri: str) -> Knowledge:
        """What a pass is to be told at first."""
        return Knowledge(
            state_uri,
            ledgers={lane.lane: lane.ledger for lane in self.lanes},
            watermarks={x.lane: x.watermark for x in self.lanes if x.watermark is not None},
            newest={x.lane: x.newest for x in self.lanes if x.newest is not None},
            deletes={x.lane: x.deleted for x in self.lanes if x.deleted is not None},
            catalog=self.catalog,
        )

    def after(
        self, batch: int, tallies: Iterable[Tally], ddl: Iterable[Found], replayed: bool = False
    ) -> State:
        """The state after a batch; dead letters that are `replayed` have no tombstone behind them.

        The lane's own last delete, of which the tombstone may still come, is not theirs to replace.
        """
        told = list(tallies)
        lanes = {lane.lane: lane for lane in self.lanes}
        totals = msgspec.json.decode(msgspec.json.encode(self.totals), type=Totals)
        newest = self.newest
        for tally in told:
            before = lanes.get(tally.lane, LaneState(tally.lane))
            own = max(filter(None, (before.newest, tally.newest)), default=None)
            deleted = before.deleted if replayed else tally.deleted
            lanes[tally.lane] = LaneState(tally.lane, tally.ledger, tally.watermark, own, deleted)
            totals.add(tally)
            newest = max(filter(None, (newest, tally.newest)), default=None)
        met = Counter(f.id for t in told for f in t.ddl if not f.refused)
        for found in ddl:
            if found.refused:
                continue
            totals.repeated += met[found.id] - 1
            if found.wanted:
                add_table(totals.rows, table_name(found.event), {"ddl": 1})
            else:
                totals.left_out += 1
        return State(
            batch,
            list(lanes.values()),
            newest,
            self.catalog,
            self.announced,
            joined([self.topics, *(tally.topics for tally in told)]),
            self.judged,
            totals,
        )

    def watermark(self, expected: Iterable[Lane]) -> int | None:
        """The commit up to which every lane is complete; None while some lane has not said."""
        told = {lane.lane: lane.watermark for lane in self.lanes}
        found = [told.get(lane) for lane in {*told, *expected}]
        known = [w for w in found if w is not None]
        return min(known) if known and len(known) == len(found) else None


def joined(found: list[list[list[str]]]) -> list[list[str]]:
    """Topics by sink, from several lists of them.

    >>> joined([[], [["a"], []], [["b"], ["c"]]])
    [['a', 'b'], ['c']]
    """
    sinks = max(map(len, found), default=0)
    return [sorted({t for each in found if n < len(each) for t in each[n]}) for n in range(sinks)]


class Identity(msgspec.Struct):
    """By what a job is known to its targets, and the query whose progress its state belongs to."""

    id: str
    query: str | None = None


class States:
    """The states of a job, in its checkpoint."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage

    def job_id(self) -> str:
        """What the job is known by to its sinks; made at the first start."""
        found = read_state(self.storage, IDENTITY, Identity)
        if found is None:
            found = Identity(uuid.uuid4().hex)
            write_state(self.storage, IDENTITY, found)
        return found.id

    def before(self, batch: int) -> State:
        """What was known before a batch; a batch that is repeated finds what it found at first."""
        numbers = self.numbers()
        if any(n > batch for n in numbers) or (batch > 0 and batch - 1 not in numbers):
            raise self.separated(f"what is known is not what was known before batch {batch}")
        return self.read(batch - 1) if batch > 0 else State()

    def belongs_to(self, query: str) -> None:
        """Refuse a state that was written beside another query's progress."""
        told = read_state(self.storage, IDENTITY, Identity)
        if told is None:
            raise self.separated(f"it has no {IDENTITY}")
        if told.query is None and not self.numbers():
            write_state(self.storage, IDENTITY, Identity(told.id, query))
        elif told.query != query:
            raise self.separated("it was written with another query's progress")

    def separated(self, why: str) -> UsageError:
        """The error for a checkpoint of which a part was lost or restored."""
        return UsageError(
            f"{self.storage.uri}: {why}; restore the checkpoint as a whole, or start with a new "
            "one and a new target"
        )

    def latest(self) -> State:
        """What is known now."""
        numbers = self.numbers()
        return self.read(max(numbers)) if numbers else State()

    def read(self, batch: int) -> State:
        """The state after a batch."""
        name = f"{BATCHES}/{batch}.json"
        found = read_state(self.storage, name, State)
        if found is None:
            raise damaged(self.storage, name)
        return found

    def write(self, state: State) -> None:
        """Keep a state; then old ones, and the files that none names, may go."""
        write_state(self.storage, f"{BATCHES}/{state.batch}.json", state)
        numbers = sorted(n for n in self.numbers() if n <= state.batch)
        for old in numbers[:-KEPT]:
            self.storage.delete(f"{BATCHES}/{old}.json")
        self.sweep(numbers[-KEPT:])

    def sweep(self, batches: list[int]) -> None:
        """Delete the ledger files and catalogs that no kept state names."""
        states = [self.read(n) for n in batches]
        ledgers = {run.name for state in states for lane in state.lanes for run in lane.ledger}
        catalogs = {state.catalog for state in states}
        for folder, named in ((dedup_store.FOLDER, ledgers), (catalog.FOLDER, catalogs)):
            for name in self.storage.names(folder):
                if name not in named:
                    self.storage.delete(f"{folder}/{name}")

    def numbers(self) -> list[int]:
        """The batches of which there are states."""
        names = (name.partition(".") for name in self.storage.names(BATCHES))
        return [int(stem) for stem, _, rest in names if rest == "json" and stem.isdigit()]
