"""TiCDC's parameters of a Kafka sink as settings of Kafka's Java client."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from headgate.core.errors import UsageError, shown, unknown_name
from headgate.core.scalars import Environment, duration, named, size, truth

MAX_PEM_BYTES = 1024 * 1024
COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")
ACKS = {"0": "0", "1": "1", "-1": "all", "all": "all"}
_MODULE = "org.apache.kafka.common.security"
MECHANISMS = {
    "plain": ("PLAIN", f"{_MODULE}.plain.PlainLoginModule"),
    "scram-sha-256": ("SCRAM-SHA-256", f"{_MODULE}.scram.ScramLoginModule"),
    "scram-sha-512": ("SCRAM-SHA-512", f"{_MODULE}.scram.ScramLoginModule"),
}

_SILENT = ("kafka-version", "write-timeout")
"""What Kafka's client finds out itself, or has no setting for."""
KAFKA_WORDS = (
    *_SILENT,
    "kafka-client-id",
    "sasl-user",
    "sasl-password",
    "sasl-mechanism",
    "enable-tls",
    "ca",
    "cert",
    "key",
    "insecure-skip-verify",
    "dial-timeout",
    "read-timeout",
    "max-message-bytes",
    "compression",
)
"""Parameters of any Kafka URI."""
WRITING_WORDS = (
    "required-acks",
    "auto-create-topic",
    "replication-factor",
    "partition-num",
    "max-batch-size",
    "enable-tidb-extension",
)
"""Parameters of Kafka sinks; a source takes no notice, so that TiCDC's own URI can be read from."""

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
"""The largest message that a producer sends, and what that is unless told otherwise."""
FRAME = 1_024
"""What of that the headers and the frame of a message take."""
MOST_BATCH, LEAST_BATCH, BUFFER = 512 << 10, 16 << 10, 64 << 20


def largest_message(options: Mapping[str, str]) -> int:
    """The largest key and value together that a producer with these options sends.

    >>> largest_message({})
    1047552
    """
    return int(options.get(REQUEST_SIZE, REQUEST_BYTES)) - FRAME


def writing(told: Mapping[str, str], partitions: int = 1) -> dict[str, str]:
    """A producer's settings for so many partitions: what it is told, and larger batches.

    With the client's own 16 KiB a message costs twice the time, here and in the broker. But each
    partition that is written takes a whole batch of memory, and where there is none left, batches
    are sent almost empty, which costs more yet: so all of them take no more than half of it.

    No batch is larger than a message may be, as a broker has one limit for both. A job waits for
    the last message of each batch of its own, so that nothing is late for having waited for others.

    >>> writing({})["kafka.batch.size"], writing({}, partitions=600)["kafka.batch.size"]
    ('524288', '32768')
    """
    most = int(told.get(REQUEST_SIZE, REQUEST_BYTES))
    memory = int(told.get("kafka.buffer.memory", max(BUFFER, 2 * most)))
    batch = MOST_BATCH
    while batch > LEAST_BATCH and 2 * batch * partitions > memory:
        batch //= 2
    own = {
        "kafka.batch.size": str(min(batch, most)),
        "kafka.linger.ms": "20",
        "kafka.buffer.memory": str(memory),
    }
    if "kafka.delivery.timeout.ms" in told:
        del own["kafka.linger.ms"]  # a timeout that leaves no room for it would be refused
    return {**own, **told}


def refuse_setting(name: str) -> None:
    """Refuse a setting of Kafka's client that the job itself makes."""
    if name in _TAKEN:
        raise UsageError(f"{name} cannot be set; {_TAKEN[name]}")


def connection(
    brokers: Iterable[str],
    login: tuple[str, str] | None,
    params: dict[str, str],
    base: str | None,
    env: Environment,
) -> dict[str, str]:
    """The settings by which a client connects; takes their parameters out of `params`.

    >>> connection(["h:9092"], None, {"kafka-client-id": "me"}, None, Environment())
    {'kafka.bootstrap.servers': 'h:9092', 'kafka.client.id': 'me'}
    """
    found = {"kafka.bootstrap.servers": ",".join(brokers)}
    for word in _SILENT:
        params.pop(word, None)
    if "kafka-client-id" in params:
        found["kafka.client.id"] = params.pop("kafka-client-id")
    found |= _security(login, params, base, env)
    found |= _timeouts(params)
    own = {name: params.pop(name) for name in list(params) if name.startswith("kafka.")}
    for name in own:
        if name in found:
            raise UsageError(f"{name} and a parameter say the same; give one of them")
    return found | own


def producer(params: dict[str, str]) -> dict[str, str]:
    """The settings by which a client writes; takes their parameters out of `params`.

    >>> producer({"required-acks": "-1", "compression": "lz4"})
    {'kafka.acks': 'all', 'kafka.compression.type': 'lz4'}
    """
    found = {}
    if "required-acks" in params:
        word = params.pop("required-acks").strip()
        if word not in ACKS:
            raise UsageError(f"required-acks cannot be {shown(word)}; it is -1, 0 or 1")
        found["kafka.acks"] = ACKS[word]
    if "compression" in params:
        word = params.pop("compression").strip().lower()
        if word not in COMPRESSIONS:
            raise unknown_name("compression", word, COMPRESSIONS)
        found["kafka.compression.type"] = word
    if "max-message-bytes" in params:
        found["kafka.max.request.size"] = str(
            named("max-message-bytes", size, params["max-message-bytes"])
        )
    return found


