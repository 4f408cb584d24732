"""TiCDC's parameters of a Kafka URI as settings of Kafka's Java client."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from headgate.core.connectors import Address
from headgate.core.errors import UsageError, unknown_name
from headgate.core.options import build, option
from headgate.core.scalars import duration, truth
from headgate.core.tls import TlsOptions, tls_texts

PREFIX = "kafka."
"""What settings of Kafka's client start with, in URIs and for Spark."""
SERVERS = "kafka.bootstrap.servers"
DEFAULT_PORT = 9092
JARS = ("kafka",)
_NO_EQUAL = (
    "has no equal in Kafka's Java client; pass what it takes, as in "
    "kafka.sasl.mechanism and kafka.sasl.jaas.config"
)
UNSUPPORTED = {"sasl-gssapi": _NO_EQUAL, "sasl-oauth": _NO_EQUAL}
"""TiCDC's parameters that are not taken, by what they start with."""
COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")
_MODULE = "org.apache.kafka.common.security"
MECHANISMS = {
    "plain": ("PLAIN", f"{_MODULE}.plain.PlainLoginModule"),
    "scram-sha-256": ("SCRAM-SHA-256", f"{_MODULE}.scram.ScramLoginModule"),
    "scram-sha-512": ("SCRAM-SHA-512", f"{_MODULE}.scram.ScramLoginModule"),
}


@dataclass(frozen=True)
class KafkaOptions(TlsOptions):
    """Parameters of any Kafka URI, named as TiCDC names them."""

    kafka_client_id: str | None = option(None, "`client.id`", private=True)
    sasl_user: str | None = option(
        None, "user of SASL; `kafka://USER:PASSWORD@…` is the same", private=True
    )
    sasl_password: str | None = option(None, "password of the user", private=True)
    sasl_mechanism: str | None = option(
        None,
        "how the user logs in, plain if it is not set; for others set `kafka.sasl.…`",
        tuple(MECHANISMS),
        read=str,
        private=True,
    )
    insecure_skip_verify: bool = option(
        False,
        "do not check the host's name; the certificate is still checked, so give its ca",
        read=truth,
        private=True,
    )
    dial_timeout: float | None = option(
        None, "`socket.connection.setup.timeout.ms`, such as 10s", read=duration, private=True
    )
    read_timeout: float | None = option(
        None, "`request.timeout.ms`, such as 10s", read=duration, private=True
    )
    write_timeout: str | None = option(
        None, "ignored; the client has no such setting", private=True
    )
    kafka_version: str | None = option(
        None, "ignored; the client asks the broker for its version", private=True
    )


_TAKEN = {
    "kafka.bootstrap.servers": "name the brokers in the URI",
    "kafka.auto.offset.reset": "say starting: earliest or latest",
    "kafka.enable.auto.commit": "leave it out; the checkpoint keeps positions",
    "kafka.key.deserializer": "leave it out; messages are bytes",
    "kafka.value.deserializer": "leave it out; messages are bytes",
    "kafka.key.serializer": "leave it out; messages are bytes",
    "kafka.value.serializer": "leave it out; messages are bytes",
    "kafka.interceptor.classes": "leave it out; Spark's connector does not take it",
}

T = TypeVar("T", bound=KafkaOptions)

ISOLATION, COMMITTED = "kafka.isolation.level", "read_committed"
"""A producer that aborts a transaction takes its messages back: they are no data."""
READING = {
    "kafka.max.poll.records": "5000",
    "kafka.max.partition.fetch.bytes": str(4 << 20),
    "kafka.receive.buffer.bytes": "-1",
    ISOLATION: COMMITTED,
}
"""Only what was committed; and fewer, larger requests, and a window that the system sizes: a job
reads long runs of a partition, and the client's own settings cost a tenth more time here and twice
as much in the broker. Larger than this they gain nothing, and each partition can hold that much
memory."""
REQUEST_SIZE, REQUEST_BYTES = "kafka.max.request.size", 1 << 20
"""The largest message that a producer sends, and what that is unless set otherwise."""
FRAME = 1_024
"""What of that the headers and the frame of a message take."""
MOST_BATCH, LEAST_BATCH, BUFFER = 512 << 10, 16 << 10, 64 << 20


def largest_message(options: Mapping[str, str]) -> int:
    """The largest key and value together that a producer with these options sends.

    >>> largest_message({})
    1047552
    """
    return int(options.get(REQUEST_SIZE, REQUEST_BYTES)) - FRAME


def producer_settings(client: Mapping[str, str], partitions: int = 1) -> dict[str, str]:
    """A producer's settings for so many partitions: those that are given, and larger batches.

    With the client's own 16 KiB a message costs twice the time, here and in the broker. But each
    partition that is written takes a whole batch of memory, and where there is none left, batches
    are sent almost empty, which costs more yet: so all of them take no more than half of it.

    No batch is larger than a message may be, as a broker has one limit for both. A job waits for
    the last message of each batch of its own, so that nothing is late for having waited for others.

    >>> sizes = [producer_settings({}, n)["kafka.batch.size"] for n in (1, 600)]
    >>> sizes[0], sizes[1]
    ('524288', '32768')
    """
    most = int(client.get(REQUEST_SIZE, REQUEST_BYTES))
    memory = int(client.get("kafka.buffer.memory", max(BUFFER, 2 * most)))
    batch = MOST_BATCH
    while batch > LEAST_BATCH and 2 * batch * partitions > memory:
        batch //= 2
    defaults = {
        "kafka.batch.size": str(min(batch, most)),
        "kafka.linger.ms": "20",
        "kafka.buffer.memory": str(memory),
    }
    if "kafka.delivery.timeout.ms" in client:
        del defaults["kafka.linger.ms"]  # a timeout that leaves no room for it would be refused
    return {**defaults, **client}


