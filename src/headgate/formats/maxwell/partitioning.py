"""Partitions as Maxwell chooses them."""

from __future__ import annotations

from collections.abc import Iterable

from headgate.core.event import Event
from headgate.formats.partitioning import (
    Hash,
    Partition,
    PartitionRules,
    RuleOptions,
    java_hash,
    name_hash,
    row_of,
)


def by_database(event: Event) -> int:
    """By database."""
    return name_hash[event.database or ""]


def by_table(event: Event) -> int:
    """By table; what has none (CREATE DATABASE) by database."""
    return name_hash[event.table or event.database or ""]


def by_key(event: Event) -> int:
    """By the values of the primary key one after the other, without NULLs."""
    if not event.key:
        return name_hash[(event.database or "") + (event.table or "")]
    return java_hash(joined(event, event.key) or "None")


def by_columns(options: RuleOptions) -> Hash:
    """By the values of the listed columns one after the other; by database where there are none."""

    def choose(event: Event) -> int:
        text = joined(event, options.columns)
        return java_hash(text) if text else by_database(event)

    return choose


def joined(event: Event, names: Iterable[str]) -> str:
    """The values of these columns, as one text."""
    image = row_of(event)
    return "".join([value for name in names if (value := image.get(name)) is not None])


def by_place(name: str) -> Hash:
    """By a part of the position; "null" is what Java makes of none."""
    return lambda event: java_hash((event.position or {}).get(name, "null"))


def with_ddl_by_name(rule: str, row: Hash, count: int, broadcast_ddl: bool) -> Partition:
    """Rows by their hash, and DDL by a coarser one."""
    ddl = by_table if rule == "table" else by_database

    def choose(event: Event) -> tuple[int, ...]:
        kind = event.kind
        # The begin and end of a bootstrap are rows without columns to Maxwell.
        row_like = event.op != "truncate" if kind == "row" else kind == "marker" and event.table
        if row_like:
            return (abs(row(event)) % count,)
        if kind in ("ddl", "statement", "row"):
            return (abs(ddl(event)) % count,)
        return tuple(range(count)) if kind == "watermark" else (0,)

    return choose


MAXWELL = PartitionRules(
    "maxwell",
    "database",
    {
        "database": lambda _: by_database,
        "table": lambda _: by_table,
        "primary-key": lambda _: by_key,
        "transaction-id": lambda _: by_place("xid"),
        "thread-id": lambda _: by_place("thread_id"),
        "columns": by_columns,
    },
    {"column": "columns"},
    partition=with_ddl_by_name,
)
