"""The tables of docs/jobs.md, made from what is declared: `python -m headgate.config.docs`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from headgate.config.job import sections
from headgate.core.connectors import Registry
from headgate.core.keys import keys
from headgate.formats import describe_options
from headgate.sinks import SINKS
from headgate.sources import SOURCES

PAGE = Path("docs/jobs.md")
_OPTIONS = re.compile(r"(<!-- options of ([a-z0-9+.-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
_NO_DEFAULT = "none"
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


def option_table(connector: str) -> str:
    """The options of a source and sink of one name as a Markdown table.

    >>> print(option_table("stdin"), end="")
    | parameter | of | default | meaning |
    |---|---|---|---|
    | `starting` | source | `earliest` | where the first start begins: at the beginning |
    """
    roles: dict[str, list[str]] = {}
    options: dict[str, dict[str, Any]] = {}
    registries: tuple[Registry[Any], ...] = (SOURCES, SINKS)
    for registry in registries:
        if connector in registry.schemes():
            for option in describe_options(registry.load(connector).Options):
                roles.setdefault(option["name"], []).append(registry.role)
                options[option["name"]] = option
    lines = ["| parameter | of | default | meaning |", "|---|---|---|---|"]
    for name, option in options.items():
        default = _NO_DEFAULT if option["default"] is None else f"`{option['default']}`".lower()
        choices = "".join(f" `{each}`" for each in option["choices"] if each != option["default"])
        meaning = f"{option['help']} ({choices.strip()})" if choices else option["help"]
        lines.append(f"| `{name}` | {', '.join(roles[name])} | {default} | {meaning} |")
    return "".join(f"{line}\n" for line in lines)


def with_tables(text: str) -> str:
    """A page with its tables made anew."""
    text = _OPTIONS.sub(lambda match: f"{match[1]}\n{option_table(match[2])}\n{match[3]}", text)
    return _TABLE.sub(lambda match: f"{match[1]}\n{key_table(match[2])}\n{match[3]}", text)


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text()))
