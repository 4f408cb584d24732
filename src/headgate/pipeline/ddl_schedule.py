"""The DDL of a batch: its order, and how far a partition is in it.

DDL is a barrier: what comes before it is written before it. A pass finds the DDL of its partitions
as it goes. That is one pass where every partition meets the same statements, as it does where there
is one partition only, or where the producer sends DDL to all of them. Else some partition lacked
what another one met, and the pass is repeated with the DDL of all.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterable, Iterator, Sequence

from headgate.arrow.messages import Partition
from headgate.codec.schemas import Schemas
from headgate.core.event import Event
from headgate.pipeline.ordering import by_commit, comes_before
from headgate.pipeline.plan import PartitionReport, PlannedDdl


class DdlSchedule:
    """The DDL of a batch, and how much of it a partition has passed.

    DDL that is met in the partition but was not planned is put at the end; whether that is its
    place, the driver finds when it has the reports of all partitions.

    >>> event = Event("ddl", "create", "d", "t", ddl="CREATE TABLE t (id INT)", commit_ts=5)
    >>> schedule = DdlSchedule([PlannedDdl(event, event, "a", True)], ("in", 0), Schemas(None))
    >>> schedule.is_due(Event("row", commit_ts=4)), schedule.is_due(Event("row", commit_ts=6))
    (False, True)
    >>> schedule.pass_until(Event("row", commit_ts=6))
    >>> schedule.step, schedule.tables.table("d", "t") is not None
    (1, True)
    """

    def __init__(
        self,
        planned: Sequence[PlannedDdl],
        partition: Partition,
        tables: Schemas,
        learnt: Container[str] = (),
        sorted: bool = False,
    ) -> None:
        """`learnt` has the ids of DDL that the tables include already."""
        self.planned, self.partition, self.sorted = list(planned), partition, sorted
        self.step = 0
        """How much of the DDL is passed."""
        self.tables = self._before = tables
        """The tables as they are now."""
        self._learnt = learnt
        self.created = {
            (ddl.source.database, ddl.source.table): step
            for step, ddl in enumerate(self.planned)
            if ddl.source.op == "create"
        }
        """The last step that creates a table."""

    def is_due(self, event: Event) -> bool:
        """Whether the next DDL comes before a change."""
        if self.step >= len(self.planned):
            return False
        ddl = self.planned[self.step]
        if ddl.partition == self.partition and not self.sorted:
            return False  # it is met in its place
        is_before = comes_before(ddl.event, event)
        return self.is_of_new_table(event) if is_before is None else is_before

    def is_of_new_table(self, event: Event) -> bool:
        """Whether DDL to come creates the table of a change, which can only come after it."""
        step = self.created.get((event.database, event.table), -1)
        if event.kind != "row" or step < self.step:
            return False
        return comes_before(self.planned[step].event, event) is not False

    def pass_until(self, event: Event) -> None:
        """Pass the DDL that comes before a change."""
        while self.is_due(event):
            self._pass()

    def meet(self, ddl: PlannedDdl) -> None:
        """Pass DDL that the partition itself holds, and what is planned before it."""
        ids = [planned.id for planned in self.planned]
        if ddl.id not in ids:
            self.planned.append(ddl)
            ids.append(ddl.id)
        while self.step <= ids.index(ddl.id):
            self._pass()

    def _pass(self) -> None:
        ddl = self.planned[self.step]
        if ddl.id not in self._learnt:
            if self.tables is self._before:
                self.tables = self.tables.copy()
            self.tables.learn(ddl.source)
        self.step += 1


def merged_ddl(
    planned: Sequence[PlannedDdl], reports: Iterable[PartitionReport]
) -> tuple[PlannedDdl, ...]:
    """The DDL of a batch: that of a partition in its order, partitions in the source's order.

    Of copies on several partitions, one that the sinks take is the one that counts.
    """
    met: dict[str, PlannedDdl] = {}
    for ddl in (ddl for report in reports for ddl in report.ddl):
        if ddl.id not in met or met[ddl.id].rejected:
            met[ddl.id] = ddl
    known = {ddl.id: met.get(ddl.id, ddl) for ddl in planned}
    if met.keys() <= known.keys():
        return tuple(known.values())
    partitions: dict[Partition | None, list[PlannedDdl]] = {}
    for ddl in {**known, **met}.values():
        partitions.setdefault(ddl.partition, []).append(ddl)
    return tuple(_interleaved(by_commit(each) for each in partitions.values()))


def lacks_ddl(
    report: PartitionReport, planned: Sequence[PlannedDdl], merged: Sequence[PlannedDdl]
) -> bool:
    """Whether a partition, given the planned DDL, knew less of it than all partitions together.

    That does not matter to a partition without changes.
    """
    passed = dict.fromkeys(ddl.id for ddl in (*planned, *report.ddl))
    has_changes = bool(report.steps or report.counts.rejected)
    return has_changes and list(passed) != [ddl.id for ddl in merged]


def _interleaved(partitions: Iterable[list[PlannedDdl]]) -> Iterator[PlannedDdl]:
    """The first of each partition's DDL in turn that no other partition's comes before."""
    waiting = [deque(each) for each in partitions]
    while waiting := [each for each in waiting if each]:
        heads = [each[0].event for each in waiting]
        free = (
            queue
            for queue, head in zip(waiting, heads)
            if not any(comes_before(other, head) for other in heads)
        )
        yield next(free, waiting[0]).popleft()
