"""How fast Headgate decodes, beside Spark's own floors and Flink."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import messages
from flink import Flink
from harness import (
    FLINK_AIM,
    FLINK_COLUMNS,
    FLINK_FORMATS,
    PARTITION,
    SAMPLE,
    Bar,
    Figures,
    Works,
    collected,
    difference,
    first_line,
    generated,
    markdown,
    read,
    source,
    startup_table,
    take_turns,
    timed,
    times,
    typed_rows,
)
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import headgate

CEILING_BAR = 0.35
FLINK_BARS = {"canal-json": 1.3, "debezium": 1.2, "maxwell": 1.0}

IMAGE = "map<string,string>"
FROM_JSON = {
    "canal-json": f"data array<{IMAGE}>, old array<{IMAGE}>, mysqlType {IMAGE}, sqlType {IMAGE}, "
    "pkNames array<string>, database string, `table` string, type string, isDdl boolean, "
    "sql string, es bigint, ts bigint, id bigint, gtid string",
    "oms-default": f"prevStruct {IMAGE}, postStruct {IMAGE}, allMetaData {IMAGE}, "
    "recordType string",
    "dataworks": f"version string, schema struct<source: {IMAGE}, column: array<{IMAGE}>, "
    f"pk: array<string>>, payload struct<before: struct<data: {IMAGE}>, "
    f"after: struct<data: {IMAGE}>, op: string, timestamp: map<string,bigint>, ddl: {IMAGE}, "
    "scn: string>",
    "shareplex": f"data {IMAGE}, meta {IMAGE}, key {IMAGE}, sql {IMAGE}",
    "debezium": f"before {IMAGE}, after {IMAGE}, source {IMAGE}, op string, ts_ms bigint, "
    "ts_us bigint, ts_ns bigint",
    "debezium-smt": IMAGE,
    "maxwell": f"database string, `table` string, type string, ts bigint, xid bigint, "
    "commit boolean, position string, gtid string, server_id bigint, thread_id bigint, "
    "schema_id bigint, push_ts double, primary_key array<string>, "
    f"primary_key_columns array<string>, data {IMAGE}, old {IMAGE}",
}
"""Not the exact decode that Headgate does: the JVM's parse into maps, to compare with."""

LABELS = {
    "read": "read only",
    "ceiling": "identity mapInArrow (ceiling)",
    "from_json": "from_json into maps",
    "events": "headgate.decode to events",
    "rows": "headgate.rows, typed",
    "flink": "Flink, typed rows",
}


def identity(df: DataFrame) -> DataFrame:
    return df.mapInArrow(lambda batches: batches, df.schema)


def plans(spark: SparkSession, format: str, path: Path) -> dict[str, Callable[[], DataFrame]]:
    """Each Spark work, as what makes its DataFrame; making it is measured too."""
    works = {
        "read": lambda: read(spark, format, path),
        "ceiling": lambda: identity(source(spark, format, path)),
        "events": lambda: headgate.decode(source(spark, format, path), format=format),
        "rows": lambda: typed_rows(source(spark, format, path), format),
    }
    if format in FROM_JSON:
        works["from_json"] = lambda: read(spark, format, path).select(
            F.from_json("value", FROM_JSON[format]).alias("message")
        )
    return {work: works[work] for work in LABELS if work in works}


def decoding(plan: Callable[[], DataFrame]) -> Callable[[], float]:
    return lambda: timed(lambda: plan().write.format("noop").mode("overwrite").save())


def define(flink: Flink, format: str, path: Path) -> None:
    flink.define("orders", FLINK_COLUMNS, path, FLINK_FORMATS[format])


def flink_decoding(flink: Flink, format: str, path: Path) -> Callable[[], float]:
    def run() -> float:
        define(flink, format, path)
        return flink.execute("INSERT INTO nowhere SELECT * FROM orders")

    return run


def check(spark: SparkSession, flink: Flink | None, figures: Figures, sample: Path) -> None:
    """Both sides must give the rows that the generator meant, or their speed means nothing."""
    format = figures.name
    expected = list(messages.expected_rows(format, SAMPLE))
    try:
        df = source(spark, format, sample)
        events = headgate.decode(df, format=format).groupBy("kind", "error.code").count().collect()
        if [(row.kind, row["count"]) for row in events] != [("row", SAMPLE)]:
            made = [tuple(row) for row in events]
            figures.remark(f"of {SAMPLE} messages Headgate made {made}")
        if wrong := difference(collected(typed_rows(df, format)), expected):
            figures.remark(f"Headgate's rows differ from the messages': {wrong}")
    except Exception as error:
        figures.remark(f"Headgate could not decode the sample: {first_line(error)}")
    if flink and format in FLINK_FORMATS:
        try:
            define(flink, format, sample)
            if wrong := difference(flink.rows("SELECT * FROM orders"), expected):
                figures.remark(f"Flink's rows differ from the messages': {wrong}")
        except (OSError, RuntimeError, ValueError) as error:
            figures.remark(f"Flink could not read the sample: {first_line(error)}")


