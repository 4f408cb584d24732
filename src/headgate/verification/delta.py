"""Delta tables below a root: of each one version, which Spark reads as the Parquet files it has.

delta-rs names the files, so that no connector is needed. While a job lands changes, its tables are
read as they were after one of its batches: each commit says of which batch it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import msgspec
from pyarrow import fs
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from headgate.core.errors import UsageError
from headgate.landing.shape import TableShape
from headgate.landing.table_state import TableState
from headgate.schema.changes import TableId
from headgate.sinks.delta.kept import CHANGES, WAITING
from headgate.sinks.delta.paths import RESERVED, table_path
from headgate.sinks.delta.state import JobState, Published, read_tables
from headgate.sinks.delta.storage import delta_uri, storage_options
from headgate.spark.filesystem import NO_SETTINGS
from headgate.spark.state_files import read_state
from headgate.spark.storage import Storage
from headgate.verification.comparison import quoted
from headgate.verification.sides import Side, SideTable
from headgate.verification.typed_rows import table_ids

if TYPE_CHECKING:
    from deltalake import DeltaTable

TEMPLATE = "{database}/{table}"
DELETED, OP, SHAPE = "_deleted", "_op", "headgate.shape"
HIDDEN = ("_position", DELETED)
"""Columns that landing adds."""
_ESCAPE = re.compile(r"_x([0-9a-f]+)_")


class DeltaSide(Side):
    """The tables below a root."""

    def __init__(
        self,
        spark: SparkSession,
        root: str,
        settings: Mapping[str, str] = NO_SETTINGS,
        template: str = TEMPLATE,
        job_id: str | None = None,
        batch: int | None = None,
    ) -> None:
        """With `job_id` and `batch`, tables are as that job left them after that batch."""
        self.spark, self.root, self.settings = spark, root.rstrip("/"), settings
        self.name, self.template = f"delta:{self.root}", template
        self.job_id, self.batch = job_id, batch
        self.live = batch is None
        self.storage = Storage(self.root, settings, private=False)

    def tables(self) -> list[str]:
        """The tables whose paths are such as the template gives."""
        pattern = re.escape(self.template)
        for field in ("database", "table"):
            pattern = pattern.replace(rf"\{{{field}\}}", f"(?P<{field}>[^/]*)", 1)
        names = []
        for path in self.paths("", self.template.count("/")):
            match = re.fullmatch(pattern, path)
            if match is not None:
                parts = [unescaped(part) for part in match.groupdict().values() if part != "_x_"]
                names.append(".".join(parts))
        return sorted(names)

    def paths(self, folder: str, depth: int) -> Iterator[str]:
        """The paths of tables that many folders below a folder."""
        with self.storage.naming("read", folder):
            chosen = fs.FileSelector(self.storage.path(folder), allow_not_found=True)
            inside = self.storage.fs.get_file_info(chosen)
        names = sorted(info.base_name for info in inside if info.type == fs.FileType.Directory)
        for name in names:
            path = f"{folder}/{name}" if folder else name
            if path == RESERVED or name.startswith("."):
                continue
            if depth:
                yield from self.paths(path, depth - 1)
            elif self.storage.exists(f"{path}/_delta_log"):
                yield path

    def table(self, name: str) -> SideTable | None:
        """The rows of a table; None if there is no such table."""
        paths = {each: table_path(self.template, each) for each in table_ids(name)}
        there = (each for each in paths if self.storage.exists(f"{paths[each]}/_delta_log"))
        chosen_id = next(there, None)
        if chosen_id is None:
            return None
        path = paths[chosen_id]
        table = self.open(path)
        if table is None:
            return None
        from headgate.sinks.delta.reading import read_version

        rows = read_version(self.spark, table, f"{self.root}/{path}")
        if OP in rows.columns:
            raise UsageError(
                f"{self.root}/{path} has every change (mode: log), and no rows to compare; "
                "leave it out with --table"
            )
        if DELETED in rows.columns:
            rows = rows.where(~F.coalesce(quoted(DELETED), F.lit(False)))
        chosen = rows.select(*(quoted(c) for c in rows.columns if c not in HIDDEN))
        shape = table.metadata().configuration.get(SHAPE)
        key = None if shape is None else msgspec.json.decode(shape, type=TableShape).key
        return SideTable(chosen, key, notes=self.notes(chosen_id))

    def notes(self, table: TableId) -> tuple[str, ...]:
        """Why a table may be behind."""
        state = self.states().get(table)
        if state is None or state.state == "landed":
            return ()
        return (f"the table is {state.state}: {state.reason}; {state.remedy}",)

    def states(self) -> dict[TableId, TableState]:
        """What jobs noted of their tables."""
        return read_tables(Storage(f"{self.root}/{RESERVED}", self.settings, private=False))

    def waiting(self, job_id: str) -> int | None:
        """The first batch of a job of which changes wait for a merge; None where none do."""
        names = self.storage.names(f"{RESERVED}/{CHANGES}/{WAITING}/{job_id}")
        return min((int(name.partition("-")[0]) for name in names), default=None)

    def published(self, job_id: str) -> Published | None:
        """The state of the source that a job has published, with `consistency: watermark`."""
        job = read_state(self.storage, f"{RESERVED}/jobs/{job_id}.json", JobState)
        return None if job is None else job.published

    def open(self, path: str) -> DeltaTable | None:
        """A table, as the job left it after its batch; None if that is before there was one."""
        try:
            from deltalake import DeltaTable

            from headgate.sinks.delta.lake import STEPS
        except ImportError as error:
            raise UsageError(
                f"Delta tables need deltalake ({error}); pip install 'headgate[delta]'"
            ) from None
        uri = f"{self.root}/{path}"
        table = DeltaTable(delta_uri(uri), storage_options=storage_options(uri, self.settings))
        if self.job_id is None or self.batch is None:
            return table
        application, end = f"headgate-{self.job_id}", (self.batch + 1) * STEPS
        while (table.transaction_version(application) or 0) >= end:
            if table.version() == 0:
                return None
            table.load_as_version(table.version() - 1)
        return table


def unescaped(part: str) -> str:
    """A name from its part of a path.

    >>> unescaped("a_x2f_b")
    'a/b'
    """
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), part)
