"""The messages that a job could not process: look at them, and send them through it again."""

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
"""The folder of a store for letters that went back."""


class Store:
    """A directory of dead letters, one folder per batch."""

    def __init__(self, path: str, settings: Mapping[str, str] = NO_SETTINGS) -> None:
        self.storage, self.settings = Storage(path, settings), settings
        owner = read_state(self.storage, OWNER, Owner)
        if owner is None or owner.checkpoint is None:
            raise UsageError(f"{path} is no store of dead letters; name a job's dead_letters")
        self.job_id, self.checkpoint = owner.job, owner.checkpoint

    def batches(self) -> list[str]:
        """The folders that hold letters."""
        return [name for name in self.storage.names() if name.startswith("batch=")]

    def letters(self) -> Iterator[dict[str, Any]]:
        """The letters in the order of their batches, numbered from 1."""
        number = 0
        for folder in self.batches():
            for batch in table_of(self.storage, folder).to_batches():
                for letter in batch.to_pylist():
                    number += 1
                    yield {"number": number, "batch": int(folder.partition("=")[2]), **letter}

    def replay(
        self, checkpoint: str | None = None, settings: Mapping[str, str] = NO_SETTINGS
    ) -> int:
        """Put all letters into the inbox of their job; how many there were.

        They are copied first and set aside after: killed in between, they are put in twice, and
        the job recognises what it applied.
        """
        checkpoint = checkpoint or self.checkpoint
        state = Storage(f"{checkpoint}/headgate", {**self.settings, **settings})
        told = read_state(state, IDENTITY, Identity)
        if told is None or told.id != self.job_id:
            raise UsageError(
                f"{self.storage.uri} is not of the job whose checkpoint is {checkpoint}; "
                "name the job that wrote it with --job"
            )
        count = 0
        for folder in self.batches():
            letters = table_of(self.storage, folder)
            if letters.column("value").null_count and redacted(letters):
                raise UsageError(
                    f"{self.storage.uri}/{folder} was written with redact and holds no messages; "
                    "read them from the source again, at the coordinates that `show` tells"
                )
            count += letters.num_rows
            name = f"{folder.replace('=', '-')}-{self.job_id[:8]}-{uuid.uuid4().hex[:8]}.parquet"
            file = pa.BufferOutputStream()
            pq.write_table(letters, file)
            # A hidden name first: Spark must not find the file while it is written.
            state.write(f"{INBOX}/_{name}", file.getvalue())
            state.move(f"{INBOX}/_{name}", f"{INBOX}/{name}")
            self.storage.move_folder(folder, f"{REPLAYED}/{folder}-{uuid.uuid4().hex[:8]}")
        return count


def table_of(storage: Storage, folder: str) -> pa.Table:
    """The letters of one batch."""
    files = ds.dataset(storage.path(folder), filesystem=storage.fs, format="parquet")
    return files.to_table(columns=[n for n in DEAD_LETTER_COLUMNS if n in files.schema.names])


def redacted(letters: pa.Table) -> bool:
    """Whether letters were kept without their messages: a tombstone has at least a key."""
    pairs = zip(letters.column("key").to_pylist(), letters.column("value").to_pylist())
    return any(key is None and value is None for key, value in pairs)


def one_line(letter: dict[str, Any]) -> str:
    """A letter in a list.

    >>> letter = {"number": 1, "code": "malformed-json", "message": "…", "table": "", "place": None}
    >>> one_line(letter | {"topic": "cdc", "partition": 0, "offset": 7})
    '1  cdc-0-7  malformed-json  …'
    """
    where = letter["place"] or "-".join(str(letter[n]) for n in ("topic", "partition", "offset"))
    table = f"  {shown(letter['table'])[1:-1]}" if letter["table"] else ""
    return f"{letter['number']}  {where}{table}  {letter['code']}  {letter['message']}"
