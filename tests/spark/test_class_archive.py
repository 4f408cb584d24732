"""The archive of the JVM's classes: written once, put in its place whole."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from headgate.spark.class_archive import STALE_SECONDS, ClassArchive


def ending(status: int, file: Path) -> subprocess.Popen[bytes]:
    """In the JVM's place: a process that writes a file when its input ends."""
    program = f"import sys; sys.stdin.read(); open({str(file)!r}, 'w').close(); sys.exit({status})"
    return subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE)


def test_an_archive_that_was_written_is_used_from_then_on(tmp_path: Path) -> None:
    archive = ClassArchive(tmp_path, "a.jar")
    assert f"-XX:ArchiveClassesAtExit={archive.unfinished}" in archive.options(write=True)
    archive.finish(ending(0, archive.unfinished))
    assert [archive.path] == list(tmp_path.iterdir())
    again = ClassArchive(tmp_path, "a.jar")
    assert f"-XX:SharedArchiveFile={archive.path}" in again.options(write=True)
    assert not again.is_written


def test_a_jvm_that_failed_leaves_no_archive(tmp_path: Path) -> None:
    archive = ClassArchive(tmp_path, "a.jar")
    archive.options(write=True)
    archive.finish(ending(1, archive.unfinished))
    assert not archive.path.exists()
    assert [] == archive.options(write=False)


def test_what_killed_processes_left_is_deleted(tmp_path: Path) -> None:
    old, new = tmp_path / "x.1.unfinished", tmp_path / "x.2.unfinished"
    for file in (old, new):
        file.touch()
    then = time.time() - 2 * STALE_SECONDS
    os.utime(old, (then, then))
    ClassArchive(tmp_path, "a.jar").options(write=True)
    assert [new] == list(tmp_path.iterdir())


def test_another_class_path_has_another_archive(tmp_path: Path) -> None:
    paths = {ClassArchive(tmp_path, class_path).path for class_path in ("a.jar", "b.jar")}
    assert 2 == len(paths)


def test_a_folder_that_others_can_write_to_is_not_used(tmp_path: Path) -> None:
    archive = ClassArchive(tmp_path, "a.jar")
    archive.path.touch()
    assert archive.options(write=True)
    tmp_path.chmod(0o777)
    assert [] == archive.options(write=True)
