"""`headgate.session`: a session of the user's, with the connectors that Headgate's sources need."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from headgate.core.errors import UsageError
from headgate.spark import jars
from headgate.spark.session import NEEDED, is_remote, running_session, start

MORE_SETTINGS = {
    "delta": {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    }
}
"""What a connector needs beside its jars."""
CLASSES = {
    "kafka": "org.apache.spark.sql.kafka010.KafkaSourceProvider",
    "delta": "org.apache.spark.sql.delta.sources.DeltaDataSource",
}
"""A class of a connector."""


def session(
    master: str | None = None,
    *,
    connectors: Sequence[str] | None = None,
    **settings: str | int | bool,
) -> SparkSession:
    """A Spark session with connectors, which are fetched from Maven Central once.

    `connectors` are `kafka`, `delta`, `mariadb` and `s3a`, or Maven coordinates; without them it
    has Kafka's, and Delta's where headgate[delta] is installed. Settings are Spark's. A session
    that is there already is returned if it has the connectors: jars cannot be added to it.

    >>> session("local[2]", connectors=[]).range(2).count()
    2
    """
    wanted = default_connectors() if connectors is None else list(connectors)
    texts = {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in settings.items()
    }
    spark = running_session()
    if spark is not None:
        check_connectors(spark, wanted)
        for name, value in texts.items():
            spark.conf.set(name, value)
        return spark
    needed = jars.settings(*wanted)
    for name in wanted:
        needed |= MORE_SETTINGS.get(name, {})
    return start(master, NEEDED, {**needed, **texts})


def default_connectors() -> list[str]:
    """Kafka's, and Delta's where its extra is installed."""
    return ["kafka", "delta"] if find_spec("deltalake") else ["kafka"]


def check_connectors(spark: SparkSession, wanted: Sequence[str]) -> None:
    """Reject a session that lacks a connector."""
    if is_remote(spark):
        return  # a server has what it was started with, and does not tell
    jvm: Any = spark.sparkContext._jvm
    loader = jvm.Thread.currentThread().getContextClassLoader()
    for name in wanted:
        try:
            loader.loadClass(CLASSES.get(name, "java.lang.Object"))
        except Py4JJavaError:
            raise UsageError(
                f"the Spark session that is there has no connector {name}, and none can be added "
                "to it; call headgate.session() before anything else starts Spark, or start "
                f"Spark with --packages {jars.coordinates_of(name)[0]}"
            ) from None
