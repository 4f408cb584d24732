"""`headgate.run`: a job from Python."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from pyspark.sql import SparkSession

from headgate.config.job import Job
from headgate.config.reader import job_of, load_job
from headgate.core.errors import UsageError
from headgate.pipeline.run import run as run_job
from headgate.pipeline.status import Status
from headgate.spark.session import apart, is_remote, running_session


def run(
    job: Job | str | os.PathLike[str] | None = None,
    *,
    source: str | None = None,
    sink: str | Sequence[str] = (),
    once: bool = False,
    spark: SparkSession | None = None,
    settings: Mapping[str, str | int | bool] | None = None,
) -> Status:
    """Run a job: that of a file, or from a source's URI to one or several sinks' URIs.

    It returns when it is stopped (Ctrl-C, or a notebook's interrupt), or with `once` when all that
    is there now is done. The result has the job's counts (`totals`), and raises what stopped it.
    `settings` override values of the job, by their names in the job file (docs/jobs.md).

    The job runs on `spark`, or on the session that is there, or on a new one with the connectors
    that it needs. A session that is there is not changed, and must have the connectors.

        headgate.run("job.yaml", once=True)
        headgate.run(
            source="kafka://broker:9092/orders?protocol=canal-json",
            sink="delta:///data/lake",
            settings={"pipeline.checkpoint": "/data/state/orders"},
            once=True,
        )
    """
    read = job if isinstance(job, Job) else read_job(job, source, sink, settings)
    spark = spark or running_session()
    if spark is not None and is_remote(spark):
        raise UsageError(
            "a job cannot run on a Spark Connect session; run it where Spark's driver is, or use "
            "headgate.decode, rows and encode in a query of your own"
        )
    return run_job(read, once, spark=None if spark is None else apart(spark, read.settings))


def read_job(
    job: str | os.PathLike[str] | None,
    source: str | None,
    sink: str | Sequence[str],
    settings: Mapping[str, str | int | bool] | None,
) -> Job:
    """The job that is named."""
    overrides = {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in (settings or {}).items()
    }
    sinks = [sink] if isinstance(sink, str) else list(sink)
    if job is not None and not (source or sinks):
        return load_job(job, overrides)
    if job is None and source and sinks:
        return job_of(source, sinks, overrides)
    raise UsageError("headgate.run takes a job file, or source=URI and sink=URI")
