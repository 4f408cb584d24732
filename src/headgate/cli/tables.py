"""`headgate tables`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import click
from msgspec.json import encode as encode_json

from headgate.cli.options import json_flag
from headgate.config.job import Job
from headgate.config.reader import load_job
from headgate.core.errors import UsageError, shown
from headgate.landing.table_state import TableState


class _ListByDefault(click.Group):
    """`headgate tables JOB` is `headgate tables list JOB`."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self.commands:
            args = ["list", *args]
        return super().resolve_command(ctx, args)


@click.group(cls=_ListByDefault)
def tables() -> None:
    """List the tables that a job lands (tables JOB), and let parked tables go on."""


@tables.command("list")
@click.argument("job", type=click.Path(dir_okay=False))
@json_flag
def list_tables(job: str, as_json: bool) -> None:
    """List the tables that a job has landed, and why some of them wait."""
    states = [state for _, state in landed(load_job(job, {}))]
    if as_json:
        click.echo(encode_json(states))
    elif not states:
        click.echo("no table has been landed yet")
    else:
        click.echo("\n".join(line for state in states for line in described(state)))


@tables.command()
@click.argument("job", type=click.Path(dir_okay=False))
@click.argument("table", nargs=-1, required=True)
def resume(job: str, table: tuple[str, ...]) -> None:
    """Let parked tables go on: the running job, or its next start, merges what was kept of them."""
    read = load_job(job, {})
    parked = [(sink, state) for sink, state in landed(read) if state.state == "parked"]
    unknown = [name for name in table if name not in {state.name for _, state in parked}]
    if unknown:
        there = ", ".join(state.name for _, state in parked) or "none"
        raise UsageError(f"{shown(unknown[0])} is no parked table of the job; parked: {there}")
    for sink, state in parked:
        if state.name in table:
            read.table_sinks[sink].connector.resume(read.settings, state.table)
            click.echo(f"{state.name}: goes on with the job's next batch")


def landed(job: Job) -> Iterator[tuple[int, TableState]]:
    """The tables of a job's sinks, with the number of the sink."""
    if not job.table_sinks:
        raise UsageError("the job lands no tables; its sinks are of messages")
    for number, sink in enumerate(job.table_sinks):
        for state in sink.connector.tables(job.settings):
            yield number, state


def described(state: TableState) -> list[str]:
    """The lines about a table.

    >>> from headgate.schema.changes import TableId
    >>> described(TableState(TableId("shop", "orders")))
    ['shop.orders: landed']
    """
    if state.state == "landed":
        return [f"{state.name}: landed"]
    since = datetime.fromtimestamp(state.since or 0, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return [
        f"{state.name}: parked since {since}: {state.reason}; {state.remedy}",
        *(f"  {statement}" for statement in state.statements),
    ]
