"""What was applied is remembered as long as it is asked for, at the cost of a batch."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest
from in_process import Sent, job_of, run_job
from producers import TIME, debezium, ticdc

from headgate.core.errors import UsageError
from headgate.pipeline import dedup_store
from headgate.pipeline.dedup_store import FOLDER, DedupStore, IdFile
from headgate.spark.storage import Storage

DAY = 86_400.0
DAY_MICROS = 86_400_000_000


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The time of day in microseconds, to be set."""
    now = [TIME * 1_000]
    monkeypatch.setattr(dedup_store.time, "time_ns", lambda: now[0] * 1_000)
    return now


def ids(*numbers: int) -> list[bytes]:
    return [blake2b(str(n).encode(), digest_size=16).digest() for n in numbers]


def applied(store: Storage, files: Sequence[IdFile], numbers: range, at: int) -> tuple[IdFile, ...]:
    """A batch of changes, all of one time."""
    batch = DedupStore(store, files)
    for id_ in ids(*numbers):
        batch.add(id_, at)
    return batch.write(DAY)


def test_many_batches_are_few_files_and_each_change_is_written_seldom(tmp_path: Path) -> None:
    store, files, written = Storage(str(tmp_path)), (), 0
    for n in range(100):
        before = files
        files = applied(store, files, range(100 * n, 100 * n + 100), n)
        written += sum(file.ids for file in files if file not in before)

    assert len(files) <= 8
    assert written < 10_000 * 8
    found = DedupStore(store, files)
    assert [True] * 10_000 == found.known(ids(*range(10_000)))
    assert [False, False] == found.known([*ids(10_000), None])


def test_a_jump_of_the_sources_clock_forgets_nothing(tmp_path: Path, clock: list[int]) -> None:
    store = Storage(str(tmp_path))
    files = applied(store, (), range(5), clock[0])
    files = applied(store, files, range(5, 6), clock[0] + 30 * DAY_MICROS)
    files = applied(store, files, range(6, 9), clock[0])

    assert [True] * 9 == DedupStore(store, files).known(ids(*range(9)))


def test_a_job_that_stood_still_forgets_nothing(tmp_path: Path, clock: list[int]) -> None:
    store = Storage(str(tmp_path))
    at = clock[0]
    files = applied(store, (), range(5), at)
    clock[0] += 30 * DAY_MICROS
    files = applied(store, files, range(5, 6), at + 1)

    assert [True] * 6 == DedupStore(store, files).known(ids(*range(6)))


def test_what_is_old_is_forgotten_with_its_files(tmp_path: Path, clock: list[int]) -> None:
    store, files = Storage(str(tmp_path)), ()
    for _ in range(40):  # ten days
        files = applied(store, files, range(clock[0], clock[0] + 50), clock[0])
        clock[0] += DAY_MICROS // 4

    first, last = TIME * 1_000, clock[0] - DAY_MICROS // 4
    assert [False, True] == DedupStore(store, files).known(ids(first, last))
    assert sum(file.ids for file in files) <= 50 * 6


def test_too_many_are_forgotten_from_the_oldest_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dedup_store, "MOST_IDS", 800)
    store, files = Storage(str(tmp_path)), ()
    for n in range(30):
        files = applied(store, files, range(50 * n, 50 * n + 50), n)

    assert 700 <= sum(file.ids for file in files) <= 800
    assert [False, True] == DedupStore(store, files).known(ids(0, 1499))


def test_a_file_elsewhere_is_fetched_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Storage(str(tmp_path / "remote"))
    files = applied(store, (), range(5), 1)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(store, "is_local", False)

    assert [True, False] == DedupStore(store, files).known(ids(4, 5))
    monkeypatch.setattr(store, "read", lambda name: pytest.fail("it is here already"))
    assert [True, False] == DedupStore(store, files).known(ids(4, 5))
    monkeypatch.setattr(store, "is_local", True)
    assert [files[0].name] == store.names(FOLDER)


@pytest.mark.parametrize("producer", [debezium, ticdc])
def test_a_clock_that_is_a_day_ahead_doubles_nothing(tmp_path: Path, producer: Any) -> None:
    source = "debezium" if producer is debezium else "canal-json"
    job = job_of(tmp_path, source, "kafka://127.0.0.1:9/out?partition-num=3&protocol=maxwell")
    changes = [producer("insert", n, n) for n in range(1, 31)]
    late = str(TIME + 15).encode()
    ahead = (changes[14].value or b"").replace(late, str(TIME + 2 * 86_400_000).encode())
    changes[14] = Sent(ahead, changes[14].key)

    batches = [[change] for change in changes]
    out = run_job(job, tmp_path, [*batches, changes])

    assert 30 == len(out.written[0])
    assert 30 == out.state.totals.repeated


@pytest.mark.parametrize("damage", ["cut", "gone"])
def test_a_damaged_file_is_named(damage: str, tmp_path: Path) -> None:
    store = Storage(str(tmp_path))
    (file,) = applied(store, (), range(10), TIME)
    path = tmp_path / FOLDER / file.name
    path.write_bytes(path.read_bytes()[:-8]) if damage == "cut" else path.unlink()

    with pytest.raises(UsageError, match=file.name):
        DedupStore(store, (file,)).known(ids(1))
