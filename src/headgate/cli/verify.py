"""`headgate verify`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click
from msgspec.json import encode as encode_json

from headgate.cli.job_options import job_options, read_job
from headgate.cli.options import json_flag
from headgate.core.scalars import duration, named

DIFFERENT = 4
"""The exit code where tables differ."""


@click.command()
@job_options
@click.option("--table", "tables", multiple=True, metavar="PATTERN", help="Only these; e.g. shop.*")
@click.option(
    "--source", "against", metavar="URI",
    help="Compare with this instead of the job's messages: mysql://USER:PASSWORD@HOST/DATABASE, "
    "delta:///DIR; ${NAME} is taken from the environment.",
)  # fmt: skip
@click.option("--limit", default=20, show_default=True, help="Most rows shown of a table.")
@click.option(
    "--wait", default="60s", show_default=True,
    help="How long rows that differ are looked at again, where the source is a database in use.",
)  # fmt: skip
@json_flag
def verify(
    job: str | None,
    source: str | None,
    sinks: tuple[str, ...],
    settings: tuple[str, ...],
    master: str | None,
    tables: tuple[str, ...],
    against: str | None,
    limit: int,
    wait: str,
    as_json: bool,
) -> None:
    """Compare the tables that a job has landed with their source, down to single rows.

    Ends with 0 where they are equal, with 4 where they differ.
    """
    read = read_job(job, source, sinks, settings)
    from headgate.verification.api import verify_job
    from headgate.verification.report import described
    from headgate.verification.run import Wanted

    with progress() as tell:
        wanted = Wanted(tables, limit, named("--wait", duration, wait), tell)
        result = verify_job(read, wanted, master, against)
    click.echo(encode_json(result) if as_json else "\n".join(described(result)))
    if not result.equal:
        raise click.exceptions.Exit(DIFFERENT)


@contextmanager
def progress() -> Iterator[Callable[[str, int, int], None]]:
    """A progress bar on a terminal; else nothing."""
    if not sys.stderr.isatty():
        yield lambda _what, _done, _all: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=None)
        yield lambda what, done, all_: bar.update(
            task, description=what, completed=done, total=all_
        )
