"""`headgate connectors`."""

from __future__ import annotations

from typing import Any

import click
from msgspec.json import encode as encode_json

from headgate.cli.formats import described
from headgate.cli.options import json_flag
from headgate.core.connectors import Registry
from headgate.core.errors import UsageError, unknown_name
from headgate.formats import describe_options
from headgate.sinks import SINKS
from headgate.sources import SOURCES

REGISTRIES: tuple[Registry[Any], ...] = (SOURCES, SINKS)


@click.command()
@click.argument("name", required=False)
@json_flag
def connectors(name: str | None, as_json: bool) -> None:
    """List the sources and sinks, or one by its NAME: its URI, its promise and its options."""
    names = sorted({each for registry in REGISTRIES for each in registry.schemes()})
    if name is not None and name.lower() not in names:
        raise unknown_name("connector", name, names)
    entries = [
        as_dict(registry, scheme)
        for registry in REGISTRIES
        for scheme in (registry.names() if name is None else [name.lower()])
        if scheme in registry.schemes()
    ]
    if as_json:
        click.echo(encode_json(entries))
        return
    for each in entries:
        print_connector(each)


def as_dict(registry: Registry[Any], scheme: str) -> dict[str, Any]:
    """A connector as plain JSON values; of one that cannot be loaded, what is missing."""
    about = {"connector": scheme, "role": registry.role, "uri": registry.example(scheme)}
    try:
        cls = registry.load(scheme)
    except UsageError as error:
        return about | {"missing": str(error)}
    return about | {
        "summary": cls.summary,
        "promise": getattr(cls, "promise", None),
        "options": describe_options(cls.Options),
        "settings": cls.settings_prefix,
    }


def print_connector(about: dict[str, Any]) -> None:
    """A connector as text."""
    click.secho(f"{about['connector']} {about['role']}", bold=True, nl=False)
    if "missing" in about:
        click.echo(f"  not available: {about['missing']}")
        return
    click.echo(f"  {about['summary']}")
    click.echo(f"    {about['uri']}")
    if about["promise"] is not None:
        click.echo(f"    writes {about['promise']}")
    for option in about["options"]:
        click.echo(f"    option {described(option)}")
    if about["settings"] is not None:
        click.echo(f"    {about['settings']}…: settings of its client, passed through")
    click.echo()
