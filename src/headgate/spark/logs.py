"""Where Spark's JVM and its workers write what no user wants to see, and traces of failures."""

from __future__ import annotations

import atexit
import os
import tempfile
import traceback
from contextlib import suppress
from pathlib import Path

from headgate.spark.filesystem import is_remote, local

NAME = "spark.log"
MOST_BYTES = 10 * 1024 * 1024
"""A larger log of earlier runs is begun anew."""


def log_of(checkpoint: str) -> Path:
    """The log in the checkpoint of a job; one among temporary files where that is not local."""
    if is_remote(checkpoint):
        return temporary_log()
    folder = Path(local(checkpoint))
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / NAME
    if path.exists() and path.stat().st_size > MOST_BYTES:
        path.unlink()
    path.touch(0o600)
    return path


def temporary_log() -> Path:
    """A log among temporary files, which goes when this process ends if nothing is in it."""
    handle, name = tempfile.mkstemp(prefix="headgate-", suffix=".log")
    os.close(handle)
    path = Path(name)
    atexit.register(_remove_if_empty, path)
    return path


def _remove_if_empty(path: Path) -> None:
    with suppress(OSError):
        if not path.stat().st_size:
            path.unlink()


def keep_trace(error: BaseException, path: Path) -> None:
    """Add the whole trace of an error to a log."""
    with suppress(OSError), path.open("a") as file:
        file.write("".join(traceback.format_exception(error)))
