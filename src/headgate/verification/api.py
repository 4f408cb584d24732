"""What users call: two URIs, or a job."""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from pyspark.sql import SparkSession

from headgate.codec.sequence import COMMIT
from headgate.config.job import Job, TableSink
from headgate.config.uris import parse_sink, parse_source
from headgate.core.errors import UsageError
from headgate.core.scalars import Environment
from headgate.landing.types import DEFAULTS, TypePreferences
from headgate.pipeline.run import job_session, with_session_settings
from headgate.pipeline.state import IDENTITY, Identity, States
from headgate.sinks.delta.state import Published
from headgate.sources.base import Origin
from headgate.spark import jars
from headgate.spark.checkpoint import files_read
from headgate.spark.filesystem import local
from headgate.spark.session import session
from headgate.spark.state_files import read_state
from headgate.spark.storage import Storage
from headgate.verification import database
from headgate.verification.database import DatabaseSide, parse_database
from headgate.verification.delta import DeltaSide
from headgate.verification.log import LogSide, refuse_latest
from headgate.verification.log_reading import Until
from headgate.verification.report import Verification
from headgate.verification.run import Wanted, compare
from headgate.verification.sides import Side


def verify(
    source: str,
    target: str,
    tables: Sequence[str] = (),
    *,
    limit: int = 20,
    wait: float = 0.0,
    spark: SparkSession | None = None,
) -> Verification:
    """Compare tables of two places, down to the rows that differ.

    A place is a database (`mysql://USER:PASSWORD@HOST/DATABASE`), a directory of Delta tables
    (`delta:///data/lake`), or the source of a job, whose messages are folded to the rows that they
    leave (`kafka://HOST:PORT/TOPIC`, `file:///DIR`). `tables` are patterns, such as `shop.*`.
    The result is true where both are equal; `limit` is how many rows of a table it shows. Where a
    database or a lake changes meanwhile, rows that differ are looked at again for `wait` seconds.

        result = headgate.verify("kafka://broker/shop", "delta:///data/lake", tables=["shop.*"])
        assert result, result.tables
    """
    spark = spark or SparkSession.getActiveSession() or new_session(source, target)
    return verify_places(spark, source, target, Wanted(tuple(tables), limit, wait))


def verify_places(spark: SparkSession, source: str, target: str, wanted: Wanted) -> Verification:
    """Compare two places."""
    spark = in_utc(spark)
    with ExitStack() as stack:
        ours = stack.enter_context(closing(side_of(spark, source)))
        theirs = stack.enter_context(closing(side_of(spark, target)))
        return compare(ours, theirs, wanted)


def verify_job(
    job: Job, wanted: Wanted, master: str | None = None, source: str | None = None
) -> Verification:
    """Compare what a job has landed with its messages, its database, or another source.

    Both are as they were after the job's last batch: the messages up to there, and of each table
    the version of that batch. So the job may run on meanwhile.
    """
    sink = table_sink(job)
    captured = job.source.connector.database() if source is None else None
    if captured is not None:
        source, patterns = captured
        wanted = replace(wanted, captured=tuple(patterns))
    needed = database.JARS if source is not None and is_database(source) else ()
    spark = job_session(job, master, more=needed)
    job = with_session_settings(job, spark)
    spark = in_utc(spark)
    storage = Storage(f"{job.checkpoint}/headgate", job.settings)
    identity, state = read_state(storage, IDENTITY, Identity), States(storage).latest()
    if identity is None or state.batch < 0:
        raise UsageError(f"{job.name} has not landed anything yet; start it with `headgate run`")
    folder = Storage(f"{job.checkpoint}/verify-{uuid.uuid4().hex}", job.settings)
    batch = None
    with ExitStack() as stack:
        if source is None:
            refuse_latest(job)
            lake = delta_side(spark, sink, job)
            if sink.connector.waits_for_watermarks:
                # Tables do not change before the next watermark, even if more batches come.
                published = lake.published(identity.id)
                until = published_by(read_by(spark, job, folder, state.batch), job, published)
                batch = None if published is None else published.batch
            else:
                waiting = lake.waiting(identity.id)
                batch = state.batch if waiting is None else min(state.batch, waiting - 1)
                until = read_by(spark, job, folder, batch)
            ours: Side = LogSide(spark, job, folder, until, sink.connector.types)
            theirs = delta_side(spark, sink, job, identity.id, batch)
        else:
            ours = side_of(spark, source, job.settings, sink.connector.types)
            theirs = delta_side(spark, sink, job)
        for side in (ours, theirs):
            stack.enter_context(closing(side))
        report = compare(ours, theirs, wanted)
    report.batch = batch
    return report


