"""The recorded workload, run again: its statements on a real server, and the truth of each."""

from __future__ import annotations

from base64 import b64decode
from typing import Any

from recorded import quoted, truth

CUT = 300
"""The recording has so many characters of a long DML statement."""
SETTINGS = (
    "SET NAMES utf8mb4",
    "SET time_zone = '+00:00'",
    "SET sql_mode = 'ALLOW_INVALID_DATES'",
    "SET foreign_key_checks = 1",
)
NUMBERS = ("int", "decimal", "float", "double", "bit", "year")
BINARIES = ("binary", "blob", "geom", "point", "linestring", "polygon")


def statement(recorded: Any) -> str | None:
    """The SQL of a recorded statement; None where it has none of its own."""
    sql: str | None = recorded.get("sql")
    if sql is None or recorded["kind"] == "ddl" or len(sql) < CUT:
        return sql
    table = f"{quoted(recorded['db'])}.{quoted(recorded['table'])}"
    (row,) = recorded["added"]
    row = {name: value for name, value in row.items() if name in recorded["types"]}
    names = ", ".join(map(quoted, row))
    values = ", ".join(literal(recorded["types"][name], value) for name, value in row.items())
    return f"INSERT INTO {table} ({names}) VALUES ({values})"


def literal(type_: str, value: str | None) -> str:
    """A recorded value in SQL."""
    if value is None:
        return "NULL"
    base = type_.split("(")[0].split()[0].lower()
    if any(word in base for word in BINARIES):
        return f"x'{b64decode(value).hex()}'"
    if base.endswith(NUMBERS):
        return value
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"


def run(cursor: Any) -> dict[int, str]:
    """Run the workload; gives the errors of statements that the server does not know, by number."""
    failed: dict[int, str] = {}
    for sql in SETTINGS:
        cursor.execute(sql)
    for each in truth():
        sql = statement(each)
        if sql is None:
            continue
        try:
            cursor.execute(sql)
            if each["n"] == 0:
                cursor.execute("USE live")
        except Exception as error:
            failed[each["n"]] = str(error)
    return failed
