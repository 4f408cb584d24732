"""TiDB's number for what a DDL statement does, read from the statement's first words."""

from __future__ import annotations

import re
from collections.abc import Iterator

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
"""Where the statement cannot be read."""

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
"""What a DDL event does, by TiDB's number; Canal's words go by the same groups."""

OBJECTS = {
    "DATABASE": {"CREATE": 1, "DROP": 2, "ALTER": 26},
    "SCHEMA": {"CREATE": 1, "DROP": 2, "ALTER": 26},
    "TABLE": {"CREATE": 3, "DROP": 4, "RENAME": 14, "TRUNCATE": 11, "RECOVER": 25, "REPAIR": 29},
    "TABLES": {"DROP": 4, "RENAME": 14},
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
"""The number by object and verb; what has none in TiDB ends the search."""
OP_OBJECTS = ("TABLE", "TABLES", "INDEX")

_CONSTRAINT = r"(?:CONSTRAINT (?:(?!PRIMARY|FOREIGN|UNIQUE|CHECK)\S+ )?)?"
CHANGES = [
    (re.compile(words + r"\b"), code)
    for words, code in (
        (rf"ADD {_CONSTRAINT}PRIMARY KEY", 32),
        (rf"ADD {_CONSTRAINT}FOREIGN KEY", 9),
        (rf"ADD {_CONSTRAINT}CHECK", 43),
        (rf"ADD {_CONSTRAINT}(?:UNIQUE|INDEX|KEY|FULLTEXT|SPATIAL)", 7),
        ("ADD (?:VECTOR|COLUMNAR) INDEX", 73),
        ("ADD PARTITION", 19),
        ("ADD", 5),
        ("DROP PRIMARY KEY", 33),
        ("DROP FOREIGN KEY", 10),
        ("DROP (?:INDEX|KEY)", 8),
        ("DROP (?:CHECK|CONSTRAINT)", 44),
        ("DROP PARTITION", 20),
        ("DROP", 6),
        ("(?:MODIFY|CHANGE|RENAME COLUMN)", 12),
        ("RENAME (?:INDEX|KEY)", 18),
        ("RENAME", 14),
        ("ALTER INDEX", 41),
        ("ALTER (?:CHECK|CONSTRAINT)", 45),
        ("ALTER", 15),
        ("TRUNCATE PARTITION", 23),
        ("REORGANIZE PARTITION", 64),
        ("EXCHANGE PARTITION", 42),
        ("PARTITION BY", 71),
        ("REMOVE PARTITIONING", 72),
        ("REMOVE TTL", 67),
        ("TTL(?:_ENABLE|_JOB_INTERVAL)?", 65),
        ("CACHE", 57),
        ("NOCACHE", 59),
        ("AUTO_INCREMENT", 13),
        ("COMMENT", 17),
        ("SHARD_ROW_ID_BITS", 16),
        ("SET TIFLASH", 30),
        ("(?:DEFAULT )?(?:CHARSET|CHARACTER SET|COLLATE)|CONVERT TO", 22),
    )
]
"""The number of a change to a table; the first that fits counts."""
_HOW = re.compile(r"(?:ALGORITHM|LOCK|WITH(?:OUT)? VALIDATION)\b")
"""A part of an ALTER TABLE that says how it is done, not what."""
_PARTITIONS = re.compile(r"\w+ PARTITION\b")
"""A change that stands alone in its statement: what follows a comma is another partition."""

_TOKEN = re.compile(
    r"""/\*.*?(?:\*/|\Z) | --(?=\s|\Z)[^\n]* | \#[^\n]*
    | (?P<quoted>'(?:[^'\\]|\\.)*'? | "(?:[^"\\]|\\.)*"? | `[^`]*`?)
    | (?P<word>\w+) | (?P<mark>[(),.])""",
    re.DOTALL | re.VERBOSE,
)
_ALTER_TABLE = re.compile(r"ALTER (?:IGNORE )?TABLE (?:IF EXISTS )?\S+(?: \. \S+)? (.*)")
FAR_ENOUGH = 24
"""Words in which a CREATE or DROP names its object; CREATE VIEW needs the most."""
MOST_CHANGES = 100
"""So many changes of a statement are looked at."""


def ddl_code(statement: str, op: str | None) -> int:
    """The number of what a statement does; by `op` where its words do not tell, else 0.

    >>> ddl_code("ALTER TABLE `t` ADD a INT", None), ddl_code("ALTER TABLE t ADD a, DROP b", None)
    (5, 61)
    >>> ddl_code("create index i on t (a)", None), ddl_code("?", "rename"), ddl_code("?", None)
    (7, 14, 0)
    """
    codes = ddl_codes(statement, op)
    return codes[0] if len(codes) == 1 else MULTIPLE_CHANGES


def ddl_codes(statement: str, op: str | None) -> list[int]:
    """The number of each change that a statement makes; one, unless it alters a table.

    >>> ddl_codes("ALTER TABLE t ADD a INT, DROP INDEX i, LOCK=NONE", None)
    [5, 8]
    """
    found = list(words(statement))
    fallback = OF_OP.get(op or "", UNKNOWN)
    if not found:
        return [fallback]
    altered = _ALTER_TABLE.fullmatch(" ".join(found))
    if altered:
        changes = [c for c in altered[1].split(" , ") if not _HOW.match(c)] or [""]
        if _PARTITIONS.match(changes[0]):
            del changes[1:]
        return [
            next((n for pattern, n in CHANGES if pattern.match(change)), fallback)
            for change in changes[:MOST_CHANGES]
        ]
    verb = found[0]
    for word in found[1:FAR_ENOUGH]:
        if word in OBJECTS:
            # An `op` is of a table or an index: create is no answer to CREATE TRIGGER.
            return [OBJECTS[word].get(verb, fallback if word in OP_OBJECTS else UNKNOWN)]
    return [11 if verb == "TRUNCATE" else fallback]


def words(statement: str) -> Iterator[str]:
    """Words and marks outside of parentheses, in capitals; a quoted name or text is one mark.

    The parentheses of ADD (a INT, b INT) do not count: each of its columns is a change.

    >>> list(words("ADD `index` int(11), /* x */ DROP b"))
    ['ADD', '`', 'INT', ',', 'DROP', 'B']
    """
    depth, last = 0, ""
    for token in _TOKEN.finditer(statement):
        text = token["word"] or token["mark"]
        if text == "(":
            depth += depth > 0 or last not in ("ADD", "COLUMN")
        elif text == ")":
            depth = max(0, depth - 1)
        elif depth == 0 and (text or token["quoted"]):
            last = text.upper() if text else "`"
            yield last
