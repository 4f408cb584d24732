"""The report of a verification: for programs as JSON, for people as lines."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from headgate.core.errors import shown
from headgate.verification.sides import LogMessage

LONGEST_VALUE = 60
KINDS = {
    "missing": "missing in the target",
    "extra": "only in the target",
    "different": "different",
    "duplicate": "more than once in the target",
}


class ColumnDifference(msgspec.Struct):
    """A column of a row, on both sides, as text."""

    source: str | None
    target: str | None


class Difference(msgspec.Struct):
    """A row that differs."""

    kind: str
    """`missing`, `extra`, `different`, or `duplicate`: more than once in the target."""
    key: dict[str, str | None]
    columns: dict[str, ColumnDifference] = {}
    """The columns that differ; of a row that is missing or extra, all."""
    copies: tuple[int, int] = (1, 1)
    """How many such rows the source and the target have."""
    messages: list[LogMessage] = []
    """The last messages of the key, newest first, where the source is a log."""


class TableResult(msgspec.Struct):
    """The result of comparing one table."""

    table: str
    state: str
    """`equal`, `different`, `missing` (the target has no such table), or `extra` (the source has
    none, which does not count as a difference)."""
    source_rows: int | None = None
    target_rows: int | None = None
    source_checksum: str | None = None
    target_checksum: str | None = None
    counts: dict[str, int] = {}
    """How many rows differ, by kind."""
    lacking: list[str] = []
    """Columns that the target lacks."""
    differences: list[Difference] = []
    """The first of them."""
    notes: list[str] = []


class Verification(msgspec.Struct):
    """The result of comparing all tables."""

    source: str
    target: str
    equal: bool
    tables: list[TableResult]
    seconds: float = 0.0
    batch: int | None = None
    """The batch of the job after which both were compared."""

    def __bool__(self) -> bool:
        return self.equal


def described(result: Verification) -> Iterator[str]:
    """A report as lines."""
    after = "" if result.batch is None else f", after batch {result.batch}"
    yield f"source {result.source}"
    yield f"target {result.target}{after}"
    names = [plain(table.table) for table in result.tables]
    width = max(map(len, [*names, "table"]))
    yield f"  {'table':<{width}}  {'source rows':>12}  {'target rows':>12}  result"
    for name, table in zip(names, result.tables):
        rows = ("-" if n is None else f"{n:,}" for n in (table.source_rows, table.target_rows))
        one, other = rows
        yield f"  {name:<{width}}  {one:>12}  {other:>12}  {summary(table)}"
    for table in result.tables:
        yield from details(table)
    different = sum(table.state in ("different", "missing") for table in result.tables)
    total = sum(table.state != "extra" for table in result.tables)
    verdict = (
        f"{different} of {total} tables differ" if different else f"all {total} tables are equal"
    )
    yield f"{verdict} ({result.seconds:.1f} s)"


def summary(table: TableResult) -> str:
    """The result of comparing one table, in a few words.

    >>> summary(TableResult("d.t", "different", counts={"missing": 2, "different": 1}))
    'DIFFERENT: 2 missing in the target, 1 different'
    """
    if table.state == "missing":
        return "MISSING: the target has no such table"
    if table.state == "extra":
        return "only in the target, not compared"
    if table.state == "equal":
        return "equal"
    parts = [f"{n:,} {KINDS[kind]}" for kind, n in table.counts.items()]
    if table.lacking:
        parts.append(f"the target lacks {', '.join(map(plain, table.lacking))}")
    return f"DIFFERENT: {', '.join(parts)}"


def details(table: TableResult) -> Iterator[str]:
    """The notes on a table, and its rows that differ."""
    if not table.notes and not table.differences:
        return
    yield ""
    yield plain(table.table)
    for note in table.notes:
        yield f"  note: {note}"
    for each in table.differences:
        key = ", ".join(f"{plain(name)}={value_text(value)}" for name, value in each.key.items())
        yield f"  {key}: {KINDS[each.kind]}" + (
            "" if each.copies[0] <= 1 and each.copies[1] <= 1 else
            f" (source {each.copies[0]}, target {each.copies[1]})"
        )  # fmt: skip
        width = max(map(len, map(plain, each.columns)), default=0)
        for name, values in each.columns.items():
            source, target = value_text(values.source), value_text(values.target)
            if each.kind == "missing":
                yield f"    {plain(name):<{width}}  {source}"
            elif each.kind == "extra":
                yield f"    {plain(name):<{width}}  {target}"
            else:
                yield f"    {plain(name):<{width}}  source {source}  target {target}"
        for message in each.messages:
            yield f"    last messages: {message_text(message)}"
    total = sum(table.counts.values())
    if total > len(table.differences):
        yield f"  … and {total - len(table.differences):,} more"


def message_text(message: LogMessage) -> str:
    """Where a message is.

    >>> message_text(LogMessage("update", "orders", 0, 17))
    'update at orders-0, offset 17'
    """
    if message.offset is None:
        return f"{message.op} at {plain(message.place or str(message.topic))}"
    return (
        f"{message.op} at {plain(str(message.topic))}-{message.partition}, offset {message.offset}"
    )


def value_text(value: str | None) -> str:
    """A value in a line.

    >>> value_text(None), value_text("a\\nb")
    ('NULL', "'a\\\\nb'")
    """
    return "NULL" if value is None else shown(value, LONGEST_VALUE)


def plain(name: str) -> str:
    """A name in a line: what cannot be printed is escaped."""
    return shown(name, 200)[1:-1]
