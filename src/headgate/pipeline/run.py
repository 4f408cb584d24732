"""A job from start to stop: the session, the query, signals, status."""

from __future__ import annotations

import re
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from headgate.config.job import Job
from headgate.core.connectors import Directory
from headgate.core.errors import HeadgateError, SpliceError, UsageError, reason_of
from headgate.fastpath.compilation import SPLICING, can_compile
from headgate.fastpath.convert import has_templates
from headgate.pipeline import partition_worker, status
from headgate.pipeline.engine import Engine
from headgate.pipeline.lease import Lease, LeaseError
from headgate.pipeline.preflight import check_before_start
from headgate.pipeline.row_filter.check import check_conditions
from headgate.spark import filesystem, jars
from headgate.spark.logs import keep_trace, log_of, temporary_log
from headgate.spark.session import jvm_ended, session
from headgate.spark.storage import Storage

TICK = 0.5
LAG_SECONDS = 2.0
CHECKPOINT_FILES = "spark.sql.streaming.checkpointFileManagerClass"
LOCAL_CHECKPOINT_FILES = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)
"""Spark's default starts two dozen processes (`readlink`, `chmod`) per micro-batch on a local disk.
Both write a file beside its place and rename it."""
SLOW_SECONDS = 1.0
"""What takes longer than this is said to be under way."""
ERROR_LINE = re.compile(r"Exception|Error")
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
    log: Path | None = None
    try:
        ends = ", ".join(each.name for each in (job.source, *job.all_sinks))
        reporter.step(f"looking for {ends}")
        check_before_start(job, master)
        log = log_of(job.checkpoint)
        if spark is None:
            compile_ahead(job, reporter.step)
            spark = job_session(job, master, long_running=not once, log=log, say=reporter.step)
            start_workers(spark)
        job = with_session_settings(job, spark)
        reporter.storage = Storage(storage.uri, job.settings)
        with Lease(reporter.storage) as lease:
            once = once or job.source.connector.ends
            check_conditions(spark, job)
            reporter.step(f"connecting to {job.source.name}")
            with closing(Engine(spark, job)) as engine:
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
            reporter.ended(
                "stopped"
            )  # a stop whose signal reached the JVM too; its batch is repeated
            return reporter.status
        reporter.status.splice_mismatches += isinstance(error, SpliceError)
        reason = died or reason_of(error)
        if log is not None and (died or not isinstance(error, HeadgateError)):
            keep_trace(error, log)
            reason = f"{reason}; the full trace is in {log}"
        reporter.ended("failed", reason)
        if died or not isinstance(error, HeadgateError):
            raise JobFailed(reason) from error
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


