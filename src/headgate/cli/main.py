"""The command line: `headgate formats`, `detect`, `decode`, `convert`, and the jobs' commands."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from msgspec.json import encode as encode_json

from headgate import __version__
from headgate.arrow.events import EVENT_SCHEMA
from headgate.cli import jobs
from headgate.cli.split_work import (
    CONVERTED_SCHEMA,
    COUNT_SCHEMA,
    DEAD_SCHEMA,
    MESSAGE_SCHEMA,
    NOT_IN_LINES,
    PRINTED_SCHEMA,
    Tally,
    converted,
    counted,
    dead_letters,
    decoded,
    note,
    printed,
)
from headgate.codec.decoder import decoder
from headgate.codec.encoder import Encoder, losses
from headgate.core.errors import HeadgateError, UsageError, naming
from headgate.core.limits import IN_PROCESS_BYTES
from headgate.core.losses import SENTENCES
from headgate.core.options import CommonOptions, EncodeOptions, names
from headgate.formats import MODULES, describe_options, load
from headgate.sources.message_files import STDIN, Split, expand
from headgate.spark.filesystem import NO_SETTINGS, is_remote, size_of

SOME_INVALID = 3
WRONG_PATH = (
    FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError
)  # fmt: skip
"""Errors of the system that tell of a wrong call; others, as a full disk, tell of a failure."""
STDOUT = "standard output"
LINES = (".jsonl", ".json", ".ndjson", ".txt")
Work = Callable[[Split], Iterator[pa.RecordBatch]]
PerFile = Iterator[tuple[str, Iterable[pa.RecordBatch]]]


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def cli() -> None:
    """Change data capture for Apache Spark: decode every CDC dialect exactly, write any of them."""


for command in (jobs.run, jobs.check, jobs.status, jobs.dead_letters):
    cli.add_command(command)


def main() -> None:
    """Run the command line.

    A wrong call or path ends with 2, work that failed with 1, a closed pipe quietly.
    """
    try:
        sys.exit(cli(standalone_mode=False) or 0)
    except (UsageError, click.UsageError) as error:
        text = error.format_message() if isinstance(error, click.UsageError) else str(error)
        click.echo(f"headgate: {text}", err=True)
        sys.exit(2)
    except click.exceptions.Abort:
        sys.exit(130)
    except BrokenPipeError:
        # The reader (head, less) has seen enough; keep Python from complaining at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except (HeadgateError, OSError) as error:
        click.echo(f"headgate: {error}", err=True)
        with suppress(OSError):
            # What a full disk did not take would be written again at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(2 if isinstance(error, WRONG_PATH) else jobs.FAILED)


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


@cli.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def formats(as_json: bool) -> None:
    """List every format and dialect, what its messages are, and its options."""
    found = [load(name) for name in MODULES]
    if as_json:
        listing = [
            {
                "format": f.name,
                "summary": f.summary,
                "dialects": dict(f.dialects),
                "read_only_dialects": dict(f.read_only),
                "decodes": f.kinds,
                "options": describe_options(f.options),
                "writing_options": describe_options(f.encoding.options),
            }
            for f in found
        ]
        click.echo(encode_json(listing))
        return
    for f in found:
        click.secho(f.name, bold=True, nl=False)
        click.echo(f"  {f.summary}")
        for dialect, meaning in f.dialects.items():
            click.echo(f"    {f.name}:{dialect:<20} {meaning}")
        for dialect, meaning in f.read_only.items():
            click.echo(f"    {f.name}:{dialect:<20} {meaning} (read only)")
        click.echo(f"    messages: {f.kinds}")
        _list_options("option", f.options, CommonOptions)
        _list_options("writing", f.encoding.options, EncodeOptions)
        click.echo()
    for title, cls in (("reading", CommonOptions), ("writing", EncodeOptions)):
        click.secho(f"options of every format, {title}", bold=True)
        for each in describe_options(cls):
            click.echo(f"    {_described(each)}")


def _list_options(label: str, cls: type, common: type) -> None:
    for each in describe_options(cls):
        if each["name"].replace("-", "_") not in names(common):
            click.echo(f"    {label} {_described(each)}")


def _described(option: dict[str, Any]) -> str:
    choices = f" ({', '.join(option['choices'])})" if option["choices"] else ""
    default = "" if option["default"] is None else f" [{option['default']}]"
    return f"{option['name']}{default}: {option['help']}{choices}"


@cli.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@option_flag
@master_flag
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def detect(
    paths: tuple[str, ...], options: dict[str, str], master: str | None, as_json: bool
) -> None:
    """Say for each file which format and dialect it holds, and what is mixed in."""
    decoder("auto", **options)
    files = expand(paths)
    spark = on_spark((), files, master)
    work = partial(counted, options=options)
    for file, batches in per_file(files, spark, master, COUNT_SCHEMA, work):
        counts: Counter[tuple[str | None, ...]] = Counter()
        for batch in batches:
            for row in batch.to_pylist():
                *what, n = row.values()
                counts[tuple(what)] += n
        verdict = verdict_of(file, counts)
        click.echo(encode_json(verdict) if as_json else describe_verdict(verdict))


def verdict_of(file: str, counts: Counter[tuple[str | None, ...]]) -> dict[str, Any]:
    """What a file holds, from its counts per format, dialect, kind and error code."""
    formats: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    errors: Counter[str] = Counter()
    tombstones: Counter[str] = Counter()
    for (format, dialect, kind, code), n in counts.items():
        if code:
            errors[code] += n
            continue
        name = format or "none"
        found = tombstones if kind == "tombstone" else formats
        found[f"{name}:{dialect}" if dialect else name] += n
        kinds[kind or ""] += n
    if formats:  # a tombstone has no mark of any format: it is of the one that the others have
        formats[formats.most_common(1)[0][0]] += tombstones.total()
    else:
        formats = tombstones
    return {
        "file": file,
        "messages": sum(counts.values()),
        "format": formats.most_common(1)[0][0] if formats else None,
        "formats": dict(formats.most_common()),
        "kinds": dict(kinds.most_common()),
        "invalid": dict(errors.most_common()),
    }


def describe_verdict(verdict: dict[str, Any]) -> str:
    """A verdict as one line."""
    total = verdict["messages"]
    if not total:
        return f"{verdict['file']}: no messages"
    parts = [verdict["format"] or "no CDC format", f"{total} messages"]
    kinds = [f"{n} {kind}" for kind, n in verdict["kinds"].items()]
    parts += [f"({', '.join(kinds)})"] if kinds else []
    mixed = [f"{n} {name}" for name, n in list(verdict["formats"].items())[1:]]
    mixed += [f"{n} invalid ({code})" for code, n in verdict["invalid"].items()]
    line = f"{verdict['file']}: {parts[0]}, {' '.join(parts[1:])}"
    return f"{line}; mixed in: {', '.join(mixed)}" if mixed else line


@cli.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--format", "format", default="auto", show_default=True, help="name or name:dialect.")
@timezone_flag
@option_flag
@schema_flag
@click.option("--strict", is_flag=True, help="Refuse what would have to be guessed.")
@click.option("--out", type=click.Path(), metavar="DIR", help="Write Parquet here, not to stdout.")
@click.option("--errors", type=click.Path(), metavar="DIR", help="Write the dead letters here.")
@master_flag
def decode(
    paths: tuple[str, ...],
    format: str,
    timezone: str | None,
    options: dict[str, Any],
    schema: str | None,
    strict: bool,
    out: str | None,
    errors: str | None,
    master: str | None,
) -> None:
    """Decode messages to change events: JSON lines on stdout, or Parquet in a directory."""
    options = source_options(options, timezone, schema)
    if strict:
        options["strict"] = True
    decoder(format, **options)
    files = expand(paths)
    check_folders(out, errors)
    spark = on_spark(paths, files, master)
    if out and spark:
        from headgate.cli.on_spark import write_events

        tally = write_events(files, format, options, out, errors, master)
    elif out:
        tally = write_here(files, partial(decoded, format=format, options=options), out, errors)
    else:
        work = partial(printed, format=format, options=options)
        tally = print_lines(per_file(files, spark, master, PRINTED_SCHEMA, work), errors)
    if tally:
        report_dead(tally, errors)
        raise click.exceptions.Exit(SOME_INVALID)


def source_options(
    options: dict[str, Any], timezone: str | None, schema: str | None
) -> dict[str, Any]:
    """The decoder's options, those with a flag of their own among them."""
    found = dict(options)
    if timezone:
        found["timezone"] = timezone
    if schema:
        found["schema"] = read_schema(schema)
    return found


