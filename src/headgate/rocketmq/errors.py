"""What RocketMQ's servers answer where something is wrong, and what to do."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import chain, repeat
from typing import Any, TypeVar

from headgate.core.errors import UsageError, shown

T = TypeVar("T")

PAUSES = (0.1, 0.2, 0.5, 1.0, 2.0)
"""Seconds before each further attempt; the last one for all that follow."""
SYSTEM_ERROR, SYSTEM_BUSY = 1, 2
NOT_FLUSHED, NO_REPLICA, NOT_REPLICATED = 10, 11, 12
MESSAGE_ILLEGAL, NOT_AVAILABLE, NO_PERMISSION, NO_TOPIC = 13, 14, 16, 17
NO_GROUP, FLOW_CONTROL = 26, 215
PASSING = {
    SYSTEM_ERROR,
    SYSTEM_BUSY,
    NOT_FLUSHED,
    NO_REPLICA,
    NOT_REPLICATED,
    NOT_AVAILABLE,
    FLOW_CONTROL,
}
"""Answers that may be others when one asks again: a broker is busy, starts, or lacks replicas."""
UNREACHABLE = {
    "RemotingException",
    "RemotingConnectException",
    "RemotingTimeoutException",
    "RemotingSendRequestException",
    "RemotingTooMuchRequestException",
}
"""Exceptions of the client where no answer came."""
WRAPPERS = {"ExecutionException", "CompletionException"}
"""Exceptions whose cause is what happened."""
REMEDIES = {
    NO_PERMISSION: "check access-key and secret-key, and what the user may do with the topic",
    MESSAGE_ILLEGAL: "check max-message-bytes and the broker's maxMessageSize",
    NO_TOPIC: "create the topic",
    NO_GROUP: "create the group, or name another one in group",
}


class ClientError(UsageError):
    """RocketMQ refused a request, or nobody answered it."""

    def __init__(self, message: str, passes: bool = False, code: int | None = None) -> None:
        super().__init__(message)
        self.passes = passes
        """Whether asking again may help."""
        self.code = code
        """RocketMQ's own code, if there was an answer."""


def answered(where: str, code: int, remark: str) -> ClientError:
    """The error of an answer that is none."""
    remedy = REMEDIES.get(code, "look at the broker's log")
    return ClientError(
        f"{where}: RocketMQ says: {sentence(remark) or f'code {code}'}; {remedy}",
        code in PASSING,
        code,
    )


def translated(where: str, error: Any) -> ClientError:
    """An exception of the Java client as an error."""
    kind = str(error.getClass().getSimpleName())
    while kind in WRAPPERS and error.getCause() is not None:
        error = error.getCause()
        kind = str(error.getClass().getSimpleName())
    if kind in UNREACHABLE:
        # The message of the plain exception is the request, with its signature.
        detail = kind if kind == "RemotingException" else sentence(str(error.getMessage()))
        return ClientError(
            f"{where}: no answer ({detail}); check the address and whether the servers run",
            passes=True,
        )
    if kind in ("MQBrokerException", "MQClientException"):
        return answered(where, int(error.getResponseCode()), str(error.getErrorMessage()))
    return ClientError(f"{where}: {kind}: {sentence(str(error.getMessage()))}; check the address")


def sentence(remark: str) -> str:
    """What RocketMQ says, in one short line."""
    return shown(remark.partition("\n")[0].partition("\r")[0], 300)[1:-1]


def retried(ask: Callable[[], T], seconds: float) -> T:
    """The answer to a request, which is repeated for so long while servers are busy or away.

    >>> retried(lambda: "answer", 0)
    'answer'
    """
    for last in attempts(seconds):
        try:
            return ask()
        except ClientError as error:
            if last or not error.passes:
                raise
    raise AssertionError  # the last attempt returned or raised


def attempts(seconds: float) -> Iterator[bool]:
    """Attempts with growing pauses between them for so long; whether each is the last.

    >>> list(attempts(0)), list(attempts(0.15))
    ([True], [False, True])
    """
    until = time.monotonic() + seconds
    for pause in chain(PAUSES, repeat(PAUSES[-1])):
        last = time.monotonic() + pause > until
        yield last
        if last:
            return
        time.sleep(pause)
