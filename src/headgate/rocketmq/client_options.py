"""Parameters of a RocketMQ URI, and the connection that they describe."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self, TypeVar

from headgate.core.connectors import Address
from headgate.core.errors import UsageError
from headgate.core.options import build, option
from headgate.core.scalars import duration, truth
from headgate.core.tls import TlsOptions, tls_texts

DEFAULT_PORT = 9876
"""Of name servers."""
TIMEOUT = 3.0
"""Seconds that a request may take."""
LONGEST_TIMEOUT = 60.0
RETRY = 120.0
"""Seconds for which servers that are busy or away are asked again."""


def _timeout(text: str) -> float:
    seconds = duration(text)
    if not 0.1 <= seconds <= LONGEST_TIMEOUT:
        raise UsageError("timeout is out of range; it is 100ms to 1m")
    return seconds


@dataclass(frozen=True)
class RocketMQOptions(TlsOptions):
    """Parameters of any RocketMQ URI."""

    access_key: str | None = option(
        None,
        "access key of ACL, the user's name; `rocketmq://ACCESS-KEY:SECRET-KEY@…` is the same",
        private=True,
    )
    secret_key: str | None = option(None, "secret key of the access key", private=True)
    security_token: str | None = option(
        None, "token of temporary credentials, as clouds give them", private=True
    )
    insecure_skip_verify: bool = option(
        False, "do not check the servers' certificates", read=truth, private=True
    )
    timeout: float | None = option(
        None, "how long a request may take, 3s if it is not set", read=_timeout
    )
    retry: float | None = option(
        None,
        "how long a running job waits for servers that are busy or away, 2m if it is not set",
        read=duration,
    )


T = TypeVar("T", bound=RocketMQOptions)


@dataclass(frozen=True)
class Tls:
    """PEM texts by which servers are trusted, and the client is known."""

    ca: str | None = None
    cert: str | None = None
    key: str | None = field(default=None, repr=False)
    verify: bool = True


@dataclass(frozen=True)
class Connection:
    """How the servers are reached. It can be pickled; its text shows no secret.

    >>> Connection(("n1:9876", "n2:9876"), "me", "hunter2").address
    'rocketmq://n1:9876;n2:9876'
    """

    servers: tuple[str, ...]
    """Name servers, each as `host:port`."""
    access_key: str | None = field(default=None, repr=False)
    secret_key: str | None = field(default=None, repr=False)
    security_token: str | None = field(default=None, repr=False)
    tls: Tls | None = field(default=None, repr=False)
    timeout: float = TIMEOUT
    retry: float = RETRY

    @property
    def address(self) -> str:
        """The name servers, for errors."""
        return f"rocketmq://{';'.join(self.servers)}"

    def without_secrets(self) -> Self:
        """The connection as it may be shown and stored."""
        return replace(self, access_key=None, secret_key=None, security_token=None, tls=None)


def connection_of(options: type[T], address: Address) -> tuple[T, Connection]:
    """The options of a URI, and the connection.

    >>> address = Address("rocketmq", ("h:9876",), params={"timeout": "5s"})
    >>> connection_of(RocketMQOptions, address)[1].timeout
    5.0
    """
    if "/" in address.path or "@" in address.path:
        raise UsageError(
            "a topic's name has no / and no @; percent-encode : / ? # @ & % in names and passwords"
        )
    own = build(options, address.params)
    user, secret = own.access_key, own.secret_key
    if address.login is not None:
        if user is not None or secret is not None:
            raise UsageError("the access key is both before @ and in access-key; give it once")
        user, secret = address.login
    if (user is None) != (secret is None):
        raise UsageError("access-key and secret-key belong together; give both or neither")
    if own.security_token is not None and user is None:
        raise UsageError("security-token takes an access-key and a secret-key too")
    for text in (user, secret, own.security_token):
        if text is not None:
            address.env.hide(text)
    timeout = TIMEOUT if own.timeout is None else own.timeout
    texts = tls_texts(own, own.insecure_skip_verify, address)
    tls = None if texts is None else Tls(**texts, verify=not own.insecure_skip_verify)
    retry = RETRY if own.retry is None else own.retry
    return own, Connection(address.hosts, user, secret, own.security_token, tls, timeout, retry)
