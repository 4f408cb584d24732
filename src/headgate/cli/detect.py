"""`headgate detect`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import click
from msgspec.json import encode as encode_json

from headgate.cli.input_files import needs_spark
from headgate.cli.options import json_flag, master_flag, option_flag
from headgate.cli.output import progress
from headgate.cli.split_work import Decoding, FormatCounts, counted
from headgate.sources.message_files import Split, expand


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@option_flag
@master_flag
@json_flag
def detect(
    paths: tuple[str, ...], options: dict[str, str], master: str | None, as_json: bool
) -> None:
    """Say for each file which format and dialect it holds, and what is mixed in."""
    source = Decoding("auto", options)
    files = expand(paths)
    if needs_spark((), files, master):
        from headgate.cli.on_spark import count_on_workers

        counts_by_file = count_on_workers(files, master, source)
    else:
        counts_by_file = count_here(files, source)
    for file, counts in counts_by_file:
        verdict = verdict_of(file, counts)
        click.echo(encode_json(verdict) if as_json else describe_verdict(verdict))


def count_here(files: list[str], source: Decoding) -> Iterator[tuple[str, FormatCounts]]:
    """The counts of each file, made in this process."""
    with progress(files) as advance:
        for file in files:
            yield file, counted(Split(file), source)
            advance(file)


def verdict_of(file: str, counts: FormatCounts) -> dict[str, Any]:
    """What a file holds, from its counts per format, dialect, kind and error code."""
    formats: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    errors: Counter[str] = Counter()
    tombstones: Counter[str] = Counter()
    for (format, dialect, kind, code), n in counts.items():
        if code:
            errors[code] += n
            continue
        name = format or "none"
        counter = tombstones if kind == "tombstone" else formats
        counter[f"{name}:{dialect}" if dialect else name] += n
        kinds[kind or ""] += n
    if formats:  # a tombstone has no sign of its format: it is counted with the most frequent one
        formats[formats.most_common(1)[0][0]] += tombstones.total()
    else:
        formats = tombstones
    return {
        "file": file,
        "messages": sum(counts.values()),
        "format": formats.most_common(1)[0][0] if formats else None,
        "formats": dict(formats.most_common()),
        "kinds": dict(kinds.most_common()),
        "invalid": dict(errors.most_common()),
    }


def describe_verdict(verdict: dict[str, Any]) -> str:
    """A verdict as one line."""
    total = verdict["messages"]
    if not total:
        return f"{verdict['file']}: no messages"
    parts = [verdict["format"] or "no CDC format", f"{total} messages"]
    kinds = [f"{n} {kind}" for kind, n in verdict["kinds"].items()]
    parts += [f"({', '.join(kinds)})"] if kinds else []
    mixed = [f"{n} {name}" for name, n in list(verdict["formats"].items())[1:]]
    mixed += [f"{n} invalid ({code})" for code, n in verdict["invalid"].items()]
    line = f"{verdict['file']}: {parts[0]}, {' '.join(parts[1:])}"
    return f"{line}; mixed in: {', '.join(mixed)}" if mixed else line
