"""The verdict of the conditions on each row of a message."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headgate.config.job import Job
from headgate.core.errors import shown
from headgate.pipeline.row_filter.analysis import analysis_error
from headgate.pipeline.row_filter.condition import (
    IMAGE_OF,
    NEW,
    OLD,
    ROW,
    Condition,
    ImageColumn,
    conditions_of,
)
from headgate.pipeline.row_filter.sql import condition_sql, literal, per_row
from headgate.pipeline.row_filter.types import UNTYPED
from headgate.pipeline.row_filter.values import NOT_WANTED

SIGNATURE_LIMIT, MAX_SIGNATURES = 64, 256
"""With that many combinations of types, a condition takes no new ones; messages are hostile."""


def with_verdicts(
    messages: DataFrame, job: Job, signatures: Mapping[int, Collection[str]]
) -> DataFrame:
    """Messages with `verdicts` in place of `images`: a text per row.

    `keep`, `drop`, or the code and the sentence of a dead letter, as `code|sentence`. Where the
    types of a row are not among its filter's `signatures`: `unknown-signature|<signature>`.
    """
    spark = messages.sparkSession
    cases = []
    for rule, condition in conditions_of(job).items():
        known = signatures.get(rule, ())
        table = job.filters[rule].table
        cases.append(f"WHEN {rule} THEN {_verdict(spark, condition, table, known)}")
    verdict = f"""
        CASE
            WHEN headgate_row.rule = {NOT_WANTED} THEN 'drop'
            WHEN headgate_row.old IS NULL AND headgate_row.new IS NULL THEN 'keep'
            ELSE CASE headgate_row.rule {" ".join(cases)} ELSE 'keep' END
        END
    """
    verdicts = F.expr(per_row(verdict)).alias("verdicts")
    columns = [F.col(name) for name in messages.columns if name != "images"]
    return messages.select(*columns, verdicts)


def _verdict(spark: SparkSession, condition: Condition, table: str, known: Collection[str]) -> str:
    """SQL of one condition's verdict on a row."""
    cases = []
    for column in condition.columns:
        image = IMAGE_OF[column.image]
        missing = f"{image} IS NOT NULL AND NOT map_contains_key({image}, {literal(column.name)})"
        cases.append((missing, literal(_absent(column, table))))
    plain = "split(regexp_replace(headgate_row.signature, '[(][^)]*[)]', ''), ',')"
    for at, column in enumerate(condition.columns):
        unknown = f"instr(headgate_row.signature, '{UNTYPED}') > 0 AND {plain}[{at}] = '{UNTYPED}'"
        cases.append((unknown, literal(_untyped(column, table))))
    for each in sorted(known)[:MAX_SIGNATURES]:
        cases.append(
            (f"headgate_row.signature = '{each}'", _typed_verdict(spark, condition, each, table))
        )
    last = "concat('unknown-signature|', headgate_row.signature)"
    if len(known) >= SIGNATURE_LIMIT:
        last = literal(
            f"condition-type|the columns in the condition on {shown(table)} come in more than "
            f"{SIGNATURE_LIMIT} combinations of types; give the job a schema"
        )
    listed = " ".join(f"WHEN {when} THEN {then}" for when, then in cases)
    return f"CASE {listed} ELSE {last} END" if cases else last


def _absent(column: ImageColumn, table: str) -> str:
    row = {ROW: "row", NEW: "new row", OLD: "old row"}[column.image]
    return (
        f"no-such-column|the {row} has no column {shown(column.name)}, which the condition on "
        f"{shown(table)} uses; correct the condition, or let the producer send the column"
    )


def _untyped(column: ImageColumn, table: str) -> str:
    return (
        f"condition-type|the type of column {shown(column.name)} is unknown to the condition on "
        f"{shown(table)}; give the job a schema, or remove the column from the condition"
    )


def _typed_verdict(spark: SparkSession, condition: Condition, signature: str, table: str) -> str:
    """SQL of the verdict on a row of known types, all of whose columns are there."""
    refused = analysis_error(spark, condition, signature)
    if refused is not None:
        return literal(
            f"condition-type|the condition on {shown(table)} does not apply to the types of its "
            f"columns ({signature}): {refused}"
        )
    return condition_sql(condition, signature, table)
