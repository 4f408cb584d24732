"""Batches as folders, each put in its place as a whole: exactly once."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence

import msgspec
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from headgate.core.batches import SourceRange
from headgate.core.errors import StorageError, UsageError, reason_of
from headgate.sinks.base import Batch, Writer
from headgate.spark.state_files import read_state, write_state
from headgate.spark.storage import Storage

OWNER = "_headgate.json"
"""The file by which a directory knows the job that writes it."""
BATCH = "_batch.json"
"""The file by which a batch knows what it holds of its source. It is put there last."""


STAGED = "_staged-"
"""What the folder of a batch is called until it is whole, with its number."""


class Owner(msgspec.Struct, omit_defaults=True):
    """The job that writes a directory; of dead letters also where its inbox is."""

    job: str
    checkpoint: str | None = None


class Written(msgspec.Struct):
    """What a batch in its place holds."""

    source: SourceRange


class FileWriter(Writer):
    """A folder per batch, put in its place as a whole: exactly once.

    Where folders cannot be renamed its files are put there one after the other; a batch that was
    cut off so lacks its last file, and is written again.

    The folders are named so that Spark reads them as columns `batch` and `step`, and so that their
    names sort in the order of the messages.
    """

    def __init__(self, storage: Storage, owner: Owner, lines: bool) -> None:
        self.storage, self.lines, path = storage, lines, storage.uri
        known = read_state(self.storage, OWNER, Owner)
        if known is not None and known.job != owner.job:
            raise UsageError(
                f"{path} was written by another job or from another checkpoint, and its batches "
                "would be taken for this one's; choose a new directory, or restore the checkpoint"
            )
        if known is None:
            if any(not name.startswith((".", "_")) for name in self.storage.names()):
                raise UsageError(f"{path} holds files of something else; choose a new directory")
            write_state(self.storage, OWNER, owner)
        for name in self.storage.names():
            if name.startswith(STAGED):
                self.storage.delete(name)  # of a run that was killed
        batches = [n.partition("=")[2] for n in self.storage.names() if n.startswith("batch=")]
        self.newest = max((int(n) for n in batches if n.isdigit()), default=-1)

    def write(self, batch: Batch, steps: Sequence[DataFrame], topics: Iterable[str]) -> None:
        """Write a batch beside its place, then move it there."""
        if self.is_written(batch) or not steps:
            return
        # A name of its own: another instance that was delayed may still write the same batch.
        staged = f"{STAGED}{batch.number:08d}-{uuid.uuid4().hex[:8]}"
        self.storage.make_folder(staged)
        for number, step in enumerate(steps):
            try:
                self.write_step(step, f"{self.storage.for_spark(staged)}/step={number:04d}")
            except (PySparkException, Py4JJavaError) as error:
                raise StorageError(f"cannot write {self.storage.uri}: {reason_of(error)}") from None
        write_state(self.storage, f"{staged}/{BATCH}", Written(batch.source))
        batch.still_ours()
        self.storage.delete(place_of(batch))  # a part, where a folder is not moved as a whole
        self.storage.move_folder(staged, place_of(batch))
        self.newest = batch.number

    def verify(self, batch: Batch) -> None:
        """Refuse a batch that does not follow those that are there."""
        self.is_written(batch)

    def is_written(self, batch: Batch) -> bool:
        """Whether a batch is there: written before the job was stopped, of the same messages.

        Where it is of others, or later batches are there, the job's checkpoint is older than its
        target, and to go on would lose messages or double them.
        """
        number = batch.number
        written = read_state(self.storage, f"{place_of(batch)}/{BATCH}", Written)
        if number < self.newest or (written is not None and written.source != batch.source):
            raise UsageError(
                f"{self.storage.uri} has batch {self.newest}, and the checkpoint knows the batches "
                f"before {number} only: it is older than the target, as from a backup, and "
                "messages would be lost or doubled; restore both together, or start with a new "
                "checkpoint and a new target"
            )
        return written is not None

    def write_step(self, step: DataFrame, path: str) -> None:
        """Write messages as lines or with all columns."""
        if self.lines:
            values = step.where("value IS NOT NULL").select(F.col("value").cast("string"))
            values.write.mode("overwrite").text(path)
        else:
            step.write.mode("overwrite").parquet(path)


def place_of(batch: Batch) -> str:
    """The folder of a batch."""
    return f"batch={batch.number:08d}"
