"""Landed tables as DataFrames: one version of a table, or the table as it is now.

delta-rs names the files of a version and Spark reads them, so that no connector is needed. Changes
that wait for a merge (`merge_every`) are brought to their last state by the code that merges them,
in a task, and joined to the rows of the table.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec
import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from headgate.core.errors import UsageError
from headgate.core.options import build
from headgate.landing.changes import unpack
from headgate.landing.evolution import follow
from headgate.landing.operations import AddColumns, Rewrite
from headgate.landing.shape import TableShape, union
from headgate.landing.types import DATES
from headgate.sinks.delta.kept import WAITING, KeptChanges
from headgate.sinks.delta.lake import Lake
from headgate.sinks.delta.options import DeltaOptions
from headgate.sinks.delta.paths import RESERVED
from headgate.sinks.delta.state import JobState
from headgate.sinks.delta.storage import delta_uri, storage_options
from headgate.sinks.delta.table import JOB, LandedTable, Location, Token
from headgate.sinks.delta.waiting import Reading, grown_rows, rows_after
from headgate.spark.filesystem import for_spark
from headgate.spark.state_files import read_state
from headgate.spark.storage import Storage

UNREADABLE = ("deletionVectors", "columnMapping")
"""Features of tables whose files do not hold their rows as they are."""
ATTEMPTS = 5
"""How often a table is looked at again whose changes are merged meanwhile."""


def read_version(spark: SparkSession, table: DeltaTable, uri: str) -> DataFrame:
    """The rows of a version of a Delta table."""
    features = [f for f in table.protocol().reader_features or () if f in UNREADABLE]
    features += ["partitions"] if table.metadata().partition_columns else []
    if features:
        raise UsageError(
            f"{uri} uses {', '.join(features)}, and is not a table that Headgate wrote; rewrite it "
            "without (delta.enableDeletionVectors=false, delta.columnMapping.mode=none)"
        )
    schema = StructType.fromJson(json.loads(table.schema().to_json()))
    files = [re.sub("^s3:", "s3a:", for_spark(file)) for file in table.file_uris()]
    if not files:
        return spark.createDataFrame([], schema)
    return spark.read.schema(schema).parquet(*files)


class _Place(NamedTuple):
    """A landed table, and where its job notes what it does."""

    uri: str
    root: str
    """The directory of all tables."""
    job: str
    settings: Mapping[str, str]

    @property
    def notes(self) -> Storage:
        return Storage(f"{self.root}/{RESERVED}", self.settings, private=False)

    def state(self) -> JobState:
        return read_state(self.notes, f"jobs/{self.job}.json", JobState) or JobState()

    def location(self) -> Location:
        return Location(delta_uri(self.uri), storage_options(self.uri, self.settings))

    def lake(self, state: JobState) -> Lake:
        options = build(DeltaOptions, state.options)
        return Lake(delta_uri(self.root), self.job, options, self.location().options)


def current(spark: SparkSession, uri: str, settings: Mapping[str, str]) -> DataFrame:
    """A landed table as it would be if all changes that wait were merged now."""
    place = _place(uri.rstrip("/"), settings)
    for _ in range(ATTEMPTS):
        state = place.state()
        try:
            rows = _as_of(spark, place, state)
        except PySparkException:
            if place.state() == state:
                raise
            continue  # the changes that waited were merged, and are gone
        if place.state() == state:
            return rows
    raise UsageError(f"{uri} is being merged all the time; read it again later")


def _place(uri: str, settings: Mapping[str, str]) -> _Place:
    options = storage_options(uri, settings)
    try:
        table = DeltaTable(delta_uri(uri), storage_options=options or None)
    except TableNotFoundError:
        raise UsageError(f"{uri} is not a Delta table") from None
    job, root = table.metadata().configuration.get(JOB), uri
    while job is not None and root.strip("/") and not root.endswith(":/"):
        root = root.rpartition("/")[0]
        if root and Storage(f"{root}/{RESERVED}", settings).exists(f"jobs/{job}.json"):
            return _Place(uri, root, job, settings)
    raise UsageError(
        f"{uri} is not a table that Headgate has landed here; read it with Spark's Delta connector"
    )


def _as_of(spark: SparkSession, place: _Place, state: JobState) -> DataFrame:
    """A table after all changes that waited when the job's state was read."""
    lake, kept = place.lake(state), KeptChanges(spark, place.notes, f"{WAITING}/{place.job}")
    steps = [step for step in kept.steps() if _version(lake, step) > state.merged]
    location = place.location()
    delta = DeltaTable(location.uri, storage_options=location.options or None)
    landed = LandedTable(location, delta)
    rows = read_version(spark, delta, place.uri)
    app = lake.merge_token(0, 0).app
    merged = delta.transaction_version(app) or 0
    if state.merging is not None and merged >= state.merging:
        steps = []  # it has them; other tables do not yet
    if not steps:
        return rows
    name = msgspec.json.encode(landed.shape.table).decode()
    changes = kept.read(steps).where(F.col("table") == name).select("changes")
    shapes = _shapes(changes)
    if not shapes:
        return rows
    shape = _followed(landed, shapes, lake, place.uri)
    reading = Reading(lake, location, delta.version(), shape, Token(app, merged + 1))
    if shape.columns != landed.shape.columns:
        schema = from_arrow_schema(lake.schema(shape), prefer_timestamp_ntz=True)
        rows = rows.mapInArrow(grown_rows(reading), schema)
    return rows_after(rows, changes, reading)


def _version(lake: Lake, step: str) -> int:
    batch, number = map(int, step.split("-"))
    return lake.merge_token(batch, number).version


def _shapes(changes: DataFrame) -> list[TableShape]:
    """The shapes that packed changes have of their table."""

    def shapes(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            texts = {msgspec.json.encode(unpack(b)[0]).decode() for b in batch[0].to_pylist()}
            yield pa.RecordBatch.from_pydict({"shape": pa.array(sorted(texts), pa.string())})

    rows = changes.mapInArrow(shapes, "shape string").distinct().collect()
    return [msgspec.json.decode(row.shape, type=TableShape) for row in rows]


def _followed(
    landed: LandedTable, shapes: Sequence[TableShape], lake: Lake, uri: str
) -> TableShape:
    """The shape that a table will have."""
    [wanted] = union(shapes)
    shape = landed.shape
    for operation in follow(shape, wanted, lake.rules):
        if isinstance(operation, AddColumns | Rewrite):
            if lake.options.mode != "log" and not _finds_rows(shape, operation.shape):
                raise UsageError(
                    f"the next merge will give {uri} other columns, and what it will be cannot be "
                    "known before; read it after that"
                )
            shape = operation.shape
    return msgspec.structs.replace(shape, key=wanted.key or shape.key)


def _finds_rows(before: TableShape, after: TableShape) -> bool:
    """Whether the rows of a table are found by keys of the shape that it will have."""
    types = {column.name: column.type for column in before.columns}
    return bool(before.key) and all(
        column.type == types[column.name] or column.type not in ("string", *DATES)
        for column in after.columns
        if column.name in before.key
    )
