"""TiDB's DDL action numbers, derived from the text of a statement."""

from __future__ import annotations

from itertools import islice

from headgate.schema.statement import Statement, alter_actions, first_statement

MULTIPLE_CHANGES, UNKNOWN = 61, 0
OF_OP = {
    "create": 3,
    "drop": 4,
    "alter": MULTIPLE_CHANGES,
    "rename": 14,
    "truncate": 11,
    "create_index": 7,
    "drop_index": 8,
}
"""The fallback for statements that cannot be parsed."""

ALTERS = (5, 6, 12, 13, 15, 17, 18, 19, 20, 22, 23, 37, 38, 41, 61, 64, 71, 72)
DDL_OPS = dict.fromkeys(ALTERS, "alter") | {
    3: "create",
    4: "drop",
    7: "create_index",
    8: "drop_index",
    9: "create_index",
    10: "drop_index",
    11: "truncate",
    14: "rename",
    32: "create_index",
    33: "drop_index",
    47: "rename",
}
"""The operation of a DDL event by TiDB's action number; Canal's DDL types group them alike."""

OBJECTS = {
    "DATABASE": {"CREATE": 1, "DROP": 2, "ALTER": 26},
    "TABLE": {"CREATE": 3, "DROP": 4, "RENAME": 14, "TRUNCATE": 11, "RECOVER": 25, "REPAIR": 29},
    "INDEX": {"CREATE": 7, "DROP": 8},
    "VIEW": {"CREATE": 21, "DROP": 24},
    "SEQUENCE": {"CREATE": 34, "ALTER": 35, "DROP": 36},
    "PLACEMENT": {"CREATE": 51, "ALTER": 52, "DROP": 53},
    "RESOURCE": {"CREATE": 68, "ALTER": 69, "DROP": 70},
    "TRIGGER": {},
    "PROCEDURE": {},
    "FUNCTION": {},
    "EVENT": {},
    "USER": {},
    "ROLE": {},
    "SERVER": {},
    "TABLESPACE": {},
}
"""Action numbers by object and verb; TiDB has no number for some objects."""
OP_OBJECTS = ("TABLE", "INDEX")

ACTIONS = {
    "ADD PRIMARY KEY": 32,
    "ADD FOREIGN KEY": 9,
    "ADD CHECK": 43,
    "ADD INDEX": 7,
    "ADD VECTOR INDEX": 73,
    "ADD PARTITION": 19,
    "ADD COLUMN": 5,
    "ADD PERIOD": 5,
    "DROP PRIMARY KEY": 33,
    "DROP FOREIGN KEY": 10,
    "DROP INDEX": 8,
    "DROP CHECK": 44,
    "DROP CONSTRAINT": 44,
    "DROP PARTITION": 20,
    "DROP COLUMN": 6,
    "MODIFY COLUMN": 12,
    "CHANGE COLUMN": 12,
    "RENAME COLUMN": 12,
    "RENAME INDEX": 18,
    "RENAME TABLE": 14,
    "ALTER INDEX": 41,
    "ALTER CHECK": 45,
    "ALTER CONSTRAINT": 45,
    "ALTER": 15,
    "TRUNCATE PARTITION": 23,
    "REORGANIZE PARTITION": 64,
    "EXCHANGE PARTITION": 42,
    "PARTITION BY": 71,
    "REMOVE PARTITIONING": 72,
    "REMOVE TTL": 67,
    "TTL": 65,
    "TTL_ENABLE": 65,
    "TTL_JOB_INTERVAL": 65,
    "CACHE": 57,
    "NOCACHE": 59,
    "AUTO_INCREMENT": 13,
    "COMMENT": 17,
    "SHARD_ROW_ID_BITS": 16,
    "SET TIFLASH": 30,
    "DEFAULT CHARSET": 22,
    "DEFAULT CHARACTER": 22,
    "DEFAULT COLLATE": 22,
    "CHARSET": 22,
    "CHARACTER SET": 22,
    "COLLATE": 22,
    "CONVERT TO": 22,
}
"""Action numbers of ALTER TABLE clauses, by the clause's kind or the first word of it."""
METHODS = ("ALGORITHM", "LOCK", "WITH", "WITHOUT")
"""First words of the clauses that say how to alter a table rather than what to change."""
MOST_CHANGES = 100
"""The most clauses of one statement that are examined."""


def ddl_code(statement: str, op: str | None) -> int:
    """The action number of a statement; derived from `op` if the text is not conclusive, else 0.

    >>> ddl_code("ALTER TABLE `t` ADD a INT", None), ddl_code("ALTER TABLE t ADD a, DROP b", None)
    (5, 61)
    >>> ddl_code("create index i on t (a)", None), ddl_code("?", "rename"), ddl_code("?", None)
    (7, 14, 0)
    """
    codes = ddl_codes(statement, op)
    return codes[0] if len(codes) == 1 else MULTIPLE_CHANGES


def ddl_codes(statement: str, op: str | None) -> list[int]:
    """The action numbers of a statement: one per clause of ALTER TABLE, otherwise exactly one.

    >>> ddl_codes("ALTER TABLE t ADD a INT, DROP INDEX i, LOCK=NONE", None)
    [5, 8]
    """
    first = first_statement(statement)
    fallback = OF_OP.get(op or "", UNKNOWN)
    if (first.verb, first.object) == ("ALTER", "TABLE"):
        return _alter_codes(first, fallback) or [fallback]
    by_verb = OBJECTS.get(first.object)
    if by_verb is None:
        return [fallback]
    # `op` describes tables and indexes only: it must not turn CREATE TRIGGER into CREATE TABLE.
    return [by_verb.get(first.verb, fallback if first.object in OP_OBJECTS else UNKNOWN)]


def _alter_codes(statement: Statement, fallback: int) -> list[int]:
    kinds = (action.kind for action in islice(alter_actions(statement), MOST_CHANGES))
    firsts = ((kind, kind.split(" ", 1)[0]) for kind in kinds)
    return [
        ACTIONS.get(kind) or ACTIONS.get(first) or fallback
        for kind, first in firsts
        if first not in METHODS
    ]
