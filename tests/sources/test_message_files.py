"""Files of messages: what is a message where lines are damaged."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import threading
from hashlib import sha256
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from messages import canal
from paths import REPRO

from headgate.codec.decoder import decode_message, decoder
from headgate.core.errors import UsageError
from headgate.sources import message_files
from headgate.sources.message_files import Split, is_pretty, read, splits

DAMAGED = REPRO / "damaged-lines.jsonl"


def values(path: Path) -> list[bytes]:
    """The messages of a file."""
    found = pa.Table.from_batches(read(Split(str(path))))
    return found.column("value").to_pylist()


def test_damaged_lines_leave_their_neighbours_alone() -> None:
    lines = DAMAGED.read_bytes().splitlines()
    assert len(lines) == 58
    assert values(DAMAGED) == lines


@pytest.mark.parametrize("keep", [1, 3, 10, 40])
def test_lines_stay_lines_whichever_are_cut_short(tmp_path: Path, keep: int) -> None:
    whole = [line for line in DAMAGED.read_bytes().splitlines() if _is_json(line)]
    lines = [line if n % keep == 0 else line[: 7 * n % len(line)] for n, line in enumerate(whole)]
    lines = [line for line in lines if line.strip()]
    (tmp_path / "cut.jsonl").write_bytes(b"\n".join(lines))
    assert values(tmp_path / "cut.jsonl") == lines


def test_a_printed_message_that_was_cut_short_ends_at_the_next(tmp_path: Path) -> None:
    printed = [json.dumps({"id": n, "data": [{"a": n}], "s": "x"}, indent=2) for n in range(5)]
    printed[1] = printed[1][: printed[1].index('x"')]  # within a string
    printed[3] = printed[3][:10]
    (tmp_path / "printed.json").write_text("\n".join(printed))
    found = values(tmp_path / "printed.json")
    assert [json.loads(v)["id"] for v in found if _is_json(v)] == [0, 2, 4]
    assert len(found) == 5


def test_a_long_printed_message_is_no_file_of_lines() -> None:
    rows = [{"id": n, "name": "x" * 20} for n in range(5_000)]
    text = json.dumps({"data": rows}, indent=1).replace('{\n   "id"', '{"id"').encode()
    assert is_pretty(text[: 64 * 1024])


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def test_lines_over_the_limit_are_cut_and_told_by_size_and_hash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(message_files, "BLOCK_BYTES", 64)
    monkeypatch.setattr(message_files, "KEPT_BYTES", 50)
    long = b"x" * 1_000
    path = tmp_path / "long.jsonl"
    path.write_bytes(b"\n".join([b"a", long, b"b", b"c" * 100, long]))
    rows = [row for batch in read(Split(str(path)), 200) for row in batch.to_pylist()]

    assert [b"a", long[:50], b"b", b"c" * 100, long[:50]] == [row["value"] for row in rows]
    told = [row["oversize"] for row in rows if "oversize" in row]
    assert [f"1000 bytes (the value has the SHA-256 {sha256(long).hexdigest()})"] * 2 == told


@pytest.mark.parametrize("step", [1, 7, 50, 333])
def test_parts_of_a_file_have_each_line_once_also_long_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    monkeypatch.setattr(message_files, "BLOCK_BYTES", 16)
    monkeypatch.setattr(message_files, "KEPT_BYTES", 10)
    lines = [bytes([97 + n]) * size for n, size in enumerate([1, 90, 15, 16, 17, 200, 3, 31, 100])]
    text = b"\n".join(lines)
    path = tmp_path / "lines.jsonl"
    path.write_bytes(text)
    found = [
        value
        for start in range(0, len(text), step)
        for batch in read(Split(str(path), start, min(start + step, len(text))), 40)
        for value in batch.column("value").to_pylist()
    ]

    assert [line if len(line) <= 40 else line[:10] for line in lines] == found


@pytest.mark.slow
def test_a_bomb_of_gzip_is_one_dead_letter_in_little_memory(tmp_path: Path) -> None:
    bomb, dead = tmp_path / "bomb.jsonl.gz", tmp_path / "dead"
    with gzip.open(bomb, "wb", compresslevel=6) as file:
        file.write(b'{"a":"')
        for _ in range(100):
            file.write(b"a" * 2**20)
        file.write(b'"}\n' + canal() + b"\n")
    status, peak, said = measured("decode", str(bomb), "--errors", str(dead))

    assert 3 == status
    assert f"the message has {100 * 2**20 + 8} bytes" in said
    (letter,) = pq.read_table(dead).to_pylist()
    assert ("too-large", 64 * 1024) == (letter["code"], len(letter["value"]))
    assert peak < 250


@pytest.mark.slow
def test_large_values_of_parquet_are_read_few_at_a_time(tmp_path: Path) -> None:
    large = [bytes([n]) * 2**21 for n in range(40)]
    pq.write_table(pa.table({"value": large}), tmp_path / "large.parquet", use_dictionary=False)
    batches = list(read(Split(str(tmp_path / "large.parquet"))))

    assert 40 == sum(batch.num_rows for batch in batches)
    assert max(batch.nbytes for batch in batches) < 33 * 2**20


@pytest.mark.slow
def test_many_rows_in_many_messages_are_converted_in_little_memory(tmp_path: Path) -> None:
    rows = ",".join(['{"a":"1"}'] * 20_000)
    message = (
        '{"id":0,"database":"d","table":"t","pkNames":["a"],"isDdl":false,"type":"INSERT","es":1,'
        f'"ts":2,"sql":"","sqlType":{{"a":4}},"mysqlType":{{"a":"int"}},"old":null,"data":[{rows}]}}'
    )
    source, out = tmp_path / "rows.jsonl", tmp_path / "out.jsonl"
    source.write_text(f"{message}\n" * 6)
    status, peak, _ = measured("convert", "--to", "maxwell", str(source), str(out))

    assert 0 == status
    assert 6 * 20_000 == out.read_bytes().count(b"\n")
    assert peak < 350


def test_a_message_of_too_many_rows_is_one_dead_letter() -> None:
    rows = ",".join(['{"a":"1"}'] * 100_001)
    message = f'{{"type":"INSERT","isDdl":false,"database":"d","table":"t","data":[{rows}]}}'
    (event,) = decode_message(decoder("canal-json"), None, message.encode(), None, 2**24)

    assert event.error == (
        "too-large",
        "the message has more than 100000 rows; no CDC producer writes this; check the topic",
    )


def measured(*arguments: str) -> tuple[int, int, str]:
    """How a command ended, its peak in megabytes, and what it said on standard error."""
    command = [sys.executable, "-c", MEASURED, *arguments]
    done = subprocess.run(command, capture_output=True, timeout=120)
    said, _, peak = done.stderr.decode().rpartition("peak ")
    return done.returncode, int(peak), said


MEASURED = """
import atexit, sys
from headgate.cli.main import main

