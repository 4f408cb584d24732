"""The Spark session of the command line and the tests."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from headgate.core.errors import UsageError
from headgate.core.limits import BATCH_BYTES
from headgate.spark.class_archive import ClassArchive, archive_folder
from headgate.spark.settings import check_sql_settings

NEEDED = {
    "spark.sql.execution.arrow.maxBytesPerBatch": str(BATCH_BYTES),
}
"""What decoding needs in any session: bounded memory."""
SETTINGS = {
    **NEEDED,
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    # What a page that nobody can open would show of jobs long done.
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "20",
    "spark.ui.retainedTasks": "100",
    "spark.sql.ui.retainedExecutions": "20",
    "spark.sql.streaming.numRecentProgressUpdates": "5",
}
"""The settings of sessions that Headgate starts for itself, but for those that spark-submit was
given."""

REDACTED = (
    "(?i)secret|password|passwd|pwd|token|access[._-]?key|api[._-]?key|credential|jaas|"
    "connection[._-]?string|dsn|private[._-]?key|keystore|truststore"
)
"""Names of settings whose values Spark never prints; its own pattern misses most of these."""
SOCKETS = "spark.python.unix.domain.socket.enabled"
LONGEST_FOLDER = 60
"""The path of a Unix socket is at most 103 bytes, and Spark's names take 42 of them."""


def master_of(master: str | None) -> str:
    """The given master, or spark-submit's own; else this machine.

    >>> master_of("local[2]"), master_of(None)
    ('local[2]', 'local[*]')
    """
    if master is None and "PYSPARK_GATEWAY_PORT" in os.environ:  # spark-submit began this process
        SparkContext._ensure_initialized()
        master = SparkConf().get("spark.master")
    return master or "local[*]"