def client_settings(cls: type[T], address: Address) -> tuple[T, dict[str, str]]:
    """The options of a URI, and the client settings by which it connects.

    >>> address = Address("kafka", ("h:9092",), params={"kafka-client-id": "me"})
    >>> client_settings(KafkaOptions, address)[1]
    {'kafka.bootstrap.servers': 'h:9092', 'kafka.client.id': 'me'}
    """
    if "/" in address.path or "@" in address.path:
        raise UsageError(
            "a topic's name has no / and no @; percent-encode : / ? # @ & % in names and passwords"
        )
    raw = {name: value for name, value in address.params.items() if name.startswith(PREFIX)}
    for name in raw:
        if name in _TAKEN:
            raise UsageError(f"{name} cannot be set; {_TAKEN[name]}")
    options = build(cls, {n: v for n, v in address.params.items() if n not in raw})
    settings = {SERVERS: ",".join(address.hosts)}
    if options.kafka_client_id is not None:
        settings["kafka.client.id"] = options.kafka_client_id
    settings |= _security(options, address)
    settings |= _timeouts(options)
    for name in raw:
        if name in settings:
            raise UsageError(f"{name} and a parameter are aliases; set only one")
    return options, settings | raw


def servers_of(settings: Mapping[str, str]) -> frozenset[str]:
    """The brokers that a client connects to."""
    return frozenset(settings[SERVERS].split(","))


def _timeouts(options: KafkaOptions) -> dict[str, str]:
    settings = {}
    if options.dial_timeout is not None:
        wait = _millis("dial-timeout", options.dial_timeout)
        settings["kafka.socket.connection.setup.timeout.ms"] = str(wait)
        settings["kafka.socket.connection.setup.timeout.max.ms"] = str(max(wait, 30_000))
    if options.read_timeout is not None:
        settings["kafka.request.timeout.ms"] = str(_millis("read-timeout", options.read_timeout))
    return settings


def _millis(name: str, seconds: float) -> int:
    millis = round(seconds * 1000)
    if not 1 <= millis <= 120_000:  # a producer gives up after two minutes
        raise UsageError(f"{name} is out of range; it is 1ms to 2m")
    return millis


# Security


def _security(options: KafkaOptions, address: Address) -> dict[str, str]:
    tls = _tls(options, address)
    sasl = _sasl(options, address.login)
    if not sasl and tls is None:
        return {}
    protocol = ("SASL_" if sasl else "") + ("PLAINTEXT" if tls is None else "SSL")
    return {"kafka.security.protocol": protocol, **sasl, **(tls or {})}


def _sasl(options: KafkaOptions, login: tuple[str, str] | None) -> dict[str, str]:
    user, password = options.sasl_user, options.sasl_password
    if login is not None:
        if user is not None or password is not None:
            raise UsageError("the user is both before @ and in sasl-user; give it once")
        user, password = login
    if user is None and password is None and options.sasl_mechanism is None:
        return {}
    word = (options.sasl_mechanism or "plain").lower()
    if word in ("gssapi", "oauthbearer"):
        raise UsageError(
            f"sasl-mechanism {word} takes settings of Kafka's own client: "
            "kafka.security.protocol, kafka.sasl.mechanism, kafka.sasl.jaas.config"
        )
    if word not in MECHANISMS:
        raise unknown_name("sasl-mechanism", word, MECHANISMS)
    if not user or password is None:
        raise UsageError("SASL takes both sasl-user and sasl-password")
    name, module = MECHANISMS[word]
    user, password = _jaas("sasl-user", user), _jaas("sasl-password", password)
    return {
        "kafka.sasl.mechanism": name,
        "kafka.sasl.jaas.config": f'{module} required username="{user}" password="{password}";',
    }


def _jaas(name: str, text: str) -> str:
    r"""Text between the quotes of a JAAS configuration.

    >>> _jaas("sasl-user", 'a"b\\c')
    'a\\"b\\\\c'
    """
    if re.search(r"[\x00-\x1f\x7f]", text):
        raise UsageError(f"{name} has a control character, which JAAS cannot hold")
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _tls(options: KafkaOptions, address: Address) -> dict[str, str] | None:
    """Settings of TLS; None where it is not used."""
    skip = options.insecure_skip_verify
    texts = tls_texts(options, skip, address)
    if texts is None:
        return None
    settings = {}
    if "ca" in texts:
        settings["kafka.ssl.truststore.type"] = "PEM"
        settings["kafka.ssl.truststore.certificates"] = texts["ca"]
    if "cert" in texts:
        if not re.search(r"-----BEGIN (ENCRYPTED )?PRIVATE KEY-----", texts["key"]):
            raise UsageError(
                "the key is not in PKCS#8, the only form that Kafka's Java client reads; "
                "convert it: openssl pkcs8 -topk8 -nocrypt -in OLD -out NEW"
            )
        settings["kafka.ssl.keystore.type"] = "PEM"
        settings["kafka.ssl.keystore.certificate.chain"] = texts["cert"]
        settings["kafka.ssl.keystore.key"] = texts["key"]
    if skip:
        settings["kafka.ssl.endpoint.identification.algorithm"] = ""
    return settings
