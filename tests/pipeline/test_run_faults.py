"""What a job must not take for granted: its source, its checkpoint and its target change."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from job_runs import Bench, once, uri, wait_for
from kafka_broker import Broker
from messages import canal
from pyspark.sql import DataFrame, SparkSession

from headgate.config.reader import job_of
from headgate.core.batches import SourceRange
from headgate.core.errors import SpliceError, UsageError
from headgate.pipeline.batch_pass import PassResult, PassRunner
from headgate.pipeline.engine import Engine
from headgate.pipeline.lease import Lease, LeaseError
from headgate.pipeline.plan import BatchPlan
from headgate.pipeline.run import lag_of
from headgate.pipeline.state import State
from headgate.pipeline.status import read as read_status
from headgate.sinks.base import Batch
from headgate.sinks.files.writer import FileWriter
from headgate.sources.kafka.reader import KafkaReader
from headgate.spark.storage import Storage


def row(n: int) -> bytes:
    return canal(data=[{"id": str(n), "amount": "1.10", "note": None}])


def numbers(broker: Broker, topic: str) -> list[int]:
    """The rows that were written to a topic in Maxwell's format."""
    return sorted(json.loads(record[3])["data"]["id"] for record in broker.consume(topic))


def test_only_committed_transactions_are_data(
    broker: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    topic = broker.create_topic("transactions", 1)
    producer = Producer({**broker.client, "transactional.id": "shop"})
    producer.init_transactions()

    def transaction(*rows: int) -> None:
        producer.begin_transaction()
        for n in rows:
            producer.produce(topic, row(n))
        producer.flush()

    transaction(1, 2)
    producer.commit_transaction()
    transaction(3, 4)
    producer.abort_transaction()
    transaction(5)
    producer.commit_transaction()
    transaction(6)  # neither yet
    source, sink = uri(broker, topic), uri(broker, "transactions-out", protocol="maxwell")

    status = once(spark, tmp_path, source, sink)

    assert ["1", "2", "5"] == list(map(str, numbers(broker, "transactions-out")))
    assert (3, 0) == (status.totals.messages, status.lag_offsets)
    producer.commit_transaction()
    told = {"pipeline.checkpoint": str(tmp_path / "state"), "pipeline.name": "t"}
    engine = Engine(spark, job_of(source, (sink,), told))
    assert 2 == lag_of(engine)  # the message, and the mark of its commit
    engine.close()
    assert 0 == once(spark, tmp_path, source, sink).lag_offsets
    assert ["1", "2", "5", "6"] == list(map(str, numbers(broker, "transactions-out")))
    everything = uri(broker, topic, **{"kafka.isolation.level": "read_uncommitted"})
    other = tmp_path / "other"
    assert (
        6 == once(spark, other, everything, f"file://{other}/out?protocol=maxwell").totals.messages
    )


def test_a_checkpoint_older_than_its_target_is_refused(tmp_path: Path, spark: SparkSession) -> None:
    bench = Bench(tmp_path, spark)
    bench.put("a.jsonl", row(1))
    bench.run("maxwell")
    shutil.copytree(tmp_path / "state" / "headgate", tmp_path / "backup" / "headgate")
    shutil.copytree(tmp_path / "state" / "query", tmp_path / "backup" / "query")
    bench.put("b.jsonl", row(2))
    bench.run("maxwell")
    for name in ("1", ".1.crc"):  # killed before Spark noted the batch
        (tmp_path / "state" / "query" / "commits" / name).unlink()
    assert 1 == bench.run("maxwell").batch, "the same batch again is no error"
    before = bench.messages()
    for part in ("headgate", "query"):
        shutil.rmtree(tmp_path / "state" / part)
        shutil.move(tmp_path / "backup" / part, tmp_path / "state" / part)
    bench.put("c.jsonl", row(3))

    with pytest.raises(UsageError, match=r"has batch 1, .* the batches before 1 only"):
        bench.run("maxwell")

    assert before == bench.messages()


def test_one_instance_at_a_time(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path, spark)
    bench.put("a.jsonl", row(1))
    with Lease(Storage(f"{tmp_path}/state/headgate")):
        with pytest.raises(LeaseError, match="in use by another instance"):
            bench.run("maxwell")
        assert not (tmp_path / "state" / "headgate" / "status.json").exists()
        assert not (tmp_path / "out").exists()
    write_step = FileWriter.write_step

    def taken_over(self: FileWriter, *told: Any) -> None:
        write_step(self, *told)
        Lease(Storage(f"{tmp_path}/state/headgate")).write()

    monkeypatch.setattr(FileWriter, "write_step", taken_over)
    with pytest.raises(LeaseError, match="was taken over by another instance"):
        bench.run("maxwell")
    assert [] == bench.messages()
    monkeypatch.undo()

    bench.run("maxwell")  # the other one, a process that has ended or never was, is dead

    assert ["1"] == bench.ids()


def test_a_topic_that_was_made_anew_is_refused(
    broker: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    topic = broker.create_topic("made-anew", 1)
    broker.produce(topic, [(None, row(n), 0, None) for n in range(3)])
    sink = f"file://{tmp_path}/out?protocol=maxwell"
    once(spark, tmp_path, uri(broker, topic), sink)
    broker.delete_topic(topic)
    wait_for(lambda: topic not in AdminClient(broker.client).list_topics().topics)
    broker.create_topic(topic, 1)
    broker.produce(topic, [(None, row(n), 0, None) for n in range(10, 20)])

    with pytest.raises(UsageError, match=r"'made-anew' was deleted and made again .* starting"):
        once(spark, tmp_path, uri(broker, topic), sink)

    (tmp_path / "state" / "headgate" / "topics.json").unlink()
    job = job_of(uri(broker, topic), (sink,), {"pipeline.checkpoint": f"{tmp_path}/state"})
    engine = Engine(spark, job)
    assert isinstance(engine.reader, KafkaReader)
    engine.reader.topic_ids.known[topic] = "another"  # as it is while a job runs
    batch = Batch(9, SourceRange({topic: {"0": (3, 5)}}), lambda: None)
    with pytest.raises(UsageError, match="deleted and made again"):
        engine.write(batch, [], engine.targets.new_batch(), State())
    engine.close()


def test_a_job_stops_where_splicing_and_the_codecs_disagree(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path, spark)
    bench.put("a.jsonl", row(1))
    run = PassRunner.run

    def wrong(runner: PassRunner, messages: DataFrame, plan: BatchPlan) -> PassResult:
        result = run(runner, messages, plan)
        reports = [msgspec.structs.replace(each, fastpath_wrong=True) for each in result.reports]
        return PassResult(result.rows, reports)

    monkeypatch.setattr(PassRunner, "run", wrong)
    with pytest.raises(SpliceError, match="splice=false"):
        bench.run("maxwell")
    assert [] == bench.messages()
    status = read_status(str(tmp_path / "state"))
    assert ("failed", 1) == (status.state, status.splice_mismatches)
    monkeypatch.undo()

    assert 1 == bench.run("maxwell&splice=false").splice_mismatches
    assert ["1"] == bench.ids()