def measure(
    spark: SparkSession, flink: Flink | None, format: str, count: int, rounds: int
) -> Figures:
    path, sample = generated(format, count), generated(format, SAMPLE)
    figures = Figures(format, count, messages.message_bytes(format, path, count))
    print(f"\n{format}: {count:,} messages of {figures.bytes / count:.0f} bytes", flush=True)
    check(spark, flink, figures, sample)
    works: Works = {work: decoding(plan) for work, plan in plans(spark, format, path).items()}
    startups: Works = {}
    if flink and format in FLINK_FORMATS:
        works["flink"] = flink_decoding(flink, format, path)
        startups["flink"] = flink_decoding(flink, format, sample)
        startups["rows"] = decoding(plans(spark, format, sample)["rows"])
    take_turns(figures, works, startups, rounds, LABELS)
    return figures


def bars(figures: Figures) -> list[Bar]:
    all_bars = [Bar("events", CEILING_BAR, figures.ratio("events", "ceiling"), "ceiling")]
    if bar := FLINK_BARS.get(figures.name):
        all_bars.append(Bar("rows", bar, figures.ratio("rows", "flink"), "flink"))
    return all_bars


HEAD = ["format", "work", "messages/s", "slowest to fastest", "MB/s", "of ceiling", "of Flink"]
HEAD.append("bar")


def table(results: list[Figures]) -> list[list[str]]:
    lines = []
    for figures in results:
        judged = {bar.work: str(bar) for bar in bars(figures)}
        for work, label in LABELS.items():
            of_ceiling = None if work == "flink" else figures.ratio(work, "ceiling")
            of_flink = figures.ratio(work, "flink") if work == "rows" else None
            missed = work in ("events", "rows") or (work == "flink" and figures.name in FLINK_BARS)
            if figures.speed(work) is not None or missed:
                lines.append(
                    [
                        figures.name,
                        label,
                        *figures.cells(work),
                        f"{of_ceiling:.0%}" if of_ceiling else "",
                        times(of_flink),
                        judged.get(work, ""),
                    ]
                )
    return lines


STARTUP_HEAD = ["format", "Spark", "Flink", "rows of Flink, each less its start-up"]


def section(results: list[Figures], rounds: int) -> list[str]:
    count = results[0].messages
    sizes = ", ".join(f"{r.name} {r.bytes / r.messages:.0f}" for r in results)
    remarks = [f"- {r.name}: {remark}" for r in results for remark in r.remarks]
    right = ", ".join(r.name for r in results if not r.remarks)
    remarks.append(
        "- Every side measured gave exactly the rows that the generator meant, on a sample of "
        f"{SAMPLE} messages per format: {right or 'no format'}."
    )
    startups = startup_table(results, "rows")
    parts = [
        "## Decoding",
        markdown(HEAD, table(results)),
        "\n".join(remarks),
        "### What was measured",
        f"{count:,} messages per format from `bench/messages.py`: changes of `shop.orders`, seven "
        "columns (BIGINT, INT, VARCHAR, DECIMAL(12,2), VARCHAR, DATETIME, DOUBLE), inserts, "
        "updates and deletes in equal thirds, one row per message. Mean bytes per message: "
        f"{sizes}. One file per format: JSON Lines, and for open-protocol, which is binary, "
        "uncompressed Parquet with the columns of Spark's Kafka source. debezium is the bare "
        "envelope (schemas.enable=false) with decimal.handling.mode=string and DATETIME as text, "
        "because Flink's `debezium-json` types no epoch milliseconds; debezium-smt has "
        "add.fields=op,db,table,source.ts_ms,file,pos; maxwell is what Maxwell writes by default.",
        f"Each work ran once unmeasured, then {rounds} times, the works of a format in turn; the "
        "median counts. A time is that of a whole job, from building the DataFrame or submitting "
        "the statement to its end, job start-up included on both sides. Everything Spark does "
        f"goes to the `noop` sink, in partitions of {PARTITION} so that both cores have work to "
        "the end (the default of 128m makes five tasks of a file); everything Flink does goes to "
        "`blackhole`. MB are millions of bytes of messages, keys included.",
        "- **read only**: the lines as text (open-protocol: its Parquet columns).\n"
        "- **identity mapInArrow**: the columns that decode receives, to Python and back, "
        "untouched: the ceiling of any decoder in Python.\n"
        "- **from_json into maps**: row images as `map<string,string>` and the scalars beside "
        "them; no completed images, no check, no exact numbers. Not for open-protocol.\n"
        "- **headgate.decode**: message to change events, all columns.\n"
        "- **headgate.rows**: message to typed rows of the table, an update as two rows.\n"
        "- **Flink**: Table API, streaming mode, parallelism 2, filesystem source with "
        "`canal-json`, `debezium-json`, `maxwell-json`: message to the same typed rows, an update "
        "as two rows. Flink cuts a local file every 32 MiB, so a file under 64 MiB does not "
        "occupy both of its tasks evenly.",
        f"Bars: events at least {CEILING_BAR:.0%} of the ceiling in every format; typed rows at "
        "least " + ", ".join(f"{bar} x Flink on {f}" for f, bar in FLINK_BARS.items()) + ". "
        f"The aim is {FLINK_AIM:g} x Flink.",
    ]
    if startups:
        parts += [
            "### Job start-up",
            f"The same typed-rows jobs over {SAMPLE} messages. Flink starts a local cluster per "
            "job, which Spark's session has done already; on a long-running job neither counts, "
            "so the last column leaves both out.",
            markdown(STARTUP_HEAD, startups),
        ]
    return parts