@atexit.register
def tell():  # getrusage would tell of the parent, too
    (peak,) = (line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
    sys.stderr.write(f"peak {int(peak) // 1024}")

main()
"""


def lines_of(path: Path) -> list[bytes]:
    return [v for batch in read(Split(str(path))) for v in batch.column("value").to_pylist()]


@pytest.mark.parametrize("message", [b'{"a":1}', b'{\n  "a": 1,\n  "b": 2\n}'])
def test_a_byte_order_mark_is_no_part_of_the_first_message(tmp_path: Path, message: bytes) -> None:
    path = tmp_path / "m.json"
    path.write_bytes(b"\xef\xbb\xbf" + message)

    assert [message] == lines_of(path)
    first = next(read(Split(str(path), 0, path.stat().st_size)))
    assert message.split(b"\n")[0] == first.column("value")[0].as_py()
    assert [Split(str(path))] == splits(str(path))


def test_a_pipe_is_read_like_a_file(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(b'{"a":1}\n{"a":2}\n',))
    writer.start()

    assert [b'{"a":1}', b'{"a":2}'] == lines_of(path)
    writer.join()


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("timestamp", pa.array([1_700_000_000_123])),  # of which unit?
        ("timestamp", pa.array(["2024-01-01"])),
        ("timestamp", pa.array([1_700_000_000_123_456_789], pa.timestamp("ns"))),
        ("timestamp", pa.array([-(2**62)], pa.timestamp("us"))),
        ("partition", pa.array([2**40])),
        ("topic", pa.array([b"\xff"])),
        ("key", pa.array([{"id": 1}])),
    ],
    ids=lambda v: v if isinstance(v, str) else str(v.type),
)
def test_a_parquet_column_that_does_not_fit_is_named(
    tmp_path: Path, name: str, column: pa.Array
) -> None:
    path = tmp_path / "m.parquet"
    pq.write_table(pa.table({"value": [b"{}"], name: column}), path)

    with pytest.raises(UsageError, match=f"column '{name}'"):
        list(read(Split(str(path))))
