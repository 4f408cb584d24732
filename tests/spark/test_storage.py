"""A job's files on the local file system, under `file://`, and in an object store."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from s3_server import KEY, SECRET, S3Server

from headgate.cli.on_spark import write_events
from headgate.cli.split_work import Decoding
from headgate.core.batches import SourceRange
from headgate.core.errors import StorageError, UsageError
from headgate.pipeline.state import State
from headgate.pipeline.status import SAVE_SECONDS, Reporter
from headgate.pipeline.status import read as read_status
from headgate.sinks.base import Batch
from headgate.sinks.files.writer import FileWriter, Owner
from headgate.sources.message_files import Split, expand, read, splits
from headgate.spark.filesystem import for_workers
from headgate.spark.storage import Storage


@pytest.fixture(params=["path", "file", "s3a"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, dict[str, str]]:
    """A folder that is not there yet, and the settings of its file system."""
    if request.param == "s3a":
        s3: S3Server = request.getfixturevalue("s3")
        return f"s3a://lake/{tmp_path.name}/state", s3.settings
    return f"{'file://' if request.param == 'file' else ''}{tmp_path}/state", {}


def test_files_are_written_read_listed_and_deleted(place: tuple[str, dict[str, str]]) -> None:
    storage = Storage(*place)
    assert (storage.exists(), storage.names(), storage.read("a/b.json")) == (False, [], None)
    storage.write("a/b.json", b"one")
    storage.write("a/b.json", b"two")
    storage.write("a/c.arrow", b"three")
    storage.make_folder("empty")
    assert storage.read("a/b.json") == b"two"
    assert (storage.names(), storage.names("a")) == (["a", "empty"], ["b.json", "c.arrow"])
    storage.move("a/b.json", "a/d.json")
    assert storage.names("a") == ["c.arrow", "d.json"]
    storage.delete("a")
    storage.delete("none")
    assert not storage.exists("a")


def test_a_folder_is_moved_with_everything_in_it(place: tuple[str, dict[str, str]]) -> None:
    storage = Storage(*place)
    for name in ("_batch.json", "step=0/part-0", "step=0/part-1", "step=1/part-0"):
        storage.write(f"_staged/{name}", name.encode())
    storage.move_folder("_staged", "batch=1")
    assert storage.names() == ["batch=1"]
    assert storage.names("batch=1/step=0") == ["part-0", "part-1"]
    assert storage.read("batch=1/step=1/part-0") == b"step=1/part-0"


def test_an_object_store_gets_the_file_that_completes_a_folder_last(
    s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = Storage("s3a://lake/cut-off", s3.settings)
    for name in ("_batch.json", "step=0/part-0", "step=0/part-1"):
        storage.write(f"_staged/{name}", b"")

    class Broken:
        def __init__(self, fs: Any) -> None:
            self.fs = fs

        def __getattr__(self, name: str) -> Any:
            return getattr(self.fs, name)

        def copy_file(self, source: str, target: str) -> None:
            if target.endswith("part-1"):
                raise OSError(errno.EIO, "")
            self.fs.copy_file(source, target)

    monkeypatch.setattr(storage, "fs", Broken(storage.fs))
    with pytest.raises(StorageError, match="cut-off/batch=1: Input/output error"):
        storage.move_folder("_staged", "batch=1")
    assert storage.names("batch=1/step=0") == ["part-0"]
    assert not storage.exists("batch=1/_batch.json")


def test_spark_gets_paths_with_their_scheme(tmp_path: Path) -> None:
    assert Storage("s3a://lake/x", {"spark.hadoop.fs.s3a.endpoint": "h"}).for_spark("y") == (
        "s3a://lake/x/y"
    )
    assert Storage(str(tmp_path)).for_spark("y") == f"file://{tmp_path}/y"
    assert Storage(f"file://{tmp_path}").for_spark("") == f"file://{tmp_path}"


def test_a_bucket_can_have_settings_of_its_own(s3: S3Server) -> None:
    own = {
        name.replace("fs.s3a.", "fs.s3a.bucket.lake."): value for name, value in s3.settings.items()
    }
    other = {"spark.hadoop.fs.s3a.endpoint": "http://127.0.0.1:1"}
    Storage("s3a://lake/own", {**own, **other}).write("a", b"1")
    assert s3.files("s3a://lake/own") == ["a"]


def test_an_unknown_file_system_is_refused() -> None:
    with pytest.raises(UsageError, match="unknown file system 'oss'"):
        Storage("oss://bucket/x")


def test_errors_name_the_path_and_no_secret(s3: S3Server) -> None:
    with pytest.raises(StorageError) as error:
        Storage("s3a://nowhere/x", s3.settings).write("a.json", b"1")
    assert "cannot write s3a://nowhere/x/a.json: " in str(error.value)
    assert KEY not in str(error.value)
    assert SECRET not in str(error.value)


def test_workers_get_the_settings_of_a_remote_file_system_only(s3: S3Server) -> None:
    settings = {**s3.settings, "spark.hadoop.other": "x", "spark.password": "y"}
    assert for_workers(["s3a://lake/x", "/y"], settings) == s3.settings
    assert for_workers(["/y"], settings) == {}


def test_what_a_job_keeps_is_its_owners(tmp_path: Path) -> None:
    def mode(path: Path) -> int:
        return stat.S_IMODE(path.stat().st_mode)

    old = os.umask(0o022)
    try:
        Storage(f"{tmp_path}/state/job/headgate").write("batches/1.json", b"")
        Storage(f"{tmp_path}/out", private=False).write("a/1.json", b"")
    finally:
        os.umask(old)
    state = tmp_path / "state" / "job" / "headgate"
    assert [mode(p) for p in (state, state / "batches")] == [0o700, 0o700]
    assert mode(state / "batches" / "1.json") == 0o600
    assert [mode(p) for p in (tmp_path / "out", tmp_path / "out" / "a" / "1.json")] == [
        0o755,
        0o644,
    ]


def test_a_full_disk_is_told_with_the_path_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = Storage(str(tmp_path))
    storage.write("a.json", b"old")
    create = storage.create

    def full(name: str) -> Any:
        file = create(name)
        file.close()
        return open("/dev/full", "wb", buffering=0)

    monkeypatch.setattr(storage, "create", full)
    with pytest.raises(StorageError, match=f"cannot write {tmp_path}/a.json: No space left"):
        storage.write("a.json", b"new")
    assert os.listdir(tmp_path) == ["a.json"]
    assert storage.read("a.json") == b"old"


def test_an_object_store_is_told_the_status_now_and_then(
    s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1_000.0]
    monkeypatch.setattr("headgate.pipeline.status.time.time", lambda: now[0])
    storage = Storage("s3a://lake/status/headgate", s3.settings)
    written: list[str] = []
    write = storage.write
    monkeypatch.setattr(storage, "write", lambda *args: (written.append(args[0]), write(*args)))
    reporter = Reporter("orders", storage)
    reporter.resume_from(State())
    for _ in range(10):
        now[0] += 2
        reporter.save()
    reporter.ended("stopped")
    assert len(written) == 2 + 20 // int(SAVE_SECONDS)
    assert read_status("s3a://lake/status", s3.settings).state == "stopped"


def test_files_of_a_source_are_read_from_an_object_store(
    s3: S3Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    storage = Storage("s3a://lake/in", s3.settings)
    lines = b"".join(b'{"n":%d}\n' % n for n in range(5_000))
    storage.write("b/lines.jsonl", lines)
    storage.write("b/_hidden", b"x")
    pq.write_table(pa.table({"value": [b"x"], "offset": [7]}), tmp_path / "p.parquet")
    storage.write("a.parquet", (tmp_path / "p.parquet").read_bytes())
    files = expand(["s3a://lake/in/"], s3.settings)
    assert files == ["s3a://lake/in/a.parquet", "s3a://lake/in/b/lines.jsonl"]
    assert expand([files[0]], s3.settings) == files[:1]
    with pytest.raises(UsageError, match="no such file or directory: s3a://lake/none"):
        expand(["s3a://lake/none"], s3.settings)
    (parquet,) = read(Split(files[0]), settings=s3.settings)
    assert parquet.to_pylist() == [{"value": b"x", "offset": 7}]
    monkeypatch.setattr("headgate.sources.message_files.LEAST_SPLIT", 20_000)
    parts = splits(files[1], most=20_000, settings=s3.settings)
    assert len(parts) > 2
    found = [
        v for part in parts for b in read(part, settings=s3.settings) for v in b[0].to_pylist()
    ]
    assert b"\n".join(found) + b"\n" == lines


def test_a_batch_that_spark_cannot_write_is_told_with_its_path(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = Storage(str(tmp_path / "out"))
    writer = FileWriter(storage, Owner("a"), lines=False)
    # A file where Spark needs a folder: it fails on root's machines too.
    monkeypatch.setattr(storage, "make_folder", lambda name: Path(storage.path(name)).touch())
    with pytest.raises(StorageError, match=f"cannot write {tmp_path}/out: .*not a directory"):
        writer.write(Batch(0, SourceRange(), lambda: None), [spark.range(1)], ())


def test_a_status_that_cannot_be_written_does_not_hide_why_a_job_failed(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file, where a folder should be")
    reporter = Reporter("orders", Storage(str(tmp_path / "state" / "headgate")))
    reporter.ended("failed", "the reason")
    assert reporter.status.reason == "the reason"


def test_a_directory_that_spark_cannot_write_for_the_command_line_is_told(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "in.jsonl").write_bytes(b"{}\n")
    out = f"{tmp_path}/file/out"
    with pytest.raises(StorageError, match=f"cannot write {out}: .*not a directory"):
        write_events([f"{tmp_path}/in.jsonl"], Decoding("auto", {}), out, None, "local[2]")
