"""The Spark session of the command line and the tests."""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from headgate.errors import UsageError
from headgate.limits import BATCH_BYTES

SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(BATCH_BYTES),
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
}

SOCKETS = "spark.python.unix.domain.socket.enabled"
LONGEST_FOLDER = 60
"""The path of a Unix socket is at most 103 bytes, and Spark's names take 42 of them."""


def master_of(told: str | None) -> str:
    """The master that was told, or spark-submit's own; else this machine.

    >>> master_of("local[2]"), master_of(None)
    ('local[2]', 'local[*]')
    """
    if told is None and "PYSPARK_GATEWAY_PORT" in os.environ:  # spark-submit began this process
        SparkContext._ensure_initialized()
        told = SparkConf().get("spark.master")
    return told or "local[*]"


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
        "spark.python.daemon.module": "headgate.daemon",
    }


def session(master: str | None = None, **settings: str) -> SparkSession:
    """A session for decoding; workers use this Python.

    >>> session("local[2]").conf.get("spark.sql.session.timeZone")
    'UTC'
    """
    if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        raise UsageError("Spark needs a JDK (17 or newer) and none was found; install one")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    quiet = Path(__file__).with_name("log4j2.properties")
    settings.setdefault(
        "spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={quiet.as_uri()}"
    )
    chosen = master_of(master)
    builder = SparkSession.builder.appName("headgate").master(chosen)
    for name, value in {**SETTINGS, **sockets(chosen), **settings}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    server: Any = spark.sparkContext._accumulatorServer
    if isinstance(server.server_address, str):  # a socket, which Spark leaves behind
        atexit.register(Path(server.server_address).unlink, missing_ok=True)
    return spark
