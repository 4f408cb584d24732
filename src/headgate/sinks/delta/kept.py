"""Packed changes that wait, as Parquet files below `_headgate/changes/`: for the next merge
(`merge_every`), or until a parked table goes on."""

from __future__ import annotations

from collections.abc import Sequence

from pyarrow import fs
from pyspark.sql import DataFrame, SparkSession

from headgate.spark.storage import Storage

CHANGES = "changes"
WAITING = "waiting"
"""The folder of what waits for the next merge, with one of each job."""
COLUMNS = ("table", "count", "changes")


class KeptChanges:
    """Changes in a folder: of all tables of a job, for the next merge, or of a parked one."""

    def __init__(self, spark: SparkSession, storage: Storage, folder: str, job: str = "") -> None:
        """`job` tells the batches of jobs apart that have a folder one after the other."""
        self.spark, self.storage, self.folder = spark, storage, f"{CHANGES}/{folder}"
        self.suffix = f"-{job}" if job else ""

    def keep(self, changes: DataFrame, batch: int, step: int) -> None:
        """Keep the changes of a step; kept twice they are kept once."""
        path = self.storage.for_spark(f"{self.folder}/{batch:010d}-{step:05d}{self.suffix}")
        changes.select(*COLUMNS).coalesce(1).write.mode("overwrite").parquet(path)

    def steps(self) -> list[str]:
        """The steps whose changes are kept, in order."""
        return self.storage.names(self.folder)

    def size(self) -> int:
        """The bytes of all files."""
        folder = self.storage.path(self.folder)
        with self.storage.naming("read", self.folder):
            chosen = fs.FileSelector(folder, allow_not_found=True, recursive=True)
            return sum(info.size or 0 for info in self.storage.fs.get_file_info(chosen))

    def read(self, steps: Sequence[str]) -> DataFrame:
        """The changes of steps."""
        paths = [self.storage.for_spark(f"{self.folder}/{step}") for step in steps]
        return self.spark.read.parquet(*paths)

    def remove(self, steps: Sequence[str]) -> None:
        """Forget changes."""
        for step in steps:
            self.storage.delete(f"{self.folder}/{step}")
