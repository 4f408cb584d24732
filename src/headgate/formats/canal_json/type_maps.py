"""How the rows of a Canal message are written, worked out once per type map."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw

from headgate.core.event import ColumnType, Event, Image, Types
from headgate.core.mysql_types import MySqlType, parse_type
from headgate.core.values import local
from headgate.formats._canal.values import writer
from headgate.formats._oms import encode_values as oms_values
from headgate.formats.canal_json.types import (
    OF_NULL,
    PROMOTED,
    UNTYPED,
    described_type,
    jdbc_code,
    plain_type,
)
from headgate.formats.encoding import PerTypeMap, Writers, is_numbered, to_json

NULL = Raw(b"null")


class Plan(msgspec.Struct):
    """How the rows of a table are written; its type maps are ready as JSON."""

    names: list[str]
    mysql: dict[str, str | None]
    jdbc: dict[str, int | None]
    writers: Writers
    promoted: list[tuple[str, str, int]]
    """Columns whose code depends on the value: name, largest value of its code, code above that."""
    of_null: list[tuple[str, int]]
    mysql_json: Raw = NULL
    jdbc_json: Raw = NULL
    bare: bool = False
    """Whether there are no types, so that values that came bare are written bare."""
    guesses: bool = False
    """Whether a column without a type is given one."""
    untyped: frozenset[str] = frozenset()
    """The columns that are given a type."""

    def type_maps(self, row: Image, lost: list[str]) -> tuple[Any, Any]:
        """sqlType and mysqlType of one row."""
        if not self.names and not self.guesses:
            return NULL, NULL
        whole_row = list(row) == self.names
        if whole_row and not (self.promoted or self.of_null or self.untyped):
            return self.jdbc_json, self.mysql_json
        changes = [
            (name, code)
            for name, most, code in self.promoted
            if (v := row.get(name)) and (len(v), v) > (len(most), most) and v[0] != "-"
        ]
        changes += [(name, code) for name, code in self.of_null if row.get(name, "") is None]
        if whole_row and not changes and not self.untyped:
            return self.jdbc_json, self.mysql_json
        jdbc = {n: self.jdbc.get(n) for n in row if n in self.jdbc or self.guesses}
        mysql = {n: self.mysql.get(n) for n in row if n in self.mysql or self.guesses}
        for name, code in changes:
            jdbc[name] = code
        if self.guesses:
            guessed = [n for n in row if n in self.untyped or n not in self.mysql]
            lost += ["types-guessed"] * bool(guessed)
            for name in guessed:
                mysql[name], jdbc[name] = UNTYPED
        return jdbc, mysql


NO_TYPES = Plan([], {}, {}, (), [], [])
NO_TYPES_BARE = msgspec.structs.replace(NO_TYPES, bare=True)
NO_TYPES_GUESSED = msgspec.structs.replace(NO_TYPES, guesses=True)
WITHOUT_TYPES = {"oms": NO_TYPES_BARE, "tencent": NO_TYPES_BARE, "ticdc": NO_TYPES_GUESSED}


class Source(NamedTuple):
    """What a plan depends on besides the types."""

    own: bool
    """Whether types and values come from this dialect."""
    coded: bool
    """Whether the JDBC codes are those of the row, not shared by several rows."""
    numbered: bool
    """Whether ENUM and SET values came as numbers."""


def source_of(dialect: str, origin: tuple[str | None, str | None, bool]) -> Source:
    """Where types and values come from.

    `origin`: the event's format, its dialect, and whether its row is or was one of several in a
    message.
    """
    format, event_dialect, several = origin
    own = format == "canal-json" and event_dialect == dialect
    numbered = is_numbered(Event("row", format=format, dialect=event_dialect))
    return Source(own, own and not several, numbered)


def planner(dialect: str, source: Source, zone: str, described: bool) -> PerTypeMap[Plan]:
    """A function from a type map to its plan; `described`: type names include their parameters."""
    to_local = local(zone)
    own, coded, numbered = source
    guesses = dialect == "ticdc"
    name_of: Callable[[MySqlType], str] = described_type if described else plain_type

    def mysql_name(column: ColumnType, type_: MySqlType) -> str | None:
        if type_.family == "unknown" or (own and dialect != "ticdc"):
            return column.mysql
        if dialect == "ticdc":
            return name_of(type_)
        if dialect == "oms":
            return (oms_values.type_name(column) or "").lower()
        return column.mysql

    def make(types: Types | None) -> Plan:
        if types is None:
            return WITHOUT_TYPES.get(dialect, NO_TYPES)
        parsed = {n: parse_type(t.mysql) for n, t in types.items()}
        mysql = {n: mysql_name(t, parsed[n]) for n, t in types.items()}
        has_codes = coded and all(t.jdbc is not None for t in types.values())

        def code_of(column: ColumnType, type_: MySqlType) -> int | None:
            if has_codes or (own and column.jdbc is not None and type_.family == "unknown"):
                return column.jdbc
            return jdbc_code(type_, dialect)

        jdbc = {n: code_of(t, parsed[n]) for n, t in types.items()}
        # Codes of this dialect come from a message, so they already fit its values.
        promoted = [] if has_codes or dialect == "oms" else [
            (n, *PROMOTED[t.base]) for n, t in parsed.items() if t.unsigned and t.base in PROMOTED
        ]  # fmt: skip
        of_null = (
            [(n, OF_NULL[t.base]) for n, t in parsed.items() if t.base in OF_NULL]
            if dialect == "canal" and not has_codes
            else []
        )
        writers = [
            (n, w) for n, t in parsed.items() if (w := writer(t, dialect, own, numbered, to_local))
        ]
        return Plan(
            list(types),
            mysql,
            jdbc,
            writers,
            promoted,
            of_null,
            Raw(to_json(mysql)),
            Raw(to_json(jdbc)),
            guesses=guesses,
            untyped=frozenset(n for n, t in types.items() if guesses and not t.mysql),
        )

    return PerTypeMap(make)
