"""Delta Lake: tables that equal the source's, or logs of all changes, written with delta-rs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Self, cast

from headgate.core.connectors import Address, Report
from headgate.core.errors import UsageError
from headgate.core.options import build
from headgate.landing.table_state import TableState
from headgate.landing.types import TypePreferences
from headgate.schema.changes import TableId
from headgate.sinks.base import TableSink, TableWriter, Target
from headgate.sinks.delta.options import DeltaOptions
from headgate.sinks.delta.paths import RESERVED
from headgate.sinks.directory import DirectorySink
from headgate.spark.filesystem import directory

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from headgate.spark.storage import Storage


@dataclass(frozen=True)
class DeltaSink(DirectorySink, TableSink):
    """Lands tables below a directory."""

    name = "delta"
    summary = "Delta tables below a directory, local or on S3 or Azure"
    promise = "exactly-once"
    authority = "path"
    Options = DeltaOptions

    path: str = field(repr=False)
    options: DeltaOptions = field(default_factory=DeltaOptions)

    @classmethod
    def from_uri(cls, address: Address, format_options: dict[str, str]) -> Self:
        """The directory of a URI."""
        options = build(DeltaOptions, address.params)
        if options.mode == "log" and options.deletes != "hard":
            raise UsageError(
                "a log has every change, deletes among them; leave out deletes with mode: log"
            )
        return cls(directory(address.path, address.base), options)

    @property
    def types(self) -> TypePreferences:
        """The lake types that columns get, where there is a choice."""
        return self.options.types

    @property
    def on_misfit(self) -> Literal["reject", "null"]:
        """What happens to a row with a value that does not fit its column."""
        return cast(Literal["reject", "null"], self.options.on_misfit)

    @property
    def waits_for_watermarks(self) -> bool:
        """Whether changes are published at watermarks only."""
        return self.options.consistency == "watermark"

    @property
    def takes_times(self) -> bool:
        """A log has the times of changes."""
        return self.options.mode == "log"

    @property
    def may_splice(self) -> bool:
        """Whether rows may be spliced."""
        return self.options.splice

    def check(self, spark: SparkSession, target: Target) -> Report:
        """Look at the tables that are there."""
        tables = self.tables(target.settings)
        parked = sum(each.state != "landed" for each in tables)
        facts = {f"{self.path}: landed tables": len(tables)}
        return Report(facts | ({"parked tables": parked} if parked else {}))

    def tables(self, settings: Mapping[str, str]) -> list[TableState]:
        """The tables that jobs have landed."""
        from headgate.sinks.delta.state import read_tables

        return list(read_tables(self.notes(settings)).values())

    def resume(self, settings: Mapping[str, str], table: TableId) -> None:
        """Let a parked table go on with the job's next batch."""
        from headgate.sinks.delta.state import resume

        resume(self.notes(settings), table)

    def notes(self, settings: Mapping[str, str]) -> Storage:
        """The folder of what jobs note beside their tables."""
        from headgate.spark.storage import Storage

        return Storage(f"{self.path.rstrip('/')}/{RESERVED}", settings, private=False)

    def read(self, spark: SparkSession, settings: Mapping[str, str]) -> DataFrame:
        """The landed table whose URI this is, with the changes that wait to be merged."""
        with _needs_deltalake():
            from headgate.sinks.delta.reading import current
        return current(spark, self.path, settings)

    def open(self, spark: SparkSession, target: Target) -> TableWriter:
        """The writer of a job that starts."""
        with _needs_deltalake():
            from headgate.sinks.delta.consistent import ConsistentWriter
            from headgate.sinks.delta.lake import Lake
            from headgate.sinks.delta.storage import delta_uri, storage_options
            from headgate.sinks.delta.writer import DeltaWriter
        options = storage_options(self.path, target.settings)
        lake = Lake(delta_uri(self.path), target.job_id, self.options, options)
        consistent = ConsistentWriter(spark, lake, self.path, target.settings)
        if consistent.waits or consistent.has_unresolved:  # from before the option was removed
            return consistent
        return DeltaWriter(spark, lake, self.path, target.settings)


@contextmanager
def _needs_deltalake() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise UsageError(
            f"the delta sink needs deltalake ({error}); pip install 'headgate[delta]'"
        ) from None
