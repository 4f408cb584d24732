"""Messages from files: JSON Lines, pretty-printed JSON, Parquet with Kafka's columns."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePath
from typing import IO, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from headgate.arrow import HEADERS, SOURCE_COLUMNS, bounded
from headgate.errors import UsageError
from headgate.filesystem import NO_SETTINGS, find, open_file, size_of
from headgate.limits import BATCH_ROWS
from headgate.relaxed_json import is_json, messages_in
from headgate.values import LAST_TIME, YEAR_ONE

PEEK_BYTES = 64 * 1024
BLOCK_BYTES = 4 * 1024 * 1024
WHITE = (b" ", b"\t", b"\r", b"\v", b"\f")
LEAST_SPLIT, MOST_SPLIT = 16 * 1024 * 1024, 256 * 1024 * 1024
MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
BOM = b"\xef\xbb\xbf"
KAFKA_COLUMNS = {**SOURCE_COLUMNS, "headers": HEADERS}
STDIN = "-"


class Split(NamedTuple):
    """A part of a file that one task reads: lines that start in [start, end), or all of it."""

    path: str
    start: int = 0
    end: int | None = None


def expand(paths: Iterable[str], settings: Mapping[str, str] = NO_SETTINGS) -> list[str]:
    """The files that the given paths name; directories are walked in name order.

    >>> expand(["-"])
    ['-']
    """
    found: list[str] = []
    for path in paths:
        inside = [""] if path == STDIN else find(path, settings)
        if inside is None:
            raise UsageError(f"no such file or directory: {path}")
        found += [
            f"{path.rstrip('/')}/{name}" if name else path for name in inside if not _hidden(name)
        ]
    return found


def _hidden(path: str) -> bool:
    return any(part.startswith((".", "_")) for part in PurePath(path).parts)


def splits(
    path: str,
    slots: int = 1,
    most: int = MOST_SPLIT,
    settings: Mapping[str, str] = NO_SETTINGS,
) -> list[Split]:
    """Cut a plain file of lines into parts for parallel tasks; any other file is one part.

    As few as there may be, because each task costs Spark a part of a second, but so many that all
    of `slots`, which work at the same time, end at about the same time; none over `most` bytes.
    """
    size = size_of(path, settings)
    if size <= LEAST_SPLIT:
        return [Split(path)]
    with open_file(path, settings) as file:
        head = file.read(PEEK_BYTES).removeprefix(BOM)
    if head[:4] == b"PAR1" or _compression(head) or is_pretty(head):
        return [Split(path)]
    rounds = -(-size // (most * slots))
    step = max(LEAST_SPLIT, -(-size // (rounds * slots)))
    return [Split(path, start, min(start + step, size)) for start in range(0, size, step)]


def read(split: Split, settings: Mapping[str, str] = NO_SETTINGS) -> Iterator[pa.RecordBatch]:
    """The messages of a split, as batches with Kafka's columns (or `value` alone)."""
    if split.path == STDIN:
        yield from _text(sys.stdin.buffer)
        return
    with open_file(split.path, settings) as file:
        if split.end is not None:
            found = blocks_between(file, split.start, split.end)
            yield from batched(map(lines_of, found))
        elif file.seekable() and file.peek(4)[:4] == b"PAR1":
            yield from _parquet(split.path, file)
        else:
            yield from _text(file, split.path)


def _compression(head: bytes) -> str | None:
    return next((name for magic, name in MAGIC.items() if head.startswith(magic)), None)


def _text(file: IO[bytes], path: str = "standard input") -> Iterator[pa.RecordBatch]:
    head = _peek(file)
    if head[:4] == b"PAR1":
        raise UsageError(f"Parquet cannot be read from {path}; give the path of a file")
    compression = _compression(head)
    source: Any = _Headed(head, file)
    if compression:
        try:
            stream = pa.CompressedInputStream(pa.PythonFile(source, mode="r"), compression)
            yield from _plain_text(_Stream(stream))
        except OSError as error:
            raise UsageError(f"{path} is not whole {compression}: {error}") from None
    else:
        yield from _plain_text(source)


def _plain_text(source: Any) -> Iterator[pa.RecordBatch]:
    head = _peek(source).removeprefix(BOM)  # an editor's mark is no part of the first message
    rest = _Headed(head, source)
    if is_pretty(head):
        yield from batched([pa.array(messages_in(rest.read()), pa.binary())])
    else:
        yield from batched(map(lines_of, blocks(rest)))


def _peek(source: Any) -> bytes:
    head = b""
    while len(head) < PEEK_BYTES and (more := source.read(PEEK_BYTES - len(head))):
        head += more
    return head


class _Headed:
    """A stream whose first bytes were read already."""

    closed = False

    def __init__(self, head: bytes, rest: Any) -> None:
        self.head, self.rest = head, rest

    def read(self, size: int | None = -1) -> bytes:
        if size is None or size < 0:
            found, self.head = self.head, b""
            return found + bytes(self.rest.read())
        if self.head:
            found, self.head = self.head[:size], self.head[size:]
            return found
        return bytes(self.rest.read(size))

    def close(self) -> None:
        pass


