"""The command as a user calls it: in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any


def run(*args: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """The command as a user calls it."""
    command = [sys.executable, "-m", "headgate", *args]
    return subprocess.run(command, input=stdin, capture_output=True, timeout=180)


def events_of(done: subprocess.CompletedProcess[bytes]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in done.stdout.splitlines()]
