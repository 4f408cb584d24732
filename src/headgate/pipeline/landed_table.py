"""`headgate.table`: a landed table as a DataFrame."""

from __future__ import annotations

import os

from pyspark.sql import DataFrame, SparkSession

from headgate.config.job import TableSink
from headgate.config.uris import parse_sink
from headgate.core.connectors import Directory
from headgate.core.errors import UsageError
from headgate.core.scalars import Environment
from headgate.spark.filesystem import is_remote, session_settings


def table(spark: SparkSession, uri: str) -> DataFrame:
    """A landed table as it is now, with the changes that wait for a merge (`merge_every`).

    It has the rows and columns that the table would have if they were merged at this moment, and
    stays as it is when more are landed. `uri` is that of the table, below the sink's directory.

        headgate.table(spark, "delta:///data/lake/shop/orders").where("amount > 100").show()
    """
    sink = parse_sink(uri, env=Environment(os.environ))
    if not isinstance(sink, TableSink):
        raise UsageError(f"{sink.name} takes messages, and has no tables; give delta:///DIR/TABLE")
    place = sink.connector.place(None)
    remote = [place.path] if isinstance(place, Directory) and is_remote(place.path) else []
    configuration = spark.sparkContext._jsc.hadoopConfiguration() if remote else None
    return sink.connector.read(spark, session_settings(configuration, remote))