def job_session(
    job: Job,
    master: str | None,
    long_running: bool = False,
    more: Sequence[str] = (),
    log: Path | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> SparkSession:
    """The session of a job, with the connectors that it needs, and `more`.

    `say` is called with what is being done; `log`, or else a temporary file, gets what the JVM
    writes.
    """
    log = log or temporary_log()
    needed = [
        *more,
        *job.source.connector.jars,
        *(n for sink in job.all_sinks for n in sink.connector.jars),
    ]
    for path in (job.checkpoint, job.dead_letters):
        needed += filesystem.jars_for(path)
    schemes = {filesystem.scheme_of(path) for path in remote_paths(job)}
    # Settings of file systems hold secrets, and a new JVM would get them on its command line.
    late = {n: v for n, v in job.settings.items() if n.startswith(filesystem.PREFIX)}
    early = {n: v for n, v in job.settings.items() if n not in late}
    if not filesystem.is_remote(job.checkpoint):
        early.setdefault(CHECKPOINT_FILES, LOCAL_CHECKPOINT_FILES)
    early.setdefault("spark.executorEnv.HEADGATE_PRELOAD", partition_worker.__name__)
    with said_if_slow(say, f"fetching the connector jars ({', '.join(dict.fromkeys(needed))})"):
        connectors = jars.settings(*dict.fromkeys(needed))
    say(f"starting Spark ({master or 'on this machine'})")
    try:
        spark = session(master, connectors | early, write_archive=long_running, log=log)
    except (PySparkException, Py4JError) as error:
        raise not_started(error, log, job.settings) from error
    configuration: Any = spark.sparkContext._jsc.hadoopConfiguration()
    for name, value in late.items():
        configuration.set(name.removeprefix(filesystem.PREFIX), value)
    if "s3" in schemes:
        configuration.setIfUnset("fs.s3.impl", "org.apache.hadoop.fs.s3a.S3AFileSystem")
    return spark


@contextmanager
def said_if_slow(say: Callable[[str], None], what: str) -> Iterator[None]:
    """Say what is being done, unless it is done at once."""
    timer = threading.Timer(SLOW_SECONDS, say, (what,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def not_started(error: Exception, log: Path, settings: Mapping[str, str]) -> HeadgateError:
    """The error of a session that could not be started, with the setting that is to blame."""
    output = log.read_text(errors="replace")
    keep_trace(error, log)
    reason = reason_of(error)
    if "GATEWAY_EXITED" in str(error):  # the JVM's own words are in its output
        lines = [line.strip() for line in output.splitlines() if ERROR_LINE.search(line)]
        reason = lines[-1].rstrip(".") if lines else reason
    blamed = [name for name in settings if name in f"{reason}{output}"]
    which = f" with the setting {blamed[0]}" if blamed else ""
    kind = UsageError if blamed else JobFailed  # as where its master is away
    return kind(f"Spark did not start{which}: {reason}; the full trace is in {log}")


def compile_ahead(job: Job, say: Callable[[str], None]) -> None:
    """Have compiled what batches will need, where this machine has not done so yet."""
    source = job.source
    needed = [source.connector.compiled()]
    if source.connector.gives == "messages" and has_templates(source.format, source.options):
        needed.append(SPLICING)
    missing = [each for each in needed if each is not None and can_compile()]
    missing = [each for each in missing if each.is_cached() is False]
    if missing:
        say("compiling the fast path in the background, once on this machine; no batch waits")
    for each in missing:
        threading.Thread(target=each.fill_cache, name="compile", daemon=True).start()


def start_workers(spark: SparkSession) -> None:
    """Start Spark's Python workers in the background.

    A first job takes seconds, for the JVM loads its classes and Python its modules; meanwhile the
    job looks at its source and its sinks.
    """

    def unchanged(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        return batches

    def start() -> None:
        with suppress(Exception):  # the first batch meets it again, and reports it
            cores = spark.sparkContext.defaultParallelism
            spark.range(0, cores, 1, cores).mapInArrow(unchanged, "id long").collect()

    if str(spark.sparkContext.master).startswith("local"):
        threading.Thread(target=start, name="start workers", daemon=True).start()


def remote_paths(job: Job) -> list[str]:
    """The job's paths that are not on the local file system."""
    places = [*job.source.connector.places(), *(s.connector.place(None) for s in job.all_sinks)]
    paths = [place.path for place in places if isinstance(place, Directory)]
    directories = (job.checkpoint, job.dead_letters)
    return [path for path in (*directories, *paths) if filesystem.is_remote(path)]


def with_session_settings(job: Job, spark: SparkSession) -> Job:
    """A job with the settings that the session has for the job's file systems."""
    paths = remote_paths(job)
    if not paths:
        return job
    configuration: Any = spark.sparkContext._jsc.hadoopConfiguration()
    settings = filesystem.session_settings(configuration, paths)
    return replace(job, settings={**job.settings, **settings})


def _run(
    engine: Engine, once: bool, reporter: status.Reporter, lease: Lease, asked: threading.Event
) -> None:
    _run_query(engine, once, reporter, lease, asked)
    reporter.set_lag(lag_of(engine))


def _run_query(
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
    stops_itself = once and engine.reader.unread(engine.state.batch) is None
    if stops_itself:
        trigger = {"availableNow": True}
    elif once:
        trigger = {"processingTime": "0 seconds"}
    if (waiting := engine.reader.backlog(engine.state.batch)) is not None:
        reporter.step(waiting)
    query = (
        engine.stream()
        .writeStream.queryName(job.name)
        .option("checkpointLocation", engine.spark_checkpoint.for_spark(""))
        .trigger(**trigger)
        .foreachBatch(process)
        .start()
    )
    reporter.started()
    with stop_signals(asked), stopped_after(query, engine, stopping):
        checked = beaten = time.monotonic()
        while not asked.is_set() and not ended(query, TICK):
            if lease.lost is not None:
                raise lease.lost
            if once and not stops_itself and not engine.reader.unread(engine.state.batch):
                asked.set()  # all is read: a batch that begins now would find nothing, or newer
                break
            now = time.monotonic()
            if now - checked >= LAG_SECONDS:
                lag = lag_of(engine)
                reporter.set_lag(lag)
                if waits(query, engine, lag):
                    reporter.idle()
                else:
                    reporter.working()
                reporter.save()
                checked = now
                engine.idle()
            if job.heartbeat is not None and now - beaten >= job.heartbeat:
                engine.heartbeat()
                beaten = now
        if asked.is_set() and engine.busy.locked():
            reporter.step("stopping, when the batch that is under way is finished")
    if not asked.is_set() and (error := query.exception()) is not None:
        raise (failure[0] if failure else error) from None


def waits(query: StreamingQuery, engine: Engine, lag: int | None) -> bool:
    """Whether there is nothing to do: no batch is under way, and Spark plans none."""
    message = str(query.status["message"])
    looking = lag == 0 and message.startswith("Getting offsets")
    return not engine.busy.locked() and (looking or message.startswith("Waiting for"))


def ended(query: StreamingQuery, wait: float) -> bool:
    """Whether a query has ended, or does within a time, for any reason."""
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


def lag_of(engine: Engine) -> int | None:
    """How many messages of the source wait; None where that is not known."""
    number = engine.state.batch
    return None if number < 0 else engine.reader.lag(number)