def read_schema(path: str) -> str:
    """The text of a schema file."""
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not UTF-8 text; --schema takes a file of SQL") from None


def check_folders(out: str | None, errors: str | None) -> None:
    """Refuse to write two things, or over anything, in one place."""
    if out and errors and os.path.realpath(out) == os.path.realpath(errors):
        raise UsageError("the output and --errors are the same directory; name another for one")
    for folder in filter(None, (out, errors)):
        if is_remote(folder):
            raise UsageError(
                f"{folder} is not on the local file system; write there with `headgate run --once`"
            )
        refuse_used(folder)


@cli.command()
@click.argument("source", metavar="IN")
@click.argument("target", metavar="OUT")
@click.option("--from", "format", default="auto", show_default=True, help="name or name:dialect.")
@click.option("--to", "to", required=True, help="name or name:dialect.")
@schema_flag
@timezone_flag
@option_flag
@click.option(
    "--from-option",
    "from_options",
    multiple=True,
    callback=option_pairs,
    metavar="K=V",
    help="An option of the format that is read.",
)
@click.option("--report", is_flag=True, help="Say what could not be carried, and how often.")
@click.option("--strict", is_flag=True, help="Refuse a message of which anything would be lost.")
@click.option("--errors", type=click.Path(), metavar="DIR", help="Write the dead letters here.")
@master_flag
def convert(
    source: str,
    target: str,
    format: str,
    to: str,
    schema: str | None,
    timezone: str | None,
    options: dict[str, Any],
    from_options: dict[str, Any],
    report: bool,
    strict: bool,
    errors: str | None,
    master: str | None,
) -> None:
    """Convert messages from any format into any other.

    IN is a file, a directory or - for standard input; OUT is - for standard output, or a path:
    NAME.jsonl for lines, NAME.parquet or a directory (NAME or NAME/) for Parquet with Kafka's
    columns. Large input, directories and --master go through Spark, and OUT is then a directory of
    that name.
    """
    reading = source_options(from_options, timezone, schema)
    writing = {**options, **({"schema": read_schema(schema)} if schema else {})}
    if strict:
        writing["strict"] = True
    decoder(format, **reading)
    text = is_text(target, Encoder(to, **writing))
    possible = possible_losses(format, to, writing) if report else []
    files = expand([source])
    check_folders(None if target == STDIN else target, errors)
    work = partial(
        converted, format=format, options=reading, target=to, target_options=writing, lines=text
    )
    if on_spark([source], files, master):
        if target == STDIN:
            raise UsageError("input that goes through Spark is written to a directory; name OUT")
        from headgate.cli.on_spark import write_records

        lost, tally = write_records(files, master, target, text, errors, work)
    else:
        lost, tally = convert_here(files, work, target, text, errors)
    if report:
        report_losses(lost, possible, to, not tally)
    elif lost and not strict:
        ways = f"{len(lost)} way{'s' if len(lost) > 1 else ''}"
        click.echo(
            f"headgate: not everything could be carried ({ways}); --report says what", err=True
        )
        if lost["untyped"]:  # values are wrong then, not only left out
            click.echo(
                f"headgate: untyped, {lost['untyped']} times: {SENTENCES['untyped']}", err=True
            )
    if tally:
        report_dead(tally, errors, "converted")
        raise click.exceptions.Exit(SOME_INVALID)


