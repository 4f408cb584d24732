"""What the commands write and print: lines, Parquet, dead letters, reports, progress."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
import pyarrow.parquet as pq

from headgate.arrow.events import SOURCE_COLUMNS
from headgate.cli.input_files import sizes_of
from headgate.cli.split_work import NOT_IN_LINES, DeadLetter
from headgate.core.errors import UsageError, naming
from headgate.core.losses import SENTENCES
from headgate.sources.message_files import STDIN
from headgate.spark.filesystem import is_remote

STDOUT = "standard output"
SOME_REJECTED = 3
"""The exit code where there are dead letters."""
PROGRESS_BYTES = 10_000_000
"""How large the input must be for a progress bar."""
PRINTED_BYTES = 1024 * 1024
"""About how much is printed at once."""
PENDING_BYTES = 16 * 1024 * 1024
PENDING_LETTERS = 4_096
"""How many dead letters, of how many bytes, are written at once."""
DEAD_LETTER_SCHEMA = pa.schema(
    [*SOURCE_COLUMNS.items(), ("code", pa.string()), ("message", pa.string())]
)
ErrorCounts = Counter[tuple[str, str]]
"""How many errors have which code, each with the first sentence that came."""


def count_errors(counts: ErrorCounts, errors: Iterable[tuple[str, str]], messages: int = 1) -> None:
    """Count errors by code, with a first sentence for each.

    >>> counts = Counter()
    >>> count_errors(counts, [("lossy", "a"), ("lossy", "b")])
    >>> counts
    Counter({('lossy', 'a'): 2})
    """
    for code, sentence in errors:
        counts[code, next((s for c, s in counts if c == code), sentence)] += messages


class LineWriter:
    """Messages as lines of a file or of standard output."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.name = STDOUT if path == STDIN else path

    def __enter__(self) -> LineWriter:
        self.file = sys.stdout.buffer if self.path == STDIN else open(self.path, "xb")
        return self

    def write(self, batch: pa.RecordBatch) -> None:
        """Add a batch."""
        with naming("write", self.name):
            for lines in batch.column("value").to_pylist():
                self.file.write(lines + b"\n")

    def __exit__(self, *_: object) -> None:
        with naming("write", self.name):
            self.file.flush()
            if self.path != STDIN:
                self.file.close()


class ParquetWriter:
    """Batches into one Parquet file, of that name or in that directory; without one, nowhere."""

    def __init__(self, folder: str | None, schema: pa.Schema) -> None:
        self.folder, self.schema = folder, schema
        self.writer: pq.ParquetWriter | None = None

    def __enter__(self) -> ParquetWriter:
        if self.folder:
            path = self.folder
            if not path.endswith(".parquet"):
                os.makedirs(path, exist_ok=True)
                path = os.path.join(path, "part-00000.parquet")
            self.writer = pq.ParquetWriter(path, self.schema, compression="snappy")
        return self

    def write(self, batch: pa.RecordBatch) -> None:
        """Add a batch."""
        if self.writer is not None:
            with naming("write", str(self.folder)):
                self.writer.write_batch(batch)

    def __exit__(self, *_: object) -> None:
        if self.writer is not None:
            with naming("write", str(self.folder)):
                self.writer.close()


class DeadLetterWriter:
    """Counts dead letters by code, and keeps them in a directory if there is one."""

    def __init__(self, folder: str | None) -> None:
        self.counts: ErrorCounts = Counter()
        self.file = ParquetWriter(folder, DEAD_LETTER_SCHEMA)
        self.pending: list[DeadLetter] = []
        self.pending_bytes = 0

    def __enter__(self) -> DeadLetterWriter:
        self.file.__enter__()
        return self

    def write(self, dead_letter: DeadLetter) -> None:
        """Add a dead letter."""
        count_errors(self.counts, [(dead_letter.code, dead_letter.message)])
        if self.file.folder is None:
            return
        self.pending.append(dead_letter)
        self.pending_bytes += len(dead_letter.value or b"") + len(dead_letter.key or b"")
        if self.pending_bytes > PENDING_BYTES or len(self.pending) >= PENDING_LETTERS:
            self.flush()

    def flush(self) -> None:
        """Write what is pending."""
        columns = zip(*self.pending) if self.pending else [()] * len(DEAD_LETTER_SCHEMA)
        arrays = [pa.array(c, f.type) for c, f in zip(columns, DEAD_LETTER_SCHEMA)]
        self.file.write(pa.RecordBatch.from_arrays(arrays, schema=DEAD_LETTER_SCHEMA))
        self.pending, self.pending_bytes = [], 0

    def __exit__(self, *error: object) -> None:
        try:
            self.flush()
        finally:
            self.file.__exit__(*error)


