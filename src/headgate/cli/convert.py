"""`headgate convert`."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import click

from headgate.arrow.conversion import Converter
from headgate.cli.input_files import needs_spark
from headgate.cli.options import (
    errors_flag,
    master_flag,
    option_flag,
    option_pairs,
    read_schema,
    schema_flag,
    source_options,
    timezone_flag,
)
from headgate.cli.output import (
    SOME_REJECTED,
    DeadLetterWriter,
    ErrorCounts,
    LineWriter,
    ParquetWriter,
    check_directories,
    progress,
    report_dead_letters,
    report_losses,
    summarise_losses,
)
from headgate.cli.split_work import MESSAGE_SCHEMA, converted, rejected_messages
from headgate.codec.encoder import Encoder
from headgate.codec.loss_samples import losses
from headgate.core.errors import UsageError
from headgate.fastpath.convert import converter
from headgate.sources.message_files import STDIN, Split, expand

LINES = (".jsonl", ".json", ".ndjson", ".txt")


@click.command()
@click.argument("source", metavar="IN")
@click.argument("target", metavar="OUT")
@click.option("--from", "format", default="auto", show_default=True, help="name or name:dialect.")
@click.option("--to", "to", required=True, help="name or name:dialect.")
@schema_flag
@timezone_flag
@option_flag
@click.option(
    "--from-option",
    "from_options",
    multiple=True,
    callback=option_pairs,
    metavar="K=V",
    help="An option of the format that is read.",
)
@click.option("--report", is_flag=True, help="Report what was lost in conversion, and how often.")
@click.option("--strict", is_flag=True, help="Reject a message if anything of it would be lost.")
@errors_flag
@master_flag
def convert(
    source: str,
    target: str,
    format: str,
    to: str,
    schema: str | None,
    timezone: str | None,
    options: dict[str, Any],
    from_options: dict[str, Any],
    report: bool,
    strict: bool,
    errors: str | None,
    master: str | None,
) -> None:
    """Convert messages from any format into any other.

    IN is a file, a directory or - for standard input; OUT is - for standard output, or a path:
    NAME.jsonl for lines, NAME.parquet or a directory (NAME or NAME/) for Parquet with Kafka's
    columns. Large input, directories and --master go through Spark, and OUT is then a directory of
    that name.
    """
    reading = source_options(from_options, timezone, schema)
    writing = {**options, **({"schema": read_schema(schema)} if schema else {})}
    if strict:
        writing["strict"] = True
    make_converter = partial(converter, format, reading, to, writing)
    this_converter = make_converter()
    lines = writes_lines(target, this_converter.encoder)
    possible = possible_losses(format, to, writing) if report else []
    files = expand([source])
    check_directories(None if target == STDIN else target, errors)
    if needs_spark([source], files, master):
        if target == STDIN:
            raise UsageError("input that goes through Spark is written to a directory; set OUT")
        from headgate.cli.on_spark import write_records

        lost, counts = write_records(files, master, target, lines, errors, make_converter)
    else:
        lost, counts = convert_here(files, this_converter, target, lines, errors)
    if report:
        report_losses(lost, possible, to, not counts)
    elif lost and not strict:
        summarise_losses(lost)
    if counts:
        report_dead_letters(counts, errors, "converted")
        raise click.exceptions.Exit(SOME_REJECTED)


def writes_lines(target: str, encoder: Encoder) -> bool:
    """Whether lines are to be written, and not Parquet."""
    lines = target == STDIN or target.endswith(LINES)
    if not lines and not target.endswith((".parquet", "/")) and Path(target).suffix:
        raise UsageError(
            f"unknown kind of output: {target}; OUT must end in {', '.join(LINES)} for lines, "
            ".parquet, or with a / for a directory of Parquet"
        )
    if lines and encoder.encoding.binary:
        raise UsageError(
            f"{encoder.name} is binary and has no lines; OUT must be a directory or NAME.parquet"
        )
    return lines


def convert_here(
    files: list[str], converter: Converter, target: str, lines: bool, errors: str | None
) -> tuple[Counter[str], ErrorCounts]:
    """Convert in this process; the losses and the dead letters, counted."""
    lost: Counter[str] = Counter()
    out = LineWriter(target) if lines else ParquetWriter(target, MESSAGE_SCHEMA)
    with DeadLetterWriter(errors) as dead_letters, out, progress(files) as advance:
        for file in files:
            for part in converted(Split(file), converter, lines):
                lost += part.losses
                for dead_letter in rejected_messages(part):
                    dead_letters.write(dead_letter)
                out.write(part.records)
            advance(file)
    return lost, dead_letters.counts


def possible_losses(format: str, to: str, options: dict[str, Any]) -> list[str]:
    """The codes of what may be lost between two formats; of a source of any format, none."""
    if format == "auto":
        return []
    others = {name: value for name, value in options.items() if name != "schema"}
    return [loss.code for loss in losses(format, to, schema="schema" in options, **others)]
