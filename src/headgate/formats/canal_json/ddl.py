"""The `type` of a DDL message, as Canal derives it from the statement."""

from __future__ import annotations

from headgate.core.event import Event
from headgate.formats._ticdc.ddl_codes import UNKNOWN, ddl_codes
from headgate.formats.canal_json.wire import DDL_OPS

TYPES_OF_OPS = {op: type_ for type_, op in DDL_OPS.items()}
CANAL_TYPES = {
    3: "CREATE", 4: "ERASE", 11: "TRUNCATE", 14: "RENAME",
    7: "CINDEX", 32: "CINDEX", 8: "DINDEX", 44: "DINDEX",
}  # fmt: skip
"""Canal's type by TiDB's action number; all other changes of a table are ALTER."""
NO_TABLE = {UNKNOWN, 1, 2, 21, 24, 25, 26, 29, 34, 35, 36, 51, 52, 53, 68, 69, 70}
"""Actions on databases, views, sequences and other objects, which Canal calls QUERY."""
IGNORED = {9, 43}
"""Foreign keys and checks, which Canal's parser ignores."""


def type_of_op(op: str | None) -> str:
    """The type of a DDL event by its operation alone.

    >>> type_of_op("drop"), type_of_op(None)
    ('ERASE', 'QUERY')
    """
    return TYPES_OF_OPS.get(op or "", "QUERY")


def canal_ddl_type(event: Event, same_dialect: bool) -> str:
    """Canal: the first change that its parser knows determines the type.

    >>> event = Event("ddl", "alter", "d", "t", ddl="ALTER TABLE t DROP INDEX i, ADD c INT")
    >>> canal_ddl_type(event, same_dialect=False), canal_ddl_type(event, same_dialect=True)
    ('DINDEX', 'ALTER')
    """
    if not event.table:
        return "QUERY"
    if same_dialect:
        return type_of_op(event.op)
    codes = ddl_codes(event.ddl or "", event.op)
    first = next((code for code in codes if code not in IGNORED), codes[0])
    return "QUERY" if first in NO_TABLE else CANAL_TYPES.get(first, "ALTER")
