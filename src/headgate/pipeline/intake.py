"""The first half of a pass: from the events of messages to the changes that are new."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence

import msgspec
import pyarrow as pa

from headgate.codec.sequence import arrival_text, sequence
from headgate.core.cache import BoundedCache
from headgate.core.event import Event, qualified
from headgate.formats import traits_of
from headgate.landing.resolution import Resolved, order_text
from headgate.pipeline.change import DROP, KEEP, UNKNOWN_SIGNATURE, Change, MessageBatch
from headgate.pipeline.counts import Counts, full_name
from headgate.pipeline.dedup import identity, placed_identity
from headgate.pipeline.dedup_store import DedupStore
from headgate.pipeline.ordering import OrderCheck, SourceClock
from headgate.pipeline.plan import PartitionState
from headgate.pipeline.spliced_batch import FastPathResult, PlacedChanges
from headgate.pipeline.tombstones import TombstonePairs
from headgate.selection.globs import TableNames
from headgate.spark.storage import Storage

_table_name = BoundedCache[TableNames, str](lambda n: full_name(n[0], qualified(n[1], n[2])))
"""The full names of tables, by the names that events have."""


class Intake:
    """Recognises what of a partition was applied before, is late, or dropped by a row condition."""

    def __init__(
        self,
        state: PartitionState,
        counts: Counts,
        storage: Storage,
        by_place: bool,
        condition_of: Callable[[Event], int | None],
    ) -> None:
        self.partition, self.counts = state.partition, counts
        self.by_place, self.condition_of = by_place, condition_of
        self.applied = DedupStore(storage, state.applied)
        self.order = OrderCheck(state.watermark)
        self.clock = SourceClock(state.newest)
        self.pairs = TombstonePairs(state.last_delete)
        self.follows_transactions = False
        """Whether the job has to know where transactions end."""
        self.committed = state.committed
        self.signatures: list[tuple[int, str]] = []
        """Types of a row condition's columns for which there is no expression yet."""

    def state_after(self, remember: float) -> PartitionState:
        """Keep what was applied; what is known of the partition from now on."""
        return PartitionState(
            self.partition,
            self.applied.write(remember),
            self.order.watermark,
            self.clock.newest or None,
            self.pairs.last,
            self.committed,
        )

    def new_changes(
        self, messages: MessageBatch, events: list[Event], counts: Sequence[int]
    ) -> list[Change]:
        """The changes among events that were not applied before."""
        self.counts.events += len(events)
        changes = self.identified(messages, events, counts)
        known = self.applied.known([change.id for change in changes])
        return [change for change, seen in zip(changes, known) if self.is_new(change, seen)]

    def all_new(self, ids: Sequence[bytes]) -> bool:
        """Whether no change of a batch was applied before, or comes twice in it."""
        several = set(ids)
        return (
            len(several) == len(ids)
            and several.isdisjoint(self.applied.new)
            and not any(self.applied.known(ids))
        )

    def new_beside_spliced(self, messages: MessageBatch, result: FastPathResult) -> list[Change]:
        """The changes that were not spliced, of a batch in which all are new.

        Commits are seen in the order of the batch, those of spliced changes among the others.
        """
        placed, seen = result.placed, 0
        self.applied.new.update(placed.ids)
        self.applied.newest = max(self.applied.newest, placed.newest(self.clock.limit))
        self.counts.events += len(result.events)
        changes: list[Change] = []
        for change in self.identified(messages, result.events, result.counts):
            until = bisect_left(placed.rows, int(result.rows[change.row]), seen)
            self.see_commits(placed, seen, until)
            seen = until
            if self.is_new(change, False):
                changes.append(change)
        self.see_commits(placed, seen, len(placed.rows))
        return changes

    def see_commits(self, placed: PlacedChanges, start: int, end: int) -> None:
        """Take in the commits of some spliced changes."""
        is_late = self.order.is_late
        for table, commit in zip(placed.tables[start:end], placed.commits[start:end]):
            self.counts.late += is_late(table, commit)

    def identified(
        self, messages: MessageBatch, events: list[Event], counts: Sequence[int]
    ) -> list[Change]:
        """Events with their identities, and the verdicts of row conditions on them."""
        by_place = self.by_place
        rows = [row for row, count in enumerate(counts) for _ in range(count)]
        verdicts = self.verdicts(events, rows, messages.rows)
        changes: list[Change] = []
        before = number = -1
        for event, row, verdict in zip(events, rows, verdicts):
            number = number + 1 if row == before else messages.first_event(row)
            before = row
            id_ = identity(event)
            if id_ is not None:
                name = id_.hex()
            else:
                place = messages.places[row]
                name = f"{place}.{number}" if number else place
                if by_place and event.kind == "row":
                    id_ = placed_identity(place, number)
            changes.append(Change(event, messages, row, id_, name, number, verdict))
        ids = [change.id for change in changes]
        keys = messages.rows.column("key")
        for n, delete in self.pairs.take(events, rows, keys, ids, verdicts).items():
            changes[n].id, changes[n].verdict = delete.tombstone_id(), delete.verdict
            changes[n].delete = delete.event
        return changes

    def verdicts(self, events: list[Event], rows: list[int], messages: pa.RecordBatch) -> list[str]:
        """What the job's row conditions say of each event."""
        if "verdicts" not in messages.schema.names:
            return [KEEP] * len(events)
        verdicts = [iter(each or ()) for each in messages.column("verdicts").to_pylist()]
        condition_of = self.condition_of
        return [
            KEEP if event.kind != "row" or condition_of(event) is None else next(verdicts[row])
            for event, row in zip(events, rows)
        ]

    def is_new(self, change: Change, is_known: bool) -> bool:
        """Whether a change goes on: it is no repeat, and no row condition drops it.

        Watermarks end here.
        """
        event, kind = change.event, change.event.kind
        if kind == "watermark":
            self.counts.watermarks += 1
            self.order.see_watermark(event)
            return False
        if kind == "ddl":  # whether it was applied, the whole job knows
            change.id = None
            self.order.see_ddl(event)
        elif change.id is not None:
            change.repeated = change.id in self.applied.new
            if is_known or (change.repeated and change.verdict == DROP):
                self.counts.repeated += 1
                return False
            if not change.repeated:
                self.applied.add(change.id, self.clock.see(event))
                table = _table_name[event.database, event.schema, event.table]
                self.counts.late += self.order.is_late(table, event.commit_ts)
        if self.follows_transactions and not change.repeated and ends_transaction(event):
            self.committed = max(self.committed or Resolved("", 0), resolved_at(change))
        if change.verdict == DROP:
            self.counts.filtered += 1
            return False
        if change.verdict != KEEP:
            code, _, reason = change.verdict.partition("|")
            if code == UNKNOWN_SIGNATURE and kind == "row":
                rule = self.condition_of(event) or 0
                self.signatures.append((rule, reason))
            change.event = msgspec.structs.replace(event, kind="invalid", error=(code, reason))
        return True


def ends_transaction(event: Event) -> bool:
    """Whether an event is the last of its transaction; DDL always is, as it commits what is open.

    DDL of a producer of commit numbers tells nothing: its changes come in any order.
    """
    is_last = traits_of(event.format, event.dialect).ends_transaction
    if is_last is None:
        return False
    return event.commit_ts is None if event.kind == "ddl" else is_last(event)


def resolved_at(change: Change) -> Resolved:
    """The point of the source's log at which a change is."""
    event = change.event
    arrival = arrival_text(change.messages.numbers[change.row], change.number)
    order = order_text(sequence(event) or "", arrival)
    return Resolved(order, event.commit_ts or event.event_time or 0)
