"""Reads Delta tables with Spark and Delta Lake's own jars: `read_delta.py OUT TABLE…`.

Writes OUT/0.parquet, OUT/1.parquet, … A process of its own, because a JVM that runs gets no jars.
"""

from __future__ import annotations

import sys

import pyarrow.parquet as pq

from headgate.spark import jars
from headgate.spark.session import session

SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "1",
}


def main(out: str, *tables: str) -> None:
    spark = session("local[1]", jars.settings("delta") | SETTINGS)
    for number, table in enumerate(tables):
        rows = spark.read.format("delta").load(table).toArrow()
        pq.write_table(rows, f"{out}/{number}.parquet")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
