"""Flink's side of the benchmark: a warm process that runs one job per line of its input.

It runs under an environment of its own that has `apache-flink` (run.py makes it), and answers
each line with one line of JSON:

    run canal-json /data/canal.jsonl    -> {"seconds": 7.1}
    rows canal-json /data/sample.jsonl  -> {"rows": [["+I", "5000000000", ...], ...]}

`run` sends every row to a blackhole sink; its time is that of the whole job, from the INSERT
statement to the job's end, as it is for Spark. `rows` collects the rows, to compare them with
Headgate's: for small files only.
"""

from __future__ import annotations

import json
import os
import sys
import time

COLUMNS = """id BIGINT, customer_id INT, status STRING, amount DECIMAL(12,2), note STRING,
created_at TIMESTAMP(3), weight DOUBLE"""
PARALLELISM = 2


def define(tables, format: str, path: str) -> None:
    tables.execute_sql("DROP TEMPORARY TABLE IF EXISTS orders")
    tables.execute_sql(
        f"CREATE TEMPORARY TABLE orders ({COLUMNS}) WITH "
        f"('connector' = 'filesystem', 'path' = '{path}', 'format' = '{format}')"
    )


def run(tables, format: str, path: str) -> dict:
    define(tables, format, path)
    start = time.perf_counter()
    tables.execute_sql("INSERT INTO nowhere SELECT * FROM orders").wait()
    return {"seconds": time.perf_counter() - start}


def rows(tables, format: str, path: str) -> dict:
    define(tables, format, path)
    names = {"INSERT": "+I", "UPDATE_BEFORE": "-U", "UPDATE_AFTER": "+U", "DELETE": "-D"}
    found = []
    with tables.execute_sql("SELECT * FROM orders").collect() as results:
        for row in results:
            values = [None if value is None else str(value) for value in row]
            found.append([names[row.get_row_kind().name], *values])
    return {"rows": found}


def main() -> None:
    # What Flink and its JVM print goes to stderr, so that answers are alone on stdout.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    from pyflink.java_gateway import get_gateway
    from pyflink.table import EnvironmentSettings, TableEnvironment
    from pyflink.version import __version__

    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    tables.get_config().set("parallelism.default", str(PARALLELISM))
    tables.execute_sql(f"CREATE TEMPORARY TABLE nowhere ({COLUMNS}) WITH ('connector'='blackhole')")
    java = get_gateway().jvm.System.getProperty("java.version")
    print(json.dumps({"flink": __version__, "java": java}), file=answers)

    for line in sys.stdin:
        command, format, path = line.rstrip("\n").split(" ", 2)
        try:
            answer = {"run": run, "rows": rows}[command](tables, format, path)
        except Exception as error:  # the harness says it and goes on
            causes = [line for line in str(error).splitlines() if line.startswith("Caused by: ")]
            answer = {"error": (causes or [f"{type(error).__name__}: {error}"])[-1][:500]}
        print(json.dumps(answer), file=answers)


if __name__ == "__main__":
    main()
