"""Which files a command reads, and whether Spark is to read them."""

from __future__ import annotations

from collections.abc import Iterable

from headgate.core.limits import IN_PROCESS_BYTES
from headgate.sources.message_files import STDIN
from headgate.spark.filesystem import NO_SETTINGS, size_of


def needs_spark(paths: Iterable[str], files: list[str], master: str | None) -> bool:
    """Whether Spark reads the files: with a master, of directories, and where they are large.

    `files` are what `paths` expand to.
    """
    if master or any(path not in files for path in paths):
        return True
    return sum(sizes_of(files).values()) > IN_PROCESS_BYTES


def sizes_of(files: list[str]) -> dict[str, int]:
    """The bytes of each file; the size of standard input is unknown."""
    return {file: size_of(file, NO_SETTINGS) for file in files if file != STDIN}
