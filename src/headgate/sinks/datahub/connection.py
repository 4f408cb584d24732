"""Where DataHub is, and by which account: from the parameters of a URI."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

from headgate.core.connectors import Address
from headgate.core.errors import UsageError, unknown_name
from headgate.core.options import option
from headgate.core.scalars import truth
from headgate.core.tls import pem_text

COMPRESSIONS = ("none", "lz4", "zlib")
"""What the client compresses with; its `deflate` compresses nothing."""
HTTP_PORT, HTTPS_PORT = 80, 443


def _compression(text: str) -> str:
    if text.lower() not in COMPRESSIONS:
        raise unknown_name("compression", text.lower(), COMPRESSIONS)
    return text.lower()


@dataclass(frozen=True)
class ConnectionOptions:
    """Parameters by which DataHub is reached."""

    access_id: str | None = option(
        None, "AccessKey ID of the account; `datahub://ID:SECRET@…` is the same", private=True
    )
    access_key: str | None = option(None, "AccessKey secret of the account", private=True)
    security_token: str | None = option(
        None, "token of temporary credentials (STS); the job fails when it expires", private=True
    )
    enable_tls: bool = option(
        True, "HTTPS; false is HTTP, on port 80 unless the URI says", read=truth, private=True
    )
    ca: str | None = option(
        None,
        "PEM file of a certificate authority, read at start: workers need not have it",
        private=True,
    )
    insecure_skip_verify: bool = option(
        False, "do not check the server's certificate", read=truth, private=True
    )
    compression: str = option("lz4", "how requests are compressed", COMPRESSIONS, read=_compression)


@dataclass(frozen=True)
class Connection:
    """What a client needs to know; it goes to workers as it is, and shows no secret."""

    endpoint: str
    access_id: str = field(repr=False)
    access_key: str = field(repr=False)
    security_token: str = field(default="", repr=False)
    ca: str | None = field(default=None, repr=False)
    """The text of a PEM file."""
    verify: bool = True
    """Whether the server's certificate is checked."""
    compression: str = "lz4"

    def without_secrets(self) -> Self:
        """The same connection without an account."""
        return replace(self, access_id="", access_key="", security_token="")


def connection_of(own: ConnectionOptions, address: Address) -> Connection:
    """The connection of a URI.

    >>> address = Address("datahub", ("dh.example.com:443",), ("id", "secret"))
    >>> connection_of(ConnectionOptions(), address).endpoint
    'https://dh.example.com:443'
    """
    if len(address.hosts) != 1:
        raise UsageError("DataHub has one endpoint; write datahub://HOST/PROJECT/TOPIC")
    access_id, access_key = own.access_id, own.access_key
    if address.login is not None:
        if access_id is not None or access_key is not None:
            raise UsageError("the account is both before @ and in access-id; give it once")
        access_id, access_key = address.login
    if not access_id or not access_key:
        raise UsageError(
            "the sink has no account; add access-id=… and access-key=${NAME}, "
            "an AccessKey of Alibaba Cloud"
        )
    if not own.enable_tls and (own.ca is not None or own.insecure_skip_verify):
        raise UsageError("enable-tls is false, but ca or insecure-skip-verify is set")
    host, _, port = address.hosts[0].rpartition(":")
    if not own.enable_tls and int(port) == HTTPS_PORT:  # what no port in the URI stands for
        port = str(HTTP_PORT)
    return Connection(
        f"{'https' if own.enable_tls else 'http'}://{host}:{port}",
        access_id,
        access_key,
        own.security_token or "",
        None if own.ca is None else pem_text("ca", own.ca, address.base),
        not own.insecure_skip_verify,
        own.compression,
    )
