"""An archive of the JVM's loaded classes, which halves the time that Spark takes to start.

Java calls it application class data sharing. The first JVM of a job that finds no archive writes
one when it ends, which takes some seconds, and later ones map it. The JVM itself refuses an archive
of another Java or class path, or one that is damaged, and starts without it.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pyspark

from headgate.spark import jars

WRITE_SECONDS = 120.0
"""How long this process waits in the end for its JVM to write an archive."""
STALE_SECONDS = 3_600.0
QUIET = ["-XX:+IgnoreUnrecognizedVMOptions", "-Xlog:disable", "-Xlog:all=error:stderr"]
"""What the JVM says of an archive goes to standard output, which belongs to console sinks."""


class ClassArchive:
    """The archive for one class path.

    >>> import tempfile
    >>> archive = ClassArchive(Path(tempfile.mkdtemp()), "a.jar:b.jar")
    >>> archive.options(write=False)
    []
    >>> archive.options(write=True)[-1].partition("=")[0]
    '-XX:ArchiveClassesAtExit'
    """

    def __init__(self, folder: Path, class_path: str) -> None:
        home = str(jars.java().resolve())
        name = hashlib.sha256(f"{home} {pyspark.__version__} {class_path}".encode()).hexdigest()
        self.path = folder / f"{name[:16]}.jsa"
        self.unfinished = folder / f"{name[:16]}.{os.getpid()}.unfinished"
        self.is_written = False
        """Whether the JVM writes the archive when it ends."""

    def options(self, write: bool) -> list[str]:
        """The JVM's options: use the archive, or `write` one where that is possible."""
        if self.path.is_file() and is_private(self.path.parent):
            return [*QUIET, f"-XX:SharedArchiveFile={self.path}"]
        if not write or " " in str(self.path):  # Spark splits options at blanks
            return []
        with suppress(OSError):
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            for old in self.path.parent.glob("*.unfinished"):  # of processes that were killed
                if time.time() - old.stat().st_mtime > STALE_SECONDS:
                    old.unlink(missing_ok=True)
            if is_private(self.path.parent) and os.access(self.path.parent, os.W_OK):
                self.is_written = True
                return [*QUIET, f"-XX:ArchiveClassesAtExit={self.unfinished}"]
        return []

    def finish(self, jvm: subprocess.Popen[bytes]) -> None:
        """End a JVM that writes an archive, and put that in its place."""
        if jvm.stdin is None:
            return
        with suppress(OSError, subprocess.TimeoutExpired):
            jvm.stdin.close()  # by which it knows that its time has come
            if jvm.wait(WRITE_SECONDS) == 0:
                self.unfinished.replace(self.path)


def is_private(folder: Path) -> bool:
    """Whether only this user can put files into a folder: an archive holds code."""
    status = folder.stat()
    return status.st_uid == os.getuid() and not status.st_mode & 0o022


def archive_folder() -> Path:
    """Where archives are kept: beside the jars that were resolved."""
    return jars.cache().parent / "classes"
