"""Whether Spark's own analysis accepts a condition."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headgate.pipeline.row_filter.condition import Condition
from headgate.pipeline.row_filter.sql import DECIMAL, condition_sql, per_row
from headgate.pipeline.row_filter.types import types_in
from headgate.pipeline.row_filter.values import IMAGES_DDL

MAX_CACHED = 1_000
_errors: dict[tuple[str, str], str | None] = {}


def analysis_error(spark: SparkSession, condition: Condition, signature: str) -> str | None:
    """Why a condition cannot be evaluated for columns of these types; None if it can."""
    key = condition.where, signature
    if key not in _errors:
        if len(_errors) >= MAX_CACHED:
            _errors.clear()
        _errors[key] = analyse(spark, condition, types_in(signature), signature)
    return _errors[key]


def analyse(
    spark: SparkSession,
    condition: Condition,
    types: Sequence[str],
    signature: str | None = None,
) -> str | None:
    """Why Spark rejects a condition, or None; without a signature, the types are unknown."""
    names = [f"`{column.label.replace('`', '``')}`" for column in condition.columns]
    columns = [f"CAST(NULL AS {type_}) AS {name}" for name, type_ in zip(names, types)]
    columns.append("named_struct('signature', '') AS headgate_row")
    with _quiet():
        try:
            row = spark.sql(f"SELECT {', '.join(columns)}")
            query = row.where(f"(\n{condition.filled(names)}\n)")
            if signature is not None:
                images = spark.sql(f"SELECT CAST(NULL AS {IMAGES_DDL.partition(' ')[2]}) AS images")
                images.select(F.expr(per_row(condition_sql(condition, signature, ""))))
        except AnalysisException as error:
            if signature is None and (error.getCondition() or "").startswith("DATATYPE_MISMATCH"):
                return None  # other types than none at all may be right
            return f"{_first_sentence(error)}; correct the condition"
    plan = _analysed_plan(query)
    if not plan.deterministic():
        return (
            "it is non-deterministic; conditions must give the same result on replay: use the "
            "columns of the row only"
        )
    if signature is None:
        return None
    java: Any = spark._jvm
    explicit = java.org.apache.spark.sql.catalyst.expressions.Cast.USER_SPECIFIED_CAST()
    return _lossy_cast(plan.condition(), explicit)


def _analysed_plan(query: DataFrame) -> Any:
    """Spark's own tree of a query."""
    frame: Any = query
    return frame._jdf.queryExecution().analyzed()


def _first_sentence(error: AnalysisException) -> str:
    """Spark's sentence, on one line and without what follows it."""
    message = str(error).partition("SQLSTATE")[0]
    message = re.sub(r"^\[[\w.]+\]\s*", "", " ".join(message.split()))
    return f"Spark says: {message[:400].rstrip(' .;')}"


def _lossy_cast(node: Any, explicit: Any) -> str | None:
    """Where Spark would round numbers by an implicit cast before it compares them."""
    if node.getClass().getSimpleName() == "Cast":
        before, after = (each.dataType().simpleString() for each in (node.child(), node))
        if not node.getTagValue(explicit).isDefined() and _rounds(before, after):
            return (
                f"Spark would compare a {before} as a {after}, which rounds it; write numbers "
                "without quotes, or CAST to the type that you mean"
            )
    children = node.children()
    for n in range(children.size()):
        error = _lossy_cast(children.apply(n), explicit)
        if error is not None:
            return error
    return None


def _rounds(before: str, after: str) -> bool:
    """Whether a cast between two types may round.

    >>> _rounds("string", "double"), _rounds("decimal(38,30)", "decimal(38,18)")
    (True, True)
    >>> _rounds("string", "bigint"), _rounds("decimal(12,2)", "decimal(22,2)")
    (False, False)
    """
    scales = [DECIMAL.fullmatch(each) for each in (before, after)]
    if scales[0] and scales[1]:
        return int(scales[0][2]) > int(scales[1][2])
    return before == "string" and after in ("double", "float")


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep PySpark from logging an error that is handled here."""
    logger = logging.getLogger("SQLQueryContextLogger")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before
