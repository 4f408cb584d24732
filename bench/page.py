"""The page of figures: a section for each part of the benchmark, each with the facts of its run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from harness import MESSAGES

INTRODUCTION = (
    "# Benchmarks\n\n[Speed](speed.md) answers what users ask, with figures of this page. Written "
    "by `make bench` (`bench/run.py`); do not edit. **The figures of a "
    "section are of one run on one machine**, which the section names. Absolute speeds differ "
    "between machines and between runs; what the page supports is the ratios, because everything "
    "in a section was measured in the same run, taking turns.\n\n"
)
HEADING = re.compile(r"^## (.+)$", re.MULTILINE)


class AnyBar(Protocol):
    """A bar, and whether it holds."""

    @property
    def holds(self) -> bool: ...


Judged = Sequence[tuple[str, AnyBar]]
"""Bars, and what each is about."""


def summary(judged: Judged, count: int) -> str:
    """The bars that do not hold, and how a run of fewer messages is to be read."""
    short = [f"{name} {bar}" for name, bar in judged if not bar.holds]
    rest = "; the others hold." if len(short) < len(judged) else "."
    text = "Bars: " + ("; ".join(short) + rest if short else "all hold.")
    if count < MESSAGES:
        text += (
            f" This is a trial of {count:,} messages: job start-up weighs more than in a run of"
            f" {MESSAGES:,}, for which the bars are set. Do not quote it."
        )
    return text


def section(parts: Sequence[str], facts: Mapping[str, str], bars: str) -> str:
    """A section: its heading, the facts of its run and its bars, then the rest."""
    listed = "\n".join(f"- {name}: {fact}" for name, fact in facts.items())
    return "\n\n".join([parts[0], listed, bars, *parts[1:]])


def sections(text: str) -> dict[str, str]:
    """The sections of a page by their headings.

    >>> sections("# Page\\n\\n## One\\n\\na\\n\\n## Two\\n\\nb\\n")
    {'One': '## One\\n\\na', 'Two': '## Two\\n\\nb'}
    """
    starts = [*HEADING.finditer(text)]
    ends = [*(match.start() for match in starts[1:]), len(text)]
    return {m[1]: text[m.start() : end].strip() for m, end in zip(starts, ends)}


def write(path: Path, new: Iterable[str]) -> None:
    """Put sections onto a page, instead of those with the same headings or behind the others."""
    known = sections(path.read_text()) if path.exists() else {}
    for text in new:
        known |= sections(text)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(INTRODUCTION + "\n\n".join(known.values()) + "\n")
