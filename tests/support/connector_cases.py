"""What the contract suites need to know of each source and sink: one line for each.

A connector comes under the contract by a class here, registered in SOURCES or SINKS: Headgate's
own, and one of an installed package.
"""

from __future__ import annotations

import io
import os
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from datahub_server import PROJECT, DataHubServer
from kafka_broker import Broker
from rocketmq_server import Sent, Server
from server_process import free_ports

from headgate.core.errors import UsageError
from headgate.sources.message_files import expand, read, splits

ANSWER_SECONDS = 10
"""Within this an address that nobody listens on is reported."""


@dataclass
class World:
    """What tests have at hand."""

    folder: Path
    fixture: Callable[[str], Any]
    """Servers, each started when it is first asked for."""
    capture: pytest.CaptureFixture[bytes]
    monkeypatch: pytest.MonkeyPatch
    printed: list[bytes] = field(default_factory=list)
    topics: set[str] = field(default_factory=set)

    def broker(self) -> Broker:
        return self.fixture("broker")

    def rocketmq(self) -> Server:
        return self.fixture("rocketmq")


class FileCase:
    """A directory below the test's own."""

    def uri(self, world: World, name: str) -> str:
        return f"file://{quote(str(world.folder))}/{quote(name)}?"

    def put(self, world: World, name: str, values: Sequence[bytes]) -> None:
        """Messages, as one more file."""
        folder = world.folder / name
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{len(list(folder.iterdir())):04d}.jsonl"
        file.write_bytes(b"".join(value + b"\n" for value in values))

    def written(self, world: World, name: str) -> list[bytes]:
        """The values that a sink wrote, in order."""
        files = expand([os.path.normpath(world.folder / name)])
        batches = (batch for file in files for split in splits(file) for batch in read(split))
        return [value for batch in batches for value in batch.column("value").to_pylist()]

    def unreachable(self) -> str | None:
        """A URI whose server does not answer; None if there is no server."""
        return None


class KafkaCase(FileCase):
    """Topics of the tests' broker, of one partition."""

    def uri(self, world: World, name: str) -> str:
        broker = world.broker().bootstrap
        return f"kafka://{broker}/{quote(name, safe='')}?partition-num=1&dial-timeout=1s&"

    def put(self, world: World, name: str, values: Sequence[bytes]) -> None:
        broker = world.broker()
        if name not in world.topics:
            world.topics.add(broker.create_topic(name))
        broker.produce(name, [(None, value, 0, None) for value in values])

    def written(self, world: World, name: str) -> list[bytes]:
        return [value for _, _, _, value, _ in world.broker().consume(name) if value is not None]

    def unreachable(self) -> str | None:
        return f"kafka://127.0.0.1:{free_ports(1)[0]}/t?dial-timeout=1s&"


class RocketMQCase(FileCase):
    """Topics of the tests' RocketMQ, of one queue."""

    def uri(self, world: World, name: str) -> str:
        return f"{world.rocketmq().uri(quote(name, safe=''))}partition-num=1&"

    def put(self, world: World, name: str, values: Sequence[bytes]) -> None:
        server = world.rocketmq()
        if name not in world.topics:
            world.topics.add(server.create_topic(name))
        server.produce(name, [Sent(value) for value in values])

    def written(self, world: World, name: str) -> list[bytes]:
        return [message.body for message in world.rocketmq().consume(name)]

    def unreachable(self) -> str | None:
        return f"rocketmq://127.0.0.1:{free_ports(1)[0]}/t?timeout=1s&"


class DataHubCase(FileCase):
    """Topics of the tests' DataHub, of one shard; no name there has a hyphen."""

    def uri(self, world: World, name: str) -> str:
        server: DataHubServer = world.fixture("datahub")
        return f"{server.uri(name.replace('-', '_'))}partition-num=1&"

    def written(self, world: World, name: str) -> list[bytes]:
        server: DataHubServer = world.fixture("datahub")
        return server.values(name.replace("-", "_"))

    def unreachable(self) -> str | None:
        place = f"127.0.0.1:{free_ports(1)[0]}/{PROJECT}/t"
        return f"datahub://{place}?enable-tls=false&access-id=a&access-key=b&"


class MySQLCase(FileCase):
    """Tables of the tests' MariaDB, whose rows have a text each."""

    def uri(self, world: World, name: str) -> str:
        server = world.fixture("mariadb")
        login = f"{server.user}:{server.password}@{server.address}"
        return f"mysql://{login}/contract.{quote(name, safe='')}?"

    def put(self, world: World, name: str, values: Sequence[bytes]) -> None:
        table = f"contract.`{name}`"
        world.fixture("mariadb").run(
            "CREATE DATABASE IF NOT EXISTS contract",
            f"CREATE TABLE IF NOT EXISTS {table} (id INT PRIMARY KEY AUTO_INCREMENT, v TEXT)",
            *(f"INSERT INTO {table} (v) VALUES ('{value.decode()}')" for value in values),
        )

    def unreachable(self) -> str | None:
        return f"mysql://me:secret@127.0.0.1:{free_ports(1)[0]}/d.t?"


class ConsoleCase(FileCase):
    """Standard output, as pytest captures it."""

    def uri(self, world: World, name: str) -> str:
        return "console:?"

    def written(self, world: World, name: str) -> list[bytes]:
        world.printed += world.capture.readouterr().out.splitlines()
        return world.printed


class StdinCase(FileCase):
    """Standard input that is given once, as a pipe is."""

    def uri(self, world: World, name: str) -> str:
        return "stdin:?"

    def put(self, world: World, name: str, values: Sequence[bytes]) -> None:
        text = io.BytesIO(b"".join(value + b"\n" for value in values))
        world.monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(text))


class AppendCase(FileCase):
    """A file, as the sink of examples/plugin writes it."""

    def uri(self, world: World, name: str) -> str:
        return f"append:{quote(str(world.folder))}/{quote(name)}?"

    def written(self, world: World, name: str) -> list[bytes]:
        return (world.folder / name).read_bytes().splitlines()


SOURCES = {
    "kafka": KafkaCase(),
    "rocketmq": RocketMQCase(),
    "mysql": MySQLCase(),
    "file": FileCase(),
    "stdin": StdinCase(),
}
SINKS = {
    "kafka": KafkaCase(),
    "rocketmq": RocketMQCase(),
    "datahub": DataHubCase(),
    "file": FileCase(),
    "console": ConsoleCase(),
    "append": AppendCase(),
}

HOSTILE = {
    "slash": "a/b",
    "parent": "..",
    "newline": "a\nb",
    "quotes": """it's "x" `y`""",
    "template": "{database}.{tabel}",
    "long": "x" * 100_000,
}
"""Names that a topic, table or directory might be given, by what is wrong with them."""


def check_unreachable(uri: str, *connects: Callable[[], object]) -> None:
    """Check that each way to connect, all at the same time, fails soon and names the address."""
    address = uri.partition("//")[2].partition("/")[0].rpartition("@")[2]
    started = time.monotonic()
    with ThreadPoolExecutor() as pool:
        answers = [pool.submit(connect) for connect in connects]
    assert time.monotonic() - started < ANSWER_SECONDS
    for answer in answers:
        with pytest.raises(UsageError) as caught:
            answer.result()
        assert address in str(caught.value)
