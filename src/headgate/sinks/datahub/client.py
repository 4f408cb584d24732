"""The vendor's client, with errors that say what to do and hold no secret."""

from __future__ import annotations

import logging
import random
import re
import ssl
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Literal, TypeVar

from headgate.core.errors import HeadgateError, UsageError, shown
from headgate.sinks.datahub.connection import Connection
from headgate.sinks.datahub.shards import Shard, Shards

CONNECT_SECONDS = 3
QUESTION_SECONDS = 6
"""How long an answer about topics may take."""
PUT_SECONDS = 60
"""How long the answer to a request with records may take."""
CONNECTIONS = 8
"""How many requests a process sends at the same time."""
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
T = TypeVar("T")

Kind = Literal["busy", "closed", "no-project", "no-topic", "exists", "denied", "refused"]
"""Why a request failed: it may pass later, or its shard is closed, or something has to be done."""
_KINDS: dict[str, Kind] = {
    "NoSuchProject": "no-project",
    "NoSuchTopic": "no-topic",
    "NoSuchShard": "closed",
    "InvalidShardOperation": "closed",
    "TopicAlreadyExist": "exists",
    "LimitExceeded": "busy",
    "InternalServerError": "busy",
    "Unauthorized": "denied",
    "NoPermission": "denied",
    "OperationDenied": "denied",
}
_REMEDIES: dict[Kind, str] = {
    "busy": "check the address, and the service's state and quotas",
    "closed": "check the shards of the topic",
    "no-project": "create the project, or correct its name in the URI",
    "no-topic": "create it with the record type BLOB, or set auto-create-topic=true",
    "exists": "choose another name",
    "denied": "check access-id and access-key, and that the account may GetTopic, ListShard and "
    "PutRecords",
    "refused": "check the address and the service's limits",
}
_ERRNO = re.compile(r"\[Errno -?\d+\] ([^'\")]+)")


class ServiceError(HeadgateError):
    """DataHub refused a request, or did not answer."""

    def __init__(self, kind: Kind, what: str, reason: str) -> None:
        super().__init__(f"{what}: {reason}; {_REMEDIES[kind]}")
        self.kind = kind


class Patience:
    """Pauses between attempts, each longer than the one before, until the time is over."""

    def __init__(self, seconds: float) -> None:
        self.until = time.monotonic() + seconds
        self.pause = FIRST_PAUSE

    def rest(self) -> bool:
        """Sleep before another attempt; False where there is no time for one."""
        left = self.until - time.monotonic()
        if left <= 0:
            return False
        time.sleep(min(left, self.pause * random.uniform(0.5, 1)))
        self.pause = min(2 * self.pause, LONGEST_PAUSE)
        return True


