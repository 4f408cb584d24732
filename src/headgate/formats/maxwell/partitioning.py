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
    """By table; by database if there is none (CREATE DATABASE)."""
    return name_hash[event.table or event.database or ""]


def by_key(event: Event) -> int:
    """By the concatenated values of the primary key, without NULLs."""
    if not event.key:
        return name_hash[(event.database or "") + (event.table or "")]
    return java_hash(joined(event, event.key) or "None")


def by_columns(options: RuleOptions) -> Hash:
    """By the concatenated values of the listed columns; by database if there are none."""

    def choose(event: Event) -> int:
        text = joined(event, options.columns)
        return java_hash(text) if text else by_database(event)

    return choose


def joined(event: Event, names: Iterable[str]) -> str:
    """The values of these columns, concatenated."""
    image = row_of(event)
    return "".join([value for name in names if (value := image.get(name)) is not None])


def by_place(name: str) -> Hash:
    """By a part of the position; a missing one is "null", as in Java."""
    return lambda event: java_hash((event.position or {}).get(name, "null"))


def with_ddl_by_name(rule: str, row: Hash, count: int, broadcast_ddl: bool) -> Partition:
    """Rows by their hash, and DDL by a coarser one."""
    ddl = by_table if rule == "table" else by_database

    def choose(event: Event) -> tuple[int, ...]:
        kind = event.kind
        # To Maxwell, the start and end of a bootstrap are rows without columns.
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
