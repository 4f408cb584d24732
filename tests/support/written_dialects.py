"""The dialects in which histories are written, each with what it has messages for.

What a dialect cannot express is found by asking its encoder, which reports it as lost; the history
is made without it. So everything that is written must land.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from history_author import TABLE_NAMES, Limits
from mysql_model import DATABASE, Column, Table
from mysql_values import KEY_KINDS, KINDS, ColumnKind

from headgate.codec.encoder import Encoder
from headgate.core.event import ColumnType, Event
from headgate.formats import MODULES, load, traits_of

ONE_TABLE = "orders"
"""The table of dialects whose messages name none."""


@dataclass(frozen=True)
class Dialect:
    """A dialect with the options by which it loses least, or those of a variant."""

    spec: str
    variant: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the encoder."""
    source: Mapping[str, Any] = field(default_factory=dict)
    """Options that a reader needs."""
    whole_deletes: bool = True
    """Whether a deleted row is written with all its columns."""
    joins_rows: bool = False
    """Whether the rows of a statement share a message, as Canal writes them."""

    @property
    def name(self) -> str:
        return f"{self.spec} {self.variant}".strip()

    def encoder(self, schema: str | None = None, **more: Any) -> Encoder:
        return Encoder(self.spec, schema=schema, **self.options, **more)

    @property
    def carried(self) -> frozenset[str]:
        return self.encoder().carried

    @property
    def has_commits(self) -> bool:
        """Whether changes have the number of their commit."""
        return "commit-ts" in self.carried

    @property
    def is_ordered(self) -> bool:
        """Whether changes tell their place in the source's order, so that they may be shuffled."""
        return self.has_commits or {"position.file", "position.pos"} <= self.carried

    @property
    def is_netted(self) -> bool:
        """Whether the producer writes one change per key and commit, as TiCDC does."""
        return self.has_commits and traits_of(*self.spec.split(":")).enum_as_number

    @property
    def has_row_numbers(self) -> bool:
        """Whether rows of one statement have places of their own."""
        rows = {"position.row", "position.xoffset"}
        return self.has_commits or not rows.isdisjoint(self.carried)

    @property
    def recognises_rows(self) -> bool:
        """Whether a repeated row of a table without a key can be recognised by its place."""
        return self._has_place(Event("row", "insert", key=(), after={}))

    @property
    def recognises_repeats(self) -> bool:
        """Whether a repeated change of a row with a key can be recognised by its place."""
        return self._has_place(Event("row", "insert", key=("id",), after={"id": "1"}))

    @property
    def recognises_ddl(self) -> bool:
        """Whether a repeated DDL statement can be recognised by its place."""
        return self._has_place(Event("ddl", "alter"))

    def _has_place(self, event: Event) -> bool:
        place = traits_of(*self.spec.split(":")).place
        names = {"file", "pos", *({"row", "xid", "xoffset"} if event.kind == "row" else ())}
        event.position = {name: "1" for name in names if f"position.{name}" in self.carried}
        event.commit_ts, event.event_time = (7 if self.has_commits else None), 1
        return place is not None and place(event) is not None


OPTIONS: dict[str, dict[str, Any]] = {
    "debezium:debezium": {"bigint_unsigned_handling_mode": "precise"},
    "debezium-smt:debezium": {"bigint_unsigned_handling_mode": "precise"},
}
"""Options beside `Encoding.fullest`, with which a dialect loses less."""
SOURCE: dict[str, dict[str, Any]] = {
    "debezium-smt:oms": {"database": DATABASE, "table": ONE_TABLE},
}
"""Options that a reader needs, because no message has their values."""