def table_sink(job: Job) -> TableSink:
    """The sink of a job that has tables."""
    if not job.table_sinks:
        raise UsageError(
            f"{job.name} writes messages, and no tables; verify compares tables with their source"
        )
    if len(job.table_sinks) > 1:
        raise UsageError(
            f"{job.name} has several sinks of tables; compare one with --set sink.uri=…"
        )
    return job.table_sinks[0]


def published_by(read: Until, job: Job, published: Published | None) -> Until:
    """Of what a job has read, the changes that are in the state of the source it published."""
    if published is None:
        raise UsageError(
            f"{job.name} has not published anything yet: no watermark has come from all partitions"
        )
    if read.files is not None and not published.order.startswith(COMMIT):
        raise UsageError(
            f"{job.source.name} has neither commit numbers nor offsets, so that nobody knows which "
            "messages the published tables have; compare with the database: --source mysql://…"
        )
    return replace(read, order=published.order)


def read_by(spark: SparkSession, job: Job, folder: Storage, batch: int) -> Until:
    """How far a job had read its source after a batch."""
    source = job.source
    query = Storage(f"{job.checkpoint}/query", job.settings)
    origin = Origin(source.name, source.options, job.settings, folder, query)
    if (files := files_read(query, batch)) is not None:
        return Until(files=frozenset(local(unquote(path)) for path in files))
    with closing(source.connector.open(spark, origin)) as reader:
        ends = dict(reader.ends(batch))
    if not ends:
        raise UsageError(
            f"{query.uri} does not tell any more where batch {batch} of {job.name} ends, which is "
            "what its tables have; wait for the next merge (merge_every), and repeat this"
        )
    return Until(ends)


def delta_side(
    spark: SparkSession,
    sink: TableSink,
    job: Job,
    job_id: str | None = None,
    batch: int | None = None,
) -> DeltaSide:
    """The tables of a job's sink."""
    connector: Any = sink.connector
    return DeltaSide(spark, connector.path, job.settings, connector.options.table, job_id, batch)


def side_of(
    spark: SparkSession,
    uri: str,
    settings: dict[str, str] | None = None,
    prefer: TypePreferences = DEFAULTS,
) -> Side:
    """The side that a URI names."""
    if is_database(uri):
        return DatabaseSide(spark, parse_database(uri), prefer)
    env = Environment(os.environ)
    if uri.startswith("delta"):
        connector: Any = parse_sink(uri, env=env).connector
        return DeltaSide(spark, connector.path, settings or {}, connector.options.table)
    folder = tempfile.mkdtemp(prefix="headgate-verify-")
    source = parse_source(uri, env=env)
    job = Job(
        source=source, sinks=(), name="verify", checkpoint=folder, dead_letters=folder,
        settings=settings or {},
    )  # fmt: skip
    refuse_latest(job)
    return LogSide(spark, job, Storage(folder), prefer=prefer)


def is_database(uri: str) -> bool:
    """Whether a URI is that of a database.

    >>> is_database("mysql://me@db/shop"), is_database("delta:///lake")
    (True, False)
    """
    return uri.partition(":")[0].lower() in database.SCHEMES


def new_session(*uris: str, master: str | None = None, log: Path | None = None) -> SparkSession:
    """A session with the connectors that URIs need."""
    needed: list[str] = []
    for uri in uris:
        if is_database(uri):
            needed += database.JARS
        elif uri.startswith("delta"):
            needed += parse_sink(uri, env=Environment(os.environ)).connector.jars
        else:
            needed += parse_source(uri, env=Environment(os.environ)).connector.jars
    return session(master, jars.settings(*dict.fromkeys(needed)), log=log)


def in_utc(spark: SparkSession) -> SparkSession:
    """A session of the same Spark in which times are shown as UTC."""
    own = spark.newSession()
    own.conf.set("spark.sql.session.timeZone", "UTC")
    return own
