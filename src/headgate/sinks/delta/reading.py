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
from headgate.sinks.delta.kept import WAITING, KeptChanges
from headgate.sinks.delta.lake import Lake
from headgate.sinks.delta.options import DeltaOptions
from headgate.sinks.delta.paths import RESERVED
from headgate.sinks.delta.state import JobState
from headgate.sinks.delta.storage import delta_uri, storage_options
from headgate.sinks.delta.table import JOB, LandedTable, Location, Token
from headgate.sinks.delta.waiting import Reading, rows_after
from headgate.spark.filesystem import for_spark
from headgate.spark.state_files import read_state
from headgate.spark.storage import Storage

UNREADABLE = ("deletionVectors", "columnMapping")
"""Features of tables whose files do not hold their rows as they are."""
ATTEMPTS = 5
"""How often a table is looked at again whose changes are merged meanwhile."""


def read_version(spark: SparkSession, table: DeltaTable, uri: str) -> DataFrame:
    """The rows of a version of a Delta table."""
    found = [f for f in table.protocol().reader_features or () if f in UNREADABLE]
    found += ["partitions"] if table.metadata().partition_columns else []
    if found:
        raise UsageError(
            f"{uri} uses {', '.join(found)}, and is not a table that Headgate wrote; rewrite it "
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
    shape, added = _followed(landed, shapes, lake, place.uri)
    if added is not None:
        for each in from_arrow_schema(added):
            rows = rows.withColumn(each.name, F.lit(None).cast(each.dataType))
    token = Token(app, merged + 1)
    reading = Reading(lake, location, delta.version(), shape, added, token)
    return rows_after(rows, changes, reading)


def _version(lake: Lake, step: str) -> int:
    batch, number = map(int, step.split("-"))
    return lake.merge_token(batch, number).version


def _shapes(changes: DataFrame) -> list[TableShape]:
    """What packed changes tell of their table."""

    def shapes(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            found = {msgspec.json.encode(unpack(b)[0]).decode() for b in batch[0].to_pylist()}
            yield pa.RecordBatch.from_pydict({"shape": pa.array(sorted(found), pa.string())})

    rows = changes.mapInArrow(shapes, "shape string").distinct().collect()
    return [msgspec.json.decode(row.shape, type=TableShape) for row in rows]


def _followed(
    landed: LandedTable, shapes: Sequence[TableShape], lake: Lake, uri: str
) -> tuple[TableShape, pa.Schema | None]:
    """The shape that a table will have, and the columns that it does not have yet."""
    [wanted] = union(shapes)
    shape, added = landed.shape, None
    for operation in follow(shape, wanted, lake.rules):
        if isinstance(operation, Rewrite) or (isinstance(operation, AddColumns) and not shape.key):
            raise UsageError(
                f"the next merge will give {uri} other columns, and what it will be cannot be told "
                "before; read it after that"
            )
        if isinstance(operation, AddColumns):
            names = [column.name for column in operation.columns]
            schema = lake.schema(operation.shape)
            added = pa.schema([schema.field(name) for name in names])
            shape = operation.shape
    key = wanted.key or shape.key
    return msgspec.structs.replace(shape, key=key), added
