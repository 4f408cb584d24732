"""The command as a user calls it, in this process or in one of its own."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from tempfile import TemporaryFile
from typing import Any

import pytest

from headgate.cli.main import main


def run(*args: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """The command, in this process: to start another takes longer than most commands do.

    It reads and writes real files, as from and to a shell. They are duplicates, because after a
    failure the command closes its standard output.
    """
    with (
        TemporaryFile() as given,
        TemporaryFile() as out,
        TemporaryFile() as err,
        pytest.MonkeyPatch.context() as patch,
    ):
        given.write(stdin)
        given.seek(0)
        patch.setattr(sys, "stdin", io.TextIOWrapper(given))
        texts = [os.fdopen(os.dup(file.fileno()), "w", encoding="utf-8") for file in (out, err)]
        for name, text in zip(("stdout", "stderr"), texts):
            patch.setattr(sys, name, text)
        patch.setattr(sys, "argv", ["headgate", *args])
        with pytest.raises(SystemExit) as ended:
            main()
        for text in texts:
            text.close()
        out.seek(0)
        err.seek(0)
        code = int(ended.value.code or 0)
        return subprocess.CompletedProcess(args, code, out.read(), err.read())


def run_process(*args: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """The command, in a process of its own."""
    command = [sys.executable, "-m", "headgate", *args]
    return subprocess.run(command, input=stdin, capture_output=True, timeout=180)


def events_of(done: subprocess.CompletedProcess[bytes]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in done.stdout.splitlines()]
