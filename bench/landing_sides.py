"""The two sides that land changes: a Headgate job, and MERGE in foreachBatch."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import Path
from time import perf_counter

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from harness import FILES, timed
from kafka_topics import Broker, new_name
from kafka_topics import Message as BrokerMessage
from landing_changes import DATABASE, PARTITIONS, Changes, Message, State
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

import headgate
from headgate.config.reader import job_of
from headgate.pipeline.run import run
from headgate.spark import jars

LAKE = FILES / "landing"
SOURCE = "canal-json:ticdc"
TYPES = {
    "id": "bigint",
    "customer_id": "int",
    "status": "string",
    "amount": "decimal(12,2)",
    "note": "string",
    "created_at": "timestamp_ntz",
    "weight": "double",
}
OWN = "_position"
"""The column that Headgate adds to a table."""


def session_settings() -> dict[str, str]:
    """Spark with Kafka's connector and Delta Lake; few partitions, which suits both sides."""
    return {
        **jars.settings("kafka", "delta"),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "2",
    }


def delta_fact() -> str:
    """What writes tables on the two sides."""
    return f"delta-rs {version('deltalake')}; Spark's: {jars.coordinates_of('delta')[0]}"


class Job:
    """A Headgate job from a topic of its own to a lake of its own."""

    def __init__(self, spark: SparkSession, broker: Broker, changes: Changes) -> None:
        self.spark, self.broker, self.changes = spark, broker, changes
        self.topic = broker.create_topic(new_name("landing"), PARTITIONS)
        self.folder = LAKE / self.topic
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        (self.folder / "schema.sql").write_text(changes.schema())
        self.sent = 0

    def send(self, messages: Iterable[Message]) -> None:
        """Put changes into the topic."""

        def counted() -> Iterator[BrokerMessage]:
            for partition, value in messages:
                self.sent += 1
                yield None, value, partition, None

        self.broker.produce(self.topic, counted())

    def land(self, most: int, merge_every: str = "batch") -> float:
        """The seconds of `headgate run --once`, in micro-batches of at most so many changes."""
        source = f"kafka://{self.broker.bootstrap}/{self.topic}?protocol=canal-json"
        job = job_of(
            f"{source}&enable-tidb-extension=true",
            (f"delta://{self.folder / 'lake'}?merge-every={merge_every}",),
            {
                "pipeline.name": "bench",
                "pipeline.checkpoint": str(self.folder / "state"),
                "pipeline.schema": str(self.folder / "schema.sql"),
                # Spark rounds down for each partition, and a last batch would have what is left.
                "pipeline.max_messages": str(most + PARTITIONS),
            },
        )
        done = []
        taken = timed(lambda: done.append(run(job, once=True, spark=self.spark)))
        totals = done[0].totals
        if (totals.messages, totals.dead_letters) != (self.sent, 0):
            raise RuntimeError(
                f"{totals.messages} of {self.sent} messages, {totals.dead_letters} dead letters"
            )
        return taken

    def seconds(self, most: int, merge_every: str = "batch") -> float:
        """The seconds of landing what is in the topic, less those of a job with nothing to do."""
        taken = self.land(most, merge_every)
        return taken - self.land(most, merge_every)

    def table(self, name: str) -> Path:
        return self.folder / "lake" / DATABASE / name

    def state(self) -> State:
        """What was landed."""
        return landed_state({name: self.table(name) for name in self.changes.names})

    def remove(self) -> None:
        self.broker.delete_topic(self.topic)
        shutil.rmtree(self.folder, ignore_errors=True)


def landed_state(paths: dict[str, Path]) -> State:
    """The amounts in landed tables."""
    state: State = {}
    for name, path in paths.items():
        rows = DeltaTable(path).to_pyarrow_table(columns=["id", "amount"])
        state[name] = dict(
            zip(rows["id"].to_pylist(), rows["amount"].cast(pa.string()).to_pylist())
        )
    return state


class Peer:
    """MERGE in foreachBatch, table by table, as the documentation of Delta Lake shows it.

    It reads changes that Headgate has decoded and typed before. Of each batch it merges as many
    tables as it gets to in the seconds that it is given.
    """

    def __init__(self, spark: SparkSession, job: Job, seconds: float) -> None:
        self.spark, self.seconds = spark, seconds
        self.folder, self.batches = job.folder / "peer", 0
        self.merged: list[set[str]] = []
        """The tables that were merged, by batch."""
        self.rate = 0.0
        for name in job.changes.names:  # the same rows to begin with
            rows = DeltaTable(job.table(name)).to_pyarrow_table().drop_columns([OWN])
            write_deltalake(self.table(name), rows)

    def table(self, name: str) -> Path:
        return self.folder / "lake" / name

    def decode(self, messages: list[Message]) -> None:
        """Make a micro-batch of messages: a file of typed changes."""
        raw = self.spark.createDataFrame([(value,) for _, value in messages], "value binary")
        row = F.coalesce("after", "before")
        typed = headgate.decode(raw, format=SOURCE).select(
            "table",
            "op",
            "commit_ts",
            *(row.getItem(name).cast(type).alias(name) for name, type in TYPES.items()),
        )
        typed.coalesce(1).write.parquet(str(self.folder / "in" / f"batch={self.batches}"))
        self.batches += 1

    def turn(self) -> float:
        """Merge the next batch for a while; returns changes per second."""
        changes = self.spark.readStream.schema(self.schema()).option("maxFilesPerTrigger", "1")
        number = len(self.merged)
        query = (
            changes.parquet(str(self.folder / "in" / f"batch={number}"))
            .writeStream.foreachBatch(self.merge_batch)
            .option("checkpointLocation", str(self.folder / "state" / str(number)))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return self.rate

    def schema(self) -> str:
        columns = ", ".join(f"{name} {type}" for name, type in TYPES.items())
        return f"table string, op string, commit_ts bigint, {columns}"

    def merge_batch(self, batch: DataFrame, _: int) -> None:
        began, merged, changes = perf_counter(), set(), 0
        batch.persist()
        sizes = {row["table"]: row["count"] for row in batch.groupBy("table").count().collect()}
        for name, size in sorted(sizes.items()):
            self.merge(batch.where(F.col("table") == name), self.table(name))
            merged.add(name)
            changes += size
            if perf_counter() - began > self.seconds:
                break
        batch.unpersist()
        self.rate = changes / (perf_counter() - began)
        self.merged.append(merged)

    def merge(self, changes: DataFrame, path: Path) -> None:
        newest = Window.partitionBy("id").orderBy(F.desc("commit_ts"))
        last = changes.withColumn("n", F.row_number().over(newest)).where("n = 1")
        last.createOrReplaceTempView("changes")
        pairs = ", ".join(f"t.{name} = s.{name}" for name in TYPES)
        names, values = ", ".join(TYPES), ", ".join(f"s.{name}" for name in TYPES)
        changes.sparkSession.sql(
            f"MERGE INTO delta.`{path}` t USING changes s ON t.id = s.id "
            "WHEN MATCHED AND s.op = 'delete' THEN DELETE "
            f"WHEN MATCHED THEN UPDATE SET {pairs} "
            f"WHEN NOT MATCHED AND s.op <> 'delete' THEN INSERT ({names}) VALUES ({values})"
        )

    def state(self) -> State:
        """The tables that have all batches."""
        complete = set.intersection(*self.merged)
        return landed_state({name: self.table(name) for name in sorted(complete)})
