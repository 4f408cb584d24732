"""Standard error as a job writes to it: lines that stay, and in a terminal one rewritten."""

from __future__ import annotations

import os
import sys
from typing import TextIO

ERASE = "\r\x1b[K"


class Console:
    """Writes lines; the last may be rewritten, where `out` is a terminal."""

    def __init__(self, out: TextIO | None = None) -> None:
        self.out = out or sys.stderr
        self.is_terminal = self.out.isatty()
        self.unfinished = False
        """Whether the last line is one that is rewritten."""

    def line(self, text: str) -> None:
        """Write a line that stays."""
        self.out.write(f"{ERASE if self.unfinished else ''}{text}\n")
        self.unfinished = False
        self.out.flush()

    def rewrite(self, text: str) -> None:
        """Write a line over the last one, if that was written so; where no terminal is, a line."""
        if not self.is_terminal:
            self.line(text)
            return
        self.out.write(f"{ERASE}{self.cut(text)}")
        self.unfinished = True
        self.out.flush()

    def cut(self, text: str) -> str:
        """As much as one row of the terminal takes: more could not be rewritten."""
        try:
            width = os.get_terminal_size(self.out.fileno()).columns
        except OSError:
            width = 0
        return text if len(text) < (width or 1_000) else f"{text[: width - 2]}…"

    def close(self) -> None:
        """End the line that is rewritten: what others write begins on a line of its own."""
        if self.unfinished:
            self.out.write("\n")
            self.out.flush()
            self.unfinished = False
