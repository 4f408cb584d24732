"""Keys and headers as properties of a message, which are text with reserved names."""

from __future__ import annotations

import json
import subprocess
import sys
from base64 import b64decode
from types import ModuleType

import pytest

from headgate.arrow.headers import to_text
from headgate.config.uris import parse_sink
from headgate.core.errors import UsageError
from headgate.rocketmq.layout import message, properties
from headgate.sinks.rocketmq import HEADER_BYTES, RocketMQSink


def read(data: bytes) -> dict[str, str]:
    """Properties as RocketMQ's clients read them."""
    pairs = data.decode().split("\2")
    assert "" == pairs.pop()
    return dict(pair.split("\1") for pair in pairs)


def test_text_is_a_property_as_it_is() -> None:
    headers = [("trace", "ä b".encode())]

    assert {"KEYS": "7", "TAGS": "orders", "trace": "ä b", "headgate-id": "t-0-1"} == read(
        properties(b"7", "orders", b"t-0-1", headers)
    )


@pytest.mark.parametrize("key", [b"", b"\xff\0", b"a\1b", b"a\2b"])
def test_a_key_that_is_no_text_is_kept_in_base64(key: bytes) -> None:
    found = read(properties(key, None))

    assert ["headgate-key"] == list(found)
    assert key == b64decode(found["headgate-key"].removeprefix("base64:"))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TAGS", b"x"),
        ("KEYS", b"x"),
        ("DELAY", b"3"),
        ("__STARTDELIVERTIME", b"1"),
        ("a\1b", b"x"),
        ("a\2b", b"x"),
        ("", b"x"),
        ("a", b"\xff"),
        ("a", b"x\2y"),
        ("a", b""),
        ("a", None),
        ("headgate-key", b"x"),
        ("headgate-headers", b"x"),
        ("headgate-id", b"x"),
    ],
)
def test_a_header_that_cannot_be_a_property_is_kept_in_json(name: str, value: bytes | None) -> None:
    found = read(properties(b"7", "orders", None, [("good", b"1"), (name, value)]))

    kept = json.loads(found.pop("headgate-headers"))
    assert [(name, value)] == [
        (h["key"], b64decode(h["value"]) if "value" in h else None) for h in kept
    ]
    assert {"KEYS": "7", "TAGS": "orders", "good": "1"} == found


def test_a_header_that_comes_twice_is_kept_twice() -> None:
    found = read(properties(None, None, None, [("a", b"1"), ("a", b"2")]))

    assert "1" == found["a"]
    assert [{"key": "a", "value": "Mg=="}] == json.loads(found["headgate-headers"])


def test_the_tag_of_a_message_from_rocketmq_is_not_kept_twice() -> None:
    assert {"TAGS": "orders"} == read(properties(None, "orders", None, [("TAGS", b"orders")]))


def test_a_table_that_cannot_be_a_tag_is_none() -> None:
    assert {} == read(properties(None, "a\1b"))


def test_no_name_of_rocketmqs_own_is_taken_for_a_header(rocketmq_client: ModuleType) -> None:
    constants = rocketmq_client.JClass("org.apache.rocketmq.common.message.MessageConst")
    reserved = [str(name) for name in constants.STRING_HASH_SET]

    assert len(reserved) > 30
    for name in reserved:
        assert set(read(properties(None, None, None, [(name, b"1")]))) == {"headgate-headers"}, name


def test_a_message_is_laid_out_as_javas_client_does_it(rocketmq_client: ModuleType) -> None:
    package = "org.apache.rocketmq.common.message"
    own = rocketmq_client.JClass(f"{package}.Message")("t", "orders", "7", b"body")
    own.setWaitStoreMsgOK(True)
    encoded = bytes(rocketmq_client.JClass(f"{package}.MessageDecoder").encodeMessage(own))
    decoder = rocketmq_client.JClass(f"{package}.MessageDecoder")
    buffer = rocketmq_client.JClass("java.nio.ByteBuffer").wrap(
        message(b"body", properties(b"7", "orders"))
    )
    decoded = decoder.decodeMessage(buffer)

    assert encoded[:24] == message(b"body", encoded[26:])[:24]
    assert encoded == message(b"body", encoded[26:])
    assert (b"body", "orders", "7") == (
        bytes(decoded.getBody()), str(decoded.getTags()), str(decoded.getKeys())
    )  # fmt: skip


