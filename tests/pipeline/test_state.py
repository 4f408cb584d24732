"""The files of a job's state: another version and damage are refused, and the file is named."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from headgate.core.batches import SourceRange
from headgate.core.errors import UsageError
from headgate.pipeline import status
from headgate.pipeline.dead_letters import Store
from headgate.pipeline.state import State, States
from headgate.sinks.base import Batch
from headgate.sinks.files.writer import BATCH, FileWriter, Owner, Written
from headgate.sources.base import source_range
from headgate.sources.kafka.reader import KafkaReader, ends_of
from headgate.spark.checkpoint import check_progress
from headgate.spark.state_files import VERSION, write_state
from headgate.spark.storage import Storage


def states(root: Path) -> States:
    """What a job leaves that ran one batch."""
    found = States(Storage(f"{root}/headgate"))
    found.job_id()
    found.write(State(batch=0))
    return found


def a_state(root: Path) -> Any:
    return states(root).latest


def an_identity(root: Path) -> Any:
    return states(root).job_id


def a_status(root: Path) -> Any:
    status.Reporter("job", Storage(f"{root}/headgate")).save()
    return lambda: status.read(str(root))


def a_target(root: Path) -> Any:
    def open_it() -> FileWriter:
        return FileWriter(Storage(str(root / "out")), Owner("a"), lines=False)

    open_it()
    return open_it


def dead_letters(root: Path) -> Any:
    FileWriter(Storage(str(root / "out")), Owner("a", "b"), lines=False)
    return lambda: Store(str(root / "out"))


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (a_state, "headgate/batches/0.json"),
        (an_identity, "headgate/job.json"),
        (a_status, "headgate/status.json"),
        (a_target, "out/_headgate.json"),
        (dead_letters, "out/_headgate.json"),
    ],
)
def test_a_file_of_another_version_or_damaged_is_named(
    make: Any, name: str, tmp_path: Path
) -> None:
    read = make(tmp_path)
    read()
    file = tmp_path / name
    whole = file.read_text()
    for told, version in (("9", '"version":9,'), ("none", "")):
        file.write_text(whole.replace(f'"version": {VERSION},', version))
        with pytest.raises(
            UsageError, match=rf"{name} was written by another .* has version {told}, "
        ):
            read()
    for wrong in (
        "",
        whole[:-9],
        f'{{"version": {VERSION}, "batch": "x", "id": 1, "job": 1, "name": 1}}',
    ):
        file.write_text(wrong)
        with pytest.raises(UsageError, match=f"{name} is damaged; restore the checkpoint"):
            read()


@pytest.mark.parametrize("name", ["metadata", "offsets/3", "commits/3", "sources/0/2"])
def test_a_damaged_file_of_sparks_is_named(name: str, tmp_path: Path) -> None:
    good = {
        "metadata": '{"id":"a"}',
        "offsets/3": 'v1\n{"batchWatermarkMs":0}\n{"cdc":{"0":5,"1":7}}\n-',
        "commits/3": 'v1\n{"nextBatchWatermarkMs":0}',
        "sources/0/2": '\0v1\n{"cdc":{"0":0}}',
    }
    for file, text in good.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text)
    checkpoint = Storage(str(tmp_path))
    check_progress(checkpoint)
    assert {("cdc", 0): 5, ("cdc", 1): 7} == ends_of(checkpoint, 3)
    assert {} == ends_of(checkpoint, 4)

    for wrong in ("", good[name][:-4]):
        (tmp_path / name).write_text(wrong)
        with pytest.raises(UsageError, match=f"{name} is damaged; restore the checkpoint"):
            check_progress(checkpoint)


def test_what_a_batch_holds_of_its_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "offsets").mkdir()
    for batch, ends in enumerate(('{"cdc":{"0":5,"1":7}}', '{"cdc":{"0":9,"1":7}}')):
        (tmp_path / "offsets" / str(batch)).write_text(f"v1\n{{}}\n{ends}\n-")
    reader = KafkaReader.__new__(KafkaReader)  # without a broker
    monkeypatch.setattr(reader, "ends", partial(ends_of, Storage(str(tmp_path))))

    first, second = (source_range(reader, n, []) for n in range(2))

    assert {"cdc": {"0": (None, 5), "1": (None, 7)}} == first.offsets
    assert {"cdc": {"0": (5, 9)}} == second.offsets
    one, other = (source_range(reader, 2, [("a", t)]).files for t in ("1", "2"))
    assert one != other


def test_a_target_refuses_batches_of_other_messages(tmp_path: Path) -> None:
    def batch(number: int, end: int) -> Batch:
        return Batch(number, SourceRange({"cdc": {"0": (1, end)}}), lambda: None)

    target = FileWriter(Storage(str(tmp_path)), Owner("a", "b"), lines=False)
    assert not target.is_written(batch(3, 5))
    write_state(target.storage, f"batch=00000003/{BATCH}", Written(batch(3, 5).source))
    (tmp_path / "_staged-00000004-a").mkdir()

    target = FileWriter(Storage(str(tmp_path)), Owner("a", "b"), lines=False)

    assert target.is_written(batch(3, 5))
    assert not target.is_written(batch(4, 9))
    assert not (tmp_path / "_staged-00000004-a").exists()
    for other in (batch(3, 9), batch(2, 5)):
        with pytest.raises(UsageError, match=r"has batch 3, .* older than the target"):
            target.is_written(other)
