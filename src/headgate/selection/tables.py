"""Which tables a job takes."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.core.keys import key
from headgate.selection.globs import TableGlob, TableNames, any_true, table_pattern


@dataclass(frozen=True)
class Tables:
    """Which tables are processed: `database.table` with `*` and `?`."""

    include: tuple[str, ...] = key(
        "tables that are processed", ("*.*",), read=table_pattern, empty="leave it out to take all"
    )
    exclude: tuple[str, ...] = key(
        "tables that are skipped, even if they are included", (), read=table_pattern
    )


class TableSelector:
    """Decides for a table whether it is processed; `exclude` wins.

    >>> selector = TableSelector(Tables(("shop.*",), ("shop.tmp_*",)))
    >>> selector.selects(("shop", None, "orders")), selector.selects(("shop", None, "tmp_1"))
    (True, False)
    """

    def __init__(self, tables: Tables) -> None:
        self._include = [TableGlob(pattern) for pattern in tables.include]
        self._exclude = [TableGlob(pattern) for pattern in tables.exclude]
        self.selects_all = "*.*" in tables.include and not tables.exclude

    def selects(self, names: TableNames) -> bool | None:
        """Whether a table is taken; None where that depends on a name that is not known."""
        included = any_true(glob.matches(names) for glob in self._include)
        excluded = any_true(glob.matches(names) for glob in self._exclude)
        if included is False or excluded is True:
            return False
        return None if included is None or excluded is None else True
