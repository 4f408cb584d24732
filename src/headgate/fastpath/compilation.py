"""Compiles loops ahead, so that no batch waits for the compiler.

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
from functools import cache, cached_property
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import Thread

import numpy as np
import pyarrow as pa

log = logging.getLogger("headgate.fastpath")


@cache
def can_compile() -> bool:
    """Whether the compiler is there; without it, plain Python does the same."""
    if find_spec("numba") is None:
        log.info("the fast path is off: numba is not installed (pip install 'headgate[fast]')")
        return False
    try:
        import_module("numba")
    except ImportError as error:
        log.warning("the fast path is off: numba cannot be imported: %s", error)
        return False
    return True


class CompiledAhead:
    """Compiled functions of modules, and whether they can be called without waiting."""

    def __init__(self, run: str, *modules: str) -> None:
        self.run = run
        """`module:function`: what calls each of them once."""
        self.modules = modules

    def is_ready(self) -> bool:
        """Whether they can be called; the first call starts to prepare them, in the background."""
        return can_compile() and not self.preparing.is_alive()

    @cached_property
    def preparing(self) -> Thread:
        """The thread that prepares them, once somebody has asked for it."""
        thread = Thread(target=self.prepare, name="compile", daemon=True)
        thread.start()
        return thread

    def prepare(self) -> None:
        """Have them compiled by another process, where that is still to be done; then load them."""
        self.fill_cache()
        self.call()

    def fill_cache(self) -> None:
        """Have them compiled by another process; nothing where they are, or cannot be kept."""
        if self.is_cached() is False:
            command = [sys.executable, "-m", __name__, self.run, *self.modules]
            quiet = subprocess.DEVNULL
            subprocess.run(command, stdin=quiet, stdout=quiet, stderr=quiet, check=False)

    def is_cached(self) -> bool | None:
        """Whether they are in Numba's cache; None where there can be no cache."""
        return None if self.note is None else self.note.exists()

    @cached_property
    def note(self) -> Path | None:
        """The file that says that the functions, as they are, are in Numba's cache here."""
        import numba
        from llvmlite.binding import get_host_cpu_name  # type: ignore[import-untyped]

        modules = [import_module(name) for name in self.modules]
        functions = [each for each in vars(modules[0]).values() if hasattr(each, "stats")]
        folder = functions[0].stats.cache_path if functions else None
        if folder is None:
            return None
        files = [os.stat(str(module.__file__)) for module in modules]
        stamps = [(file.st_mtime_ns, file.st_size) for file in files]
        identity = self.run, stamps, numba.__version__, sys.version, get_host_cpu_name()
        return Path(folder) / f"headgate-{hashlib.sha256(repr(identity).encode()).hexdigest()[:16]}"

    def call(self) -> None:
        """Call them: they are compiled, or loaded from the cache."""
        module, _, name = self.run.partition(":")
        getattr(import_module(module), name)()

    def fill(self) -> None:
        """Compile them into the cache; of several processes, one does it."""
        if self.note is None:
            return
        os.nice(5)
        self.note.parent.mkdir(parents=True, exist_ok=True)
        with open(self.note.with_suffix(".lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not self.note.exists():
                self.call()
                self.note.touch()


def compile_loop() -> None:
    """Call the loop of splicing, and what learns templates of it.

    The first time on a machine, that takes up to a minute.
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


SPLICING = CompiledAhead("headgate.fastpath.compilation:compile_loop", "headgate.fastpath.kernel")
"""The loop of splicing."""


if __name__ == "__main__":
    CompiledAhead(*sys.argv[1:]).fill()
