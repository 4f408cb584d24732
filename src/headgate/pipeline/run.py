"""A job from start to stop: the session, the query, signals, status."""

from __future__ import annotations

import shutil
import signal
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import IO, Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from headgate.arrow.messages import Partition
from headgate.config.job import Job
from headgate.core.errors import HeadgateError, SpliceError, reason_of
from headgate.kafka.admin import Admin
from headgate.pipeline import status
from headgate.pipeline.engine import Engine
from headgate.pipeline.lease import Lease, LeaseError
from headgate.pipeline.row_filter.check import check_conditions
from headgate.sources import streams
from headgate.spark import filesystem, jars
from headgate.spark.session import jvm_ended, session
from headgate.spark.storage import Storage

TICK = 0.5
S3 = {"s3", "s3a"}
LAG_SECONDS = 2.0
JVM_SECONDS = 5.0
"""How long after its last word Spark's JVM may take to end."""


def run(
    job: Job,
    once: bool = False,
    master: str | None = None,
    json_logs: bool = False,
    spark: SparkSession | None = None,
) -> status.Status:
    """Run a job until it is stopped; with `once`, until everything there is now is done."""
    storage = Storage(f"{job.checkpoint}/headgate", job.settings)
    reporter = status.Reporter(job.name, storage, json_logs)
    serving = status.serve(reporter, job.metrics) if job.metrics else None
    asked = threading.Event()
    try:
        found = spark or job_session(job, master)
        job = with_session_settings(job, found)
        reporter.storage = Storage(storage.uri, job.settings)
        with Lease(reporter.storage) as lease:
            if job.source.kind == "stdin":
                job, once = spooled(job, sys.stdin.buffer), True
            check_conditions(found, job)
            with closing(Engine(found, job)) as engine:
                engine.on_batch, engine.still_ours = reporter.batch_done, lease.check
                reporter.resume_from(engine.state)
                with as_lost(lease):
                    _run(engine, once, reporter, lease, asked)
        reporter.ended("stopped")
    except LeaseError:
        raise  # the status is that of the other instance
    except Exception as error:
        died = jvm_ended(JVM_SECONDS if isinstance(error, Py4JError | OSError) else 0)
        if died and asked.is_set():
            reporter.ended("stopped")  # a stop that the JVM was told of too; its batch is repeated
            return reporter.status
        reporter.status.splice_mismatches += isinstance(error, SpliceError)
        reporter.ended("failed", died or reason_of(error))
        if died or not isinstance(error, HeadgateError):
            raise JobFailed(died or reason_of(error)) from error
        raise
    finally:
        if serving is not None:
            serving.shutdown()
    return reporter.status


@contextmanager
def as_lost(lease: Lease) -> Iterator[None]:
    """Whatever fails after another instance has taken the checkpoint fails because of that."""
    try:
        yield
    except Exception as error:
        try:
            lease.check()
        except LeaseError:
            raise
        except Exception:  # where the lease cannot be read either, the first error says more
            pass
        raise error


class JobFailed(HeadgateError):
    """Something that the job depends on failed; started again, it goes on where it was."""


def spooled(job: Job, stream: IO[bytes]) -> Job:
    """A job that reads standard input: its messages are kept in a file first, so that none is lost.

    Standard input ends, and so does the job: it is run with `once`.
    """
    storage = Storage(f"{job.checkpoint}/headgate", job.settings)
    storage.make_folder("stdin")
    staged, name = f"stdin/_{uuid.uuid4().hex}", f"stdin/{time.time_ns()}.jsonl"
    with storage.naming("write", staged), storage.create(staged) as file:
        shutil.copyfileobj(stream, file)
    storage.move(staged, name)
    return replace(job, source=replace(job.source, kind="file", path=storage.for_spark("stdin")))


def job_session(job: Job, master: str | None) -> SparkSession:
    """The session of a job, with the connectors that it needs."""
    kinds = {job.source.kind, *(sink.kind for sink in job.sinks)}
    schemes = {filesystem.scheme_of(path) for path in remote_paths(job)}
    wanted = [*(["kafka"] if "kafka" in kinds else []), *(["s3a"] if schemes & S3 else [])]
    needed = jars.settings(*wanted)
    # Settings of file systems hold secrets, and a new JVM would get them on its command line.
    late = {n: v for n, v in job.settings.items() if n.startswith(filesystem.PREFIX)}
    early = {n: v for n, v in job.settings.items() if n not in late}
    spark = session(master, **needed, **early)
    configuration: Any = spark.sparkContext._jsc.hadoopConfiguration()
    for name, value in late.items():
        configuration.set(name.removeprefix(filesystem.PREFIX), value)
    if "s3" in schemes:
        configuration.setIfUnset("fs.s3.impl", "org.apache.hadoop.fs.s3a.S3AFileSystem")
    return spark


