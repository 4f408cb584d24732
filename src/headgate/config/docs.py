"""The tables of docs/jobs.md, made from the declared keys: `python -m headgate.config.docs`."""

from __future__ import annotations

import re
from pathlib import Path

from headgate.config.job import sections
from headgate.core.keys import keys

PAGE = Path("docs/jobs.md")
_TABLE = re.compile(r"(<!-- keys of ([a-z.]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def key_table(path: str) -> str:
    """The keys of a section as a Markdown table.

    `job` is the whole file, and a section within another has a dotted path.

    >>> print(key_table("filter.columns"), end="")
    | key | default | meaning |
    |---|---|---|
    | `include` | all | columns that are kept |
    | `exclude` | none | columns that are removed |
    """
    declared = sections()
    for name in [] if path == "job" else path.split("."):
        declared = keys(next(key.names[name] for key in declared.values() if name in key.names))
    lines = ["| key | default | meaning |", "|---|---|---|"]
    for key in declared.values():
        names = ", ".join(f"`{name}`" for name in key.names)
        lines.append(f"| {names} | {key.default} | {key.help} |")
    return "".join(f"{line}\n" for line in lines)


def with_tables(text: str) -> str:
    """A page with its tables of keys made anew."""
    return _TABLE.sub(lambda match: f"{match[1]}\n{key_table(match[2])}\n{match[3]}", text)


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text()))
