"""The broker is a real one, Spark's connector reads and writes it, and jars come from a cache."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path

import pytest
from kafka_broker import Broker
from paths import SUPPORT
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from headgate.core.errors import UsageError
from headgate.spark import jars

MESSAGES = [
    (b"k1", b'{"a":1}', 0, [("h", b"\x00\xff"), ("h", b"again")]),
    (b"k2", b"\xff\xfe\x00", 1, None),
    (None, b"no key", 1, None),
    (b"k3", None, 0, [("empty", b"")]),
]


def test_round_trip(broker: Broker) -> None:
    topic = broker.create_topic("round-trip", 2)
    broker.produce(topic, MESSAGES)
    assert broker.consume(topic) == [
        (0, 0, *MESSAGES[0][:2], MESSAGES[0][3]),
        (0, 1, *MESSAGES[3][:2], MESSAGES[3][3]),
        (1, 0, *MESSAGES[1][:2], None),
        (1, 1, *MESSAGES[2][:2], None),
    ]


def test_a_key_goes_where_the_java_client_puts_it(broker: Broker, spark: SparkSession) -> None:
    keys = [f"key-{n}".encode() for n in range(50)]
    ours, theirs = broker.create_topic("keys-ours", 5), broker.create_topic("keys-theirs", 5)
    broker.produce(ours, [(key, b"v", None, None) for key in keys])
    df = spark.createDataFrame(
        [(bytearray(k), bytearray(b"v")) for k in keys], "key binary, value binary"
    )
    write(broker, df, theirs)
    assert placed(broker, ours) == placed(broker, theirs)
    assert len(set(placed(broker, ours).values())) == 5


def placed(broker: Broker, topic: str) -> dict[bytes | None, int]:
    return {key: partition for partition, _, key, _, _ in broker.consume(topic)}


def write(broker: Broker, df, topic: str) -> None:
    options = {"kafka.bootstrap.servers": broker.bootstrap, "includeHeaders": "true"}
    df.withColumn("topic", F.lit(topic)).write.format("kafka").options(**options).save()


def test_spark_reads_and_writes(broker: Broker, spark: SparkSession) -> None:
    source, target = broker.create_topic("spark-in", 2), broker.create_topic("spark-out", 3)
    broker.produce(source, MESSAGES)
    df = (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", broker.bootstrap)
        .option("subscribe", source)
        .option("includeHeaders", "true")
        .load()
    )
    rows = df.orderBy("partition", "offset").collect()
    assert [
        (
            row.partition,
            row.offset,
            row.key and bytes(row.key),
            row.value and bytes(row.value),
            row.headers and [(h.key, bytes(h.value)) for h in row.headers],
        )
        for row in rows
    ] == broker.consume(source)
    write(
        broker,
        df.select("key", "value", "headers", (F.col("partition") + 1).alias("partition")),
        target,
    )
    assert [(p - 1, *rest) for p, *rest in broker.consume(target)] == broker.consume(source)


DIES = """
import os, sys
from kafka_broker import Broker
broker = Broker().start()
print(broker.port, broker.folder, flush=True)
os.kill(os.getpid(), 9)
"""


@pytest.mark.spark
def test_it_dies_with_whoever_started_it() -> None:
    done = subprocess.run(
        [sys.executable, "-c", DIES], cwd=SUPPORT, capture_output=True, text=True, timeout=120
    )
    port, folder = done.stdout.split()
    until = time.monotonic() + 20
    while time.monotonic() < until and (Path(folder).exists() or listens(int(port))):
        time.sleep(0.1)
    assert not Path(folder).exists()
    assert not listens(int(port))


def listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except ConnectionRefusedError:
        return False
    return True


JAVA = """#!/bin/sh
echo called >> "$(dirname "$0")/calls"
for told; do case "$told" in */jars/*) out="${told%%/\\[*}";; esac; done
"""


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own and a java that does what the test writes into it, without network."""
    monkeypatch.setenv("HEADGATE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.delenv("HEADGATE_JARS", raising=False)
    (tmp_path / "bin").mkdir()
    return tmp_path / "bin" / "java"


def act(java: Path, then: str) -> None:
    java.write_text(JAVA + then)
    java.chmod(0o755)


def test_jars_are_resolved_once(java: Path) -> None:
    act(java, 'mkdir -p "$out" && touch "$out/b-1.0.jar" "$out/a-2.0.jar"')
    resolved = jars.resolve(["org.x:a:2.0"])
    assert [jar.name for jar in resolved] == ["a-2.0.jar", "b-1.0.jar"]
    assert jars.resolve(["org.x:a:2.0"]) == resolved
    assert (java.parent / "calls").read_text() == "called\n"
    assert [each.name for each in resolved[0].parent.parent.iterdir()] == [resolved[0].parent.name]


def test_what_cannot_be_resolved_is_said_and_leaves_nothing(java: Path) -> None:
    act(java, "echo '  :: org.x#a;2.0: not found'; exit 1")
    with pytest.raises(UsageError, match=r"org\.x:a:2\.0: not found.*HEADGATE_JARS.*--packages"):
        jars.resolve(["org.x:a:2.0"])
    assert list((java.parent.parent / "cache" / "jars").iterdir()) == []


def test_without_java_it_says_so(java: Path) -> None:
    with pytest.raises(UsageError, match="needs a JDK"):
        jars.resolve(["org.x:a:2.0"])


def test_jars_of_a_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADGATE_JARS", str(tmp_path))
    with pytest.raises(UsageError, match="there is no jar"):
        jars.settings("kafka")
    (tmp_path / "mine-1.0.jar").touch()
    assert jars.settings("kafka") == {"spark.jars": str(tmp_path / "mine-1.0.jar")}


def test_every_jar_of_a_connector_has_its_checksum() -> None:
    names = [line.split()[1] for line in jars.CHECKSUMS.read_text().splitlines()]
    kafka = [jars.kafka_connector(version) for version in jars.KAFKA_FOR_SPARK]
    wanted = [told.split(":") for each in (*jars.CONNECTORS.values(), *kafka) for told in each]
    assert sorted(names) == sorted({f"{name}-{version}.jar" for _, name, version in wanted})


def test_a_connector_of_another_spark_is_taken_with_a_warning(
    java: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    wanted = jars.kafka_connector("4.9.0")
    assert {"4.9.0"} == {each.rpartition(":")[2] for each in wanted[:2]}
    monkeypatch.setattr(jars, "CONNECTORS", {"kafka": wanted})
    act(java, 'mkdir -p "$out" && touch "$out/spark-sql-kafka-0-10_2.13-4.9.0.jar"')

    assert "spark-sql-kafka-0-10_2.13-4.9.0.jar" in jars.settings("kafka")["spark.jars"]
    assert "only the checksums of Maven Central were verified" in caplog.text


def test_a_jar_that_was_changed_or_put_there_is_refused(
    java: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    wanted = ("org.x:a:2.0",)
    sums = tmp_path / "sums"
    sums.write_text(f"{sha256(b'good').hexdigest()}  a-2.0.jar\n")
    monkeypatch.setattr(jars, "CHECKSUMS", sums)
    monkeypatch.setattr(jars, "CONNECTORS", {"x": wanted})
    act(java, 'mkdir -p "$out" && printf good > "$out/a-2.0.jar"')
    jar = Path(jars.settings("x")["spark.jars"])
    assert "a-2.0.jar" == jar.name

    jar.with_name("b-1.0.jar").touch()
    with pytest.raises(UsageError, match=r"b-1\.0\.jar is none of the connector's jars"):
        jars.settings("x")
    jar.with_name("b-1.0.jar").unlink()
    jar.write_bytes(b"evil")
    with pytest.raises(UsageError, match=r"a-2\.0\.jar has another SHA-256 .*; find out"):
        jars.settings("x")


def test_an_unknown_connector_is_refused() -> None:
    with pytest.raises(UsageError, match="did you mean 'kafka'"):
        jars.settings("kafak")
