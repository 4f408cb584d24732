"""Column definitions in DDL."""

from __future__ import annotations

from itertools import pairwise
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
_NATIONAL = ("NATIONAL", "NCHAR", "NVARCHAR")
_NO_CHARSET = ("DEFAULT", "NULL", "UCA1400")
"""What stands behind CHARSET_WORDS and names none; UCA1400_… are MariaDB's of any."""
_WITH_CHARSET = frozenset(AS_BINARY) | {"enum", "set", "json"}


class Column(NamedTuple):
    """One column: its type as MySQL's SHOW COLUMNS writes it, and what else flags need."""

    mysql: str
    nullable: bool = True
    generated: str | None = None
    charset: str | None = None
    """The character set of text, as far as the statements tell it."""

    def with_charset(self, charset: str | None) -> Column:
        """The same in a character set; only text has one."""
        has_one = self.mysql.partition("(")[0] in _WITH_CHARSET
        return self._replace(charset=charset) if has_one else self


class Default(NamedTuple):
    """The value that a column has where a row does not say."""

    text: str | None
    """The text of a literal, None for NULL; of an expression, its SQL."""
    is_expression: bool = False


class ColumnDefinition(NamedTuple):
    """A column as a statement defines it."""

    name: str
    mysql: str
    """Its type, as MySQL's SHOW COLUMNS writes it."""
    nullable: bool = True
    generated: str | None = None
    """`virtual` or `stored`; None where its values are not computed."""
    default: Default | None = None
    has_charset: bool = False
    """Whether it names a character set, so that the table's does not count."""
    auto_increment: bool = False
    """Whether the server numbers rows: AUTO_INCREMENT, SERIAL, TiDB's AUTO_RANDOM."""
    charset: str | None = None
    """The character set that it names."""

    def column(self, binary: bool, charset: str | None = None) -> Column:
        """The column in a table of a character set, which may be binary."""
        mysql = as_binary(self.mysql) if binary and not self.has_charset else self.mysql
        column = Column(mysql, self.nullable, self.generated)
        return column.with_charset(self.charset or charset)


class ReadColumn(NamedTuple):
    """A column's definition, and whether it makes the column a key."""

    definition: ColumnDefinition
    primary: bool
    unique: bool


def read_column(cursor: Cursor, sql: str) -> ReadColumn:
    """Read a column definition."""
    name = cursor.name("a column name")
    alias = cursor.word() == "SERIAL"
    is_national = cursor.word() in _NATIONAL
    base, parameters = read_type(cursor)
    is_json = base == "json"
    place, start = cursor.place, cursor.at
    if base == "longtext" and _is_json(cursor.words[start : cursor.end], name):
        base = "json"
    words = cursor.outline()
    pairs = list(zip(["", *words], words))
    for before, word in pairs:
        known = word in _ATTRIBUTES or before in _BEFORE_ANY_WORD
        if not known and word[0] != "'" and not word.isdigit():
            raise Unreadable(f"column {shown(name)}: unknown attribute {shown(word)}", place)
    key = any(w == "PRIMARY" or (w == "KEY" and b not in ("UNIQUE", "PRIMARY")) for b, w in pairs)
    serial = alias or "SERIAL" in words
    numbered = serial or "AUTO_INCREMENT" in words
    nullable = not (numbered or key or ("NOT", "NULL") in pairs)
    generated = None
    if ("AS", "()") in pairs:
        generated = "stored" if {"STORED", "PERSISTENT"} & set(words) else "virtual"
    charsets = [w.lstrip("'") for b, w in pairs if b in CHARSET_WORDS and w != "="]
    charset = charset_named(words)
    if charset is None:
        own = {"utf8mb4": is_json, "utf8mb3": is_national, "latin1": "ASCII" in words,
               "ucs2": "UNICODE" in words}  # fmt: skip
        charset = next((name for name, counts in own.items() if counts), None)
    mysql = base + (f"({','.join(parameters)})" if parameters else "")
    if "BYTE" in words or "BINARY" in charsets:
        mysql = as_binary(mysql)
    if alias or "UNSIGNED" in words or "ZEROFILL" in words:
        mysql += " unsigned"
    if "ZEROFILL" in words:
        mysql += " zerofill"
    default = None
    if "DEFAULT" in words:
        default = _default_among(Cursor(cursor.words, start, cursor.end), sql)
    definition = ColumnDefinition(
        name,
        mysql,
        nullable,
        generated,
        default,
        bool(charsets),
        numbered or "AUTO_RANDOM" in words,
        charset,
    )
    return ReadColumn(definition, key, serial or "UNIQUE" in words)