def remote_paths(job: Job) -> list[str]:
    """The job's paths that are not on the local file system."""
    paths = [job.checkpoint, job.dead_letters, job.source.path, *(s.path for s in job.sinks)]
    return [path for path in paths if path is not None and filesystem.is_remote(path)]


def with_session_settings(job: Job, spark: SparkSession) -> Job:
    """A job that knows what the session knows of its file systems, from wherever it has that."""
    paths = remote_paths(job)
    if not paths:
        return job
    configuration: Any = spark.sparkContext._jsc.hadoopConfiguration()
    found = filesystem.session_settings(configuration, paths)
    return replace(job, settings={**job.settings, **found})


def _run(
    engine: Engine, once: bool, reporter: status.Reporter, lease: Lease, asked: threading.Event
) -> None:
    job = engine.job
    failure: list[BaseException] = []
    stopping = threading.Event()

    def process(batch: Any, number: int) -> None:
        if asked.is_set() or stopping.is_set():
            raise InterruptedError("the job is stopping")
        try:
            engine.process(batch, number)
        except BaseException as error:
            failure.append(error)
            raise

    trigger: dict[str, Any] = {"processingTime": f"{int(job.trigger * 1000)} milliseconds"}
    if once:
        trigger = {"availableNow": True}
    query = (
        engine.stream()
        .writeStream.queryName(job.name)
        .option("checkpointLocation", engine.spark_checkpoint.for_spark(""))
        .trigger(**trigger)
        .foreachBatch(process)
        .start()
    )
    reporter.started()
    with closing(Lag(engine)) as lag:
        with stop_signals(asked), stopped_after(query, engine, stopping):
            checked = beaten = time.monotonic()
            while not asked.is_set() and not ended(query, TICK):
                if lease.lost is not None:
                    raise lease.lost
                now = time.monotonic()
                if now - checked >= LAG_SECONDS:
                    reporter.set_lag(lag.now())
                    reporter.save()
                    checked = now
                if job.heartbeat is not None and now - beaten >= job.heartbeat:
                    engine.heartbeat()
                    beaten = now
        if not asked.is_set() and (error := query.exception()) is not None:
            raise (failure[0] if failure else error) from None
        reporter.set_lag(lag.now())


def ended(query: StreamingQuery, wait: float) -> bool:
    """Whether a query has ended, or does within a time; whatever for."""
    try:
        # Fractions of a second are taken, though not typed so.
        return bool(query.awaitTermination(wait))  # type: ignore[arg-type]
    except StreamingQueryException:
        return True


@contextmanager
def stopped_after(
    query: StreamingQuery, engine: Engine, stopping: threading.Event
) -> Iterator[None]:
    """Stop the query in the end, also where watching it failed; a batch under way is finished."""
    try:
        yield
    finally:
        stopping.set()  # a batch that begins from now on is refused
        with engine.busy:
            pass
        query.stop()


@contextmanager
def stop_signals(asked: threading.Event) -> Iterator[None]:
    """SIGTERM and Ctrl-C stop the job cleanly."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    old = {
        each: signal.signal(each, lambda *_: asked.set())
        for each in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        yield
    finally:
        for each, handler in old.items():
            signal.signal(each, handler)


class Lag:
    """How many messages of Kafka wait.

    One client for the whole run: to open one costs more than to ask it. After an error the next
    question opens a new one, because the brokers may have come back elsewhere.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.admin: Admin | None = None
        self.done: tuple[int, dict[Partition, int]] | None = None

    def now(self) -> int | None:
        """None where it cannot be said: before the first batch, or while no broker answers."""
        engine = self.engine
        if engine.job.source.kind != "kafka" or engine.state.batch < 0:
            return None
        try:
            done = self.done_after(engine.state.batch)
            if self.admin is None:
                source = engine.job.source
                self.admin = Admin(engine.spark._jvm, source.kafka, source.name, tries=1)
            newest = self.admin.latest(list(done))
        except HeadgateError:
            self.close()
            return None
        return sum(max(0, newest[p] - done[p]) for p in done if p in newest)

    def done_after(self, batch: int) -> dict[Partition, int]:
        """Where a batch ends in each partition; read once per batch."""
        if self.done is None or self.done[0] != batch:
            self.done = (batch, streams.offsets_of(self.engine.spark_checkpoint, batch))
        return self.done[1]

    def close(self) -> None:
        """Close the client."""
        admin, self.admin = self.admin, None
        if admin is not None:
            admin.close()