@cache
def sockets(master: str) -> dict[str, str]:
    """Settings by which Spark and its Python workers talk through Unix sockets, not through TCP.

    Each sends to the other while neither may be reading, and with TCP some kernels then drop what
    would let them go on: both wait for ever. The files of the sockets are removed at the end.

    >>> sockets("spark://host:7077")
    {'spark.python.unix.domain.socket.enabled': 'true'}
    """
    if not hasattr(socket, "AF_UNIX"):
        return {}
    if not master.startswith("local"):
        return {SOCKETS: "true"}  # machines have their own folders, and Headgate where they like
    folder = tempfile.mkdtemp(prefix="headgate-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    if len(os.fsencode(folder)) > LONGEST_FOLDER:
        return {}
    return {
        SOCKETS: "true",
        "spark.python.unix.domain.socket.dir": folder,
        "spark.python.daemon.module": "headgate.spark.daemon",
    }


def on_this_machine(settings: Mapping[str, str]) -> dict[str, str]:
    """Settings of a session whose JVM is started here and runs everything.

    Jars go onto the class path of the JVM itself, where they are neither copied nor out of reach of
    the class archive. Spark's own heap of 1 GB does not keep up with a busy topic.

    >>> on_this_machine({"spark.jars": "/a.jar,/b.jar"})["spark.driver.extraClassPath"]
    '/a.jar:/b.jar'
    """
    merged = dict(settings)
    if "SPARK_CONF_DIR" not in os.environ and "SPARK_DRIVER_MEMORY" not in os.environ:
        merged.setdefault("spark.driver.memory", f"{heap_megabytes()}m")
    given = [jar for jar in merged.pop("spark.jars", "").split(",") if jar]
    if not all(jar.startswith("/") for jar in given):
        return {**merged, "spark.jars": ",".join(given)}
    if paths := [*filter(None, [merged.get("spark.driver.extraClassPath")]), *given]:
        merged["spark.driver.extraClassPath"] = ":".join(paths)
    return merged


def heap_megabytes() -> int:
    """The JVM's heap: a quarter of the machine's memory, from 1 to 4 GB."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    except (ValueError, OSError, AttributeError):
        return 1_024
    return max(1_024, min(4_096, memory // 4))


def start_jvm(settings: Mapping[str, str], log: Path | None = None) -> None:
    """Start Spark's JVM with these settings, but for those that are secret by their name.

    What it and its workers write to standard error goes to `log`, if one is given.

    Everybody on the machine can read its command line; a session's settings reach it otherwise. It
    gets a process group of its own, because a signal for this process's group is ours to handle:
    it ends when this process does.
    """
    public = [(n, v) for n, v in settings.items() if not re.search(REDACTED, n)]
    launch: Any = launch_gateway
    with nullcontext() if log is None else log.open("ab") as stderr:
        process = {"start_new_session": True, "stderr": stderr}
        gateway = launch(SparkConf().setAll(public), process)
    SparkContext._ensure_initialized(gateway=gateway)


def jvm_ended(wait: float) -> str | None:
    """How Spark's JVM ended and where to look, if it has ended or does within so many seconds."""
    process: subprocess.Popen[bytes] | None = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return None
    try:
        status = process.wait(wait)
    except subprocess.TimeoutExpired:
        return None
    how = signal.Signals(-status).name if status < 0 else f"status {status}"
    return (
        f"Spark's JVM ended ({how}); look at its output, for a file hs_err_pid*.log in the "
        "working directory, and in the system's log for the out-of-memory killer (then "
        "lower spark.driver.memory, or free memory); started again, the job goes on where it was"
    )


def is_own_jvm() -> bool:
    """Whether a session that is started now gets a JVM that this process starts."""
    return SparkContext._gateway is None and "PYSPARK_GATEWAY_PORT" not in os.environ


def running_session() -> SparkSession | None:
    """The session that this process has, if it has one."""
    active = SparkSession.getActiveSession()
    if active is None and SparkContext._active_spark_context is not None:  # of another thread
        active = SparkSession.builder.getOrCreate()
    return active


def is_remote(spark: SparkSession) -> bool:
    """Whether a session is one of Spark Connect, which has no JVM here."""
    return "connect" in type(spark).__module__


def apart(spark: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    """A session of the same Spark with settings of Headgate's; the given one keeps its own."""
    own = spark.newSession()
    for name, value in {**SETTINGS, **settings}.items():
        if own.conf.isModifiable(name):
            own.conf.set(name, value)
    return own


def submitted() -> dict[str, str]:
    """The settings that spark-submit was given, if it began this process."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return {}
    SparkContext._ensure_initialized()
    return dict(SparkConf().getAll())


def end_quietly(server: Any) -> None:
    """Print no trace where the JVM closes its connection to PySpark's server of accumulators.

    It does so when it ends, which a job that still runs meets and reports (`jvm_ended`).
    """
    if "handle_error" in vars(server):
        return
    shown = server.handle_error

    def handle_error(request: Any, address: Any) -> None:
        if not isinstance(sys.exception(), EOFError | ConnectionError):
            shown(request, address)

    server.handle_error = handle_error


def session(
    master: str | None = None,
    settings: Mapping[str, str] = MappingProxyType({}),
    *,
    write_archive: bool = False,
    defaults: Mapping[str, str] = SETTINGS,
    log: Path | None = None,
) -> SparkSession:
    """A session for decoding; workers use this Python.

    `write_archive` says whether its JVM may write the class archive when it ends; `log` is where
    it writes what it would write to standard error. `defaults` are settings that neither the caller
    nor spark-submit gives.

    >>> session("local[2]").conf.get("spark.sql.session.timeZone")
    'UTC'
    """
    if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        raise UsageError("Spark needs a JDK (17 or newer) and none was found; install one")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    quiet = Path(__file__).with_name("log4j2.properties")
    chosen = master_of(master)
    java_options = [f"-Dlog4j2.configurationFile={quiet.as_uri()}"]
    archive: ClassArchive | None = None
    given = dict(settings)
    if is_own_jvm() and chosen.startswith("local"):
        given = on_this_machine(settings)
        archive = ClassArchive(archive_folder(), given.get("spark.driver.extraClassPath", ""))
        java_options += ["-XX:+UseParallelGC", *archive.options(write_archive)]
    given.setdefault("spark.driver.extraJavaOptions", " ".join(java_options))
    merged = {"spark.redaction.regex": REDACTED, **defaults, **sockets(chosen)}
    merged = {n: v for n, v in merged.items() if n not in submitted()} | given
    if SparkContext._gateway is None:
        start_jvm({"spark.master": chosen, **merged}, log)
        check_sql_settings(SparkContext._jvm, merged)
        process = getattr(SparkContext._gateway, "proc", None)
        if archive is not None and archive.is_written and process is not None:
            atexit.register(archive.finish, process)
    builder = SparkSession.builder.appName("headgate").master(chosen)
    for name, value in merged.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    server: Any = spark.sparkContext._accumulatorServer
    end_quietly(server)
    if isinstance(server.server_address, str):  # a socket, which Spark leaves behind
        atexit.register(Path(server.server_address).unlink, missing_ok=True)
    return spark