def is_text(target: str, encoder: Encoder) -> bool:
    """Whether lines are to be written, and not Parquet."""
    text = target == STDIN or target.endswith(LINES)
    if not text and not target.endswith((".parquet", "/")) and Path(target).suffix:
        raise UsageError(
            f"{target} is no kind of output; name OUT as {', '.join(LINES)} for lines, .parquet, "
            "or with a / at its end for a directory of Parquet"
        )
    if text and encoder.encoding.binary:
        raise UsageError(
            f"{encoder.name} is binary and has no lines; name OUT as a directory or NAME.parquet"
        )
    return text


def convert_here(
    files: list[str], work: Work, target: str, text: bool, errors: str | None
) -> tuple[Counter[str], Tally]:
    """Convert in this process; what was lost, and the dead letters, counted."""
    lost: Counter[str] = Counter()
    tally: Tally = Counter()
    sink = LineSink(target) if text else ParquetSink(target, MESSAGE_SCHEMA)
    with ParquetSink(errors, DEAD_SCHEMA) as dead, sink:
        for _, batches in per_file(files, False, None, CONVERTED_SCHEMA, work):
            for batch in batches:
                letters = batch.column("dead").drop_null()
                dead.write(note_dead(pa.RecordBatch.from_struct_array(letters), tally))
                for counts in batch.column("losses").drop_null().to_pylist():
                    lost.update(dict(counts))
                if batch.column("dead").null_count + batch.column("losses").null_count == 2 * len(
                    batch
                ):
                    sink.write(batch.select(MESSAGE_SCHEMA.names))
    return lost, tally


