"""A real Kafka broker for tests and the benchmark: one node, KRaft, from its published jars."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
import uuid
import warnings
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Sequence
from pathlib import Path

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic
from server_process import SHORT_LIVED, ServerProcess, free_ports

from headgate.core.errors import UsageError
from headgate.spark import jars

SERVER = ["org.apache.kafka:kafka_2.13:4.3.1", "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4"]

Headers = list[tuple[str, bytes]] | None
Message = tuple[bytes | None, bytes | None, int | None, Headers]
"""Key, value, partition (None: by the key, as Kafka's own client does), headers."""
Record = tuple[int, int, bytes | None, bytes | None, Headers]
"""Partition, offset, key, value, headers."""

READY = 60
LOGGING = """rootLogger.level = info
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{HH:mm:ss.SSS} %p %c{1}: %m%n%ex
"""
PROPERTIES = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
log.dirs={data}
# Messages of tests are of any year, and none may expire unless a test says so.
log.retention.ms=-1
log.retention.check.interval.ms=10000
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
"""


class Broker:
    """A broker on loopback. What it is asked for goes through librdkafka, not Java's client."""

    def __init__(
        self,
        heap: str = "512m",
        properties: str = PROPERTIES,
        jvm_options: Sequence[str] = SHORT_LIVED,
    ) -> None:
        self.classpath = ":".join(map(str, jars.resolve(SERVER)))
        self.properties = properties
        self.jvm_options = [f"-Xmx{heap}", "-XX:+UseSerialGC", *jvm_options]
        self.folder = Path(tempfile.mkdtemp(prefix="headgate-kafka-"))
        self.log = self.folder / "broker.log"
        self.port, self.controller = free_ports(2)
        self.bootstrap = f"127.0.0.1:{self.port}"
        self.client = {"bootstrap.servers": self.bootstrap, "log_level": 3}
        self.process: ServerProcess | None = None

    def start(self) -> Broker:
        """Start it, again after `kill` too, with all of its data; returns when it answers."""
        properties = self.folder / "server.properties"
        if not properties.exists():
            self.format(properties)
        command = self.java("kafka.Kafka", str(properties))
        self.process = ServerProcess(command, self.folder, self.log)
        self.wait()
        return self

    def java(self, *arguments: str) -> list[str]:
        logging = f"-Dlog4j2.configurationFile={self.folder / 'log4j2.properties'}"
        return [str(jars.java()), *self.jvm_options, logging, "-cp", self.classpath, *arguments]

    def format(self, properties: Path) -> None:
        (self.folder / "log4j2.properties").write_text(LOGGING)
        unfinished = properties.with_suffix(".part")
        unfinished.write_text(
            self.properties.format(
                port=self.port, controller=self.controller, data=self.folder / "data"
            )
        )
        cluster = urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
        command = self.java(
            "kafka.tools.StorageTool", "format", f"--cluster-id={cluster}", "-c", str(unfinished)
        )
        done = subprocess.run(command, capture_output=True, text=True, timeout=READY)
        if done.returncode:
            raise RuntimeError(f"Kafka's storage was not made: {done.stdout}{done.stderr}")
        unfinished.rename(properties)

    def wait(self) -> None:
        """Until it answers, or say with its log why it does not."""
        admin = AdminClient({**self.client, "log_level": 0})
        until = time.monotonic() + READY
        while time.monotonic() < until and self.process and self.process.is_running():
            try:
                if admin.list_topics(timeout=1).brokers:
                    return
            except KafkaException:
                pass
        end = self.log.read_text(errors="replace")[-4000:]
        self.close()
        raise RuntimeError(
            f"the Kafka broker did not answer within {READY} s; its log ends:\n{end}"
        )

    def stop(self) -> None:
        """Stop it cleanly; its data stays until `close`."""
        self.end(kill=False)

    def kill(self) -> None:
        """Stop it as kill -9 does."""
        self.end(kill=True)

    def end(self, kill: bool) -> None:
        if self.process:
            self.process.end(kill)
        self.process = None

    def close(self) -> None:
        """Stop it and remove its data."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Broker:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def create_topic(self, name: str, partitions: int = 1, **config: str) -> str:
        """Make a topic; settings with underscores for their points."""
        settings = {key.replace("_", "."): value for key, value in config.items()}
        topic = NewTopic(name, num_partitions=partitions, replication_factor=1, config=settings)
        admin = AdminClient(self.client)
        admin.create_topics([topic])[name].result(30)
        return name

    def delete_topic(self, name: str) -> None:
        admin = AdminClient(self.client)
        admin.delete_topics([name])[name].result(30)

    def empty_topic(self, name: str, partitions: int) -> None:
        """Delete its messages, and wait until their files have gone, but the one it writes to."""
        admin = AdminClient(self.client)
        ends = [TopicPartition(name, number, OFFSET_END) for number in range(partitions)]
        for done in admin.delete_records(ends).values():
            done.result(30)
        until = time.monotonic() + READY
        while len(list(self.folder.glob(f"data/{name}-*/*.log*"))) > partitions:
            if time.monotonic() > until:
                raise RuntimeError(f"the broker still has files of {name} after {READY} s")
            time.sleep(0.05)

    def produce(self, topic: str, messages: Iterable[Message]) -> None:
        """Send messages and see each acknowledged."""
        failed: list[KafkaError] = []

        def acknowledged(error: KafkaError | None, _: object) -> None:
            if error:
                failed.append(error)

        producer = Producer({**self.client, "linger.ms": 5, "partitioner": "murmur2_random"})
        for key, value, partition, headers in messages:
            where = {} if partition is None else {"partition": partition}
            while True:
                try:
                    producer.produce(
                        topic, value, key, headers=headers, on_delivery=acknowledged, **where
                    )
                    break
                except BufferError:
                    producer.poll(0.1)
            producer.poll(0)
        unsent = producer.flush(60)
        if failed or unsent:
            raise KafkaException(failed[0] if failed else f"{unsent} messages were not sent")

    def consume(self, topic: str) -> list[Record]:
        """All that a topic holds now, partition by partition in its order."""
        consumer = Consumer(
            {
                **self.client,
                "group.id": "reads-all",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
            }
        )
        try:
            open_ones = set(consumer.list_topics(topic, timeout=10).topics[topic].partitions)
            consumer.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in open_ones])
            records: list[Record] = []
            until = time.monotonic() + READY
            while open_ones:
                if time.monotonic() > until:
                    raise TimeoutError(f"{topic}: partitions {open_ones} not read to their end")
                for message in consumer.consume(1000, timeout=1):
                    if error := message.error():
                        if error.code() != KafkaError._PARTITION_EOF:
                            raise KafkaException(error)
                        open_ones.discard(message.partition())
                    else:
                        records.append(
                            (
                                message.partition(),
                                message.offset(),
                                message.key(),
                                message.value(),
                                message.headers(),
                            )
                        )
            return sorted(records, key=lambda record: record[:2])
        finally:
            consumer.close()


def connector_settings() -> dict[str, str]:
    """Spark settings with the connectors; without them, outside CI, only their tests fail."""
    try:
        return jars.settings("kafka", "mariadb")
    except UsageError as error:
        if os.environ.get("CI") == "true":
            raise
        warnings.warn(f"Spark has no connectors here: {error}", stacklevel=2)
        return {}