def charset_named(words: list[str]) -> str | None:
    """The character set that attributes or options name, by itself or by a collation.

    >>> charset_named(["DEFAULT", "CHARSET", "=", "UTF8"]), charset_named(["COLLATE", "GBK_BIN"])
    ('utf8mb3', 'gbk')
    """
    words = [word for word in words if word != "="]
    named = [w.lstrip("'").partition("_")[0] for b, w in pairwise(words) if b in CHARSET_WORDS]
    charset = next((name.lower() for name in named if name not in _NO_CHARSET), None)
    return "utf8mb3" if charset == "utf8" else charset


def as_binary(mysql: str) -> str:
    """A type as it is with the character set binary.

    >>> as_binary("varchar(80)"), as_binary("text"), as_binary("int")
    ('varbinary(80)', 'blob', 'int')
    """
    base, parenthesis, rest = mysql.partition("(")
    return AS_BINARY.get(base, base) + parenthesis + rest


def _default_among(cursor: Cursor, sql: str) -> Default | None:
    """The default among a column's attributes."""
    while not cursor.done():
        if cursor.take("DEFAULT"):
            return read_default(cursor, sql)
        if cursor.word() == "(":
            cursor.parens("")
        else:
            cursor.at += 1
    return None


def read_default(cursor: Cursor, sql: str) -> Default | None:
    """What follows DEFAULT; None where there is nothing.

    >>> from headgate.schema.tokenizer import statements
    >>> def read(sql):
    ...     return read_default(Cursor(next(statements(sql)).words), sql)
    >>> [read(sql).text for sql in ("'it''s'", "-1.50 COMMENT 'x'", "NULL", "b'101'")]
    ["it's", '-1.50', None, '5']
    >>> read("CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3)")
    Default(text='CURRENT_TIMESTAMP(3)', is_expression=True)
    """
    if cursor.done():
        return None
    start, first = cursor.at, cursor.words[cursor.at]
    cursor.at += 1
    if first.quote:
        return Default(first.text)
    if first.word == "NULL":
        return Default(None)
    if first.word in ("TRUE", "FALSE"):
        return Default("1" if first.word == "TRUE" else "0")
    quoted = not cursor.done() and bool(cursor.words[cursor.at].quote)
    if first.word.startswith("_") and quoted:  # _utf8mb4'text'
        return Default(cursor.name("text"))
    if first.word == "B" and quoted:
        digits = cursor.text()
        if digits and not digits.strip("01"):
            return Default(str(int(digits, 2)))
    if first.word in ("+", "-", ".") or first.word[0].isdigit():
        return _number(cursor, start, sql)
    if first.word == "(":
        cursor.at = start
    if cursor.word() == "(":
        cursor.parens("an expression")
    elif quoted:  # x'41'
        cursor.at += 1
    return Default(_between(cursor, start, sql), is_expression=True)


def _number(cursor: Cursor, start: int, sql: str) -> Default:
    """A number, from the word `start` on: sign, digits, point and exponent stand together."""
    words = cursor.words
    while cursor.at < cursor.end and words[cursor.at].start == words[cursor.at - 1].end:
        if words[cursor.at].quote or words[cursor.at].word in "(),":
            break
        cursor.at += 1
    if words[cursor.at - 1].word in ("+", "-") and not cursor.done():  # - 1
        cursor.at += 1
    text = _between(cursor, start, sql).replace(" ", "").removeprefix("+")
    digits = text.lstrip("-")
    is_number = digits[:1].isdigit() or text[:1] == "."
    return Default(text, is_expression=not is_number or digits[:2].lower() == "0x")


def _between(cursor: Cursor, start: int, sql: str) -> str:
    return sql[cursor.words[start].start : cursor.words[cursor.at - 1].end]


def _is_json(words: list[Word], name: str) -> bool:
    """Whether a column is MariaDB's JSON, which it stores as LONGTEXT with a check."""
    texts = [word.text.lower() for word in words]
    check = ["check", "(", "json_valid", "(", name.lower(), ")", ")"]
    return any(texts[at : at + len(check)] == check for at in range(len(texts)))
