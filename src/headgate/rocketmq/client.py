"""RocketMQ's remoting client, as the source and the sink use it: few calls, each for many messages.

Requests are those of RocketMQ's own client (MQClientAPIImpl), below its producers and consumers:
these make an object of each message, and a call from Python for each of its parts costs more than
the message. Here a batch is sent as the bytes of its messages, and what is pulled comes as bytes.
"""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from headgate.rocketmq import jvm
from headgate.rocketmq.client_options import Connection
from headgate.rocketmq.errors import NO_TOPIC, ClientError, translated
from headgate.rocketmq.tls import tls_files
from headgate.rocketmq.transfer import DEFAULT_TOPIC, Buffer, Pulled, Transfer

GROUP = "headgate"
"""The group of producers, and of consumers unless the source names one."""
READ, WRITE = 4, 2
"""Bits of a queue's permissions."""
OWN_PREFIXES = ("%RETRY%", "%DLQ%", "rmq_sys_", "RMQ_SYS_", "SCHEDULE_TOPIC")
OWN_TOPICS = {
    DEFAULT_TOPIC,
    "BenchmarkTest",
    "OFFSET_MOVED_EVENT",
    "SELF_TEST_TOPIC",
    "TRANS_CHECK_MAX_TIME_TOPIC",
    "DefaultHeartBeatSyncerTopic",
}
CREATED_SECONDS = 10.0
"""How long name servers may take to know a new topic."""
SHARED_BYTES = 512 << 10
"""Of the memory through which bytes get into the JVM."""
_API = "org.apache.rocketmq.client.impl.mqclient"
_PROTOCOL = "org.apache.rocketmq.remoting.protocol"


@dataclass(frozen=True, order=True)
class Queue:
    """A queue of a topic.

    >>> str(Queue("broker-a", 3)), Queue.of("broker-a:3")
    ('broker-a:3', Queue(broker='broker-a', number=3))
    """

    broker: str
    number: int

    def __str__(self) -> str:
        return f"{self.broker}:{self.number}"

    @classmethod
    def of(cls, text: str) -> Self:
        """A queue of its text."""
        broker, _, number = text.rpartition(":")
        return cls(broker, int(number))


