"""Messages from and to a queue: requests that are under way while the next ones are made.

A broker gives a few dozen messages at once, and each call from Python into the JVM costs a
microsecond or two: so a pull is made of the fields of a header that is worked out once. Nobody
waits in a thread of Python's, which would get the interpreter back only when the others let go.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar

from headgate.rocketmq.errors import ClientError, answered

if TYPE_CHECKING:
    from headgate.rocketmq.client import Client, Queue

T = TypeVar("T")
Buffer = bytes | memoryview

PULL_MESSAGE, SEND_BATCH = 11, 320
SUBSCRIPTION = 4
"""The flag of a pull that says itself what it subscribes to."""
DEFAULT_TOPIC = "TBW102"
STATUSES: dict[int, Literal["found", "none", "moved"]] = {
    0: "found",
    19: "none",
    20: "none",
    21: "moved",
}
"""What the codes of a pull's answer mean."""
_HEADER = "org.apache.rocketmq.remoting.protocol.header"


class Pulled(NamedTuple):
    """What a pull brought."""

    status: Literal["found", "none", "moved"]
    """`moved`: the offset is outside of what the queue has."""
    next: int
    """The offset to go on with."""
    least: int
    """The queue's first offset."""
    data: bytes
    """Messages one behind the other, as brokers store them."""


class Asked(Generic[T]):
    """A request that is under way."""

    def __init__(
        self, transfer: Transfer, future: Any, read: Callable[[Any], T], error: ClientError | None
    ) -> None:
        self.transfer, self.future, self.read, self.error = transfer, future, read, error

    def result(self) -> T:
        """Wait for the answer; ClientError where there is none, or the broker refuses."""
        if self.error is not None:
            raise self.error
        with self.transfer.asking():
            return self.read(self.future.get())


class Transfer:
    """Pulls messages from a queue of a topic, and sends to it."""

    def __init__(self, client: Client, topic: str, queue: Queue, group: str) -> None:
        self.client, self.topic, self.queue, self.group = client, topic, queue, group
        self.where = f"{client.where}: topic {topic}, queue {queue}"

    def asking(self) -> Any:
        """Make errors of the client's exceptions."""
        return self.client.asking_broker(self.queue, self.where)

    def pull(self, offset: int, most: int) -> Asked[Pulled]:
        """Ask for messages from an offset on: as many as the broker gives; it does not wait."""
        fields = self.pull_fields.clone()
        fields.put("queueOffset", str(offset))
        fields.put("maxMsgNums", str(most))
        request = self.client.command.createRequestCommand(PULL_MESSAGE, None)
        request.setExtFields(fields)
        return self.ask(request, self.pulled)

    def send(self, parts: Sequence[Buffer]) -> Asked[None]:
        """Send messages (layout.message each); they are stored when there is an answer."""
        request = self.client.command.createRequestCommand(SEND_BATCH, self.send_header())
        request.setBody(self.client.java_bytes(parts))
        return self.ask(request, self.sent)

    def ask(self, request: Any, read: Callable[[Any], T]) -> Asked[T]:
        """Send a request; its error is raised when its answer is waited for."""
        client = self.client
        try:
            with self.asking():
                address = client.address(self.topic, self.queue)
                future = client.remoting.invoke(address, request, client.millis)
        except ClientError as error:
            return Asked(self, None, read, error)
        return Asked(self, future, read, None)

    def pulled(self, response: Any) -> Pulled:
        """What is in the answer to a pull."""
        status = STATUSES.get(int(response.getCode()))
        if status is None:
            raise self.refused(response)
        fields = response.getExtFields()
        data = response.getBody() if status == "found" else None
        return Pulled(
            status,
            int(str(fields.get("nextBeginOffset"))),
            int(str(fields.get("minOffset"))),
            b"" if data is None else bytes(data),
        )

    def sent(self, response: Any) -> None:
        """Look at the answer to a batch."""
        if int(response.getCode()):
            raise self.refused(response)

    def refused(self, response: Any) -> ClientError:
        """The error of an answer that is none."""
        return answered(self.where, int(response.getCode()), str(response.getRemark()))

    @cached_property
    def pull_fields(self) -> Any:
        """The fields of a pull; those that change are set each time."""
        number, long = self.client.boxes
        header = self.client.jpype.JClass(f"{_HEADER}.PullMessageRequestHeader")()
        header.setConsumerGroup(self.group)
        header.setTopic(self.topic)
        header.setQueueId(number(self.queue.number))
        header.setQueueOffset(long(0))
        header.setMaxMsgNums(number(0))
        header.setSysFlag(number(SUBSCRIPTION))
        header.setCommitOffset(long(0))
        header.setSuspendTimeoutMillis(long(0))
        header.setSubscription("*")
        header.setSubVersion(long(0))
        header.setExpressionType("TAG")
        header.setBrokerName(self.queue.broker)
        request = self.client.command.createRequestCommand(PULL_MESSAGE, header)
        request.makeCustomHeaderToNet()
        return request.getExtFields()

    def send_header(self) -> Any:
        """The header of a batch; its members have letters for names."""
        number, long = self.client.boxes
        header = self.client.jpype.JClass(f"{_HEADER}.SendMessageRequestHeaderV2")()
        header.setA(self.group)
        header.setB(self.topic)
        header.setC(DEFAULT_TOPIC)
        header.setD(number(4))
        header.setE(number(self.queue.number))
        header.setF(number(0))
        header.setG(long(int(time.time() * 1000)))
        header.setH(number(0))
        header.setJ(number(0))
        header.setK(False)
        header.setM(True)
        header.setBrokerName(self.queue.broker)
        return header
