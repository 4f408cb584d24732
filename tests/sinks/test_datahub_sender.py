"""What a worker does, with the vendor's client over HTTP: routing, limits, faults, TLS."""

from __future__ import annotations

import json
import random
import ssl
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from datahub_server import (
    ACCESS_ID,
    ACCESS_KEY,
    MAX_RECORDS,
    PROJECT,
    READ_ONLY,
    TOKEN,
    DataHubServer,
    Record,
)
from effort import one_in

from headgate.arrow.headers import ID_HEADER
from headgate.config.uris import parse_sink
from headgate.core.errors import UsageError
from headgate.sinks.base import Target
from headgate.sinks.datahub import REQUEST_BYTES, DataHubSink
from headgate.sinks.datahub.client import Client, ServiceError
from headgate.sinks.datahub.sender import Sender
from headgate.sinks.datahub.shards import hash_key
from headgate.sinks.datahub.topics import DataHubTopics
from headgate.sinks.topics import check_topics

KEYS = 12
PATIENCE = 20.0


@pytest.fixture
def server(datahub: DataHubServer, monkeypatch: pytest.MonkeyPatch) -> DataHubServer:
    """The server of all tests, without faults; pauses are short."""
    monkeypatch.setattr("headgate.sinks.datahub.client.LONGEST_PAUSE", 0.2)
    datahub.faults, datahub.token = iter(()), None
    return datahub


def connector(uri: str) -> DataHubSink:
    found = parse_sink(f"{uri}protocol=debezium").connector
    assert isinstance(found, DataHubSink)
    return found


def sender(
    server: DataHubServer, topic: str, parameters: str = "", seconds: float = PATIENCE
) -> Sender:
    sink = connector(server.uri(topic) + parameters)
    client = Client(sink.connection, 10)
    shards = client.settled_shards(PROJECT, topic, PATIENCE)
    return Sender(client, PROJECT, {topic: shards}, seconds)


def send(found: Sender, topic: str, count: int, flush_at: int = 40) -> list[bytes]:
    """Changes of some keys, in the order of their numbers."""
    values = []
    for n in range(count):
        key = str(n % KEYS).encode()
        values.append(json.dumps({"key": n % KEYS, "n": n}).encode())
        found.add(topic, key, values[-1], None, [(ID_HEADER, str(n).encode())])
        if n % flush_at == flush_at - 1:
            found.flush()
    found.flush()
    return values


def once_each(records: list[Record]) -> list[bytes]:
    """The values without copies, which `headgate-id` tells."""
    return list({r.attributes[ID_HEADER]: r.value for r in reversed(records)}.values())[::-1]


def check_order(records: list[Record]) -> None:
    """The changes of each key are in order, where copies behind the first one are dropped."""
    seen: dict[str, Record] = {}
    for record in records:
        seen.setdefault(record.attributes[ID_HEADER], record)
    last: dict[int, int] = {}
    for record in seen.values():
        change = json.loads(record.value)
        assert last.get(change["key"], -1) < change["n"]
        last[change["key"]] = change["n"]


@pytest.mark.parametrize("compression", ["none", "lz4", "zlib"])
def test_records_arrive_as_they_are_with_their_attributes(
    server: DataHubServer, compression: str
) -> None:
    topic = f"as_they_are_{compression}"
    server.create_topic(topic)
    found = sender(server, topic, f"compression={compression}&")
    server.puts.clear()
    values = [b"", b"\x00\xff" * 500, "wörter 漢字".encode(), b"x" * 100_000]

    for n, value in enumerate(values):
        headers = [("trace", b"1"), ("trace", b"\xff"), ("none", None), (ID_HEADER, b"%d" % n)]
        found.add(topic, b"key-%d" % n, value, None, headers)
    found.add(topic, b"\xfe", b"v", None, ())
    found.flush()

    *first, last = server.records(topic)
    assert [
        Record(
            value,
            {"trace": "1", "trace.base64": "/w==", "none": "", ID_HEADER: f"{n}",
             "headgate-key": f"key-{n}"},
        )
        for n, value in enumerate(values)
    ] == first  # fmt: skip
    assert Record(b"v", {"headgate-key.base64": "/g=="}) == last
    assert {"" if compression == "none" else compression} == {put.encoding for put in server.puts}


def test_a_key_goes_to_the_shard_that_owns_its_hash_key_in_order(server: DataHubServer) -> None:
    server.create_topic("by_key", shards=5)

    values = send(sender(server, "by_key"), "by_key", 300)

    assert sorted(values) == sorted(server.values("by_key"))
    for shard in server.topics["by_key"].shards:
        for record in shard.records:
            own = hash_key(record.attributes["headgate-key"].encode())
            assert shard.begin <= own < shard.end or own == shard.end == (1 << 128) - 1
        check_order(shard.records)