def possible_losses(format: str, to: str, options: dict[str, Any]) -> list[str]:
    """The codes of what may be lost between two formats; of a source of any format, none."""
    if format == "auto":
        return []
    own = {name: value for name, value in options.items() if name != "schema"}
    return [loss.code for loss in losses(format, to, schema="schema" in options, **own)]


def report_losses(lost: Counter[str], possible: list[str], to: str, all_written: bool) -> None:
    """On standard error: what was lost, or refused for it, and what else might have been."""
    codes = [*lost, *(code for code in possible if code not in lost)]
    if not codes:
        what = "everything" if all_written else "everything of the messages that were written"
        click.echo(f"headgate: {what} was carried", err=True)
        return
    click.echo(f"headgate: what {to} cannot carry, and how often it was met", err=True)
    for code in sorted(codes, key=lambda code: -lost[code]):
        sentence = SENTENCES.get(code) or NOT_IN_LINES[code]
        click.echo(f"  {lost[code]:>9}  {code:<18} {sentence}", err=True)


def write_here(files: list[str], work: Work, out: str, errors: str | None) -> Tally:
    """Decode in this process into Parquet; the dead letters, counted."""
    tally: Tally = Counter()
    with ParquetSink(errors, DEAD_SCHEMA) as dead, ParquetSink(out, EVENT_SCHEMA) as sink:
        for _, batches in per_file(files, False, None, EVENT_SCHEMA, work):
            for batch in batches:
                sink.write(batch)
                dead.write(note_dead(dead_letters(batch), tally))
    return tally


def print_lines(found: PerFile, errors: str | None) -> Tally:
    """Print the events as they come; the dead letters, counted."""
    tally: Tally = Counter()
    with ParquetSink(errors, DEAD_SCHEMA) as dead:
        for _, batches in found:
            for batch in batches:
                with naming("write", STDOUT):
                    sys.stdout.buffer.write(b"".join(batch.column("line").to_pylist()))
                letters = batch.filter(pc.is_valid(batch.column("code")))
                dead.write(note_dead(letters.select(DEAD_SCHEMA.names), tally))
    with naming("write", STDOUT):
        sys.stdout.buffer.flush()
    return tally


