"""How the rows of a table are written, and the type maps of each: `sqlType`, `mysqlType`."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

from headgate.core.event import Image
from headgate.formats.encoding import Writers

NULL = Raw(b"null")
GUESSED_TYPE = ("varchar", 12)
"""mysqlType and sqlType of a column of unknown type, where a type is required."""


class Plan(msgspec.Struct):
    """How the rows of a table are written; its type maps are ready as JSON."""

    names: list[str]
    mysql: dict[str, str | None]
    jdbc: dict[str, int | None]
    writers: Writers
    large_unsigned: list[tuple[str, str, int]]
    """Columns whose code depends on the value: name, largest value of its code, code above that."""
    null_codes: list[tuple[str, int]]
    """Columns whose code depends on whether they are NULL: name, code of NULL."""
    mysql_json: Raw = NULL
    jdbc_json: Raw = NULL
    bare_as_sent: bool = False
    """Whether there are no types, so that values that were sent bare are written bare."""
    guesses: bool = False
    """Whether a column without a type is given one."""
    untyped: frozenset[str] = frozenset()
    """The columns that are given a type."""

    def type_maps(self, row: Image, lost: list[str]) -> tuple[Any, Any]:
        """sqlType and mysqlType of one row."""
        if not self.names and not self.guesses:
            return NULL, NULL
        whole_row = list(row) == self.names
        if whole_row and not (self.large_unsigned or self.null_codes or self.untyped):
            return self.jdbc_json, self.mysql_json
        changes = [
            (name, code)
            for name, most, code in self.large_unsigned
            if (v := row.get(name)) and (len(v), v) > (len(most), most) and v[0] != "-"
        ]
        changes += [(name, code) for name, code in self.null_codes if row.get(name, "") is None]
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
                mysql[name], jdbc[name] = GUESSED_TYPE
        return jdbc, mysql