class _Stream:
    """An Arrow stream with a file's `read`."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def read(self, size: int | None = -1) -> bytes:
        return bytes(self.stream.read(None if size is None or size < 0 else size))


def is_pretty(head: bytes) -> bool:
    """Whether text is printed over several lines instead of one message per line.

    What is whole decides: lines that are JSON by themselves, or values of several lines. Where
    nothing is, lines that begin as messages do are damaged messages.

    >>> is_pretty(b'{\\n  "a": 1\\n}\\n'), is_pretty(b'{"a":1}\\n{"a":2}\\n')
    (True, False)
    >>> is_pretty(b'{"a":1,"b\\n{"a":2}\\n{"a":3,\\n')
    False
    """
    whole = head.rpartition(b"\n")[0] if len(head) >= PEEK_BYTES else head
    lines = [line.rstrip() for line in whole.splitlines() if line.strip()]
    if len(lines) < 2 or lines[0].lstrip()[:1] not in (b"{", b"[", b"/"):
        return False
    by_line = sum(len(line) for line in lines if line[:1] == b"{" and is_json(line))
    printed = (value for value in messages_in(whole) if b"\n" in value)
    over_lines = sum(len(value) for value in printed if is_json(value))
    if by_line or over_lines:
        return over_lines > by_line
    return sum(line.lstrip()[:1] == b"{" for line in lines) * 2 < len(lines)


def blocks(source: Any) -> Iterator[bytes]:
    """The bytes of a stream in blocks of whole lines."""
    rest: list[bytes] = []
    while block := source.read(BLOCK_BYTES):
        head, newline, tail = block.rpartition(b"\n")
        if not newline:
            rest.append(tail)
            continue
        yield b"".join(rest) + head
        rest = [tail]
    yield b"".join(rest)


def blocks_between(file: IO[bytes], start: int, end: int) -> Iterator[bytes]:
    """The lines that start in a byte range; neighbours' ranges share none and miss none."""
    if start:
        file.seek(start - 1)
        file.readline()
    elif file.read(len(BOM)) != BOM:
        file.seek(0)
    at = file.tell()
    while at < end and (block := file.read(min(BLOCK_BYTES, end - at))):
        if not block.endswith(b"\n"):
            block += file.readline()
        at += len(block)
        yield block


def batched(parts: Iterable[pa.Array]) -> Iterator[pa.RecordBatch]:
    """Messages as batches of one column, bounded in rows and bytes; blank lines are no messages."""
    for part in parts:
        yield from bounded(pa.record_batch([without_blanks(part)], names=["value"]))


def lines_of(block: bytes) -> pa.Array:
    """The lines of a block.

    >>> lines_of(b"a\\n\\nb").to_pylist()
    [b'a', b'', b'b']
    """
    return pc.split_pattern(pa.array([block], pa.binary()), b"\n").values


def without_blanks(lines: pa.Array) -> pa.Array:
    """Lines without the empty ones and those of nothing but white space.

    >>> without_blanks(pa.array([b"a", b"", b" \\r", b" b"])).to_pylist()
    [b'a', b' b']
    """
    if pc.min(pc.binary_length(lines)).as_py() == 0:
        lines = lines.filter(pc.greater(pc.binary_length(lines), 0))
    if any(pc.any(pc.starts_with(lines, space)).as_py() for space in WHITE):
        found = [line for line in lines.to_pylist() if not line.isspace()]
        return pa.array(found, pa.binary())
    return lines


def _parquet(path: str, opened: IO[bytes]) -> Iterator[pa.RecordBatch]:
    try:
        file = pq.ParquetFile(opened)
    except (pa.ArrowException, OSError) as error:
        raise UsageError(f"{path} is not whole Parquet: {error}") from None
    names = [n for n in KAFKA_COLUMNS if n in file.schema_arrow.names]
    if "value" not in names:
        has = ", ".join(file.schema_arrow.names)
        raise UsageError(
            f"{path} has no column 'value' (it has: {has}); rename the messages' column"
        )
    batches = file.iter_batches(BATCH_ROWS, columns=names)
    while True:
        try:
            batch = next(batches, None)
        except (pa.ArrowException, OSError) as error:
            raise UsageError(f"{path} is not whole Parquet: {error}") from None
        if batch is None:
            return
        yield pa.RecordBatch.from_arrays(
            [_kafka_column(path, n, batch.column(n)) for n in names], names=names
        )


def _kafka_column(path: str, name: str, column: pa.Array) -> pa.Array:
    wanted = KAFKA_COLUMNS[name]
    try:
        if name == "timestamp":
            if not pa.types.is_timestamp(column.type) and not pa.types.is_null(column.type):
                raise ValueError("a number does not say its unit, a text not its zone")
            times = column.cast(wanted)
            span = pc.min_max(times.cast(pa.int64())).as_py()
            if span["min"] is not None and not YEAR_ONE <= span["min"] <= span["max"] <= LAST_TIME:
                raise ValueError("no such year")
            return times
        return column.cast(wanted)
    except (pa.ArrowException, ValueError):
        raise UsageError(
            f"{path}: column {name!r}, which is {column.type}, does not fit {wanted}; "
            "cast it where the file is written, or leave it out"
        ) from None
