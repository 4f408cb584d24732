"""A DataHub on loopback for tests, as far as a producer meets one.

The service itself cannot be had. This server is made from what the vendor's documentation and
client say of the protocol: it checks signatures, frames, checksums, compression and limits, has
shards that can be split and merged, fails on request, and keeps what it received.
"""

from __future__ import annotations

import hmac
import json
import re
import ssl
import struct
import threading
import zlib
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, NamedTuple
from urllib.parse import quote, unquote

PROJECT = "cdc_project"
ACCESS_ID, ACCESS_KEY, TOKEN = "LTAIexample", "wJalrXUt/not+to/be+shown", "sts-not-to-be-shown"
READ_ONLY = "LTAIreader"
"""An account that may read and not write."""
MAX_BODY, MAX_RECORDS, MAX_BLOB = 4 << 20, 10_000, 2 << 20
CLOCK_SKEW = 900
LAST_HASH_KEY = (1 << 128) - 1
_PATH = re.compile(r"/projects/([^/]+)(?:/topics/([^/]+)(/shards(?:/([^/]+))?)?)?")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,127}")

Fault = Literal["throttle", "error", "gateway", "half", "lost", "split", "merge"]
"""What happens to a request with records: it is refused for now (`throttle`, `error`, `gateway`: a
page that is not DataHub's), half of it is kept and then it fails, it is kept and nobody hears of
it (`lost`), or its shard is split, or merged with its neighbour, before it is written."""


class Record(NamedTuple):
    """A record of a shard."""

    value: bytes
    attributes: dict[str, str]


@dataclass
class Shard:
    """A shard with what was written to it."""

    id: str
    begin: int
    end: int
    state: str = "ACTIVE"
    parents: list[str] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    listed_before_active: int = 0
    """How often it is listed as opening."""


@dataclass
class Topic:
    """A topic with its shards, in the order of their numbers."""

    record_type: str
    lifecycle: int
    shards: list[Shard]


class Put(NamedTuple):
    """A request with records, as it came."""

    topic: str
    shard: str
    records: int
    body_bytes: int
    encoding: str


class Refused(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, code: str, message: str = "no") -> None:
        super().__init__(code)
        self.status, self.code, self.message = status, code, message


