"""The examples of README and docs: fenced blocks, and what is to be done with each.

A block with `title="NAME"` is a file that the reader saves. A comment above a block that cannot run
says why: `<!-- not run: needs Kafka -->`. Such a block is checked as far as that goes: commands are
parsed and their jobs read, Python is type-checked.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from click import Context, Group
from paths import DOCS, ROOT

from headgate.cli.job_options import read_job
from headgate.cli.main import cli

PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
REASONS = {"needs Kafka", "needs a cluster", "shows the form"}
SERVER = re.compile(r"\b(kafka|rocketmq|datahub|mysql|mariadb|spark|delta\+s3a|s3a)://")
"""A command or a program that names a server needs one."""
_BLOCK = re.compile(
    r"(?:^<!-- not run: (?P<reason>[^\n]+) -->\n)?"
    r'^```(?P<language>[a-z]*)(?: title="(?P<title>[^"]+)")?\n(?P<text>.*?)^```$',
    re.MULTILINE | re.DOTALL,
)
SPARK = {"run", "check", "verify"}
"""Commands that start Spark; tests run them in the session that they share."""
_ANY, _ANY_LINES = "…", "(?:.*\n)*?"


class Block(NamedTuple):
    """A fenced block of a page."""

    page: Path
    line: int
    language: str
    title: str | None
    text: str
    reason: str | None

    @property
    def runs(self) -> bool:
        """Whether it runs on this machine, without a server."""
        return self.reason is None and not SERVER.search(self.text)


class Command(NamedTuple):
    """A command of a console block, and what the page says that it prints."""

    line: str
    output: str

    @property
    def words(self) -> list[str]:
        """The command as a shell would split it."""
        return shlex.split(self.line, comments=True)

    @property
    def starts_spark(self) -> bool:
        """Whether it is one call of Headgate that needs a Spark session."""
        return self.words[0] == "headgate" and self.words[1] in SPARK and "<" not in self.words


def blocks(page: Path) -> list[Block]:
    """The blocks of a page, in their order."""
    text = page.read_text()
    return [
        Block(page, text[: m.start("text")].count("\n"), m["language"], m["title"], m["text"],
              m["reason"])
        for m in _BLOCK.finditer(text)
    ]  # fmt: skip


def commands(text: str) -> Iterator[Command]:
    r"""The commands of a console block.

    >>> list(commands("$ ls \\\n    -a\n.\n..\n$ pwd\n"))
    [Command(line='ls      -a', output='.\n..\n'), Command(line='pwd', output='')]
    """
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        line, _, output = part.replace("\\\n", " ").partition("\n")
        yield Command(line, output)


def matches(expected: str, printed: str) -> bool:
    r"""Whether a command printed what a page says; `…` stands for anything in a line, or for lines.

    >>> matches("a … c\n…\nz\n", "a b c\n1\n2\nz\n"), matches("a\n", "a\nb\n")
    (True, False)
    """
    lines = (
        _ANY_LINES
        if line.strip() == _ANY
        else ".*?".join(map(re.escape, line.rstrip().split(_ANY))) + " *\n"
        for line in expected.splitlines()
    )
    return re.fullmatch("".join(lines), printed.rstrip() + "\n") is not None


def check_command(words: list[str]) -> None:
    """Parse a command line of Headgate as the program does, and read the job that it describes."""
    context = Context(cli, info_name="headgate")
    end = next((at for at, word in enumerate(words) if word in ("<", "|")), len(words))
    command, rest = cli, words[1:end]
    while isinstance(command, Group):
        name, command, rest = command.resolve_command(context, rest)
        assert command is not None, words
        context = command.make_context(name, list(rest), parent=context)
        rest = [*context._protected_args, *context.args]
    given = context.params
    if given.get("source") and given.get("sinks"):
        read_job(None, given["source"], given["sinks"], given["settings"])
