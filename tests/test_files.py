"""Files of messages: what is a message where lines are damaged."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from headgate.files import Split, is_pretty, read

DAMAGED = Path(__file__).with_name("repro") / "damaged-lines.jsonl"


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