def test_without_ranges_a_key_goes_by_the_remainder_of_its_hash_key(server: DataHubServer) -> None:
    server.create_topic("scaled", shards=5, scaled=True)

    values = send(sender(server, "scaled"), "scaled", 300)

    assert sorted(values) == sorted(server.values("scaled"))
    for number, records in server.by_shard("scaled").items():
        keys = {r.attributes["headgate-key"].encode() for r in records}
        assert {int(number)} == {hash_key(key) % 5 for key in keys}


@pytest.mark.parametrize("scaled", [False, True])
def test_a_partition_is_an_active_shard_and_without_a_key_all_get_the_same(
    server: DataHubServer, scaled: bool
) -> None:
    topic = f"partitions_{scaled}"
    server.create_topic(topic, shards=3, scaled=scaled)
    if not scaled:
        server.split(topic, "1")
    found = sender(server, topic)
    active = list(found.current[topic].ids)

    for n in range(len(active)):
        found.add(topic, b"same", b"%d" % n, n, ())
    for _ in range(4 * len(active)):
        found.add(topic, None, b"-", None, ())
    found.flush()

    assert ["0", "1", "2"] == active if scaled else ["0", "3", "4", "2"] == active
    by_shard = server.by_shard(topic)
    for n, number in enumerate(active):
        assert [b"%d" % n, *[b"-"] * 4] == [record.value for record in by_shard[number]]


def test_requests_keep_the_limits(server: DataHubServer) -> None:
    server.create_topic("limits")
    found = sender(server, "limits", "compression=none&max-message-bytes=2000000&")
    server.puts.clear()

    for n in range(MAX_RECORDS * 2 + 5):
        found.add("limits", b"k", b"%d" % n, None, ())
    found.flush()
    assert [MAX_RECORDS, MAX_RECORDS, 5] == [put.records for put in server.puts]

    server.puts.clear()
    large = random.Random(1).randbytes(1_300_000)
    for _ in range(4):
        found.add("limits", b"k", large, None, [("note", b"n" * 500)])
    found.flush()
    assert [3, 1] == [put.records for put in server.puts]
    assert max(put.body_bytes for put in server.puts) <= REQUEST_BYTES


FAULTS: dict[str, list[Any]] = {
    "throttling": ["throttle", "throttle", None],
    "errors": ["error", None],
    "a gateway": ["gateway", None],
    "half of a request": ["half", None],
    "lost answers": ["lost", None],
    "all of them": ["half", "throttle", None, "lost", "error", None, "gateway"],
}


@pytest.mark.parametrize("kind", one_in(6, FAULTS))
def test_faults_lose_nothing_and_keep_the_order_of_each_key(
    server: DataHubServer, kind: str
) -> None:
    topic = f"faults_{kind.replace(' ', '_')}"
    server.create_topic(topic, shards=3)
    server.faults = cycle(FAULTS[kind])

    values = send(sender(server, topic), topic, 240)

    assert sorted(values) == sorted(once_each(server.records(topic)))
    for records in server.by_shard(topic).values():
        check_order(records)
    if kind in ("throttling", "errors", "a gateway"):  # what was taken is not sent again
        assert len(values) == len(server.records(topic))


def test_shards_that_are_split_and_merged_are_followed(server: DataHubServer) -> None:
    server.create_topic("reshaped", shards=2)
    moves: list[Any] = [None, "split", None, "merge", "half", None, "merge", "throttle"]
    server.faults = iter(moves * 3)

    values = send(sender(server, "reshaped"), "reshaped", 480)

    parents = [len(shard.parents) for shard in server.topics["reshaped"].shards]
    assert {0, 1, 2} == set(parents)  # as they were, split, merged
    assert sorted(values) == sorted(once_each(server.records("reshaped")))
    check_order(server.records("reshaped"))  # a shard comes behind those that it was made of


def test_a_partition_whose_shard_is_split_goes_on_in_its_first_half(server: DataHubServer) -> None:
    server.create_topic("halves", shards=2)
    found = sender(server, "halves")
    server.split("halves", "0", opening=2)

    for partition in (0, 1):
        found.add("halves", None, b"%d" % partition, partition, ())
    found.flush()

    written = {n: [r.value for r in each] for n, each in server.by_shard("halves").items()}
    assert {"0": [], "1": [b"1"], "2": [b"0"], "3": []} == written