def refuse_used(folder: str) -> None:
    """Never write among files that are there already."""
    path = Path(folder)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise UsageError(f"{folder} exists and is not an empty directory; name another")


def note_dead(letters: pa.RecordBatch, tally: Tally) -> pa.RecordBatch:
    """Count dead letters by code, with a first sentence for each."""
    note(tally, zip(letters.column("code").to_pylist(), letters.column("message").to_pylist()))
    return letters


def report_dead(tally: Tally, errors: str | None, done: str = "decoded") -> None:
    """The summary on standard error."""
    total = sum(tally.values())
    where = f", kept in {errors}" if errors else "; --errors DIR keeps them"
    noun = "message" if total == 1 else "messages"
    click.echo(f"headgate: {total} {noun} could not be {done}{where}", err=True)
    for (code, sentence), n in tally.most_common():
        click.echo(f"  {n:>6}  {code:<20} e.g. {sentence}", err=True)


class LineSink:
    """Messages as lines of a file or of standard output; keys and tombstones have none."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.name = STDOUT if path == STDIN else path

    def __enter__(self) -> LineSink:
        self.file = sys.stdout.buffer if self.path == STDIN else open(self.path, "xb")
        return self

    def write(self, batch: pa.RecordBatch) -> None:
        """Add a batch."""
        with naming("write", self.name):
            for lines in batch.column("value").to_pylist():
                self.file.write(lines + b"\n")

    def __exit__(self, *_: object) -> None:
        with naming("write", self.name):
            self.file.flush()
            if self.path != STDIN:
                self.file.close()


class ParquetSink:
    """Batches into one Parquet file, of that name or in that directory; without one, nowhere."""

    def __init__(self, folder: str | None, schema: pa.Schema) -> None:
        self.folder, self.schema = folder, schema
        self.writer: pq.ParquetWriter | None = None

    def __enter__(self) -> ParquetSink:
        if self.folder:
            path = self.folder
            if not path.endswith(".parquet"):
                os.makedirs(path, exist_ok=True)
                path = os.path.join(path, "part-00000.parquet")
            self.writer = pq.ParquetWriter(path, self.schema, compression="snappy")
        return self

    def write(self, batch: pa.RecordBatch) -> None:
        """Add a batch."""
        if self.writer is not None:
            with naming("write", str(self.folder)):
                self.writer.write_batch(batch)

    def __exit__(self, *_: object) -> None:
        if self.writer is not None:
            with naming("write", str(self.folder)):
                self.writer.close()


def on_spark(paths: Iterable[str], files: list[str], master: str | None) -> bool:
    """Directories, large input and whatever names a master go through Spark."""
    if master or any(path not in files for path in paths):
        return True
    return sum(sizes_of(files).values()) > IN_PROCESS_BYTES


def sizes_of(files: list[str]) -> dict[str, int]:
    """How many bytes each file has; standard input does not say."""
    return {file: size_of(file, NO_SETTINGS) for file in files if file != STDIN}


def per_file(
    files: list[str], spark: bool, master: str | None, schema: pa.Schema, work: Work
) -> PerFile:
    """Each file with its results, in order, made in this process or on Spark."""
    if spark:
        from headgate.cli.on_spark import on_workers

        yield from on_workers(files, master, schema, work)
        return
    with progress(files) as advance:
        for file in files:
            yield file, work(Split(file))
            advance(file)


@contextmanager
def progress(files: list[str]) -> Iterator[Callable[[str], None]]:
    """A progress bar on a terminal; nothing in a pipe."""
    sizes = sizes_of(files)
    to_file = not sys.stdout.isatty() and os.fstat(sys.stdout.fileno()).st_mode & 0o100000
    if not (sys.stderr.isatty() and to_file and sum(sizes.values()) > 10_000_000):
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task("decoding", total=sum(sizes.values()))
        yield lambda file: bar.advance(task, sizes.get(file, 0))


if __name__ == "__main__":
    main()
