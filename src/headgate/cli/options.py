"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from headgate.core.errors import UsageError


def option_pairs(_: Any, __: Any, given: tuple[str, ...]) -> dict[str, str]:
    """`--option k=v` as a dictionary."""
    pairs = [pair.partition("=") for pair in given]
    for name, equals, _value in pairs:
        if not equals:
            raise click.UsageError(f"--option takes name=value, not {name!r}")
    return {name: value for name, _equals, value in pairs}


option_flag = click.option(
    "--option", "options", multiple=True, callback=option_pairs, metavar="K=V",
    help="An option of the format; `headgate formats` lists them.",
)  # fmt: skip
timezone_flag = click.option(
    "--timezone", metavar="TZ", help="Zone of TIMESTAMP values that a dialect sends as local text."
)
schema_flag = click.option(
    "--schema",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="CREATE TABLE statements: exact types, keys, and the labels of ENUM and SET.",
)
master_flag = click.option("--master", help="Run on this Spark master, e.g. local[2].")
errors_flag = click.option(
    "--errors", type=click.Path(), metavar="DIR", help="Write the dead letters here."
)
json_flag = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def source_options(
    options: dict[str, Any], timezone: str | None, schema: str | None
) -> dict[str, Any]:
    """The options of a decoder, including those that have a flag of their own."""
    named = {"timezone": timezone or None, "schema": schema and read_schema(schema)}
    return {**options, **{name: value for name, value in named.items() if value is not None}}


def read_schema(path: str) -> str:
    """The text of a schema file."""
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not UTF-8 text; --schema takes a file of SQL") from None
