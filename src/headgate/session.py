"""The Spark session of the command line and the tests."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

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
    builder = SparkSession.builder.appName("headgate").master(master or "local[*]")
    for name, value in {**SETTINGS, **settings}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark
