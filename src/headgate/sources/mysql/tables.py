"""Which tables are captured."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from headgate.core.errors import UsageError, shown
from headgate.mysql.connection import Connection
from headgate.mysql.definitions import base_tables
from headgate.mysql.reader import SYSTEM

LONGEST = 2 * 64 * 4 + 1
"""Characters of a database and a table, with room for patterns."""


@dataclass(frozen=True)
class TablePatterns:
    """Patterns of tables, as `shop.*`."""

    patterns: tuple[str, ...]

    @cached_property
    def _regex(self) -> re.Pattern[str]:
        kinds = {"*": ".*", "?": "."}
        texts = ["".join(kinds.get(c) or re.escape(c) for c in each) for each in self.patterns]
        return re.compile("|".join(texts), re.DOTALL)

    def match(self, database: str, table: str) -> bool:
        """Whether a table is meant; those of the server itself never are.

        >>> TablePatterns(("shop.*",)).match("shop", "orders")
        True
        """
        if database.lower() in SYSTEM:
            return False
        return self._regex.fullmatch(f"{database}.{table}") is not None

    def found(self, connection: Connection) -> list[tuple[str, str]]:
        """The tables of a server that are meant."""
        return [(d, t) for d, t in base_tables(connection) if self.match(d, t)]


def patterns_of(path: str, more: str | None, example: str) -> TablePatterns:
    """The patterns of a URI.

    >>> patterns_of("shop.*,crm.customers", None, "").patterns
    ('shop.*', 'crm.customers')
    >>> patterns_of("shop", None, "").patterns
    ('shop.*',)
    """
    if path and more is not None:
        raise UsageError("tables are both in the path and in tables=; name them in one place")
    names = [name.strip() for name in (path or more or "").split(",") if name.strip()]
    if not names:
        raise UsageError(f"the source names no tables; write {example}")
    return TablePatterns(tuple(_pattern(name) for name in names))


def _pattern(name: str) -> str:
    if "/" in name or len(name) > LONGEST:
        raise UsageError(f"{shown(name)} is not database.table; write it as shop.orders or shop.*")
    return name if "." in name else f"{name}.*"


def no_table(patterns: TablePatterns, there: Sequence[tuple[str, str]]) -> UsageError:
    """The error where no table matches."""
    names = ", ".join(shown(f"{database}.{table}") for database, table in there[:20])
    wanted = ", ".join(map(shown, patterns.patterns))
    return UsageError(
        f"no table matches {wanted}, or the user may not see it (GRANT SELECT ON …); there are: "
        f"{names or 'none'}"
    )
