"""`headgate dead-letters`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click
from msgspec.json import encode as encode_json

from headgate.cli.job_options import checkpoint_of
from headgate.config.reader import load_job
from headgate.core.errors import UsageError

if TYPE_CHECKING:
    from headgate.pipeline.dead_letters import Store

BYTES_SHOWN = 2_000
MESSAGE = ("key", "value", "headers")
store_argument = click.argument("store", metavar="STORE|JOB", type=click.Path())


def store_of(path: str) -> Store:
    """The dead letters of a job, given by their directory or by the job's file."""
    from headgate.pipeline.dead_letters import Store

    if not os.path.isfile(path):
        return Store(path)
    job = load_job(path, {})
    return Store(job.dead_letters, job.settings)


@click.group(name="dead-letters")
def dead_letters() -> None:
    """Look at the messages that a job could not process, and replay them."""


@dead_letters.command(name="list")
@store_argument
@click.option(
    "--json", "as_json", is_flag=True, help="One JSON object per dead letter, without its message."
)
def list_dead_letters(store: str, as_json: bool) -> None:
    """List the dead letters: where each came from, and why it was rejected."""
    from headgate.pipeline.dead_letters import one_line

    count = 0
    for letter in store_of(store).dead_letters():
        count += 1
        if as_json:
            click.echo(encode_json({n: v for n, v in letter.items() if n not in MESSAGE}))
        else:
            click.echo(one_line(letter))
    if not count and not as_json:
        click.echo("no dead letters")


@dead_letters.command()
@store_argument
@click.argument("number", type=int)
@click.option("--raw", is_flag=True, help="Only the message's bytes.")
def show(store: str, number: int, raw: bool) -> None:
    """Show one dead letter with its message."""
    letter = next(
        (each for each in store_of(store).dead_letters() if each["number"] == number), None
    )
    if letter is None:
        raise UsageError(
            f"no dead letter {number} in {store}; `headgate dead-letters list` lists them"
        )
    if raw:
        click.echo(letter["value"] or b"", nl=False)
        return
    for name, value in letter.items():
        click.echo(f"{name}: {readable(value)}")


def readable(value: Any) -> str:
    """A member of a dead letter as text; of bytes, the beginning."""
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
    """Send the dead letters through their job again; a running job takes them at once."""
    opened = store_of(store)
    checkpoint, settings = (None, {}) if job is None else checkpoint_of(job)
    count = opened.replay(checkpoint, settings)
    click.echo(f"queued {count} dead letters for replay in the next batch")
