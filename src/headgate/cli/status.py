"""`headgate status`."""

from __future__ import annotations

import click

from headgate.cli.job_options import checkpoint_of
from headgate.cli.options import json_flag


@click.command()
@click.argument("job", metavar="JOB|CHECKPOINT")
@json_flag
def status(job: str, as_json: bool) -> None:
    """Show the state of a job: rate, lag, counts per table, dead letters."""
    from headgate.pipeline.status import echo, read

    echo(read(*checkpoint_of(job)), as_json)
