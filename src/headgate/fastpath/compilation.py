"""Compiles the loop of splicing ahead, so that no batch waits for the compiler.

Numba keeps what it compiled in files. Where they are not there yet, another process writes them:
the compiler is Python, and in this process it would take its share of every batch.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import subprocess
import sys
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import Thread

import numpy as np
import pyarrow as pa

log = logging.getLogger("headgate.fastpath")


@cache
def can_compile() -> bool:
    """Whether the compiler is there; without it, the codecs convert all messages."""
    if find_spec("numba") is None:
        log.info("the fast path is off: numba is not installed (pip install 'headgate[fast]')")
        return False
    try:
        import_module("numba")
    except ImportError as error:
        log.warning("the fast path is off: numba cannot be imported: %s", error)
        return False
    return True


def is_compiled() -> bool:
    """Whether the loop can be run; the first call starts to prepare it, in the background."""
    return not preparing().is_alive()


@cache
def preparing() -> Thread:
    """The thread that prepares the loop; the first call starts it."""
    thread = Thread(target=prepare, name="compile", daemon=True)
    thread.start()
    return thread


def prepare() -> None:
    """Have the loop compiled by another process, where that is still to be done; then load it."""
    fill_cache()
    compile_loop()


def fill_cache() -> None:
    """Have the loop compiled by another process; nothing where it is, or cannot be kept."""
    if is_cached() is False:
        command = [sys.executable, "-m", __name__]
        subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=False)  # fmt: skip


def is_cached() -> bool | None:
    """Whether the compiled loop is in Numba's cache; None where there can be no cache."""
    note = _note()
    return None if note is None else note.exists()


def compile_loop() -> None:
    """Compile the loop, and what learns templates of it, or load both from Numba's cache.

    The first time that takes up to a minute.
    """
    from headgate.fastpath import kernel
    from headgate.fastpath.program import Program
    from headgate.fastpath.splicer import bytes_of

    Program().run(*bytes_of(pa.array([b"{}"], pa.binary())))
    data, (starts, ends) = np.frombuffer(b"{}", np.uint8), np.zeros((2, 8), np.int64)
    count = kernel.cut(data, 0, 2, starts, ends)
    skeleton = int(kernel.skeleton_hash(data, 0, 2, count, starts, ends))
    roles, pairs = np.zeros(1, np.uint8), np.zeros((0, 2), np.int64)
    kernel.leaf_hash(data, count, starts, ends, roles, 0, pairs, 0, 0, skeleton)
    kernel.fits(data, 0, 0, 0, 0, 0)


def _note() -> Path | None:
    """The file that says that the loop, as it is, is in Numba's cache on this machine."""
    import numba
    from llvmlite.binding import get_host_cpu_name

    from headgate.fastpath import kernel

    folder = kernel.splice.stats.cache_path if hasattr(kernel.splice, "stats") else None
    if folder is None:
        return None
    state = os.stat(kernel.__file__)
    told = state.st_mtime_ns, state.st_size, numba.__version__, sys.version, get_host_cpu_name()
    return Path(folder) / f"headgate-{hashlib.sha256(repr(told).encode()).hexdigest()[:16]}"


def main() -> None:
    """Compile the loop into Numba's cache; of several processes, one does it."""
    note = _note()
    if note is None:
        return
    os.nice(5)
    note.parent.mkdir(parents=True, exist_ok=True)
    with open(note.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not note.exists():
            compile_loop()
            note.touch()


if __name__ == "__main__":
    main()
