"""`headgate check`."""

from __future__ import annotations

import click
from msgspec.json import encode as encode_json

from headgate.cli.job_options import job_options, read_job
from headgate.cli.options import json_flag


@click.command()
@job_options
@json_flag
@click.option("--sample", default=1_000, show_default=True, help="Messages to look at.")
def check(
    job: str | None,
    source: str | None,
    sinks: tuple[str, ...],
    settings: tuple[str, ...],
    master: str | None,
    as_json: bool,
    sample: int,
) -> None:
    """Validate a job, connect, and say what it would read, detect, route and write."""
    read = read_job(job, source, sinks, settings)
    from headgate.pipeline.check import checked, described

    report = checked(
        read, master, sample, lambda text: click.echo(f"{read.name}: {text}", err=True)
    )
    click.echo(encode_json(report) if as_json else "\n".join(described(report)))
