"""Flink's side: a warm process that runs SQL, one request per line of its input.

It runs under an environment of its own that has `apache-flink` (flink.py makes it). A request and
its answer are one line of JSON each:

    {"execute": ["CREATE TEMPORARY TABLE …", "INSERT INTO …"]}  -> {"seconds": 7.1}
    {"rows": "SELECT * FROM orders"}                            -> {"rows": [["+I", "5", …], …]}
    {"begin": "INSERT INTO …"}                                  -> {"job": "9f2c…"}
    {"cancel": "9f2c…"}                                         -> {"cancelled": "9f2c…"}

`execute` waits for each statement's end; its time is that of the last statement, for an INSERT the
whole job's, as it is for Spark. `rows` collects a changelog, each value as text and bytes in
base16: for small tables only. `begin` does not wait: for jobs that do not end.
"""

from __future__ import annotations

import json
import os
import sys
import time

PARALLELISM = 2
RUNNING: dict = {}
KINDS = {"INSERT": "+I", "UPDATE_BEFORE": "-U", "UPDATE_AFTER": "+U", "DELETE": "-D"}


def execute(tables, statements: list[str]) -> dict:
    for statement in statements:
        start = time.perf_counter()
        tables.execute_sql(statement).wait()
    return {"seconds": time.perf_counter() - start}


def text(value) -> str | None:
    if isinstance(value, (bytes, bytearray)):
        return value.hex()
    return None if value is None else str(value)


def rows(tables, query: str) -> dict:
    with tables.execute_sql(query).collect() as results:
        changelog = [[KINDS[row.get_row_kind().name], *map(text, row)] for row in results]
    return {"rows": changelog}


def begin(tables, statement: str) -> dict:
    client = tables.execute_sql(statement).get_job_client()
    job = str(client.get_job_id())
    RUNNING[job] = client
    return {"job": job}


def cancel(tables, job: str) -> dict:
    RUNNING.pop(job).cancel().result()
    return {"cancelled": job}


COMMANDS = {"execute": execute, "rows": rows, "begin": begin, "cancel": cancel}


def main() -> None:
    # What Flink and its JVM print goes to stderr, so that answers are alone on stdout.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    from pyflink.java_gateway import get_gateway
    from pyflink.table import EnvironmentSettings, TableEnvironment
    from pyflink.version import __version__

    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    tables.get_config().set("parallelism.default", str(PARALLELISM))
    tables.get_config().set("table.local-time-zone", "UTC")
    java = get_gateway().jvm.System.getProperty("java.version")
    print(json.dumps({"flink": __version__, "java": java}), file=answers)

    for line in sys.stdin:
        ((command, argument),) = json.loads(line).items()
        try:
            answer = COMMANDS[command](tables, argument)
        except Exception as error:  # the other side says it and goes on
            causes = [line for line in str(error).splitlines() if line.startswith("Caused by: ")]
            answer = {"error": (causes or [f"{type(error).__name__}: {error}"])[-1][:500]}
        print(json.dumps(answer), file=answers)


if __name__ == "__main__":
    main()
