"""The command line of jobs: `headgate run`, `check`, `status`, `dead-letters`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click
from msgspec.json import encode as encode_json

from headgate.config.job import Job
from headgate.config.reader import job_of, load_job
from headgate.core.errors import HeadgateError, UsageError
from headgate.spark.filesystem import is_remote, local

if TYPE_CHECKING:
    from headgate.pipeline.dead_letters import Store

FAILED = 1
BYTES_SHOWN = 2_000

job_argument = click.argument("job", required=False, type=click.Path(dir_okay=False))
from_flag = click.option("--from", "source", metavar="URI", help="The source, without a job file.")
to_flag = click.option(
    "--to", "sinks", multiple=True, metavar="URI", help="A sink; again for more."
)
set_flag = click.option(
    "--set", "settings", multiple=True, metavar="K=V", help="Override a value of the job file."
)
master_flag = click.option("--master", help="Run on this Spark master, e.g. spark://host:7077.")


def the_job(
    path: str | None, source: str | None, sinks: tuple[str, ...], settings: tuple[str, ...]
) -> Job:
    """The job that a command line names."""
    overrides = {}
    for pair in settings:
        name, equals, value = pair.partition("=")
        if not equals:
            raise UsageError(f"--set takes name=value, not {name!r}")
        overrides[name] = value
    if path is not None:
        if source or sinks:
            raise UsageError("name a job file, or --from and --to, not both")
        return load_job(path, overrides)
    if not source or not sinks:
        raise UsageError("name a job file, or --from and --to")
    return job_of(source, sinks, overrides)


@click.command()
@job_argument
@from_flag
@to_flag
@set_flag
@click.option("--once", is_flag=True, help="Process everything available now, then stop.")
@click.option("--json-logs", is_flag=True, help="One JSON object per batch on standard error.")
@master_flag
def run(
    job: str | None,
    source: str | None,
    sinks: tuple[str, ...],
    settings: tuple[str, ...],
    once: bool,
    json_logs: bool,
    master: str | None,
) -> None:
    """Run a job: from Kafka or files, in any dialect, to Kafka or files in any other."""
    told = the_job(job, source, sinks, settings)
    from headgate.pipeline.run import run as run_job

    try:
        run_job(told, once, master, json_logs)
    except UsageError:
        raise
    except HeadgateError as error:
        click.echo(f"headgate: {error}", err=True)
        raise click.exceptions.Exit(FAILED) from None


@click.command()
@job_argument
@from_flag
@to_flag
@set_flag
@master_flag
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
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
    told = the_job(job, source, sinks, settings)
    from headgate.pipeline.check import checked, described

    found = checked(told, master, sample)
    click.echo(encode_json(found) if as_json else "\n".join(described(found)))


@click.command()
@click.argument("job", metavar="JOB|CHECKPOINT")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def status(job: str, as_json: bool) -> None:
    """Say how a job is doing: rate, lag, counts per table, dead letters."""
    from headgate.pipeline.status import echo, read

    echo(read(*checkpoint_of(job)), as_json)


def is_folder(path: str) -> bool:
    """Whether a path is a folder, and not a job file."""
    return is_remote(path) or os.path.isdir(local(path))


def checkpoint_of(job: str) -> tuple[str, dict[str, str]]:
    """The checkpoint that is named itself or by its job's file, and the job's Spark settings."""
    if is_folder(job):
        return job, {}
    found = load_job(job, {})
    return found.checkpoint, found.settings


def store_of(path: str) -> Store:
    """The dead letters that are named themselves or by their job's file."""
    from headgate.pipeline.dead_letters import Store

    if not os.path.isfile(path):
        return Store(path)
    job = load_job(path, {})
    return Store(job.dead_letters, job.settings)


@click.group(name="dead-letters")
def dead_letters() -> None:
    """Look at the messages that a job could not process, and replay them."""


store_argument = click.argument("store", metavar="STORE|JOB", type=click.Path())


@dead_letters.command(name="list")
@store_argument
@click.option("--json", "as_json", is_flag=True, help="One JSON object per letter, no messages.")
def list_letters(store: str, as_json: bool) -> None:
    """List the letters: where each came from, and why it is here."""
    from headgate.pipeline.dead_letters import one_line

    count = 0
    for letter in store_of(store).letters():
        count += 1
        if as_json:
            told = {n: v for n, v in letter.items() if n not in ("key", "value", "headers")}
            click.echo(encode_json(told))
        else:
            click.echo(one_line(letter))
    if not count and not as_json:
        click.echo("no dead letters")


@dead_letters.command()
@store_argument
@click.argument("number", type=int)
@click.option("--raw", is_flag=True, help="Only the message's bytes.")
def show(store: str, number: int, raw: bool) -> None:
    """Show one letter with its message."""
    letter = next((each for each in store_of(store).letters() if each["number"] == number), None)
    if letter is None:
        raise UsageError(f"no letter {number} in {store}; `headgate dead-letters list` lists them")
    if raw:
        click.echo(letter["value"] or b"", nl=False)
        return
    for name, value in letter.items():
        click.echo(f"{name}: {_readable(value)}")


def _readable(value: Any) -> str:
    if isinstance(value, bytes):
        text = value[:BYTES_SHOWN].decode("utf-8", "backslashreplace")
        return ascii(text)[1:-1] + (" …" if len(value) > BYTES_SHOWN else "")
    return ascii(value) if isinstance(value, list) else str(value)


@dead_letters.command()
@store_argument
@click.option(
    "--job", "job", type=click.Path(), help="The job's file or checkpoint, where it was moved."
)
def replay(store: str, job: str | None) -> None:
    """Send the letters through their job again: a running one takes them at once."""
    found = store_of(store)
    checkpoint, settings = (None, {}) if job is None else checkpoint_of(job)
    count = found.replay(checkpoint, settings)
    click.echo(f"{count} dead letters go through the job again with its next batch")