class Client:
    """pydatahub's client of one account at one endpoint; threads may share it."""

    def __init__(self, connection: Connection, answer_seconds: float) -> None:
        self.connection = connection
        self.library = Library()
        compression = "" if connection.compression == "none" else connection.compression
        self.client = self.library.DataHub(
            connection.access_id,
            connection.access_key,
            connection.endpoint,
            self.library.CompressFormat(compression),
            protocol_type=self.library.DatahubProtocolType.PB,
            security_token=connection.security_token,
            user_agent="headgate",  # its own tells the address of this machine
            retry_times=0,
            conn_timeout=CONNECT_SECONDS,
            read_timeout=answer_seconds,
        )
        # The client checks no certificate, and offers no option to do so.
        session = self.client._datahub_impl._rest_client._session
        session.mount("https://", self.library.transport(connection))

    def check_project(self, project: str) -> None:
        """Refuse a project that does not exist."""
        self.ask(f"project {project}", lambda: self.client.get_project(project))

    def holds_blobs(self, project: str, topic: str) -> bool | None:
        """Whether a topic is of the type BLOB; None where there is no such topic."""
        what = f"topic {project}/{topic}"
        try:
            answer = self.ask(what, lambda: self.client.get_topic(project, topic))
        except ServiceError as error:
            if error.kind == "no-topic":
                return None
            raise
        return bool(answer.record_type == self.library.RecordType.BLOB)

    def create_topic(self, project: str, topic: str, shards: int, lifecycle: int) -> None:
        """Make a topic; that another did so at the same time is no error."""
        what = f"topic {project}/{topic} cannot be created"
        create = self.client.create_blob_topic
        try:
            self.ask(what, lambda: create(project, topic, shards, lifecycle, "Headgate"))
        except ServiceError as error:
            if error.kind != "exists":
                raise

    def shards(self, project: str, topic: str) -> Shards | None:
        """The active shards of a topic; None while they are being split, merged or opened."""
        what = f"topic {project}/{topic}"
        listed = self.ask(what, lambda: self.client.list_shard(project, topic)).shards
        return Shards.of(
            Shard(each.shard_id, int(each.begin_hash_key, 16), int(each.end_hash_key, 16))
            for each in listed
            if each.state == self.library.ShardState.ACTIVE
        )

    def settled_shards(self, project: str, topic: str, seconds: float) -> Shards:
        """The active shards of a topic, once they are ready."""
        patience = Patience(seconds)
        while True:
            shards = retried(lambda: self.shards(project, topic), seconds)
            if shards is not None:
                return shards
            if not patience.rest():
                what, reason = f"topic {project}/{topic}", "its active shards do not cover all keys"
                raise ServiceError("closed", what, f"{reason} after {seconds:g} s")

    def put(self, project: str, topic: str, shard: str, records: Sequence[Any]) -> None:
        """Write records to a shard: all of them, or none where the error says so."""
        what = f"shard {shard} of topic {project}/{topic}"
        put = self.client.put_records_by_shard
        self.ask(what, lambda: put(project, topic, shard, list(records)))

    def record(self, value: bytes, attributes: dict[str, str]) -> Any:
        """A record of the client."""
        blob = self.library.BlobRecord
        record = blob(value) if value else blob(values="")  # it takes no empty value otherwise
        record.attributes = attributes
        return record

    def ask(self, what: str, ask: Callable[[], Any]) -> Any:
        """The answer to a request; a ServiceError where it fails."""
        try:
            return ask()
        except self.library.DatahubException as error:
            kind = kind_of(error.error_code or "", error.status_code)
            reason = self.reason(kind, error)
        except self.library.SSLError as error:
            kind, reason = "refused", f"TLS with {self.connection.endpoint} failed: {error}"
        except self.library.Timeout:
            kind, reason = "busy", f"{self.connection.endpoint} does not answer"
        except (self.library.RequestException, OSError) as error:
            match = _ERRNO.search(str(error))
            why = match[1] if match else type(error).__name__
            kind, reason = "busy", f"{self.connection.endpoint} cannot be reached: {why}"
        except (KeyError, ValueError, TypeError) as error:  # the client expects more of an answer
            kind, reason = "refused", f"unexpected answer ({type(error).__name__})"
        raise ServiceError(kind, what, self.scrubbed(reason)) from None

    def reason(self, kind: Kind, error: Any) -> str:
        """What DataHub says. Why a signature is wrong it says with all that was signed."""
        code = error.error_code or f"HTTP {error.status_code}"
        if kind == "denied":
            return f"DataHub says {code}"
        return f"DataHub says {code}: {shown(error.error_msg, 300)[1:-1]}"

    def scrubbed(self, text: str) -> str:
        """A text without the secrets of the connection."""
        for secret in (self.connection.access_key, self.connection.security_token):
            if secret:
                text = text.replace(secret, "***")
        return text


def kind_of(code: str, status: int) -> Kind:
    """Why a request failed, of DataHub's error code and HTTP's status (-1: the client's own error).

    >>> kind_of("LimitExceeded", 429), kind_of("", 502), kind_of("InvalidParameter", 400)
    ('busy', 'busy', 'refused')
    """
    if code in _KINDS:
        return _KINDS[code]
    if status >= 500 or status in (-1, 408, 429):
        return "busy"
    return "denied" if status in (401, 403) else "refused"


def retried(ask: Callable[[], T], seconds: float) -> T:
    """The answer to a question, which is asked again while DataHub is busy or does not answer."""
    patience = Patience(seconds)
    while True:
        try:
            return ask()
        except ServiceError as error:
            if error.kind != "busy" or not patience.rest():
                raise


@lru_cache(maxsize=4)
def worker_client(connection: Connection) -> Client:
    """The client of this process, which keeps its connections from task to task."""
    return Client(connection, PUT_SECONDS)


class Library:
    """What is used of pydatahub and of requests, which it is built on; imported on first use."""

    def __init__(self) -> None:
        try:
            from datahub import DataHub
            from datahub.core import DatahubProtocolType
            from datahub.exceptions import DatahubException
            from datahub.models import BlobRecord, CompressFormat, RecordType, ShardState
            from requests.exceptions import RequestException, SSLError, Timeout
        except ImportError as error:
            raise UsageError(
                f"the datahub sink needs pydatahub ({error}); pip install 'headgate[datahub]'"
            ) from None
        self.DataHub, self.DatahubProtocolType = DataHub, DatahubProtocolType
        self.BlobRecord, self.CompressFormat = BlobRecord, CompressFormat
        self.RecordType, self.ShardState = RecordType, ShardState
        self.DatahubException = DatahubException
        self.RequestException: type[Exception] = RequestException
        self.SSLError: type[Exception] = SSLError
        self.Timeout: type[Exception] = Timeout
        # What it logs of failed requests is in the errors, and with DEBUG it logs the headers.
        logging.getLogger("datahub").propagate = False

    def transport(self, connection: Connection) -> Any:
        """HTTPS that checks certificates, unless that is not wanted."""
        from requests.adapters import HTTPAdapter

        class Transport(HTTPAdapter):
            def init_poolmanager(self, *args: Any, **more: Any) -> None:
                if connection.ca is not None:
                    more["ssl_context"] = ssl.create_default_context(cadata=connection.ca)
                super().init_poolmanager(*args, **more)

            def send(self, *args: Any, **more: Any) -> Any:
                return super().send(*args, **{**more, "verify": connection.verify})

        return Transport(pool_maxsize=CONNECTIONS)