USE = """
from headgate.rocketmq.client import client
from headgate.rocketmq.client_options import Connection
from headgate.rocketmq.errors import ClientError
try:
    client(Connection(("127.0.0.1:9",))).topics()
except ClientError:
    print("asked")
"""


@pytest.mark.slow
@pytest.mark.usefixtures("rocketmq_client")
def test_a_process_that_used_the_client_ends_by_itself() -> None:
    done = subprocess.run([sys.executable, "-c", USE], capture_output=True, text=True, timeout=60)

    assert (0, "asked\n", "") == (done.returncode, done.stdout, done.stderr)


def sink_of(uri: str) -> RocketMQSink:
    connector = parse_sink(f"{uri}protocol=canal-json").connector
    assert isinstance(connector, RocketMQSink)
    return connector


def test_name_servers_are_separated_by_semicolons_or_commas() -> None:
    for uri in ("rocketmq://n1:9876;n2/cdc?", "rocketmq://n1,n2:9876/cdc?"):
        assert ("n1:9876", "n2:9876") == sink_of(uri).connection.servers


def test_credentials_stand_before_the_host_or_in_parameters() -> None:
    for uri in (
        "rocketmq://me:hunter2@h/cdc?",
        "rocketmq://h/cdc?access-key=me&secret-key=hunter2&",
    ):
        sink = sink_of(uri)
        assert ("me", "hunter2") == (sink.connection.access_key, sink.connection.secret_key)
        assert "hunter2" not in repr(sink)
        assert "hunter2" not in parse_sink(f"{uri}protocol=canal-json").name


@pytest.mark.parametrize(
    ("uri", "error"),
    [
        ("rocketmq://h/a.b?", "have no points"),
        ("rocketmq://h/cdc?access-key=me&", "belong together"),
        ("rocketmq://a:b@h/cdc?access-key=me&", "give it once"),
        ("rocketmq://h/cdc?security-token=x&", "access-key"),
        ("rocketmq://h/cdc?enable-tls=false&ca=x&", "enable-tls is false"),
        ("rocketmq://h/cdc?cert=x&", "belong together"),
        ("rocketmq://h/cdc?timeout=1h&", "100ms to 1m"),
        ("rocketmq://h/cdc?max-message-bytes=1KB&", "too small"),
        ("rocketmq://h:x/cdc?", "HOST:PORT"),
    ],
)
def test_what_is_wrong_is_said(uri: str, error: str) -> None:
    with pytest.raises(UsageError, match=error):
        sink_of(uri)


def test_a_format_that_is_kafkas_only_is_refused() -> None:
    with pytest.raises(UsageError, match=r"Kafka.*allow-any-format=true"):
        parse_sink("rocketmq://h/cdc?protocol=maxwell")

    assert parse_sink("rocketmq://h/cdc?protocol=maxwell&allow-any-format=true")


@pytest.mark.parametrize(
    ("name", "value"),
    [("A", b""), ("A", None), ("a", b"x"), ("\1", b"x"), ("\n" * 9, b"\xff"), ("ä", b"\xff" * 50)],
)
def test_keys_and_headers_that_are_not_refused_fit_into_the_properties(
    name: str, value: bytes | None
) -> None:
    one = [(name, value)]
    length = len((to_text(one * 2) or "").encode()) - len((to_text(one) or "").encode())
    headers = one * ((HEADER_BYTES - 1) // length)

    room = 32_767 - 1_000  # for what brokers add
    assert len(properties(None, "t" * 40_000, b"i" * 300, headers)) < room
    assert len(properties(b"\xff" * HEADER_BYTES, "t" * 255, b"i" * 300)) < room


def test_a_tag_that_is_too_long_is_left_out_and_stays_as_a_header_where_it_was_one() -> None:
    long = "t" * 256

    assert b"" == properties(None, long)
    found = read(properties(None, long, headers=[("TAGS", long.encode())]))
    assert ["headgate-headers"] == list(found)