class DataHubServer:
    """The server with one project; `faults` are what the next requests with records meet."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.http.daemon_threads = True
        if tls is not None:
            self.http.socket = tls.wrap_socket(self.http.socket, server_side=True)
        self.tls = tls is not None
        self.port: int = self.http.server_address[1]
        self.lock = threading.RLock()
        self.topics: dict[str, Topic] = {}
        self.puts: list[Put] = []
        self.faults: Iterator[Fault | None] = iter(())
        self.token: str | None = None
        """The token that requests must have."""

    def __enter__(self) -> DataHubServer:
        threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.http.shutdown()
        self.http.server_close()

    def uri(self, topic: str, project: str = PROJECT, key: str = ACCESS_KEY) -> str:
        """A URI of a sink, to which parameters can be added."""
        account = f"access-id={ACCESS_ID}&access-key={quote(key, safe='')}"
        place = f"127.0.0.1:{self.port}/{project}/{quote(topic, safe='')}"
        return f"datahub://{place}?enable-tls={str(self.tls).lower()}&{account}&"

    # What an operator does

    def create_topic(
        self, name: str, shards: int = 1, record_type: str = "BLOB", scaled: bool = False
    ) -> None:
        """A topic; the shards of one that is `scaled` horizontally all have the same range."""
        step = (1 << 128) // shards
        ranges = [(n * step, (n + 1) * step) for n in range(shards)]
        ranges[-1] = (ranges[-1][0], LAST_HASH_KEY)
        if scaled:
            ranges = [(0, LAST_HASH_KEY)] * shards
        made = [Shard(str(n), begin, end) for n, (begin, end) in enumerate(ranges)]
        with self.lock:
            self.topics[name] = Topic(record_type, 3, made)

    def split(self, name: str, number: str, opening: int = 0) -> None:
        """Split a shard in two, which are listed as opening for a while."""
        with self.lock:
            parent = self.shard(name, number)
            middle = (parent.begin + parent.end) // 2
            self.replace(name, [parent], [(parent.begin, middle), (middle, parent.end)], opening)

    def merge(self, name: str, one: str, other: str, opening: int = 0) -> None:
        """Merge two shards that are neighbours."""
        with self.lock:
            parents = sorted((self.shard(name, n) for n in (one, other)), key=lambda s: s.begin)
            assert parents[0].end == parents[1].begin
            self.replace(name, parents, [(parents[0].begin, parents[1].end)], opening)

    def replace(
        self, name: str, parents: list[Shard], ranges: list[tuple[int, int]], opening: int
    ) -> None:
        """Close shards and make others in their place."""
        shards = self.topics[name].shards
        for parent in parents:
            parent.state = "CLOSED"
        ids = [parent.id for parent in parents]
        state = "OPENING" if opening else "ACTIVE"
        for begin, end in ranges:
            shards.append(Shard(str(len(shards)), begin, end, state, ids, [], opening))

    # What a test looks at

    def active(self, name: str) -> list[str]:
        """The shards of a topic that take records."""
        return [shard.id for shard in self.topics[name].shards if shard.state == "ACTIVE"]

    def by_shard(self, name: str) -> dict[str, list[Record]]:
        """What each shard has, in order."""
        with self.lock:
            return {shard.id: list(shard.records) for shard in self.topics[name].shards}

    def records(self, name: str) -> list[Record]:
        """What a topic has; shards come after those of which they were made."""
        return [record for records in self.by_shard(name).values() for record in records]

    def values(self, name: str) -> list[bytes]:
        """The values that a topic has."""
        return [record.value for record in self.records(name)]

    # What a client asks

    def topic(self, project: str, name: str) -> Topic:
        self.check_project(project)
        if name not in self.topics:
            raise Refused(404, "NoSuchTopic", f"The specified topic {name} does not exist")
        return self.topics[name]

    def check_project(self, project: str) -> None:
        if project != PROJECT:
            raise Refused(404, "NoSuchProject", f"The specified project {project} does not exist")

    def shard(self, topic: str, number: str) -> Shard:
        for each in self.topics[topic].shards:
            if each.id == number:
                return each
        raise Refused(404, "NoSuchShard", f"ShardId: {number} does not exist")

    def create(self, project: str, name: str, asked: dict[str, Any]) -> dict[str, Any]:
        self.check_project(project)
        if not _NAME.fullmatch(name) or not 1 <= asked["Lifecycle"] <= 7:
            raise Refused(400, "InvalidParameter")
        if name in self.topics:
            raise Refused(400, "TopicAlreadyExist")
        self.create_topic(name, asked["ShardCount"], asked["RecordType"])
        self.topics[name].lifecycle = asked["Lifecycle"]
        return {}

    def described(self, topic: Topic) -> dict[str, Any]:
        schema = '{"fields":[{"name":"id","type":"BIGINT"}]}'
        return {
            "Comment": "", "CreateTime": 1, "LastModifyTime": 1, "Lifecycle": topic.lifecycle,
            "RecordType": topic.record_type, "ShardCount": len(topic.shards),
            **({"RecordSchema": schema} if topic.record_type == "TUPLE" else {}),
        }  # fmt: skip

    def listed(self, topic: Topic) -> dict[str, Any]:
        for shard in topic.shards:
            if shard.state == "OPENING":
                shard.listed_before_active -= 1
                if shard.listed_before_active < 0:
                    shard.state = "ACTIVE"
        shards = [
            {
                "ShardId": each.id, "State": each.state, "ParentShardIds": each.parents,
                "BeginHashKey": f"{each.begin:032X}", "EndHashKey": f"{each.end:032X}",
            }
            for each in topic.shards
        ]  # fmt: skip
        return {"Shards": shards, "Protocol": "http1.1", "Interval": -1}

    def put(self, project: str, name: str, number: str, body: bytes, encoding: str) -> Fault | None:
        """Write records, or return the fault that a test has asked for."""
        topic, shard = self.topic(project, name), self.shard(name, number)
        if topic.record_type != "BLOB":
            raise Refused(400, "MalformedRecord", "the topic is TUPLE")
        records = records_of(unframed(body))
        self.puts.append(Put(name, number, len(records), len(body), encoding))
        if len(records) > MAX_RECORDS or any(len(r.value) > MAX_BLOB for r in records):
            raise Refused(400, "InvalidParameter", "too many records, or one is too large")
        fault = next(self.faults, None)
        if fault == "split" and shard.state == "ACTIVE":
            self.split(name, number, opening=1)
        neighbours = [s.id for s in topic.shards if s.state == "ACTIVE" and s.begin == shard.end]
        if fault == "merge" and shard.state == "ACTIVE" and neighbours:
            self.merge(name, number, neighbours[0])
        if shard.state != "ACTIVE":
            raise Refused(400, "InvalidShardOperation", f"ShardId: {number} is sealed")
        if fault == "throttle":
            raise Refused(429, "LimitExceeded", "flow control")
        if fault == "error":
            raise Refused(500, "InternalServerError", "try again")
        if fault == "half":
            shard.records += records[: (len(records) + 1) // 2]
            raise Refused(500, "InternalServerError", "try again")
        if fault != "gateway":
            shard.records += records
        return fault


def _handler(server: DataHubServer) -> type[BaseHTTPRequestHandler]:
    """The handler of a server's requests."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.answered()

        def do_POST(self) -> None:
            self.answered()

        def log_message(self, *_: Any) -> None:
            pass

        def answered(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            raw = self.rfile.read(length)
            try:
                if length > MAX_BODY:
                    raise Refused(413, "InvalidParameter", "the body is too large")
                account = checked_account(server, self)
                with server.lock:
                    self.answer(account, unpacked(raw, self.headers))
            except Refused as error:
                answer = {"ErrorCode": error.code, "ErrorMessage": error.message, "RequestId": "1"}
                self.say(error.status, json.dumps(answer).encode())

        def answer(self, account: str, body: bytes) -> None:
            match = _PATH.fullmatch(unquote(self.path.partition("?")[0]))
            if match is None:
                raise Refused(404, "InvalidUriSpec")
            project, topic, shards, shard = match.groups()
            writes = self.command != "GET"
            if writes and account == READ_ONLY:
                raise Refused(403, "NoPermission", "no permission")
            if topic is None:
                server.check_project(project)
                content: dict[str, Any] = {"Comment": "", "CreateTime": 1, "LastModifyTime": 1}
            elif shards is None and writes:
                content = server.create(project, topic, json.loads(body))
            elif shards is None:
                content = server.described(server.topic(project, topic))
            elif not writes:
                content = server.listed(server.topic(project, topic))
            else:
                self.put(project, topic, shard, body)
                return
            self.say(200, json.dumps(content).encode())

        def put(self, project: str, topic: str, shard: str, body: bytes) -> None:
            asked = (self.headers["Content-Type"], self.headers["x-datahub-request-action"])
            if asked != ("application/x-protobuf", "pub") or shard is None:
                raise Refused(400, "InvalidParameter", "records come as protobuf, to a shard")
            encoding = self.headers.get("Content-Encoding", "")
            fault = server.put(project, topic, shard, body, encoding)
            if fault == "lost":
                self.close_connection = True
            elif fault == "gateway":
                self.say(502, b"<html>Bad Gateway</html>", "text/html")
            else:
                self.say(200, framed(b"\x08\x00"), "application/x-protobuf")

        def say(self, status: int, body: bytes, kind: str = "application/json") -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("x-datahub-request-id", "1")
            self.end_headers()
            self.wfile.write(body)

    return Handler


def checked_account(server: DataHubServer, request: BaseHTTPRequestHandler) -> str:
    """The account of a request whose signature is right."""
    headers = {name.lower(): value for name, value in request.headers.items()}
    signed = sorted((n, v) for n, v in headers.items() if n.startswith("x-datahub-"))
    text = "\n".join(
        [
            request.command,
            headers.get("content-type", ""),
            headers.get("date", ""),
            *(f"{name}:{value}" for name, value in signed),
            unquote(request.path),
        ]
    )
    signature = b64encode(hmac.digest(ACCESS_KEY.encode(), text.encode(), "sha1")).decode()
    scheme, _, given = headers.get("authorization", "").partition(" ")
    account, _, sent = given.partition(":")
    if scheme != "DATAHUB" or account not in (ACCESS_ID, READ_ONLY) or sent != signature:
        raise Refused(401, "Unauthorized", f"the signature does not match; signed was {text}")
    age = datetime.now(UTC) - parsedate_to_datetime(headers["date"])
    if abs(age.total_seconds()) > CLOCK_SKEW:
        raise Refused(401, "Unauthorized", "the request is too old")
    if server.token is not None and headers.get("x-datahub-security-token") != server.token:
        raise Refused(401, "Unauthorized", "the token is wrong")
    return account


def unpacked(body: bytes, headers: Any) -> bytes:
    """A body as it was before it was compressed."""
    encoding = headers.get("Content-Encoding", "")
    if not encoding:
        return body
    size = int(headers.get("x-datahub-content-raw-size", -1))
    if encoding == "lz4" and 0 <= size <= 2 * MAX_BODY:
        from lz4 import block

        content = block.decompress(body, uncompressed_size=size)
    elif encoding == "zlib":
        content = zlib.decompress(body)
    else:
        raise Refused(400, "InvalidParameter", f"unknown encoding {encoding}")
    if len(content) != size:
        raise Refused(400, "InvalidParameter", "the size differs from the header")
    return bytes(content)


# Frames and protobuf


def crc_table() -> list[int]:
    table = []
    for n in range(256):
        for _ in range(8):
            n = (n >> 1) ^ (0x82F63B78 if n & 1 else 0)
        table.append(n)
    return table


_CRC = crc_table()


def crc32c(data: bytes) -> int:
    """CRC-32C (Castagnoli).

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ _CRC[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def framed(message: bytes) -> bytes:
    return b"DHUB" + struct.pack(">II", crc32c(message), len(message)) + message


def unframed(frame: bytes) -> bytes:
    """The message of a frame that is whole."""
    message = frame[12:]
    if len(frame) < 12 or frame != framed(message):
        raise Refused(400, "InvalidParameter", "the frame, its length or its checksum is wrong")
    return message


def fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """The numbers and values of the fields of a protobuf message."""
    at = 0

    def number() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        tag = number()
        if tag & 7 == 0:
            yield tag >> 3, number()
        elif tag & 7 == 2:
            size = number()
            if at + size > len(message):
                raise Refused(400, "MalformedRecord", "a field is longer than its message")
            yield tag >> 3, message[at : at + size]
            at += size
        else:
            raise Refused(400, "MalformedRecord", "a field of a type that is not used")


def only(message: bytes, wanted: int) -> list[bytes]:
    return [value for number, value in fields(message) if number == wanted]


def records_of(message: bytes) -> list[Record]:
    """The records of a request: each has one blob, and attributes."""
    records = []
    for entry in only(message, 1):
        pairs = [dict(fields(p)) for block in only(entry, 8) for p in only(block, 1)]
        blobs = [dict(fields(f)).get(1, b"") for block in only(entry, 9) for f in only(block, 1)]
        if len(blobs) != 1:
            raise Refused(400, "MalformedRecord", "a record of a BLOB topic has one field")
        attributes = {pair[1].decode(): pair.get(2, b"").decode() for pair in pairs}
        records.append(Record(blobs[0], attributes))
    return records
