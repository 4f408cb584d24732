"""`headgate verify`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click
from msgspec.json import encode as encode_json

from headgate.cli.job_options import job_options, read_job
from headgate.cli.options import json_flag
from headgate.core.errors import UsageError
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
@click.option("--target", metavar="URI", help="Without a job: compare --source with this.")
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
    target: str | None,
    limit: int,
    wait: str,
    as_json: bool,
) -> None:
    """Compare tables with their source, down to single rows: a job's, or those of two places.

    Without a job, --source and --target name the places. Ends with 0 where they are equal, with 4
    where they differ.
    """
    places = places_of(bool(job or source or sinks), settings, against, target)
    from headgate.spark.logs import temporary_log
    from headgate.verification.api import new_session, verify_job, verify_places
    from headgate.verification.report import described
    from headgate.verification.run import Wanted

    with progress() as tell:
        wanted = Wanted(tables, limit, named("--wait", duration, wait), progress=tell)
        if places is None:
            result = verify_job(read_job(job, source, sinks, settings), wanted, master, against)
        else:
            spark = new_session(*places, master=master, log=temporary_log())
            result = verify_places(spark, *places, wanted)
    click.echo(encode_json(result) if as_json else "\n".join(described(result)))
    if not result.equal:
        raise click.exceptions.Exit(DIFFERENT)


def places_of(
    has_job: bool, settings: tuple[str, ...], source: str | None, target: str | None
) -> tuple[str, str] | None:
    """The places that are compared without a job; None where there is one."""
    if has_job and target is None:
        return None
    if has_job:
        raise UsageError("give a job, or --source and --target, not both")
    if settings:
        raise UsageError("--set changes a job file, and none is given")
    if source is None and target is None:
        raise UsageError("give a job file, or --source and --target")
    if source is None or target is None:
        missing = "--source" if source is None else "--target"
        raise UsageError(f"{missing} is missing; without a job file, give --source and --target")
    return source, target


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
