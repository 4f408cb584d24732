"""Folds the changes of a log to the rows that its tables have in the end.

Spark brings the changes of a key together and sorts them by their places in the source's order; a
worker goes over them once. Nothing here is shared with the sinks that land tables: what they wrote
is judged by another way to the same rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, groupby
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from headgate.codec.sequence import COMMIT
from headgate.core.limits import BATCH_ROWS
from headgate.verification.lineage import Fate, Lineage, as_modified, last_names
from headgate.verification.log_worker import NO_ORDER, LoggedChange, SeenTable

Row = dict[str, "str | None"]
Types = dict[tuple[str, int], Row]
"""By table and step, MySQL's types of columns."""
REPLACE, PUT, REMOVE, ADD, TAKE = range(5)
"""What a change does: a whole row, some columns of a row, no row; one more or one less of equal
rows, in a table without a key."""
PLACES = ("order", "sequence", "time", "step", "arrival", "topic", "partition", "offset", "place")
KEYED_SCHEMA = pa.schema(
    [
        ("table", pa.int32()),
        ("key", pa.string()),
        ("op", pa.int8()),
        ("order", pa.string()),
        ("sequence", pa.string()),
        ("time", pa.int64()),
        ("step", pa.int32()),
        ("arrival", pa.int64()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("place", pa.string()),
        ("logged", pa.string()),
        ("row", pa.binary()),
    ]
)
"""A change of one row: the number of its table as that is in the end, and its key as JSON."""
FOLDED_SCHEMA = pa.schema([("table", pa.int32()), ("row", pa.binary())])
_encode = msgspec.json.Encoder(order="sorted").encode
_decode_row = msgspec.json.Decoder(dict[str, str | None]).decode


@dataclass(frozen=True)
class LogTable:
    """A table as a log leaves it."""

    name: str
    columns: dict[str, str | None]
    """By name, MySQL's type as far as it is known."""
    key: tuple[str, ...]


class Truncation(NamedTuple):
    """A TRUNCATE among the rows: what comes before it in its order is gone."""

    order: str
    sequence: str
    arrival: int


def log_tables(seen: Iterable[SeenTable], lineage: Lineage) -> list[LogTable]:
    """The tables that a log leaves, in the order of their names."""
    columns: dict[str, dict[str, str | None]] = {}
    keys: dict[str, tuple[str, ...]] = {}
    for each in sorted(seen, key=lambda each: each.step):
        fate = lineage.fate(each.table, each.step)
        if fate.table is None:
            continue
        known = columns.setdefault(fate.table, {})
        for name, mysql in each.columns.items():
            last = fate.name(name)
            if last is not None and (mysql is not None or last not in known):
                known[last] = mysql
        for name, (mysql, _) in fate.added.items():
            known.setdefault(name, mysql)
        for name, types in fate.modified.items():
            if name in known:
                known[name] = types[-1]
        if fate.key is not None:
            keys[fate.table] = fate.key
        elif each.key is not None:
            keys[fate.table] = last_names(each.key, fate)
    return [LogTable(name, known, keys.get(name, ())) for name, known in sorted(columns.items())]


def keyed(
    changes: DataFrame, tables: list[LogTable], lineage: Lineage, seen: Iterable[SeenTable]
) -> DataFrame:
    """Changes as changes of single rows of the tables that the log leaves."""
    types = types_of(seen)

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        keyer = Keyer(tables, lineage, types)
        for batch in batches:
            yield from keyer.take(batch)

    return changes.mapInArrow(run, from_arrow_schema(KEYED_SCHEMA))


def types_of(seen: Iterable[SeenTable]) -> Types:
    """MySQL's types of columns, by table and step."""
    types: Types = {}
    for each in seen:
        types.setdefault((each.table, each.step), {}).update(each.columns)
    return types


class Keyer:
    """Takes changes apart."""

    def __init__(self, tables: list[LogTable], lineage: Lineage, types: Types) -> None:
        self.tables, self.lineage, self.types = tables, lineage, types
        self.numbers = {table.name: number for number, table in enumerate(tables)}
        self.fates: dict[tuple[str, int], Fate] = {}
        self.decode = msgspec.json.Decoder(LoggedChange).decode

    def take(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The changes of rows in a batch of changes."""
        columns: list[list[Any]] = [[] for _ in KEYED_SCHEMA]
        names = [batch.column(name).to_pylist() for name in PLACES]
        at = zip(batch.column("table").to_pylist(), batch.column("change").to_pylist(), *names)
        for table, encoded, *place in at:
            fate = self.fate(table, place[3])
            number = self.numbers.get(fate.table or "")
            if number is None or fate.truncated:
                continue
            change = self.decode(encoded)
            types = self.types.get((table, place[3]), {}) if fate.modified else {}
            for op, key, row in self.rows(self.tables[number], fate, change, types):
                values = (number, key, op, *place, change.op, _encode(row))
                for column, value in zip(columns, values):
                    column.append(value)
        arrays = [pa.array(values, f.type) for values, f in zip(columns, KEYED_SCHEMA)]
        yield pa.RecordBatch.from_arrays(arrays, schema=KEYED_SCHEMA)

    def fate(self, table: str, step: int) -> Fate:
        """What becomes of a row; looked up once."""
        known = self.fates.get((table, step))
        if known is None:
            known = self.fates[table, step] = self.lineage.fate(table, step)
        return known

    def rows(
        self, table: LogTable, fate: Fate, change: LoggedChange, types: Row
    ) -> Iterator[tuple[int, str, Row]]:
        """What a change does to which rows."""
        before = None if change.before is None else as_now(change.before, fate, types)
        after = None if change.after is None else as_now(change.after, fate, types)
        if change.op == "truncate":
            return
        if not table.key:
            for image, op in ((before, TAKE), (after, ADD)):
                if image is not None:
                    merged = {**(before or {}), **image} if op == ADD else image
                    whole = completed(merged, table, fate)
                    yield op, _encode(whole).decode(), whole
            return
        old = None if before is None else key_text(before, table)
        new = None if after is None else key_text(after, table)
        if change.op == "delete":
            if old is not None:
                yield REMOVE, old, {}
        elif after is not None and new is not None:
            moved = old is not None and old != new and change.op == "update"
            if moved and old is not None:
                yield REMOVE, old, {}
                after = {**(before or {}), **after}
            if change.op == "update" and not moved:
                yield PUT, new, completed(after, None, fate)
            else:
                yield REPLACE, new, completed(after, None, fate)


def as_now(image: Row, fate: Fate, types: Row) -> Row:
    """An image with the last names of its columns, and its values in their last types."""
    if not fate.columns and not fate.modified:
        return image
    row: Row = {}
    for name, value in image.items():
        last = fate.name(name)
        if last is not None:
            later = fate.modified.get(last, ())
            row[last] = as_modified(value, types.get(name), later) if later else value
    return row


def completed(image: Row, table: LogTable | None, fate: Fate) -> Row:
    """An image with the defaults of columns that came later; with a table, with all its columns."""
    added = {name: default for name, (_, default) in fate.added.items()}
    every = dict.fromkeys(table.columns) if table is not None else {}
    return {**every, **added, **image}


def key_text(image: Row, table: LogTable) -> str | None:
    """The key of a row as JSON; None where the image lacks it."""
    if not all(name in image for name in table.key):
        return None
    return msgspec.json.encode([image[name] for name in table.key]).decode()


def folded(
    rows: DataFrame, truncations: Mapping[int, list[Truncation]], partitions: int
) -> DataFrame:
    """The rows that are there in the end, as JSON, with the numbers of their tables."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        pending: list[tuple[int, bytes]] = []
        for (table, _), changes in groupby(_rows_of(batches), key=itemgetter(0, 1)):
            pending += ((table, row) for row in fold(changes, truncations.get(table, [])))
            if len(pending) >= BATCH_ROWS:
                yield _folded_batch(pending)
                pending = []
        yield _folded_batch(pending)

    columns = ["table", "key", "op", "order", "sequence", "time", "arrival", "row"]
    together = rows.select(*columns).repartition(partitions, "table", "key")
    # Of one commit, whose changes may come in several partitions, the upsert is the last.
    is_upsert = (F.col("order") == COMMIT) & (F.col("op") != REMOVE)
    ordered = together.sortWithinPartitions("table", "key", "sequence", is_upsert, "arrival")
    return ordered.mapInArrow(run, from_arrow_schema(FOLDED_SCHEMA))


def _rows_of(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Any, ...]]:
    for batch in batches:
        yield from zip(*(column.to_pylist() for column in batch.columns))


def _folded_batch(rows: list[tuple[int, bytes]]) -> pa.RecordBatch:
    columns = list(zip(*rows)) if rows else [(), ()]
    arrays = [pa.array(values, f.type) for values, f in zip(columns, FOLDED_SCHEMA)]
    return pa.RecordBatch.from_arrays(arrays, schema=FOLDED_SCHEMA)


class _Run(msgspec.Struct):
    """What the changes of one order make of a row."""

    kind: int
    """How long their places are; others do not compare."""
    row: Row | None = None
    is_whole: bool = False
    """Whether nothing of the row before them is left."""
    time: int = 0
    """The newest of their times."""
    arrival: int = 0
    """The last of their arrivals."""

    def take(self, op: int, row: Row) -> None:
        """Take in a change."""
        if op == PUT:
            self.row = {**(self.row or {}), **row}
        else:
            self.is_whole, self.row = True, None if op == REMOVE else row


def fold(changes: Iterable[tuple[Any, ...]], truncations: list[Truncation]) -> Iterator[bytes]:
    """The row of a key after its changes, if there is one; of equal rows, each of them.

    Changes come sorted by their places. Where a row has changes of several orders (another server),
    those of an order follow those of another whose last change is older.
    """
    runs: dict[str, _Run] = {}
    snapshots: dict[int, _Run] = {}
    copies, whole = 0, b""
    for _, _, op, order, sequence, time, arrival, encoded in changes:
        if any(is_before(order, sequence, arrival, each) for each in truncations):
            continue
        if op in (ADD, TAKE):
            copies += 1 if op == ADD else -1
            whole = encoded
            continue
        row, kind = _decode_row(encoded), len(sequence)
        if order == NO_ORDER:
            # A snapshot is news to changes that were before it in the log, and in the source.
            snapshots[kind] = _Run(kind, row, True, time, arrival)
            for run in runs.values():
                if run.kind == kind and run.arrival < arrival:
                    run.take(REPLACE, row)
            continue
        run = runs.setdefault(order, _Run(kind))
        run.take(op, row)
        run.time, run.arrival = max(run.time, time), max(run.arrival, arrival)
    yield from [whole] * copies
    state: Row | None = None
    by_time = attrgetter("time", "arrival")
    for run in chain(*(sorted(each.values(), key=by_time) for each in (snapshots, runs))):
        state = run.row if run.is_whole or state is None else {**state, **(run.row or {})}
    if state is not None:
        yield _encode(state)


def is_before(order: str, sequence: str, arrival: int, truncation: Truncation) -> bool:
    """Whether a change comes before a TRUNCATE, as far as they compare."""
    if order != truncation.order:
        comparable = len(sequence) == len(truncation.sequence)
        return order == NO_ORDER and not (comparable and sequence > truncation.sequence)
    return (sequence, arrival) < (truncation.sequence, truncation.arrival)
