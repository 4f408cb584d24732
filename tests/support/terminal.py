"""A command in a real pseudo-terminal, as somebody sees it."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from fcntl import ioctl
from pathlib import Path


class Terminal:
    """A process whose standard streams are a terminal of 120 columns."""

    def __init__(self, *args: str, cwd: Path | None = None, columns: int = 120) -> None:
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            if cwd is not None:
                os.chdir(cwd)
            os.execv(sys.executable, [sys.executable, "-m", "headgate", *args])
        ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        self.raw = ""
        self.code: int | None = None

    def until(self, pattern: str, seconds: float = 120.0) -> re.Match[str]:
        """Read until something is seen."""
        until = time.monotonic() + seconds
        while (match := re.search(pattern, self.raw)) is None:
            assert time.monotonic() < until, f"not seen: {pattern}\n{self.raw}"
            assert self.read(), f"ended before {pattern}\n{self.raw}"
        return match

    def read(self) -> bool:
        """Read what there is; False where the process has ended."""
        if not select.select([self.fd], [], [], 0.2)[0]:
            return True
        try:
            got = os.read(self.fd, 65536)
        except OSError:  # Linux says so when the other end is closed
            return False
        self.raw += got.decode()
        return bool(got)

    def type(self, text: str) -> None:
        """What somebody types, with the key Enter."""
        os.write(self.fd, f"{text}\n".encode())

    def end(self, signal_: signal.Signals | None = None) -> int:
        """Wait for the end, and return the exit code."""
        if signal_ is not None:
            os.kill(self.pid, signal_)
        until = time.monotonic() + 120
        while self.read():
            assert time.monotonic() < until, self.raw
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def lines(self) -> list[str]:
        """What stays on the screen: a line that was rewritten is there once."""
        written = self.raw.replace("\r\n", "\n").split("\n")
        return [line.rpartition("\r\x1b[K")[2] for line in written]
