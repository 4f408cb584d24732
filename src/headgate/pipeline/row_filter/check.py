"""Conditions checked before the job starts, against Spark and the job's schema."""

from __future__ import annotations

from pyspark.sql import SparkSession

from headgate.codec.schemas import Schemas
from headgate.config.job import Job
from headgate.core.errors import UsageError, unknown_name
from headgate.core.event import Event
from headgate.pipeline.row_filter.analysis import analyse, analysis_error
from headgate.pipeline.row_filter.condition import conditions_of, describe_filter
from headgate.pipeline.row_filter.types import UNTYPED, name_in, signature
from headgate.schema.tables import Table
from headgate.selection.filters import Filter
from headgate.selection.selection import Selection, SelectionError

REQUIRED_SETTINGS = {
    "spark.sql.ansi.enabled": ("true",),
    "spark.sql.session.timeZone": ("UTC", "Etc/UTC", "GMT", "Z", "+00:00"),
    "spark.sql.parser.escapedStringLiterals": ("false",),
}
"""Settings without which a condition would mean something else."""


def check_conditions(spark: SparkSession, job: Job) -> None:
    """Reject conditions that Spark rejects, and those on columns that the job's schema lacks.

    Where the schema does not define a filter's tables, only errors of any types are found.
    """
    conditions = conditions_of(job)
    if not conditions:
        return
    for name, right in REQUIRED_SETTINGS.items():
        setting = spark.conf.get(name)
        if setting not in right:
            raise UsageError(
                f"row conditions need the Spark setting {name}={right[0]}, and it is {setting}; "
                "leave it at its default"
            )
    tables = _tables(job)
    for rule, condition in conditions.items():
        filter_ = job.filters[rule]
        known = tables.get(rule, {})
        for name, table in known.items():
            for column in condition.columns:
                if name_in(table.columns, column.name) is None:
                    reason = unknown_name(f"column of {name}", column.name, table.columns)
                    raise UsageError(f"{describe_filter(filter_)}: {reason}")
            types = signature(condition, table.types)
            if UNTYPED in types:
                continue
            refused = analysis_error(spark, condition, types)
            if refused is not None:
                raise UsageError(f"{describe_filter(filter_)}: {refused} (in {name}: {types})")
        if not known:
            refused = analyse(spark, condition, ["VOID"] * len(condition.columns))
            if refused is not None:
                raise UsageError(f"{describe_filter(filter_)}: {refused}")


def _tables(job: Job) -> dict[int, dict[str, Table]]:
    """The tables of the job's schema that come under each condition."""
    schemas, selection = Schemas(job.schema), Selection(job)
    tables: dict[int, dict[str, Table]] = {}
    for table, homes in schemas._catalog.tables.items():
        for home in homes:
            # A table without a database is that of any; these are the ones that filters name.
            names = [home] if home is not None else [_database(each) for each in job.filters]
            for database in names:
                known = schemas.table(database, table)
                event = Event("row", "insert", database, table)
                rule = selection.condition_of(event)
                if known is not None and rule is not None and _is_wanted(selection, event):
                    tables.setdefault(rule, {})[f"{database}.{table}"] = known
    return tables


def _database(filter_: Filter) -> str:
    """A database that a filter's pattern fits."""
    return filter_.table.partition(".")[0].replace("*", "").replace("?", "x") or "any"


def _is_wanted(selection: Selection, event: Event) -> bool:
    """Whether the job processes any change of a table."""
    for op in ("insert", "update", "delete", "snapshot"):
        event.op = op
        try:
            if selection.wants(event):
                return True
        except SelectionError:
            return True
    return False
