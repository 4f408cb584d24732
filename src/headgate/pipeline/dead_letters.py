"""The dead letters of a job: messages that it could not process, to inspect and to replay."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from headgate.arrow.messages import DEAD_LETTER_COLUMNS
from headgate.core.errors import UsageError, shown
from headgate.pipeline.inbox import INBOX
from headgate.pipeline.state import IDENTITY, Identity
from headgate.sinks.files.writer import OWNER, Owner
from headgate.spark.filesystem import NO_SETTINGS
from headgate.spark.state_files import read_state
from headgate.spark.storage import Storage

REPLAYED = "_replayed"
"""The folder of a store for dead letters that were replayed."""


class Store:
    """A directory of dead letters, one folder per batch."""

    def __init__(self, path: str, settings: Mapping[str, str] = NO_SETTINGS) -> None:
        self.storage, self.settings = Storage(path, settings), settings
        owner = read_state(self.storage, OWNER, Owner)
        if owner is None:
            raise UsageError(
                f"{path} is not a store of dead letters; give a job file or its dead_letters"
            )
        self.job_id, self.checkpoint = owner.job, owner.checkpoint

    def batches(self) -> list[str]:
        """The folders that hold dead letters."""
        return [name for name in self.storage.names() if name.startswith("batch=")]

    def dead_letters(self) -> Iterator[dict[str, Any]]:
        """The dead letters in the order of their batches, numbered from 1."""
        number = 0
        for folder in self.batches():
            for batch in table_of(self.storage, folder).to_batches():
                for row in batch.to_pylist():
                    number += 1
                    yield {"number": number, "batch": int(folder.partition("=")[2]), **row}

    def replay(
        self, checkpoint: str | None = None, settings: Mapping[str, str] = NO_SETTINGS
    ) -> int:
        """Queue all dead letters for their job; returns how many there were.

        They are copied to the job's inbox first and moved aside afterwards: if the process is
        killed in between, they are queued twice, and the job recognises the duplicates.
        """
        checkpoint = checkpoint or self.checkpoint
        if self.checkpoint is None or checkpoint is None:
            raise UsageError(
                f"{self.storage.uri} has events of headgate.land, which reads no messages; land "
                "the events again after the fix: those that are landed already change nothing"
            )
        state = Storage(f"{checkpoint}/headgate", {**self.settings, **settings})
        identity = read_state(state, IDENTITY, Identity)
        if identity is None or identity.id != self.job_id:
            raise UsageError(
                f"{self.storage.uri} does not belong to the job whose checkpoint is {checkpoint}; "
                "give the job that wrote it with --job"
            )
        count = 0
        for folder in self.batches():
            table = table_of(self.storage, folder)
            if table.column("value").null_count and redacted(table):
                raise UsageError(
                    f"{self.storage.uri}/{folder} was written with redact and holds no messages; "
                    "read them from the source again, at the coordinates that `show` prints"
                )
            count += table.num_rows
            name = f"{folder.replace('=', '-')}-{self.job_id[:8]}-{uuid.uuid4().hex[:8]}.parquet"
            file = pa.BufferOutputStream()
            pq.write_table(table, file)
            # A hidden name first: Spark must not read the file while it is written.
            state.write(f"{INBOX}/_{name}", file.getvalue())
            state.move(f"{INBOX}/_{name}", f"{INBOX}/{name}")
            self.storage.move_folder(folder, f"{REPLAYED}/{folder}-{uuid.uuid4().hex[:8]}")
        return count


def table_of(storage: Storage, folder: str) -> pa.Table:
    """The dead letters of one batch."""
    files = ds.dataset(storage.path(folder), filesystem=storage.fs, format="parquet")
    return files.to_table(columns=[n for n in DEAD_LETTER_COLUMNS if n in files.schema.names])


def redacted(table: pa.Table) -> bool:
    """Whether dead letters were kept without their messages: a tombstone has at least a key."""
    pairs = zip(table.column("key").to_pylist(), table.column("value").to_pylist())
    return any(key is None and value is None for key, value in pairs)


def one_line(row: dict[str, Any]) -> str:
    """A dead letter as one line.

    >>> row = {"number": 1, "code": "malformed-json", "message": "…", "table": "", "place": None}
    >>> one_line(row | {"topic": "cdc", "partition": 0, "offset": 7})
    '1  cdc-0-7  malformed-json  …'
    """
    where = row["place"] or "-".join(str(row[n]) for n in ("topic", "partition", "offset"))
    table = f"  {shown(row['table'])[1:-1]}" if row["table"] else ""
    return f"{row['number']}  {where}{table}  {row['code']}  {row['message']}"
