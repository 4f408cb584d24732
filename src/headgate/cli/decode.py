"""`headgate decode`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from headgate.arrow.events import EVENT_SCHEMA
from headgate.cli.input_files import needs_spark
from headgate.cli.options import (
    errors_flag,
    master_flag,
    option_flag,
    schema_flag,
    source_options,
    timezone_flag,
)
from headgate.cli.output import (
    SOME_REJECTED,
    DeadLetterWriter,
    ErrorCounts,
    ParquetWriter,
    check_directories,
    print_lines,
    progress,
    report_dead_letters,
)
from headgate.cli.split_work import DeadLetter, Decoding, dead_letters_of, decoded, printed
from headgate.sources.message_files import Split, expand


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--format", "format", default="auto", show_default=True, help="name or name:dialect.")
@timezone_flag
@option_flag
@schema_flag
@click.option("--strict", is_flag=True, help="Refuse what would have to be guessed.")
@click.option("--out", type=click.Path(), metavar="DIR", help="Write Parquet here, not to stdout.")
@errors_flag
@master_flag
def decode(
    paths: tuple[str, ...],
    format: str,
    timezone: str | None,
    options: dict[str, Any],
    schema: str | None,
    strict: bool,
    out: str | None,
    errors: str | None,
    master: str | None,
) -> None:
    """Decode messages to change events: JSON lines on stdout, or Parquet in a directory."""
    options = source_options(options, timezone, schema)
    if strict:
        options["strict"] = True
    source = Decoding(format, options)
    files = expand(paths)
    check_directories(out, errors)
    spark = needs_spark(paths, files, master)
    if out is None:
        counts = print_events(files, source, errors, spark, master)
    elif spark:
        from headgate.cli.on_spark import write_events

        counts = write_events(files, source, out, errors, master)
    else:
        counts = write_here(files, source, out, errors)
    if counts:
        report_dead_letters(counts, errors, "decoded")
        raise click.exceptions.Exit(SOME_REJECTED)


def print_events(
    files: list[str], source: Decoding, errors: str | None, spark: bool, master: str | None
) -> ErrorCounts:
    """Print the events as JSON lines; the dead letters, counted."""
    if spark:
        from headgate.cli.on_spark import print_on_workers

        lines = print_on_workers(files, master, source)
    else:
        lines = print_here(files, source)
    with DeadLetterWriter(errors) as dead_letters:
        print_lines(lines, dead_letters)
    return dead_letters.counts


def print_here(files: list[str], source: Decoding) -> Iterator[tuple[bytes, DeadLetter | None]]:
    """The events as JSON lines, made in this process."""
    with progress(files) as advance:
        for file in files:
            yield from printed(Split(file), source)
            advance(file)


def write_here(files: list[str], source: Decoding, out: str, errors: str | None) -> ErrorCounts:
    """Decode in this process into Parquet; the dead letters, counted."""
    with (
        DeadLetterWriter(errors) as dead_letters,
        ParquetWriter(out, EVENT_SCHEMA) as events,
        progress(files) as advance,
    ):
        for file in files:
            for batch in decoded(Split(file), source):
                events.write(batch)
                for letter in dead_letters_of(batch):
                    dead_letters.write(letter)
            advance(file)
    return dead_letters.counts
