"""`headgate init`."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import click

from headgate.cli.job_file import End, Looked, job_file
from headgate.codec.encoder import target as written
from headgate.config.addresses import Given, take_apart
from headgate.config.reader import job_of, load_job
from headgate.core.errors import UsageError
from headgate.core.scalars import Environment
from headgate.formats import writable
from headgate.sinks import SINKS
from headgate.sources import SOURCES

_RELATIVE = re.compile(r"(?:file:)?(?!-)(?!/)(?![A-Za-z][A-Za-z0-9+.-]*:)([^?]+)(.*)", re.DOTALL)


@click.command()
@click.option(
    "--from", "source", metavar="URI", help="The source; without a topic, they are shown."
)
@click.option("--to", "sink", metavar="URI", help="The sink.")
@click.option("--format", help="The format to write: name or name:dialect.")
@click.option("--out", metavar="FILE", help="The job file.  [default: job.yaml]")
@click.option("--no-look", is_flag=True, help="Write the file without connecting to the source.")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
def init(
    source: str | None,
    sink: str | None,
    format: str | None,
    out: str | None,
    no_look: bool,
    force: bool,
) -> None:
    """Write a commented job file: looks at the source, and asks for what no option says.

    It asks in a terminal only; elsewhere --from, --to and --format have to say everything.
    """
    source = source or asked("--from", "Read from", SOURCES.example())
    target = None
    if sink or not is_asking():
        target = with_format(sink or asked("--to", "Write to", SINKS.example()), format)
    looked = Looked(source)
    if not no_look:
        from headgate.cli.look import look

        looked = look(source, choose_topic)
    for line in looked.lines():
        click.echo(f"  {line}", err=True)
    target = target or with_format(asked("--to", "Write to", SINKS.example()), format)
    out = out or (click.prompt("Job file", "job.yaml", err=True) if is_asking() else "job.yaml")
    write(Path(out), looked, *target, force)
    click.echo(f"wrote {out}; next: headgate check {out}, then headgate run {out}")


def is_asking() -> bool:
    """Whether somebody can be asked."""
    return sys.stdin.isatty()


def asked(option: str, question: str, example: str) -> str:
    """What is typed; UsageError where nobody can be asked."""
    if not is_asking():
        raise UsageError(f"{option} is missing; give it as {option} {example}")
    return str(click.prompt(f"{question} (such as {example})", err=True)).strip()


def choose_topic(topics: list[str]) -> str:
    """One of the topics that there are."""
    if not is_asking():
        raise UsageError(f"--from names no topic; there are: {', '.join(topics) or 'none'}")
    click.echo(f"Topics: {', '.join(topics)}", err=True)
    return str(click.prompt("Topic", topics[0] if topics else None, err=True)).strip()


def with_format(sink: str, format: str | None) -> tuple[str, str | None]:
    """The URI of a sink and its format, which is asked for if none is given; tables have none."""
    address = take_apart(sink, SINKS, Given(), None, Environment(os.environ))
    if SINKS.load(address.scheme).takes == "tables":
        if format is not None:
            raise UsageError(f"{address.scheme} lands tables, which have no format; leave it out")
        return sink, None
    if "protocol" in address.params:
        if format is not None:
            raise UsageError("the format is both in --to and in --format; give it once")
        return sink, None
    if format is None:
        names = ", ".join(sorted(writable()))
        if not is_asking():
            raise UsageError(f"--format is missing; give it as one of: {names}")
        format = str(click.prompt(f"Format to write ({names})", err=True)).strip()
    written(format)
    return sink, format


def write(path: Path, looked: Looked, sink: str, format: str | None, force: bool) -> None:
    """Write the job file, if it is one that can be read again."""
    if path.exists() and not force:
        raise UsageError(f"{path} is there; choose another --out, or replace it with --force")
    source = End(moved(looked.uri, path), "SOURCE")
    target = End(moved(sink, path), "SINK", format)
    query = f"{'&' if '?' in sink else '?'}protocol={format}" if format else ""
    job = job_of(looked.uri, [f"{sink}{query}"])
    has_format = re.search(r"[?&](protocol|format)=", looked.uri) is not None
    needs_format = job.source.connector.gives == "messages" and not has_format
    text = job_file(job.name, looked, source, target, needs_format)
    path.write_text(text, encoding="utf-8")
    secrets = source.variables | target.variables
    try:
        load_job(path, {}, {**os.environ, **dict.fromkeys(secrets, "x")})
    except UsageError:
        path.unlink()
        raise
    for name, what in secrets.items():
        click.echo(f"headgate: the {what} is not in the file; set {name} to it", err=True)


def moved(uri: str, path: Path) -> str:
    """A URI whose relative path is one from the job file, not from here.

    >>> moved("in?x=1", Path("jobs/a.yaml")), moved("kafka://h/t", Path("jobs/a.yaml"))
    ('file:../in?x=1', 'kafka://h/t')
    """
    if (match := _RELATIVE.fullmatch(uri)) is None:
        return uri
    return f"file:{os.path.relpath(match[1], path.parent)}{match[2]}"
