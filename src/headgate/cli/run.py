"""`headgate run`."""

from __future__ import annotations

import click

from headgate.cli.job_options import job_options, read_job
from headgate.core.errors import HeadgateError, UsageError

FAILED = 1
"""The exit code of work that failed."""


@click.command()
@job_options
@click.option("--once", is_flag=True, help="Process everything available now, then stop.")
@click.option("--json-logs", is_flag=True, help="One JSON object per batch on standard error.")
def run(
    job: str | None,
    source: str | None,
    sinks: tuple[str, ...],
    settings: tuple[str, ...],
    once: bool,
    json_logs: bool,
    master: str | None,
) -> None:
    """Run a job: from a queue or files, in any dialect, to others in any other, or into tables."""
    if not json_logs:
        click.echo(f"headgate: reading {job}" if job else "headgate: starting", err=True)
    read = read_job(job, source, sinks, settings)
    from headgate.pipeline.run import run as run_job

    try:
        run_job(read, once, master, json_logs)
    except UsageError:
        raise
    except HeadgateError as error:
        click.echo(f"headgate: {error}", err=True)
        raise click.exceptions.Exit(FAILED) from None
