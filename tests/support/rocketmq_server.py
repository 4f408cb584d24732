"""A real RocketMQ for tests and the benchmark: a name server and a broker, from published jars."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from server_process import SHORT_LIVED, ServerProcess, free_ports

from headgate.rocketmq import jvm
from headgate.rocketmq.client import Client, Queue
from headgate.rocketmq.client_options import Connection
from headgate.rocketmq.errors import ClientError
from headgate.spark import jars

SERVER = [f"org.apache.rocketmq:rocketmq-{part}:{jvm.VERSION}" for part in ("namesrv", "broker")]
NAME_SERVER = "org.apache.rocketmq.namesrv.NamesrvStartup"
BROKER = "org.apache.rocketmq.broker.BrokerStartup"
BROKER_NAME = "broker-a"
READY, READ = 60, 20
"""Seconds that the servers may take to answer, and a consumer to read a topic to its end."""
TRIES = 2
ADMIN = ("admin", "admin-secret-1")
"""The user that servers with ACL begin with; it may do everything."""
OPTIONS = (
    "-XX:+UseSerialGC",
    "-XX:MaxDirectMemorySize=256m",
    "--add-exports=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
)
NAME_SERVER_CONF = """bindAddress=127.0.0.1
listenPort={name_port}
"""
BROKER_CONF = """brokerClusterName=DefaultCluster
brokerName=broker-a
brokerId=0
brokerIP1=127.0.0.1
bindAddress=127.0.0.1
listenPort={port}
haListenPort={ha_port}
namesrvAddr=127.0.0.1:{name_port}
storePathRootDir={store}
storePathCommitLog={store}/commitlog
mappedFileSizeCommitLog=67108864
maxHashSlotNum=50000
maxIndexNum=200000
timerWheelEnable=false
autoCreateTopicEnable=false
diskMaxUsedSpaceRatio=95
# Messages stay, whatever the hour.
fileReservedTime=100000
"""
ACL_CONF = """authenticationEnabled=true
authenticationProvider=org.apache.rocketmq.auth.authentication.provider.DefaultAuthenticationProvider
authenticationMetadataProvider=org.apache.rocketmq.auth.authentication.provider.LocalAuthenticationMetadataProvider
initAuthenticationUser={{"username":"{user}","password":"{secret}"}}
innerClientAuthenticationCredentials={{"accessKey":"{user}","secretKey":"{secret}"}}
authorizationEnabled=true
authorizationProvider=org.apache.rocketmq.auth.authorization.provider.DefaultAuthorizationProvider
authorizationMetadataProvider=org.apache.rocketmq.auth.authorization.provider.LocalAuthorizationMetadataProvider
"""
TLS_CONF = """tls.test.mode.enable=false
tls.server.need.client.auth=none
tls.server.keyPath={folder}/server.key
tls.server.certPath={folder}/server.pem
"""
_groups = itertools.count()


class Sent(NamedTuple):
    """A message as a producer gives it."""

    body: bytes
    queue: int = 0
    tags: str | None = None
    keys: str | None = None
    properties: tuple[tuple[str, str], ...] = ()


class Received(NamedTuple):
    """A message as a consumer gets it; properties without RocketMQ's own."""

    queue: int
    offset: int
    body: bytes
    tags: str | None
    keys: str | None
    properties: dict[str, str]


