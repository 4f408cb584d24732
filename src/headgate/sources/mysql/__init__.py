"""MySQL and MariaDB: tables once, and then their changes from the binlog."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Self

from headgate.core.connectors import Address, Report
from headgate.core.errors import UsageError, unknown_name
from headgate.core.options import option
from headgate.core.reachability import check_servers
from headgate.core.scalars import duration, size, whole_number
from headgate.mysql.login import DEFAULT_PORT, Login, LoginOptions, login_of
from headgate.sources.base import Origin, Reader, Source
from headgate.sources.mysql.tables import TablePatterns, patterns_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headgate.core.event import Event
    from headgate.fastpath.compilation import CompiledAhead

EXAMPLE = "mysql://USER:PASSWORD@HOST:PORT/DATABASE.TABLE"
WORDS = ("initial", "latest", "earliest")
CHUNK_ROWS, BATCH_BYTES = 100_000, 64 * 1024 * 1024
MOST_SERVER_ID = 2**32 - 1
MOST_CHUNKS = 10_000


def _starting(text: str) -> str:
    """Where reading starts the first time.

    >>> _starting("binlog.000004:157"), _starting("latest-offset")
    ('binlog.000004:157', 'latest')
    """
    word = text.removesuffix("-offset") if text.removesuffix("-offset") in WORDS else text
    file, _, pos = word.rpartition(":")
    if word in WORDS or (pos.isdigit() and file.rpartition(".")[2].isdigit()):
        return word
    if word.startswith("gtid:"):
        return word
    try:
        datetime.fromisoformat(word)
    except ValueError:
        raise unknown_name(
            "starting position", text,
            (*WORDS, "binlog.000004:157", "gtid:SET", "2024-05-01T08:00:00Z"),
        ) from None  # fmt: skip
    return word


def _server_id(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= MOST_SERVER_ID:
        raise UsageError(f"server-id is a number from 1 to {MOST_SERVER_ID}")
    return int(text)


def _batch_bytes(text: str) -> int:
    if size(text) < 1:
        raise UsageError("max-batch-bytes is at least 1; use 64MB")
    return size(text)


def _heartbeat(text: str) -> float:
    if duration(text) <= 0:
        raise UsageError("heartbeat is longer than nothing; use 10s")
    return duration(text)


@dataclass(frozen=True)
class MySQLSourceOptions(LoginOptions):
    """Parameters of a MySQL source."""

    tables: str | None = option(
        None, "tables, separated by commas, if they are not in the path; `*` and `?` make a pattern"
    )
    starting: str = option(
        "initial",
        "where the first start begins: initial (all rows, then changes), latest, earliest, a "
        "position (binlog.000004:157), gtid:SET, or a time (2024-05-01T08:00:00Z)",
        read=_starting,
    )
    server_id: int | None = option(
        None,
        "id as a replica, which no other replica of the server may have; the job uses it and the "
        "ids after it, one for each task; chosen by chance if it is not set",
        read=_server_id,
    )
    chunk_rows: int = option(CHUNK_ROWS, "rows of a snapshot that a task reads", read=whole_number)
    parallel_chunks: int | None = option(
        None,
        "chunks of a snapshot in a batch; twice the cores if it is not set",
        read=lambda text: whole_number(text, 1, MOST_CHUNKS),
    )
    max_batch_bytes: int = option(
        BATCH_BYTES, "bytes of binlog in a batch, or a whole larger transaction", read=_batch_bytes
    )
    heartbeat: float = option(
        10.0, "how often an idle server says that it is there", read=_heartbeat
    )


@dataclass(frozen=True)
class MySQLSource(Source):
    """Reads tables, and the binlog from there on."""

    name = "mysql"
    summary = "tables of MySQL or MariaDB: all rows, then the changes in the binlog"
    gives = "events"
    samples_without_spark = True
    authority = "hosts"
    default_port = DEFAULT_PORT
    Options = MySQLSourceOptions

    patterns: TablePatterns
    options: MySQLSourceOptions = field(repr=False)
    login: Login = field(repr=False)

    @classmethod
    def from_uri(cls, address: Address) -> Self:
        """The server and tables of a URI."""
        own, login = login_of(MySQLSourceOptions, address)
        return cls(patterns_of(address.path, own.tables, EXAMPLE), own, login)

    def for_workers(self) -> Self:
        """The source without the password."""
        options = replace(self.options, ca=None, cert=None, key=None, password_file=None)
        return replace(self, login=self.login.without_secrets(), options=options)

    def reachable(self) -> None:
        """Whether the server answers."""
        check_servers([f"{self.login.host}:{self.login.port}"])

    def check(self, spark: SparkSession, settings: Mapping[str, str]) -> Report:
        """What would be captured; UsageError with the statement that repairs what is missing."""
        from headgate.sources.mysql.check import checked

        return checked(self)

    def sample_events(self, limit: int) -> Iterable[Event]:
        """The statements that define the tables."""
        from headgate.sources.mysql.check import definitions

        return definitions(self, limit)

    def database(self) -> tuple[str, Sequence[str]]:
        """All databases of the server, and the tables that are captured."""
        return self.login.uri, self.patterns.patterns

    def compiled(self) -> CompiledAhead:
        """The loops that read rows."""
        from headgate.mysql.compilation import ROW_LOOPS

        return ROW_LOOPS

    def open(self, spark: SparkSession, origin: Origin) -> Reader:
        """The reader of a job that starts."""
        from headgate.sources.mysql.reader import MySQLReader

        return MySQLReader(spark, self, origin)