def print_lines(
    lines: Iterable[tuple[bytes, DeadLetter | None]], dead_letters: DeadLetterWriter
) -> None:
    """Print events as they come, and keep the dead letters."""
    pending: list[bytes] = []
    size = 0
    for text, dead_letter in lines:
        pending.append(text)
        size += len(text)
        if size >= PRINTED_BYTES:
            print_bytes(b"".join(pending))
            pending, size = [], 0
        if dead_letter is not None:
            dead_letters.write(dead_letter)
    print_bytes(b"".join(pending))


def print_bytes(text: bytes) -> None:
    """Write to standard output at once."""
    with naming("write", STDOUT):
        sys.stdout.buffer.write(text)
        sys.stdout.buffer.flush()


def check_directories(out: str | None, errors: str | None) -> None:
    """Refuse to write two things to one place, or over anything that exists."""
    if out and errors and os.path.realpath(out) == os.path.realpath(errors):
        raise UsageError(
            "the output and --errors are the same directory; choose another path for one of them"
        )
    for folder in filter(None, (out, errors)):
        if is_remote(folder):
            raise UsageError(
                f"{folder} is not on the local file system; write there with `headgate run --once`"
            )
        path = Path(folder)
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise UsageError(f"{folder} exists and is not an empty directory; choose another path")


def report_dead_letters(counts: ErrorCounts, errors: str | None, done: str) -> None:
    """On standard error: how many messages could not be `done`, and why."""
    total = sum(counts.values())
    where = f", kept in {errors}" if errors else "; --errors DIR keeps them"
    noun = "message" if total == 1 else "messages"
    click.echo(f"headgate: {total} {noun} could not be {done}{where}", err=True)
    for (code, sentence), n in counts.most_common():
        click.echo(f"  {n:>6}  {code:<20} e.g. {sentence}", err=True)


def report_losses(losses: Counter[str], possible: list[str], to: str, all_written: bool) -> None:
    """On standard error: what was lost, or rejected for it, and what else might have been."""
    codes = [*losses, *(code for code in possible if code not in losses)]
    if not codes:
        where = "" if all_written else " in the messages that were written"
        click.echo(f"headgate: no loss{where}", err=True)
        return
    click.echo(f"headgate: lost in conversion to {to} (count, code, reason)", err=True)
    for code in sorted(codes, key=lambda code: -losses[code]):
        sentence = SENTENCES.get(code) or NOT_IN_LINES[code]
        click.echo(f"  {losses[code]:>9}  {code:<18} {sentence}", err=True)


def summarise_losses(losses: Counter[str]) -> None:
    """On standard error: that something was lost."""
    kinds = f"{len(losses)} kind{'s' if len(losses) > 1 else ''} of loss"
    click.echo(
        f"headgate: the target format cannot represent everything ({kinds}); see --report",
        err=True,
    )
    if losses["untyped"]:  # values are wrong then, not only missing
        times = losses["untyped"]
        click.echo(f"headgate: untyped, {times} times: {SENTENCES['untyped']}", err=True)


@contextmanager
def progress(files: list[str]) -> Iterator[Callable[[str], Any]]:
    """A progress bar on a terminal, to be called with each file that is done; else nothing."""
    sizes = sizes_of(files)
    to_file = not sys.stdout.isatty() and os.fstat(sys.stdout.fileno()).st_mode & 0o100000
    if not (sys.stderr.isatty() and to_file and sum(sizes.values()) > PROGRESS_BYTES):
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task("decoding", total=sum(sizes.values()))
        yield lambda file: bar.advance(task, sizes.get(file, 0))
