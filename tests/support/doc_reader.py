"""A reader who follows a page: saves its files and types its commands."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from click.testing import CliRunner
from doc_examples import Command, matches
from paths import ROOT

from headgate.cli.main import cli

REJECTED = 3
"""The exit code of decode and convert where messages of the example are bad."""


class Reader:
    """Follows a page in a directory that has the examples of the repository.

    The programs are those of an environment, or of this one.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        (folder / "examples").symlink_to(ROOT / "examples")
        self.environment = dict(environment or self.from_sources())

    def from_sources(self) -> dict[str, str]:
        """An environment in which Headgate is this tree."""
        for name, words in {"headgate": "-m headgate", "python": ""}.items():
            program = self.save(f"bin/{name}", f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n')
            program.chmod(0o755)
        path = f"{self.folder}/bin:{os.environ['PATH']}"
        return {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT / "src")}

    def save(self, name: str, text: str) -> Path:
        """Save a file that a page shows."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def run(self, command: Command) -> str:
        """Run a command in a shell, compare what it prints with the page, and return it."""
        ran = subprocess.run(
            ["bash", "-c", command.line], cwd=self.folder, env=self.environment, text=True,
            timeout=600, capture_output=True,
        )  # fmt: skip
        return checked(command, ran.returncode, ran.stdout, ran.stderr)

    def run_here(self, command: Command) -> str:
        """The same in this process, with the session that tests share."""
        result = CliRunner().invoke(cli, command.words[1:])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return checked(command, result.exit_code, result.stdout, result.stderr)


def checked(command: Command, code: int, printed: str, errors: str) -> str:
    """What a command printed, which must be what the page shows, with or without its progress."""
    assert code in (0, REJECTED), f"{command.line}: exit code {code}\n{printed}{errors}"
    if command.output:
        agrees = any(matches(command.output, text) for text in (printed, printed + errors))
        assert agrees, f"{command.line} printed\n{printed}{errors}"
    return printed
