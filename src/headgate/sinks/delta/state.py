"""What a job notes beside its tables, below `_headgate/`: how far it is, and tables that wait."""

from __future__ import annotations

import time
from collections.abc import Iterable
from hashlib import blake2b
from typing import Any, TypeVar

import msgspec

from headgate.core.batches import SourceRange
from headgate.landing.operations import Operation
from headgate.landing.table_state import TableState
from headgate.schema.changes import TableId
from headgate.spark.state_files import read_state, write_state
from headgate.spark.storage import Storage

TABLES = "tables"
"""The folder of what each job notes of its tables."""
RESUME = "resume"
"""The folder of files that name tables which are to go on."""

T = TypeVar("T")


class PendingStatement(msgspec.Struct):
    """A statement that is being applied: done again, it finds what there was before."""

    version: int
    """Of its token."""
    operations: list[Operation]
    versions: dict[str, int]
    """The versions of tables before it, by path."""


class Published(msgspec.Struct):
    """What was published last: a state of the source."""

    batch: int
    """The batch with which it was published; changes that came later are not in it."""
    order: str
    """Its last change (landing/resolution.py)."""
    timestamp: int
    """Its watermark, or the time of its last transaction."""


class JobState(msgspec.Struct):
    """How far a job is."""

    batch: int = -1
    source: SourceRange | None = None
    """What the batch holds of its source."""
    statement: PendingStatement | None = None
    merging: int | None = None
    """The token of a merge of changes that waited, from its beginning to its end."""
    merged: int = -1
    """The token of the last merge of changes that waited."""
    merged_at: float = 0.0
    options: dict[str, Any] = {}
    """Those of its sink, for whoever reads what waits."""
    publishing: int | None = None
    """The batch with which changes up to a watermark are being published."""
    published: Published | None = None
    """What was published last, with `consistency: watermark`."""


class _Resumed(msgspec.Struct):
    table: TableId
    since: float | None
    """When it was parked: parked once more, it waits again."""


class _Tables(msgspec.Struct):
    tables: list[TableState]
    since: float
    """When the job began: of several jobs that know a table, the last one has adopted it."""


class LakeState:
    """The files of a job below `_headgate/` of a root; other jobs may have theirs beside them."""

    def __init__(self, storage: Storage, job_id: str, adopt: bool = False) -> None:
        """With `adopt`, tables of other jobs are known too, and those that are parked stay so."""
        self.storage, self.job_file = storage, f"jobs/{job_id}.json"
        self.job = read_state(storage, self.job_file, JobState) or JobState()
        self.tables_file = f"{TABLES}/{job_id}.json"
        noted = read_state(storage, self.tables_file, _Tables) or _Tables([], time.time())
        self.since, self.own = noted.since, {each.table: each for each in noted.tables}
        self.adopted = read_tables(storage) if adopt else {}

    @property
    def tables(self) -> dict[TableId, TableState]:
        """The tables of the job."""
        return {**self.adopted, **self.own}

    def write_job(self) -> None:
        """Write how far the job is."""
        write_state(self.storage, self.job_file, self.job)

    def to_resume(self) -> dict[str, TableId]:
        """Parked tables that are to be resumed, by the files that ask for it."""
        waiting = self.waiting()
        if not waiting:
            return {}
        return {
            file: each.table
            for file, each in _read_all(self.storage, RESUME, _Resumed).items()
            if each.table in waiting and each.since == waiting[each.table].since
        }

    def write_tables(self) -> None:
        """Write the list of tables."""
        tables = sorted(self.own.values(), key=lambda each: _name(each.table))
        write_state(self.storage, self.tables_file, _Tables(tables, self.since))

    def met(self, tables: Iterable[TableId]) -> None:
        """Note tables that are landed."""
        new = [table for table in tables if table not in self.own]
        if new:
            self.own |= {table: TableState(table) for table in new}
            self.write_tables()

    def gone(self, table: TableId) -> None:
        """Note that a table is removed."""
        self.adopted.pop(table, None)
        if self.own.pop(table, None) is not None:
            self.write_tables()

    def park(self, table: TableId, reason: str, remedy: str, statement: str = "") -> None:
        """Note that a table waits; the first reason stays."""
        known = self.own.setdefault(table, self.adopted.get(table) or TableState(table))
        if known.state == "landed":
            known.reason, known.remedy, known.since = reason, remedy, time.time()
        known.state = "parked"
        if statement and statement not in known.statements:
            known.statements.append(statement)
        self.write_tables()

    def resumed(self, table: TableId) -> None:
        """Note that a table goes on."""
        self.own[table] = TableState(table)
        self.write_tables()

    def waiting(self) -> dict[TableId, TableState]:
        """The tables that do not take changes."""
        return {table: each for table, each in self.tables.items() if each.state != "landed"}


def read_tables(storage: Storage) -> dict[TableId, TableState]:
    """The tables of all jobs of a lake, by name; `storage` is its folder `_headgate`."""
    jobs = sorted(_read_all(storage, TABLES, _Tables).values(), key=lambda job: job.since)
    return {each.table: each for job in jobs for each in job.tables}


def resume(storage: Storage, table: TableId) -> bool:
    """Let a parked table go on with the job's next batch; whether it was parked."""
    known = read_tables(storage).get(table)
    if known is None or known.state == "landed":
        return False
    # A file of its own: the running job may be writing the list of tables.
    name = blake2b(msgspec.json.encode(table), digest_size=12).hexdigest()
    write_state(storage, f"{RESUME}/{name}.json", _Resumed(table, known.since))
    return True


def _read_all(storage: Storage, folder: str, type_: type[T]) -> dict[str, T]:
    names = [name for name in storage.names(folder) if name.endswith(".json")]  # none half written
    states = {f"{folder}/{n}": read_state(storage, f"{folder}/{n}", type_) for n in names}
    return {file: each for file, each in states.items() if each is not None}


def _name(table: TableId) -> tuple[str, str]:
    return table.database or "", table.table
