"""Jobs as tests run them: directories of files in and out, Kafka to Kafka, job files."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from kafka_broker import Broker
from pyspark.sql import SparkSession

from headgate.codec.decoder import decoder
from headgate.config.reader import job_of, load_job
from headgate.core.event import Event
from headgate.pipeline.run import run
from headgate.pipeline.status import Status
from headgate.sources.message_files import expand, read, splits


class Bench:
    """A directory with a job in it."""

    def __init__(self, root: Path, spark: SparkSession) -> None:
        self.root, self.spark = root, spark
        (root / "in").mkdir()

    def put(self, name: str, *messages: bytes | None, **columns: Any) -> None:
        """Messages as a file of Parquet in Kafka's shape, or as lines."""
        if name.endswith(".jsonl"):
            text = b"".join((m or b"") + b"\n" for m in messages)
            (self.root / "in" / name).write_bytes(text)
            return
        table = {"value": pa.array(messages, pa.binary()), **columns}
        pq.write_table(pa.table(table), self.root / "in" / name)

    def run(self, sink: str = "canal-json:ticdc&enable-tidb-extension=true", **more: Any) -> Status:
        """Everything that is there now."""
        job = {
            "source": {"uri": f"file://{self.root}/in", "format": "auto"},
            "sink": [{"uri": f"file://{self.root}/out?protocol={sink}"}],
            "pipeline": {"name": "t", "checkpoint": f"{self.root}/state"},
        }
        for section, value in more.items():
            job[section] = {**job[section], **value} if section in job and isinstance(
                value, dict) else value  # fmt: skip
        job["sink"] = job.pop("sinks", job["sink"])
        path = self.root / "job.yaml"
        path.write_text(json.dumps(job))
        return run(load_job(str(path), {}), once=True, spark=self.spark)

    def messages(self, folder: str = "out") -> list[dict[str, Any]]:
        """What was written, in order."""
        batches = (b for f in expand([str(self.root / folder)]) for s in splits(f) for b in read(s))
        return [row for batch in batches for row in batch.to_pylist()]

    def events(self, format: str = "auto", folder: str = "out") -> list[Event]:
        decode = decoder(format)
        return [e for m in self.messages(folder) for e in decode(m.get("key"), m["value"], None)]

    def ids(self) -> list[str]:
        return [e.after["id"] for e in self.events() if e.kind == "row" and e.after]


def uri(broker: Broker, topic: str, **parameters: Any) -> str:
    query = "&".join(f"{name.replace('_', '-')}={value}" for name, value in parameters.items())
    return f"kafka://{broker.bootstrap}/{topic}?{query}"


def once(spark: SparkSession, tmp_path: Path, source: str, *sinks: str, **settings: str) -> Status:
    overrides = {"pipeline.checkpoint": str(tmp_path / "state"), "pipeline.name": "t", **settings}
    return run(job_of(source, sinks, overrides), once=True, spark=spark)


def wait_for(condition: Any) -> None:
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until, "nothing happened within a minute"
        time.sleep(0.3)


def files_to_files(tmp_path: Path) -> Path:
    """A job of two directories."""
    (tmp_path / "in").mkdir()
    path = tmp_path / "job.yaml"
    path.write_text(
        "source: {uri: 'file:in'}\n"
        "sink: {uri: 'file:out?protocol=maxwell&as=lines'}\n"
        "pipeline: {name: shop, checkpoint: ./state, dead_letters: ./dead}\n"
    )
    return path


def lines_in(folder: Path) -> list[dict[str, Any]]:
    files = sorted(folder.rglob("*.txt"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]
