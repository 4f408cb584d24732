"""`headgate lint`."""

from __future__ import annotations

import click

from headgate.cli.job_options import read_job
from headgate.core.errors import UsageError


@click.command()
@click.argument("jobs", nargs=-1, required=True, metavar="JOB...", type=click.Path(dir_okay=False))
@click.option(
    "--set", "settings", multiple=True, metavar="K=V", help="Override a value of the job file."
)
def lint(jobs: tuple[str, ...], settings: tuple[str, ...]) -> None:
    """Check job files without connecting to anything; ends with 2 where one is wrong.

    `headgate check` also connects, and says what the job would do.
    """
    from headgate.spark.settings import check_settings

    wrong = 0
    for path in jobs:
        try:
            job = read_job(path, None, (), settings)
            check_settings(job.settings)
        except UsageError as error:
            text = str(error)
            click.echo(f"headgate: {text if path in text else f'{path}: {text}'}", err=True)
            wrong += 1
            continue
        sinks = ", ".join(sink.name for sink in job.all_sinks)
        click.echo(f"{path}: no errors; job {job.name} reads {job.source.name}, writes {sinks}")
    if wrong:
        raise click.exceptions.Exit(2)
