"""The options of a Delta sink."""

from __future__ import annotations

from dataclasses import dataclass, fields

from headgate.core.errors import UsageError
from headgate.core.options import check_zone, option
from headgate.core.scalars import duration
from headgate.landing.types import TypePreferences
from headgate.sinks.delta.paths import check_template

EVERY_BATCH = "batch"


def _merge_every(text: str) -> str:
    if text != EVERY_BATCH and duration(text) <= 0:
        raise UsageError("merge_every is a time such as 5m, or batch")
    return text


def _timezone(text: str) -> str:
    check_zone(text)
    return text


def _remember_deletes(text: str) -> str:
    duration(text)
    return text


@dataclass(frozen=True)
class DeltaOptions(TypePreferences):
    """Parameters of a Delta sink."""

    table: str = option(
        "{database}/{table}",
        "path of a table below the directory; names are escaped in it (docs/landing.md)",
        read=check_template,
    )
    mode: str = option(
        "current",
        "tables that equal the source's, or every change appended",
        ("current", "log"),
    )
    deletes: str = option(
        "hard",
        "what a delete does: remove the row, mark it in the column _deleted, or nothing",
        ("hard", "soft", "ignore"),
    )
    schema_change: str = option(
        "evolve",
        "what schema changes do, as in Flink CDC: change tables or park those that cannot be "
        "changed; try, and go on without; only add; nothing; stop the job",
        ("evolve", "try_evolve", "lenient", "ignore", "exception"),
    )
    merge_every: str = option(
        EVERY_BATCH,
        "when changes are merged: with each batch, or after a time such as 5m; they are kept "
        "durably in between",
        read=_merge_every,
    )
    consistency: str = option(
        "batch",
        "what readers find in all tables together: whole batches, or only states that the source "
        "had, as watermarks or the ends of transactions tell them (docs/landing.md)",
        ("batch", "watermark"),
    )
    on_misfit: str = option(
        "reject",
        "a value that does not fit its column: its message is a dead letter, or it lands as NULL",
        ("reject", "null"),
    )
    drop_table: str = option(
        "keep", "whether a table that the source drops is kept or dropped", ("keep", "drop")
    )
    drop_column: str = option(
        "keep", "whether a column that the source drops is kept or dropped", ("keep", "drop")
    )
    timezone: str = option(
        "UTC",
        "the server's time zone, in which rows that are there get DEFAULT CURRENT_TIMESTAMP of a "
        "new DATETIME column",
        read=_timezone,
    )
    remember_deletes: str = option(
        "7d",
        "how long positions of deleted rows are kept, by which older changes are recognised",
        read=_remember_deletes,
    )
    optimize: str = option(
        "auto",
        "join small files, cluster rows by key and remove old files by and by, or never",
        ("auto", "off"),
    )
    splice: bool = option(
        True, "splice the rows of messages that look alike; the tables are the same"
    )
    adopt: bool = option(
        False, "go on with tables that another job, or this one with another checkpoint, landed"
    )

    @property
    def types(self) -> TypePreferences:
        """The choices between lake types."""
        return TypePreferences(*(getattr(self, each.name) for each in fields(TypePreferences)))

    @property
    def remember_seconds(self) -> float:
        """How long positions of deleted rows are kept."""
        return duration(self.remember_deletes)

    @property
    def merge_seconds(self) -> float | None:
        """The time between merges; None: with each batch."""
        return None if self.merge_every == EVERY_BATCH else duration(self.merge_every)