class Client:
    """A connection to name servers and brokers; all calls raise ClientError where one refuses.

    It may be used by several threads.
    """

    def __init__(self, connection: Connection, paths: Sequence[str] | None = None) -> None:
        self.jpype = jvm.start(paths)
        self.where = connection.address
        self.millis = round(connection.timeout * 1000)
        self.retry = connection.retry
        self.copying = threading.Lock()
        self.masters: dict[str, str] = {}
        """The addresses of brokers by their names, as last heard."""
        with self.asking():
            self.api = self.opened(connection)
        # Before the JVM ends, which waits for the client's threads.
        atexit.register(self.close)

    def opened(self, connection: Connection) -> Any:
        """RocketMQ's client, started."""
        java = self.jpype.JClass
        config = java("org.apache.rocketmq.client.ClientConfig")()
        netty = java("org.apache.rocketmq.remoting.netty.NettyClientConfig")()
        netty.setClientWorkerThreads(2)
        netty.setDisableCallbackExecutor(True)  # an answer only wakes who waits for it
        netty.setConnectTimeoutMillis(self.millis)
        netty.setUseTLS(connection.tls is not None)
        hook = None
        if connection.access_key is not None:
            acl = "org.apache.rocketmq.acl.common"
            credentials = java(f"{acl}.SessionCredentials")(
                connection.access_key, connection.secret_key
            )
            if connection.security_token is not None:
                credentials.setSecurityToken(connection.security_token)
            hook = java(f"{acl}.AclClientRPCHook")(credentials)
        processor = java(f"{_API}.DoNothingClientRemotingProcessor")(None)
        with tls_files(self.jpype, connection.tls):
            api = java(f"{_API}.MQClientAPIExt")(config, netty, processor, hook)
            api.updateNameServerAddressList(";".join(connection.servers))
            api.start()
        return api

    @contextmanager
    def asking(self, where: str | None = None) -> Iterator[None]:
        """Make errors of the client's exceptions."""
        try:
            yield
        except self.jpype.JException as error:
            raise translated(where or self.where, error) from None

    def close(self) -> None:
        """Close the connections."""
        atexit.unregister(self.close)
        self.api.shutdown()

    # Topics and their queues

    def topics(self) -> list[str]:
        """All topics but those that RocketMQ keeps for itself."""
        with self.asking():
            names = self.api.getTopicListFromNameServer(self.millis).getTopicList()
            cluster = self.api.getBrokerClusterInfo(self.millis)
        # Each broker has a topic of its name, and each cluster two.
        own = {*map(str, cluster.getBrokerAddrTable()), *map(str, cluster.getClusterAddrTable())}
        own |= {f"{name}_REPLY_TOPIC" for name in own}
        return sorted({str(name) for name in names if not is_own(str(name))} - own)

    def readable(self, topic: str) -> list[Queue]:
        """The queues that can be read; none where there is no such topic."""
        return self.queues(topic, READ, lambda data: data.getReadQueueNums())

    def writable(self, topic: str) -> list[Queue]:
        """The queues that can be written; none where there is no such topic."""
        return self.queues(topic, WRITE, lambda data: data.getWriteQueueNums())

    def queues(self, topic: str, permission: int, count: Callable[[Any], Any]) -> list[Queue]:
        """The queues of a topic that brokers permit this of."""
        route = self.route(topic)
        if route is None:
            return []
        return sorted(
            Queue(str(data.getBrokerName()), number)
            for data in route.getQueueDatas()
            if int(data.getPerm()) & permission and str(data.getBrokerName()) in self.masters
            for number in range(int(count(data)))
        )

    def route(self, topic: str) -> Any:
        """What name servers say of a topic; None where they do not know it."""
        try:
            with self.asking():
                route = self.api.getTopicRouteInfoFromNameServer(topic, self.millis)
        except ClientError as error:
            if error.code == NO_TOPIC:
                return None
            raise
        self.note_masters(route.getBrokerDatas())
        return route

    def note_masters(self, brokers: Any) -> None:
        """Note the addresses of brokers that take requests."""
        for broker in brokers:
            master = broker.getBrokerAddrs().get(self.jpype.JLong(0))
            if master is not None:
                self.masters[str(broker.getBrokerName())] = str(master)

    def cluster(self) -> dict[str, str]:
        """The addresses of all brokers that take requests, by their names."""
        with self.asking():
            table = self.api.getBrokerClusterInfo(self.millis).getBrokerAddrTable()
            self.note_masters(table.values())
            return {str(name): self.masters[str(name)] for name in table if name in self.masters}

    def create_topic(self, name: str, queues: int) -> None:
        """Create a topic of at least so many queues on the brokers of the cluster."""
        brokers = self.cluster()
        if not brokers:
            raise ClientError(f"{self.where}: no broker is registered; start one", passes=True)
        each = -(-queues // len(brokers))
        config = self.jpype.JClass("org.apache.rocketmq.common.TopicConfig")(
            name, each, each, READ | WRITE
        )
        for broker, address in brokers.items():
            with self.asking(f"{self.where}: topic {name} on {broker}"):
                self.api.createTopic(address, DEFAULT_TOPIC, config, self.millis)
        until = time.monotonic() + CREATED_SECONDS
        while len(self.writable(name)) < queues:
            if time.monotonic() > until:
                raise ClientError(
                    f"{self.where}: topic {name} was created, and name servers do not know it",
                    passes=True,
                )
            time.sleep(0.05)

    # Offsets

    def min_offset(self, topic: str, queue: Queue) -> int:
        """The offset of a queue's first message."""
        with self.asking_broker(queue):
            return int(self.api.getMinOffset(*self.place(topic, queue), self.millis))

    def max_offset(self, topic: str, queue: Queue) -> int:
        """The offset behind a queue's last message."""
        with self.asking_broker(queue):
            return int(self.api.getMaxOffset(*self.place(topic, queue), self.millis))

    def offset_at(self, topic: str, queue: Queue, millis: int) -> int:
        """The offset of the first message that was stored at this time or after it."""
        with self.asking_broker(queue):
            place = self.place(topic, queue)
            return int(self.api.searchOffset(*place, self.jpype.JLong(millis), self.millis))

    def place(self, topic: str, queue: Queue) -> tuple[str, Any]:
        """The address of a queue's broker, and the queue for RocketMQ's client."""
        return self.address(topic, queue), self.message_queue(topic, queue.broker, queue.number)

    @cached_property
    def message_queue(self) -> Any:
        """Makes a queue for RocketMQ's client."""
        return self.jpype.JClass("org.apache.rocketmq.common.message.MessageQueue")

    def address(self, topic: str, queue: Queue) -> str:
        """The address of a queue's broker."""
        if queue.broker not in self.masters:
            self.route(topic)
        if queue.broker not in self.masters:
            raise ClientError(
                f"{self.where}: name servers do not know broker {queue.broker} of topic {topic}; "
                "start it",
                passes=True,
            )
        return self.masters[queue.broker]

    @contextmanager
    def asking_broker(self, queue: Queue, where: str | None = None) -> Iterator[None]:
        """As `asking`; a broker that does not answer may have moved, and is looked up again."""
        try:
            with self.asking(where):
                yield
        except ClientError as error:
            if error.passes:
                self.masters.pop(queue.broker, None)
            raise

    # Messages

    def transfer(self, topic: str, queue: Queue, group: str = GROUP) -> Transfer:
        """Pulls messages from a queue, and sends to it."""
        return Transfer(self, topic, queue, group)

    def pull(
        self, topic: str, queue: Queue, offset: int, most: int = 1024, group: str = GROUP
    ) -> Pulled:
        """Messages from an offset on, as many as the broker gives at once; it does not wait."""
        return self.transfer(topic, queue, group).pull(offset, most).result()

    def send(self, topic: str, queue: Queue, data: bytes) -> None:
        """Send messages of one queue (layout.message each); they are stored when this returns."""
        self.transfer(topic, queue).send([data]).result()

    def java_bytes(self, parts: Sequence[Buffer]) -> Any:
        """An array of Java's with the bytes of all parts.

        Through memory that both sides see: JPype would take them over one by one, which costs more
        than all else that is done to send them.
        """
        array, end = self.jpype.JByte[sum(map(len, parts))], 0
        with self.copying:
            memory, buffer = self.shared
            for part in (memoryview(each).cast("B") for each in parts):
                for start in range(0, len(part), SHARED_BYTES):
                    piece = part[start : start + SHARED_BYTES]
                    memory[: len(piece)] = piece
                    buffer.clear()
                    buffer.get(array, end, len(piece))
                    end += len(piece)
        return array

    @cached_property
    def shared(self) -> tuple[memoryview, Any]:
        """Memory, as Python sees it and as Java does."""
        memory = bytearray(SHARED_BYTES)
        return memoryview(memory), self.jpype.nio.convertToDirectBuffer(memory)

    @cached_property
    def boxes(self) -> tuple[Any, Any]:
        """Make the numbers of headers, which are objects."""
        return self.jpype.JClass("java.lang.Integer"), self.jpype.JClass("java.lang.Long")

    @cached_property
    def command(self) -> Any:
        """Makes requests."""
        return self.jpype.JClass(f"{_PROTOCOL}.RemotingCommand")

    @cached_property
    def remoting(self) -> Any:
        """Sends requests."""
        return self.api.getRemotingClient()


_clients: dict[Connection, Client] = {}
_opening = threading.Lock()


def client(connection: Connection, paths: Sequence[str] | None = None) -> Client:
    """This process's client for a connection; `paths` are the jars of workers (jvm.local_jars)."""
    with _opening:
        if connection not in _clients:
            _clients[connection] = Client(connection, paths)
        return _clients[connection]


def is_own(topic: str) -> bool:
    """Whether RocketMQ keeps a topic for itself.

    >>> is_own("%RETRY%group"), is_own("orders")
    (True, False)
    """
    return topic in OWN_TOPICS or topic.startswith(OWN_PREFIXES)