class Server:
    """A name server and a broker on loopback, with ports and a directory of their own.

    What it is asked for goes through RocketMQ's public producers and consumers.
    """

    def __init__(
        self,
        heap: str = "256m",
        acl: bool = False,
        tls: bool = False,
        broker: str = BROKER_CONF,
        jvm_options: Sequence[str] = SHORT_LIVED,
    ) -> None:
        self.classpath = ":".join(map(str, jars.resolve(SERVER)))
        self.acl, self.tls, self.broker_conf = acl, tls, broker
        self.jvm_options = [f"-Xmx{heap}", *OPTIONS, *jvm_options]
        self.folder = Path(tempfile.mkdtemp(prefix="headgate-rocketmq-"))
        # A broker listens two ports below its own too.
        self.name_port, port, self.ha_port = free_ports(3)
        self.port = port if port > 2_000 else port + 2
        self.name_server = f"127.0.0.1:{self.name_port}"
        self.connection = Connection((self.name_server,), *(ADMIN if acl else ()))
        self.processes: dict[str, ServerProcess] = {}
        self.api: Client | None = None
        self.producer: Any = None

    # Start and stop

    def start(self) -> Server:
        """Start it, again after `kill` too, with all that it held; returns when it answers."""
        self.configure()
        self.spawn(NAME_SERVER, "namesrv.conf")
        self.spawn(BROKER, "broker.conf")
        self.wait()
        return self

    def configure(self) -> None:
        values = {
            "name_port": self.name_port,
            "port": self.port,
            "ha_port": self.ha_port,
            "store": self.folder / "store",
            "folder": self.folder,
            "user": ADMIN[0],
            "secret": ADMIN[1],
        }
        (self.folder / "namesrv.conf").write_text(NAME_SERVER_CONF.format(**values))
        broker = self.broker_conf + (ACL_CONF if self.acl else "")
        (self.folder / "broker.conf").write_text(broker.format(**values))
        (self.folder / "tls.conf").write_text(TLS_CONF.format(**values) if self.tls else "")
        if self.tls and not self.ca.exists():
            certify(self.folder)

    @property
    def ca(self) -> Path:
        """The certificate authority of a server with TLS."""
        return self.folder / "ca.pem"

    def spawn(self, main: str, config: str) -> None:
        command = [str(jars.java()), *self.jvm_options]
        command += [f"-Duser.home={self.folder}", f"-Drocketmq.home.dir={self.folder}"]
        command += [f"-Dtls.config.file={self.folder / 'tls.conf'}"]
        command += ["-cp", self.classpath, main, "-c", str(self.folder / config)]
        self.processes[main] = ServerProcess(
            command,
            self.folder,
            self.folder / f"{config}.log",
            {**os.environ, "ROCKETMQ_HOME": str(self.folder)},
        )

    def wait(self) -> None:
        """Until the broker is registered, or say with the logs why it is not."""
        until = time.monotonic() + READY
        while time.monotonic() < until:
            if not all(process.is_running() for process in self.processes.values()):
                break
            try:
                if BROKER_NAME in self.client.cluster():
                    return
            except ClientError:
                pass
            time.sleep(0.1)
        logs = "\n".join(
            f"{path.name}: {path.read_text(errors='replace')[-2000:]}"
            for path in (*self.folder.glob("*.log"), *self.folder.glob("logs/**/*.log"))
        )
        self.close()
        raise RuntimeError(f"RocketMQ did not answer within {READY} s; its logs end:\n{logs}")

    def kill_broker(self) -> None:
        """Stop the broker as kill -9 does."""
        self.end(BROKER, kill=True)

    def start_broker(self) -> None:
        """Start the broker again, with all that it held; returns when it is registered."""
        self.close_producer()  # it would keep the address of a broker that moved
        self.spawn(BROKER, "broker.conf")
        self.wait()

    def close_producer(self) -> None:
        if self.producer is not None:
            self.producer.shutdown()
        self.producer = None

    def stop(self) -> None:
        """Stop it cleanly; what it held stays until `close`."""
        for main in (BROKER, NAME_SERVER):
            self.end(main, kill=False)

    def kill(self) -> None:
        """Stop it as kill -9 does."""
        for main in (BROKER, NAME_SERVER):
            self.end(main, kill=True)

    def end(self, main: str, kill: bool) -> None:
        if main in self.processes:
            self.processes.pop(main).end(kill)

    def close(self) -> None:
        """Stop it and remove all that it held."""
        self.close_producer()
        if self.api is not None:
            self.api.close()
        self.api = None
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Server:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    # What it is asked for

    @property
    def client(self) -> Client:
        """A client of its administrator."""
        if self.api is None:
            self.api = Client(self.connection)
        return self.api

    def uri(self, topic: str) -> str:
        """The URI of a topic, ready for parameters."""
        return f"rocketmq://{self.name_server}/{topic}?"

    def create_topic(self, name: str, queues: int = 1) -> str:
        """Make a topic."""
        self.client.create_topic(name, queues)
        return name

    def delete_topic(self, name: str) -> None:
        """Delete a topic."""
        for address in self.client.cluster().values():
            self.client.api.deleteTopicInBroker(address, name, 5_000)
        self.client.api.deleteTopicInNameServer(self.name_server, None, name, 5_000)

    def create_user(self, name: str, secret: str, topics: dict[str, str]) -> None:
        """A user of a server with ACL, and what it may do with topics: "Pub", "Sub"."""
        java, api = jvm.start().JClass, self.client.api
        body = "org.apache.rocketmq.remoting.protocol.body"
        listed = java("java.util.Arrays").asList
        user = java(f"{body}.UserInfo").of(name, secret, "Normal")
        for address in self.client.cluster().values():
            api.createUser(address, user, 5_000)
            for topic, action in topics.items():
                rule = java(f"{body}.AclInfo").of(
                    f"User:{name}", listed([f"Topic:{topic}"]), listed([action]), None, "Allow"
                )
                api.createAcl(address, rule, 5_000)

    def hook(self) -> Any:
        jpype = jvm.start()
        acl = "org.apache.rocketmq.acl.common"
        if not self.acl:
            return jpype.JObject(None, "org.apache.rocketmq.remoting.RPCHook")
        credentials = jpype.JClass(f"{acl}.SessionCredentials")(*ADMIN)
        return jpype.JClass(f"{acl}.AclClientRPCHook")(credentials)

    def produce(self, topic: str, messages: Iterable[Sent]) -> None:
        """Send messages one by one, each acknowledged."""
        java = jvm.start().JClass
        if self.producer is None:
            self.producer = java("org.apache.rocketmq.client.producer.DefaultMQProducer")(
                f"produces-{next(_groups)}", self.hook()
            )
            self.producer.setNamesrvAddr(self.name_server)
            self.producer.start()
        for sent in messages:
            message = java("org.apache.rocketmq.common.message.Message")(topic, sent.body)
            if sent.tags is not None:
                message.setTags(sent.tags)
            if sent.keys is not None:
                message.setKeys(sent.keys)
            for name, value in sent.properties:
                message.putUserProperty(name, value)
            queue = java("org.apache.rocketmq.common.message.MessageQueue")(
                topic, BROKER_NAME, sent.queue
            )
            result = self.producer.send(message, queue)
            if str(result.getSendStatus()) != "SEND_OK":
                raise RuntimeError(f"{topic}: {result.getSendStatus()}")

    def consume(self, topic: str) -> list[Received]:
        """All that a topic holds now, queue by queue in its order."""
        jpype = jvm.start()
        self.wait_for_queues()
        for _ in range(TRIES):
            try:
                return self.consume_once(topic)
            except (jpype.JException, TimeoutError):  # as happens on a busy machine
                time.sleep(1)
        return self.consume_once(topic)

    def wait_for_queues(self) -> None:
        """Until all that the broker has acknowledged can be read.

        It acknowledges what is in its log. A thread of its own then adds it to the queues, and can
        be megabytes behind, above all when the broker has just been started.
        """
        until = time.monotonic() + READ
        for address in self.client.cluster().values():
            while self.bytes_behind(address) != 0:
                if time.monotonic() > until:
                    raise TimeoutError("the broker does not add messages to its queues")
                time.sleep(0.05)

    def bytes_behind(self, address: str) -> int | None:
        """What the queues of a broker lack of its log; None just after a start, when it fails."""
        try:
            facts = self.client.api.getBrokerRuntimeInfo(address, 5_000).getTable()
        except jvm.start().JException:
            return None
        return int(str(facts.get("dispatchBehindBytes")))

    def consume_once(self, topic: str) -> list[Received]:
        java = jvm.start().JClass
        api = self.client
        queues = {
            queue.number: (api.min_offset(topic, queue), api.max_offset(topic, queue))
            for queue in api.readable(topic)
        }
        open_ones = {n: end for n, (start, end) in queues.items() if end > start}
        # By its place: a consumer can give a message that it had before `seek` a second time.
        received: dict[tuple[int, int], Received] = {}
        if not open_ones:
            return []
        reserved = set(
            map(str, java("org.apache.rocketmq.common.message.MessageConst").STRING_HASH_SET)
        )
        consumer = java("org.apache.rocketmq.client.consumer.DefaultLitePullConsumer")(
            f"reads-all-{next(_groups)}", self.hook()
        )
        consumer.setNamesrvAddr(self.name_server)
        consumer.setAutoCommit(False)
        consumer.start()
        try:
            names = [
                java("org.apache.rocketmq.common.message.MessageQueue")(topic, BROKER_NAME, n)
                for n in open_ones
            ]
            consumer.assign(java("java.util.ArrayList")(names))
            for name in names:
                consumer.seek(name, queues[int(name.getQueueId())][0])
            until = time.monotonic() + READ
            while open_ones:
                if time.monotonic() > until:
                    raise TimeoutError(f"{topic}: queues {open_ones} not read to their end")
                for message in consumer.poll(1_000):
                    found = as_received(message, reserved)
                    received[found[:2]] = found
                    if found.offset + 1 >= open_ones.get(found.queue, 0):
                        open_ones.pop(found.queue, None)
            return [received[place] for place in sorted(received)]
        finally:
            consumer.shutdown()

    def queues(self, topic: str) -> Sequence[Queue]:
        """The queues of a topic."""
        return self.client.readable(topic)


def as_received(message: Any, reserved: set[str]) -> Received:
    """A message of Java's client."""
    properties = {str(n): str(v) for n, v in message.getProperties().items()}
    body = message.getBody()
    return Received(
        int(message.getQueueId()),
        int(message.getQueueOffset()),
        b"" if body is None else bytes(body),
        properties.get("TAGS"),
        properties.get("KEYS"),
        {n: v for n, v in properties.items() if n not in reserved},
    )


def certify(folder: Path) -> None:
    """A certificate authority, and a server's key and certificate that it signed."""
    commands = [
        "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=test-ca -keyout ca.key -out ca.pem",
        "req -newkey rsa:2048 -nodes -subj /CN=127.0.0.1 -keyout server.key -out server.csr",
        "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 "
        "-extfile san.conf -out server.pem",
    ]
    (folder / "san.conf").write_text("subjectAltName=IP:127.0.0.1\n")
    for command in commands:
        subprocess.run(
            ["openssl", *command.split()], cwd=folder, check=True, capture_output=True, timeout=60
        )
