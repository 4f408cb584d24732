"""`headgate formats`."""

from __future__ import annotations

from typing import Any

import click
from msgspec.json import encode as encode_json

from headgate.cli.options import json_flag
from headgate.core.options import CommonOptions, EncodeOptions, names
from headgate.formats import describe_options, load, registered
from headgate.formats.base import Format


@click.command()
@json_flag
def formats(as_json: bool) -> None:
    """List every format and dialect, what its messages are, and its options."""
    known = [load(name) for name in registered()]
    if as_json:
        click.echo(encode_json([as_dict(format) for format in known]))
        return
    for format in known:
        print_format(format)
    for title, cls in (("reading", CommonOptions), ("writing", EncodeOptions)):
        click.secho(f"options of every format, {title}", bold=True)
        for option in describe_options(cls):
            click.echo(f"    {described(option)}")


def as_dict(format: Format) -> dict[str, Any]:
    """A format as plain JSON values."""
    return {
        "format": format.name,
        "summary": format.summary,
        "dialects": dict(format.dialects),
        "read_only_dialects": dict(format.read_only),
        "decodes": format.kinds,
        "options": describe_options(format.options),
        "writable": format.encoding is not None,
        "writing_options": describe_options(format.encoding.options) if format.encoding else [],
    }


def print_format(format: Format) -> None:
    """A format as text."""
    click.secho(format.name, bold=True, nl=False)
    click.echo(f"  {format.summary}" + ("" if format.encoding else " (read only)"))
    for dialect, meaning in format.dialects.items():
        click.echo(f"    {format.name}:{dialect:<20} {meaning}")
    for dialect, meaning in format.read_only.items():
        click.echo(f"    {format.name}:{dialect:<20} {meaning} (read only)")
    click.echo(f"    messages: {format.kinds}")
    print_options("option", format.options, CommonOptions)
    if format.encoding is not None:
        print_options("writing", format.encoding.options, EncodeOptions)
    click.echo()


def print_options(label: str, cls: type, common: type) -> None:
    """The options that a format has beside the common ones."""
    for option in describe_options(cls):
        if option["name"].replace("-", "_") not in names(common):
            click.echo(f"    {label} {described(option)}")


def described(option: dict[str, Any]) -> str:
    """An option in one line."""
    choices = f" ({', '.join(option['choices'])})" if option["choices"] else ""
    default = "" if option["default"] is None else f" [{option['default']}]"
    return f"{option['name']}{default}: {option['help']}{choices}"
