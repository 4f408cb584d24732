"""What the commands write."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from headgate.cli import output
from headgate.cli.output import DeadLetterWriter, print_lines, report_losses
from headgate.cli.split_work import DeadLetter


def letter(n: int) -> DeadLetter:
    return DeadLetter(None, b"%d" % n, "t", 0, n, 1_700_000_000_000_000, "malformed-json", f"{n}")


@pytest.mark.parametrize(("name", "limit"), [("PENDING_LETTERS", 4), ("PENDING_BYTES", 6)])
def test_dead_letters_are_written_in_parts_and_counted_by_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, limit: int
) -> None:
    monkeypatch.setattr(output, name, limit)
    with DeadLetterWriter(str(tmp_path / "dead")) as dead_letters:
        for n in range(10):
            dead_letters.write(letter(n))

    assert Counter({("malformed-json", "0"): 10}) == dead_letters.counts
    file = pq.ParquetFile(tmp_path / "dead" / "part-00000.parquet")
    assert file.num_row_groups > 1
    assert [b"%d" % n for n in range(10)] == file.read().column("value").to_pylist()


def test_without_a_directory_dead_letters_are_only_counted() -> None:
    with DeadLetterWriter(None) as dead_letters:
        dead_letters.write(letter(1))

    assert 1 == dead_letters.counts.total()
    assert [] == dead_letters.pending


def test_lines_are_printed_in_order_whatever_their_size(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.setattr(output, "PRINTED_BYTES", 5)
    lines = [b"%d\n" % n for n in range(8, 13)]
    with DeadLetterWriter(None) as dead_letters:
        print_lines([(line, None) for line in lines], dead_letters)

    assert b"".join(lines) == capfdbinary.readouterr().out


@pytest.mark.parametrize(
    ("all_written", "text"), [(True, "no loss\n"), (False, "no loss in the messages that were")]
)
def test_no_loss_is_reported(
    all_written: bool, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    report_losses(Counter(), [], "maxwell", all_written)

    assert f"headgate: {text}" in capsys.readouterr().err
