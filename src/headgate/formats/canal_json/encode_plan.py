"""How the rows of a table are written in a dialect, planned once per type map."""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Raw

from headgate.core.event import ColumnType, Event, Types
from headgate.core.mysql_types import MySqlType, parse_type
from headgate.core.values import local
from headgate.formats._canal.values import ValueSource
from headgate.formats.canal_json.dialects.base import Dialect
from headgate.formats.canal_json.encode_parts import Options
from headgate.formats.canal_json.jdbc_codes import jdbc_code
from headgate.formats.canal_json.type_maps import Plan
from headgate.formats.encoding import PerTypeMap, is_numbered, to_json


class Origin(NamedTuple):
    """Where an event comes from, as far as plans depend on it."""

    format: str | None
    dialect: str | None
    one_of_several: bool
    """Whether its row is, or was, one of several rows in a message."""


def planner(dialect: Dialect, origin: Origin, options: Options) -> PerTypeMap[Plan]:
    """A function from a type map to the plan for the events of an origin."""
    to_local = local(options.timezone)
    same_dialect = origin.format == "canal-json" and origin.dialect == dialect.name
    numbered = is_numbered(Event("row", format=origin.format, dialect=origin.dialect))
    source = ValueSource(same_dialect, numbered)
    type_name = dialect.type_namer(options)
    guesses = dialect.guesses_types

    def mysql_type(column: ColumnType, type_: MySqlType) -> str | None:
        if type_.family == "unknown":
            return column.mysql
        return type_name(column, type_, same_dialect)

    def make(types: Types | None) -> Plan:
        if types is None:
            bare = dialect.bare_values
            return Plan([], {}, {}, (), [], [], bare_as_sent=bare, guesses=guesses)
        parsed = {n: parse_type(t.mysql) for n, t in types.items()}
        mysql = {n: mysql_type(t, parsed[n]) for n, t in types.items()}
        # JDBC codes of the same dialect fit the values of their message, if it has one row.
        has_codes = (
            same_dialect
            and not origin.one_of_several
            and all(t.jdbc is not None for t in types.values())
        )

        def code_of(column: ColumnType, type_: MySqlType) -> int | None:
            unknown = same_dialect and column.jdbc is not None and type_.family == "unknown"
            if has_codes or unknown:
                return column.jdbc
            return jdbc_code(type_, dialect.jdbc_codes)

        jdbc = {n: code_of(t, parsed[n]) for n, t in types.items()}
        large, of_null = ({}, {}) if has_codes else (dialect.large_unsigned, dialect.null_codes)
        writers = [
            (n, w) for n, t in parsed.items() if (w := dialect.value_writer(t, source, to_local))
        ]
        return Plan(
            list(types),
            mysql,
            jdbc,
            writers,
            [(n, *large[t.base]) for n, t in parsed.items() if t.unsigned and t.base in large],
            [(n, of_null[t.base]) for n, t in parsed.items() if t.base in of_null],
            Raw(to_json(mysql)),
            Raw(to_json(jdbc)),
            guesses=guesses,
            untyped=frozenset(n for n, t in types.items() if guesses and not t.mysql),
        )

    return PerTypeMap(make)