def _timeouts(params: dict[str, str]) -> dict[str, str]:
    found = {}
    if "dial-timeout" in params:
        wait = _millis("dial-timeout", params)
        found["kafka.socket.connection.setup.timeout.ms"] = str(wait)
        found["kafka.socket.connection.setup.timeout.max.ms"] = str(max(wait, 30_000))
    if "read-timeout" in params:
        found["kafka.request.timeout.ms"] = str(_millis("read-timeout", params))
    return found


def _millis(name: str, params: dict[str, str]) -> int:
    millis = round(named(name, duration, params.pop(name)) * 1000)
    if not 1 <= millis <= 120_000:  # a producer gives up after two minutes
        raise UsageError(f"{name} is out of range; it is 1ms to 2m")
    return millis


# Security


def _security(
    login: tuple[str, str] | None, params: dict[str, str], base: str | None, env: Environment
) -> dict[str, str]:
    tls = _tls(params, base, env)
    sasl = _sasl(login, params)
    if not sasl and tls is None:
        return {}
    protocol = ("SASL_" if sasl else "") + ("PLAINTEXT" if tls is None else "SSL")
    return {"kafka.security.protocol": protocol, **sasl, **(tls or {})}


def _sasl(login: tuple[str, str] | None, params: dict[str, str]) -> dict[str, str]:
    given = {w: params.pop(f"sasl-{w}") for w in ("user", "password") if f"sasl-{w}" in params}
    mechanism = params.pop("sasl-mechanism", None)
    if login is not None:
        if given:
            raise UsageError("the user is both before @ and in sasl-user; give it once")
        given = {"user": login[0], "password": login[1]}
    if not given and mechanism is None:
        return {}
    word = (mechanism or "plain").strip().lower()
    if word in ("gssapi", "oauthbearer"):
        raise UsageError(
            f"sasl-mechanism {word} takes settings of Kafka's own client: "
            "kafka.security.protocol, kafka.sasl.mechanism, kafka.sasl.jaas.config"
        )
    if word not in MECHANISMS:
        raise unknown_name("sasl-mechanism", word, MECHANISMS)
    if not given.get("user") or "password" not in given:
        raise UsageError("SASL takes both sasl-user and sasl-password")
    name, module = MECHANISMS[word]
    user, password = _jaas("sasl-user", given["user"]), _jaas("sasl-password", given["password"])
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


def _tls(params: dict[str, str], base: str | None, env: Environment) -> dict[str, str] | None:
    """Settings of TLS; None where it is not used."""
    files: dict[str, str] = {
        word: params.pop(word) for word in ("ca", "cert", "key") if word in params
    }
    skip = named("insecure-skip-verify", truth, params.pop("insecure-skip-verify", "false"))
    wanted = params.pop("enable-tls", None)
    enabled = bool(files) or skip if wanted is None else named("enable-tls", truth, wanted)
    if not enabled:
        if files or skip:
            raise UsageError(
                "enable-tls is false, but ca, cert, key or insecure-skip-verify is set"
            )
        return None
    if ("cert" in files) != ("key" in files):
        raise UsageError("cert and key belong together; give both or neither")
    found = {}
    if "ca" in files:
        found["kafka.ssl.truststore.type"] = "PEM"
        found["kafka.ssl.truststore.certificates"] = _pem("ca", files, base)
    if "cert" in files:
        key = _pem("key", files, base)
        env.hide(key)
        if not re.search(r"-----BEGIN (ENCRYPTED )?PRIVATE KEY-----", key):
            raise UsageError(
                "the key is not in PKCS#8, the only form that Kafka's Java client reads; "
                "convert it: openssl pkcs8 -topk8 -nocrypt -in OLD -out NEW"
            )
        found["kafka.ssl.keystore.type"] = "PEM"
        found["kafka.ssl.keystore.certificate.chain"] = _pem("cert", files, base)
        found["kafka.ssl.keystore.key"] = key
    if skip:
        found["kafka.ssl.endpoint.identification.algorithm"] = ""
    return found


def _pem(word: str, files: Mapping[str, str], base: str | None) -> str:
    """The text of a PEM file. Workers get the text, as they may not have the file."""
    path = Path(os.path.join(base or os.getcwd(), files[word]))
    try:
        if path.stat().st_size > MAX_PEM_BYTES:
            raise UsageError(f"the file of {word} is too large to be PEM")
        text = path.read_text("ascii")
    except OSError as error:
        raise UsageError(f"the file of {word} cannot be read: {error.strerror}") from None
    except ValueError:
        text = ""
    if "-----BEGIN " not in text:
        raise UsageError(f"the file of {word} is not PEM; it starts with -----BEGIN")
    return text