def test_what_is_not_taken_in_time_stops_the_job_in_one_line(server: DataHubServer) -> None:
    server.create_topic("refusing")
    found = sender(server, "refusing", seconds=0.5)
    server.faults = cycle(["throttle"])

    with pytest.raises(ServiceError, match=r"shard 0 of topic cdc_project/refusing: DataHub says "
                                           r"LimitExceeded: flow control; check"):  # fmt: skip
        send(found, "refusing", 10)


def test_all_shards_closed_stops_the_job_in_one_line(server: DataHubServer) -> None:
    server.create_topic("closed")
    found = sender(server, "closed", seconds=0.5)
    server.topics["closed"].shards[0].state = "CLOSED"

    with pytest.raises(ServiceError, match=r"do not cover all keys after 0\.5 s; check the shards"):
        send(found, "closed", 10)


# Topics and accounts


def topics_of(uri: str, **options: Any) -> DataHubTopics:
    sink = parse_sink(f"{uri}protocol=debezium")
    found = sink.connector
    assert isinstance(found, DataHubSink)
    return DataHubTopics(found, Target("job", sink.name, {**sink.options, **options}, {}))


def refusal(uri: str, topic: str = "some") -> str:
    with pytest.raises(UsageError) as caught:
        check_topics("sink", topics_of(uri), [topic])
    message = str(caught.value)
    assert "\n" not in message
    assert ACCESS_KEY not in message
    assert TOKEN not in message
    return message


def test_a_missing_topic_is_created_as_the_sink_says(server: DataHubServer) -> None:
    topics = topics_of(f"{server.uri('made')}partition-num=4&lifecycle=7&")

    topics.ensure(["made"])

    assert {"made": 4} == topics.known
    made = server.topics["made"]
    assert ("BLOB", 7, 4) == (made.record_type, made.lifecycle, len(made.shards))


def test_what_is_missing_or_wrong_is_one_line_with_a_remedy(server: DataHubServer) -> None:
    server.create_topic("some")
    server.create_topic("typed", record_type="TUPLE")
    asked = {
        "no project": server.uri("some", project="other"),
        "no topic": f"{server.uri('none')}auto-create-topic=false&",
        "TUPLE": server.uri("typed"),
        "wrong key": server.uri("some", key="wrong"),
    }

    told = {what: refusal(uri, uri.partition("?")[0].rpartition("/")[2])
            for what, uri in asked.items()}  # fmt: skip

    assert "project other does not exist; create the project" in told["no project"]
    assert "topic cdc_project/none: it does not exist; create it with" in told["no topic"]
    assert "topic 'typed': its record type is TUPLE, and messages need BLOB" in told["TUPLE"]
    assert "DataHub says Unauthorized; check access-id and access-key" in told["wrong key"]


def test_an_account_without_permission_is_told_so(server: DataHubServer) -> None:
    uri = server.uri("not_there").replace(ACCESS_ID, READ_ONLY)

    assert "cannot be created: DataHub says NoPermission; check" in refusal(uri, "not_there")


def test_temporary_credentials_have_a_token(server: DataHubServer) -> None:
    server.create_topic("tokens")
    server.token = TOKEN
    refusal(server.uri("tokens"), "tokens")

    found = sender(server, "tokens", f"security-token={TOKEN}&")

    assert len(send(found, "tokens", 5)) == len(server.values("tokens"))


def test_shards_are_looked_at_again_after_a_while(
    server: DataHubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.create_topic("growing", shards=2)
    topics = topics_of(server.uri("growing"))
    topics.ensure(["growing"])
    server.split("growing", "0")
    topics.ensure(["growing"])
    assert {"growing": 2} == topics.known

    monkeypatch.setattr("headgate.sinks.datahub.topics.FRESH_SECONDS", 0.0)
    topics.ensure(["growing"])

    assert {"growing": 3} == topics.known


# TLS


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate of 127.0.0.1 that is its own authority, and its key in the same folder."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "tests")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    folder = tmp_path_factory.mktemp("tls")
    (folder / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return folder / "cert.pem"


@pytest.fixture
def secure(datahub: DataHubServer, certificate: Path) -> Iterator[DataHubServer]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_name("key.pem"))
    with DataHubServer(context) as found:
        found.create_topic("secured")
        yield found


def test_the_certificate_of_the_server_is_checked(secure: DataHubServer, certificate: Path) -> None:
    assert "certificate verify failed" in refusal(secure.uri("secured"), "secured")

    parameters: Mapping[str, str] = {"ca": str(certificate), "insecure-skip-verify": "true"}
    for name, value in parameters.items():
        send(sender(secure, "secured", f"{name}={value}&"), "secured", 5)

    assert 10 == len(secure.values("secured"))
