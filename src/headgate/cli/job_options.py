"""How the commands of jobs name a job: by its file, or by --from and --to."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import click

from headgate.config.job import Job
from headgate.config.reader import job_of, load_job
from headgate.core.errors import UsageError
from headgate.spark.filesystem import is_remote, local

_JOB_OPTIONS = (
    click.argument("job", required=False, type=click.Path(dir_okay=False)),
    click.option("--from", "source", metavar="URI", help="The source, without a job file."),
    click.option("--to", "sinks", multiple=True, metavar="URI", help="A sink; again for more."),
    click.option(
        "--set", "settings", multiple=True, metavar="K=V", help="Override a value of the job file."
    ),
    click.option("--master", help="Run on this Spark master, e.g. spark://host:7077."),
)


def job_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the argument `job` and the options `source`, `sinks`, `settings`, `master`."""
    for option in reversed(_JOB_OPTIONS):
        command = option(command)
    return command


def read_job(
    path: str | None, source: str | None, sinks: tuple[str, ...], settings: tuple[str, ...]
) -> Job:
    """The job of a command line."""
    overrides = {}
    for pair in settings:
        name, equals, value = pair.partition("=")
        if not equals:
            raise UsageError(f"--set takes name=value, not {name!r}")
        overrides[name] = value
    if path is not None:
        if source or sinks:
            raise UsageError("give a job file, or --from and --to, not both")
        return load_job(path, overrides)
    if not source or not sinks:
        raise UsageError("give a job file, or --from and --to")
    return job_of(source, sinks, overrides)


def checkpoint_of(path: str) -> tuple[str, dict[str, str]]:
    """The checkpoint of a job, given as such or by the job's file, and the job's Spark settings."""
    if is_remote(path) or os.path.isdir(local(path)):
        return path, {}
    job = load_job(path, {})
    return job.checkpoint, job.settings