def written_dialects() -> list[Dialect]:
    """Every dialect that can be written, and some variants of them."""
    dialects = []
    for name in MODULES:
        format = load(name)
        for dialect in format.dialects if format.encoding else ():
            assert format.encoding is not None
            spec = f"{name}:{dialect}"
            options = {**format.encoding.fullest.get(dialect, {}), **OPTIONS.get(spec, {})}
            dialects.append(Dialect(spec, "", options, SOURCE.get(spec, {})))
    by_spec = {dialect.spec: dialect for dialect in dialects}
    canal = by_spec["canal-json:canal"]
    dialects.append(replace(canal, variant="with several rows in a message", joins_rows=True))
    for spec, variant, options in VARIANTS:
        plain = by_spec[spec]
        whole = "delete_only_output_handle_key_columns" not in options
        dialects.append(
            replace(
                plain, variant=variant, options={**plain.options, **options}, whole_deletes=whole
            )
        )
    return dialects


KEY_ONLY = {"delete_only_output_handle_key_columns": True}
VARIANTS: list[tuple[str, str, dict[str, Any]]] = [
    ("canal-json:ticdc", "with the key of deletes only", KEY_ONLY),
    ("canal-json:ticdc", "with key changes split", {"output_raw_change_event": False}),
    ("open-protocol:classic", "with the key of deletes only", KEY_ONLY),
    (
        "open-protocol:new",
        "without old values",
        {"output_old_value": False, "output_raw_change_event": False},
    ),
    ("debezium:debezium", "without schemas", {"schemas_enable": False}),
]

INEXACT = frozenset({
    "zero-dates", "datetime-micros", "time-micros", "repeated-hour", "bigint-unsigned",
    "decimal-scale", "datetime-precision", "json-null", "untyped", "misfit", "types-guessed",
    "enum-labels",
})  # fmt: skip
"""Losses of a value, beside those that leave it equal as a number."""

DDL = (
    ("create", "CREATE TABLE {} (id INT PRIMARY KEY)"),
    ("alter", "ALTER TABLE {} ADD c INT"),
    ("rename", "RENAME TABLE {} TO other"),
    ("drop", "DROP TABLE {}"),
)


@cache
def limits_of(name: str) -> Limits:
    """What a history may hold that is written in a dialect."""
    dialect = next(each for each in written_dialects() if each.name == name)
    carried = dialect.carried
    keeps_rows = "before" in carried and dialect.whole_deletes
    one = "table" in dialect.source
    return Limits(
        kinds=tuple(exact(dialect, KINDS, is_key=False)),
        key_kinds=tuple(exact(dialect, KEY_KINDS, is_key=True)),
        ddl=not one and all(writes_ddl(dialect, op, sql) for op, sql in DDL),
        truncate=not one and writes_ddl(dialect, "truncate", "TRUNCATE TABLE {}"),
        snapshots="snapshot" in carried,
        keyless=keeps_rows,
        names=(ONE_TABLE,) if one else TABLE_NAMES,
    )


def writes_ddl(dialect: Dialect, op: str, sql: str) -> bool:
    event = Event("ddl", op, DATABASE, "t", ddl=sql.format("t"), commit_ts=1 << 40, event_time=0)
    return bool(dialect.encoder()(event).records)


def exact(dialect: Dialect, kinds: Iterable[ColumnKind], is_key: bool) -> Iterable[ColumnKind]:
    """The types with those of their values that a dialect writes exactly."""
    for kind in kinds:
        columns = [Column("c", kind.type, nullable=False), Column("id", "int", nullable=False)]
        table = Table(columns, ("c" if is_key else "id",))
        encoder = dialect.encoder(f"USE {DATABASE}; {table.definition('t')}")
        types = {name: ColumnType(type_) for name, type_ in table.types.items()}
        values = []
        for value in kind.values:
            event = Event("row", "insert", DATABASE, "t", table.key, types=types)
            event.after = {"c": value, "id": "1"}
            event.commit_ts, event.event_time = 1 << 60, 1_700_000_000_000_000
            outcome = encoder(event)
            if not outcome.error and INEXACT.isdisjoint(outcome.lost):
                values.append(value)
        if values:
            yield kind._replace(values=tuple(values))
