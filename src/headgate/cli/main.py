"""The command line: one module per command, put together here."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

import click

from headgate import __version__
from headgate.cli.check import check
from headgate.cli.connectors import connectors
from headgate.cli.convert import convert
from headgate.cli.dead_letters import dead_letters
from headgate.cli.decode import decode
from headgate.cli.detect import detect
from headgate.cli.formats import formats
from headgate.cli.init import init
from headgate.cli.lint import lint
from headgate.cli.run import FAILED, run
from headgate.cli.status import status
from headgate.cli.tables import tables
from headgate.cli.verify import verify
from headgate.core.errors import HeadgateError, MissingPackage, Unreachable, UsageError, reason_of

WRONG_USAGE = 2
CLOSED_PIPE = 141
WRONG_PATH = (
    FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError
)  # fmt: skip
"""Errors of the system that are usage errors; others, as a full disk, are failures."""


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def cli() -> None:
    """Change data capture for Apache Spark: `formats` lists what is decoded and written."""


for command in (
    formats, connectors, detect, decode, convert, init, lint, check, run, status, tables, verify,
    dead_letters,
):  # fmt: skip
    cli.add_command(command)


def main() -> None:
    """Run the command line.

    A usage error or wrong path ends with 2; work that failed, or a server that does not answer,
    with 1; a closed pipe quietly.
    """
    try:
        sys.exit(cli(standalone_mode=False) or 0)
    except (UsageError, click.UsageError) as error:
        text = error.format_message() if isinstance(error, click.UsageError) else str(error)
        click.echo(f"headgate: {text}", err=True)
        sys.exit(FAILED if isinstance(error, Unreachable) else WRONG_USAGE)
    except ModuleNotFoundError as error:
        missing = MissingPackage.of(error, "this command")
        if missing is error:
            raise
        click.echo(f"headgate: {missing}", err=True)
        sys.exit(WRONG_USAGE)
    except click.exceptions.Abort:
        sys.exit(130)
    except BrokenPipeError:
        # The reader (head, less) has seen enough; keep Python from complaining at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(CLOSED_PIPE)
    except Exception as error:
        if not isinstance(error, HeadgateError | OSError) and not is_of_spark(error):
            raise
        error = error if not is_of_spark(error) else in_one_line(error)
        click.echo(f"headgate: {error}", err=True)
        with suppress(OSError):
            # What a full disk did not take would be written again at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(WRONG_USAGE if isinstance(error, WRONG_PATH) else FAILED)


def is_of_spark(error: Exception) -> bool:
    """Whether an error comes from Spark, or from the JVM behind it."""
    return type(error).__module__.partition(".")[0] in ("pyspark", "py4j")


def in_one_line(error: Exception) -> HeadgateError:
    """An error of Spark in one line that says where its trace is."""
    from headgate.spark.logs import keep_trace, temporary_log

    log = temporary_log()
    keep_trace(error, log)
    return HeadgateError(f"{reason_of(error)}; the full trace is in {log}")


if __name__ == "__main__":
    main()
