"""The `type` of a DDL message, as each producer derives it from the statement."""

from __future__ import annotations

from headgate.core.event import Event
from headgate.formats._ticdc.ddl_codes import DDL_OPS, UNKNOWN, ddl_code, ddl_codes
from headgate.formats.canal_json import wire

DDL_TYPES = {op: type_ for type_, op in wire.DDL_OPS.items()}
CANAL_TYPES = {
    3: "CREATE", 4: "ERASE", 11: "TRUNCATE", 14: "RENAME",
    7: "CINDEX", 32: "CINDEX", 8: "DINDEX", 44: "DINDEX",
}  # fmt: skip
"""Canal's type by TiDB's action number; all other changes of a table are ALTER."""
NO_TABLE = {UNKNOWN, 1, 2, 21, 24, 25, 26, 29, 34, 35, 36, 51, 52, 53, 68, 69, 70}
"""Actions on databases, views, sequences and other objects, which Canal calls QUERY."""
IGNORED = {9, 43}
"""Foreign keys and checks, which Canal's parser ignores."""


def ddl_type(event: Event, dialect: str) -> str:
    """The `type` that a dialect's producer writes for a DDL event.

    >>> event = Event("ddl", "alter", "d", "t", ddl="ALTER TABLE t DROP INDEX i, ADD c INT")
    >>> ddl_type(event, "canal"), ddl_type(event, "ticdc")
    ('DINDEX', 'ALTER')
    """
    if not event.table:
        return "QUERY"
    own = (event.format, event.dialect) == ("canal-json", dialect)
    if own or (dialect == "ticdc" and event.format == "open-protocol"):
        return DDL_TYPES.get(event.op or "", "QUERY")
    statement = event.ddl or ""
    if dialect == "ticdc":
        return DDL_TYPES.get(DDL_OPS.get(ddl_code(statement, event.op), ""), "QUERY")
    # Canal uses the first change that its parser knows.
    codes = ddl_codes(statement, event.op)
    first = next((code for code in codes if code not in IGNORED), codes[0])
    return "QUERY" if first in NO_TABLE else CANAL_TYPES.get(first, "ALTER")
