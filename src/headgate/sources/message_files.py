"""Messages from files: JSON Lines, pretty-printed JSON, Parquet with Kafka's columns."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePath
from typing import IO, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from headgate.arrow.events import HEADERS, OVERSIZE, SOURCE_COLUMNS, bounded
from headgate.codec.decoder import size_and_hash
from headgate.core.errors import UsageError
from headgate.core.limits import (
    BATCH_BYTES,
    BATCH_ROWS,
    IN_PROCESS_BYTES,
    KEPT_BYTES,
    MAX_MESSAGE_BYTES,
)
from headgate.core.values import LAST_TIME, YEAR_ONE
from headgate.sources.pretty_json import is_json, messages_in
from headgate.spark.filesystem import NO_SETTINGS, find, open_file, size_of

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
    files: list[str] = []
    for path in paths:
        inside = [""] if path == STDIN else find(path, settings)
        if inside is None:
            raise UsageError(f"no such file or directory: {path}")
        files += [
            f"{path.rstrip('/')}/{name}" if name else path for name in inside if not _hidden(name)
        ]
    return files


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


def read(
    split: Split,
    most_bytes: int = MAX_MESSAGE_BYTES,
    settings: Mapping[str, str] = NO_SETTINGS,
) -> Iterator[pa.RecordBatch]:
    """The messages of a split, as batches with Kafka's columns (or `value` alone).

    A line over the limit is never in memory as a whole: its beginning comes, with size and hash.
    """
    if split.path == STDIN:
        yield from _text(sys.stdin.buffer, most_bytes)
        return
    with open_file(split.path, settings) as file:
        if split.end is not None:
            between = LinesBetween(file, split.start, split.end)
            yield from batched(blocks(between, most_bytes))
        elif file.seekable() and file.peek(4)[:4] == b"PAR1":
            yield from _parquet(split.path, file)
        else:
            yield from _text(file, most_bytes, split.path)


def _compression(head: bytes) -> str | None:
    return next((name for magic, name in MAGIC.items() if head.startswith(magic)), None)


def _text(
    file: IO[bytes], most_bytes: int, path: str = "standard input"
) -> Iterator[pa.RecordBatch]:
    head = _peek(file)
    if head[:4] == b"PAR1":
        raise UsageError(f"Parquet cannot be read from {path}; give the path of a file")
    compression = _compression(head)
    source: Any = _Headed(head, file)
    if compression:
        try:
            stream = pa.CompressedInputStream(pa.PythonFile(source, mode="r"), compression)
            yield from _plain_text(_Stream(stream), most_bytes)
        except OSError as error:
            raise UsageError(f"{path} is not whole {compression}: {error}") from None
    else:
        yield from _plain_text(source, most_bytes)


def _plain_text(source: Any, most_bytes: int) -> Iterator[pa.RecordBatch]:
    head = _peek(source).removeprefix(BOM)  # an editor's mark is no part of the first message
    rest = _Headed(head, source)
    if is_pretty(head):
        yield from _printed(rest, most_bytes)
    else:
        yield from batched(blocks(rest, most_bytes))


def _printed(source: Any, most_bytes: int) -> Iterator[pa.RecordBatch]:
    most = max(IN_PROCESS_BYTES, most_bytes)
    text = _start(source, most + 1)
    if len(text) <= most:
        yield from in_batches(pa.array(messages_in(text), pa.binary()))
        return
    long = LongLine([text])
    while block := source.read(BLOCK_BYTES):
        long.add(block)
    yield from batched([long])


def _peek(source: Any) -> bytes:
    return _start(source, PEEK_BYTES)


def _start(source: Any, size: int) -> bytes:
    parts: list[bytes] = []
    while size > 0 and (more := source.read(size)):
        parts.append(more)
        size -= len(more)
    return b"".join(parts)


class _Headed:
    """A stream whose first bytes were read already."""

    closed = False

    def __init__(self, head: bytes, rest: Any) -> None:
        self.head, self.rest = head, rest

    def read(self, size: int | None = -1) -> bytes:
        if size is None or size < 0:
            data, self.head = self.head, b""
            return data + bytes(self.rest.read())
        if self.head:
            data, self.head = self.head[:size], self.head[size:]
            return data
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


class LongLine:
    """A line that is too long for a message: its beginning, its size and its hash."""

    def __init__(self, parts: Iterable[bytes]) -> None:
        self.head, self.size, self.hash = b"", 0, hashlib.sha256()
        for part in parts:
            self.add(part)

    def add(self, part: bytes) -> None:
        """Take in what follows."""
        self.head += part[: KEPT_BYTES - len(self.head)]
        self.size += len(part)
        self.hash.update(part)

    def batch(self) -> pa.RecordBatch:
        """The line as a message of which not all is there."""
        what = size_and_hash(self.size, self.hash.hexdigest())
        return pa.record_batch({"value": [self.head], OVERSIZE: [what]})


def blocks(source: Any, most_bytes: int) -> Iterator[bytes | LongLine]:
    """The bytes of a stream in blocks of whole lines; of lines over a limit, what is kept."""
    rest: list[bytes] = []
    long: LongLine | None = None
    while block := source.read(BLOCK_BYTES):
        if long is not None:
            end, newline, block = block.partition(b"\n")
            long.add(end)
            if not newline:
                continue
            yield long
            long = None
        head, newline, tail = block.rpartition(b"\n")
        if newline:
            yield b"".join(rest) + head
            rest = []
        rest.append(tail)
        if sum(map(len, rest)) > most_bytes:
            long, rest = LongLine(rest), []
    yield long or b"".join(rest)


class LinesBetween:
    """The lines of a file that start in a byte range; neighbours' ranges share none, miss none."""

    def __init__(self, file: IO[bytes], start: int, end: int) -> None:
        self.file, self.end = file, end
        if start:
            file.seek(start - 1)
            while (part := file.readline(BLOCK_BYTES)) and not part.endswith(b"\n"):
                pass
        elif file.read(len(BOM)) != BOM:
            file.seek(0)
        self.at = file.tell()
        self.in_line = False

    def read(self, size: int) -> bytes:
        """What is next; beyond the range, the rest of its last line."""
        if self.at < self.end:
            data = self.file.read(min(size, self.end - self.at))
        else:
            data = self.file.readline(size) if self.in_line else b""
        self.at += len(data)
        self.in_line = not data.endswith(b"\n")
        return data


def batched(parts: Iterable[bytes | LongLine]) -> Iterator[pa.RecordBatch]:
    """Blocks of lines as batches of messages, bounded in rows and bytes."""
    for part in parts:
        if isinstance(part, LongLine):
            yield part.batch()
        else:
            yield from in_batches(lines_of(part))


def in_batches(values: pa.Array) -> Iterator[pa.RecordBatch]:
    """Messages as batches of one column; blank lines are no messages."""
    return bounded(pa.record_batch([without_blanks(values)], names=["value"]))


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
        texts = [line for line in lines.to_pylist() if not line.isspace()]
        return pa.array(texts, pa.binary())
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
    batches = file.iter_batches(rows_at_once(file), columns=names)
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


def rows_at_once(file: pq.ParquetFile) -> int:
    """How many rows of a file to read at a time: few, where they are large."""
    groups = [file.metadata.row_group(n) for n in range(file.num_row_groups)]
    largest = max((g.total_byte_size // max(g.num_rows, 1) for g in groups), default=0)
    return int(max(1, min(BATCH_ROWS, BATCH_BYTES // max(largest, 1))))


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
