"""Column definitions in DDL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from headgate.core.errors import shown
from headgate.schema.column_types import AS_BINARY, read_type
from headgate.schema.tokenizer import Cursor, Unreadable, Word, set_of

_ATTRIBUTES = set_of("""
    NOT NULL DEFAULT AUTO_INCREMENT AUTO_RANDOM UNIQUE PRIMARY KEY COMMENT COLLATE CHARACTER CHAR
    SET CHARSET COLUMN_FORMAT FIXED DYNAMIC STORAGE DISK MEMORY GENERATED ALWAYS AS VIRTUAL STORED
    PERSISTENT ON UPDATE DELETE CASCADE RESTRICT NO ACTION REFERENCES MATCH FULL PARTIAL SIMPLE
    CONSTRAINT CHECK ENFORCED VISIBLE INVISIBLE UNSIGNED SIGNED ZEROFILL BINARY ASCII UNICODE BYTE
    SRID REF_SYSTEM_ID ENGINE_ATTRIBUTE SECONDARY_ENGINE_ATTRIBUTE SERIAL VALUE CLUSTERED
    NONCLUSTERED GLOBAL COMPRESSED FOR () = . - +
    """)
_BEFORE_ANY_WORD = set_of("""
    DEFAULT COLLATE SET CHARSET REFERENCES CONSTRAINT SRID REF_SYSTEM_ID UPDATE COLUMN_FORMAT
    STORAGE FOR = . - +
    """)
CHARSET_WORDS = ("SET", "CHARSET", "COLLATE")


class Column(NamedTuple):
    """One column: its type as MySQL's SHOW COLUMNS writes it, and what else flags need."""

    mysql: str
    nullable: bool = True
    generated: str | None = None


class Defined(NamedTuple):
    """A column definition."""

    name: str
    column: Column
    key: bool
    unique: bool


def read_column(cursor: Cursor, binary: bool) -> Defined:
    """Read a column definition; `binary` says that the table's character set is that."""
    name = cursor.name("a column name")
    alias = cursor.word() == "SERIAL"
    base, parameters = read_type(cursor)
    line = cursor.line
    if base == "longtext" and is_json(cursor.words[cursor.at :], name):
        base = "json"
    words = cursor.outline()
    pairs = list(zip(["", *words], words))
    for before, word in pairs:
        known = word in _ATTRIBUTES or before in _BEFORE_ANY_WORD
        if not known and word[0] != "'" and not word.isdigit():
            raise Unreadable(f"column {shown(name)}: {shown(word)} is no column attribute", line)
    key = any(w == "PRIMARY" or (w == "KEY" and b not in ("UNIQUE", "PRIMARY")) for b, w in pairs)
    serial = alias or "SERIAL" in words
    nullable = not (serial or key or "AUTO_INCREMENT" in words or ("NOT", "NULL") in pairs)
    generated = None
    if ("AS", "()") in pairs:
        generated = "stored" if {"STORED", "PERSISTENT"} & set(words) else "virtual"
    charsets = [w.lstrip("'") for b, w in pairs if b in CHARSET_WORDS and w != "="]
    if "BYTE" in words or "BINARY" in charsets or (binary and not charsets):
        base = AS_BINARY.get(base, base)
    mysql = base + (f"({','.join(parameters)})" if parameters else "")
    if alias or "UNSIGNED" in words or "ZEROFILL" in words:
        mysql += " unsigned"
    if "ZEROFILL" in words:
        mysql += " zerofill"
    return Defined(name, Column(mysql, nullable, generated), key, serial or "UNIQUE" in words)


def is_json(words: Sequence[Word], name: str) -> bool:
    """Whether a column is MariaDB's JSON, which it stores as LONGTEXT with a check."""
    texts = [word.text.lower() for word in words]
    check = ["check", "(", "json_valid", "(", name.lower(), ")", ")"]
    return any(texts[at : at + len(check)] == check for at in range(len(texts)))
