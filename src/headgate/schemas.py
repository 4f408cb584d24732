"""Table schemas from CREATE TABLE text and from DDL events, for what messages do not tell.

The text is cut into words by sqlglot's tokenizer. Its parser is not used: MySQL's `int8`, `real`,
`point`, `national char`, `RENAME TABLE` and most of ALTER come out of it wrong or not at all, while
a schema needs only names, types and keys.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cache, cached_property
from typing import Any, NamedTuple

from headgate import values
from headgate.errors import HeadgateError, UsageError, shown, unknown_name
from headgate.event import ColumnType, Event, Image, Types
from headgate.formats.parts.connect_columns import TYPES
from headgate.limits import CACHED_BYTES, CACHED_KEY_BYTES
from headgate.memo import Memo, weight
from headgate.values import Convert

MAX_DDL_LENGTH = 1024 * 1024
"""Longer statements of events are not read: the table is forgotten."""

MAX_COLUMNS = 4096
"""As many as MySQL allows in a table."""

MAX_INDEXES, MAX_INDEX_COLUMNS, MAX_LABELS = 512, 64, 65_535
"""At least as many as MySQL and TiDB allow."""

MAX_LEARNT_BYTES = 64 * 1024 * 1024
"""Schemas learnt from events beyond this push out the oldest."""

BINARY, HANDLE, GENERATED, PRIMARY, UNIQUE, MULTIPLE, NULLABLE, UNSIGNED = (
    1 << bit for bit in range(8)
)
"""TiCDC Open Protocol's column flags."""

NUMBERED = {("open-protocol", dialect) for dialect in (None, "classic", "new")} | {
    ("canal-json", "canal"),
    ("canal-json", "ticdc"),
}
"""Formats and dialects that may send an ENUM's index and a SET's bit mask for its labels."""


def _set_of(words: str) -> frozenset[str]:
    return frozenset(words.split())


Name = tuple[str | None, str]
"""A table's database and name."""


class Column(NamedTuple):
    """One column: its type as MySQL's SHOW COLUMNS writes it, and what else flags need."""

    mysql: str
    nullable: bool = True
    generated: str | None = None


class _TableParts(NamedTuple):
    columns: dict[str, Column]
    key: tuple[str, ...]
    uniques: tuple[tuple[str, ...], ...] = ()
    indexes: tuple[tuple[str, ...], ...] = ()


class Table(_TableParts):
    """One table: columns in order, primary key, unique and other indexes.

    >>> Table({"id": Column("int", nullable=False), "name": Column("text")}, ("id",)).types["id"]
    ColumnType(mysql='int', jdbc=None, flags=11)
    """

    @cached_property
    def types(self) -> Types:
        """What an event's `types` say of this table; always the same object."""
        return {
            name: ColumnType(column.mysql, None, flag)
            for (name, column), flag in zip(self.columns.items(), _flags(self))
        }


# Flags


_STRINGS = _set_of("char varchar tinytext text mediumtext longtext enum set")


def handle_key(table: Table) -> tuple[str, ...]:
    """The columns that tell rows apart: primary key, else the shortest unique key without NULLs.

    >>> handle_key(Table({"a": Column("int"), "b": Column("int", False)}, (), (("a",), ("b",))))
    ('b',)
    """
    if table.key:
        return table.key
    firm = {n for n, c in table.columns.items() if not c.nullable and not c.generated}
    return min((unique for unique in table.uniques if firm.issuperset(unique)), key=len, default=())


def _flags(table: Table) -> list[int]:
    """The flags of each column, in table order."""
    handle, unique = set(handle_key(table)), {n for names in table.uniques for n in names}
    several = [names for names in (table.key, *table.uniques, *table.indexes) if len(names) > 1]
    multiple = {n for names in several for n in names}
    return [
        _type_flags(column.mysql)
        | HANDLE * (name in handle)
        | GENERATED * (column.generated is not None)
        | PRIMARY * (name in table.key)
        | UNIQUE * (name in unique)
        | MULTIPLE * (name in multiple)
        | NULLABLE * (column.nullable and name not in table.key)
        for name, column in table.columns.items()
    ]


def _type_flags(mysql: str) -> int:
    """The flags that follow from the type alone."""
    base = values.base_type(mysql)
    if base in _STRINGS:
        return 0
    unsigned = base in ("bit", "year") or " unsigned" in mysql or " zerofill" in mysql
    return BINARY | UNSIGNED * unsigned


# Statements and words


class _Unreadable(HeadgateError):
    """A statement is broken or does not fit the tables that are known."""

    def __init__(self, what: str, line: int) -> None:
        super().__init__(what)
        self.what, self.line = what, line


# Quotes may be left open here: the tokenizer then says so. Two quotes in a row are two pieces.
_PIECE = re.compile(
    r"""
    '(?:[^'\\]|\\.)*+'? | "(?:[^"\\]|\\.)*+"? | `[^`]*+`?
    | (?P<routines>^[ \t]*DELIMITER[ \t]+(?:;;|[^\w\s;]).*?(?:^[ \t]*DELIMITER[ \t]*;(?!;)|\Z))
    | (?P<delimiter>^[ \t]*DELIMITER[ \t]*;(?!;))
    | (?P<open>/\*M?!\d*)
    | (?P<comment>/\*.*?(?:\*/|\Z) | --(?=\s|\Z)[^\n]*+ | \#[^\n]*+)
    | (?P<close>\*/)
    | (?P<end>;)
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE | re.IGNORECASE,
)
_HEAD = re.compile(r"\s*([a-z_]*)\b\s*([a-z]*)", re.IGNORECASE)


def _statements(sql: str) -> Iterator[tuple[int, str]]:
    """Each statement and its line; comments become blanks, what MySQL runs of them stays.

    >>> list(_statements("/*!40101 SET a=';' */; -- no\\nuse b"))
    [(1, "         SET a=';'   "), (1, '  \\nuse b')]
    """
    parts: list[str] = []
    line, at, executable = 1, 0, False
    for piece in _PIECE.finditer(sql):
        parts.append(sql[at : piece.start()])
        at = piece.end()
        text, kind = piece[0], piece.lastgroup
        if kind == "end":
            statement = "".join(parts)
            yield line, statement
            line += statement.count("\n")
            parts.clear()
        elif kind is None or (kind == "close" and not executable):
            parts.append(text)
        else:
            executable = kind == "open" or (executable and kind != "close")
            blank = kind in ("open", "close")
            parts.append(" " * len(text) if blank else " " + "\n" * text.count("\n"))
    yield line, "".join(parts) + sql[at:]


class _Word(NamedTuple):
    """One token. `word` is its upper-case text, empty where it is quoted."""

    text: str
    word: str
    line: int


@cache
def _tokenizer() -> tuple[Callable[[str], Sequence[Any]], frozenset[Any], type[Exception]]:
    """sqlglot's tokenizer, which kinds of token are quoted, and its error; imported when needed."""
    from sqlglot import TokenType
    from sqlglot.dialects.mysql import MySQL
    from sqlglot.errors import SqlglotError

    logging.getLogger("sqlglot").setLevel(logging.CRITICAL + 1)
    kinds = ("IDENTIFIER", "STRING", "NATIONAL_STRING", "BIT_STRING", "HEX_STRING", "BYTE_STRING")
    return MySQL().tokenize, frozenset(TokenType[kind] for kind in kinds), SqlglotError


def _words(sql: str, line: int) -> list[_Word]:
    """The words of a statement's text that starts in `line`.

    >>> [(w.text, w.word) for w in _words("a primary  key 'x'", 1)]
    [('a', 'A'), ('PRIMARY', 'PRIMARY'), ('KEY', 'KEY'), ('x', '')]
    """
    tokenize, quoted, error = _tokenizer()
    try:
        tokens = tokenize(sql)
    except error:
        raise _Unreadable("a quote is not closed", line) from None
    found: list[_Word] = []
    for token in tokens:
        at = token.line + line - 1
        if token.token_type in quoted:
            found.append(_Word(token.text, "", at))
        else:  # the tokenizer makes one token of PRIMARY KEY
            found.extend(_Word(word, word.upper(), at) for word in token.text.split())
    return found


class _Cursor:
    """A walk over words."""

    def __init__(self, words: list[_Word], line: int) -> None:
        self.words, self.at = words, 0
        self.first_line = words[0].line if words else line

    @property
    def line(self) -> int:
        """The line of the next word."""
        if self.at < len(self.words):
            return self.words[self.at].line
        return self.words[-1].line if self.words else self.first_line

    def done(self) -> bool:
        """Whether no word is left."""
        return self.at >= len(self.words)

    def word(self, ahead: int = 0) -> str:
        """The next word in upper case; empty where it is quoted or there is none."""
        at = self.at + ahead
        return self.words[at].word if at < len(self.words) else ""

    def text(self) -> str:
        """The next word as it is written; empty where there is none."""
        return "" if self.done() else self.words[self.at].text

    def take(self, *words: str) -> bool:
        """Step over these words if they come next."""
        if any(self.word(ahead) != word for ahead, word in enumerate(words)):
            return False
        self.at += len(words)
        return True

    def take_any(self, *words: str) -> bool:
        """Step over one of these words if it comes next."""
        return any(self.take(word) for word in words)

    def error(self, what: str) -> _Unreadable:
        """An error at the next word."""
        return _Unreadable(what, self.line)

    def name(self, of: str) -> str:
        """A name, quoted or not. ANSI_QUOTES has names in double quotes."""
        if self.done() or self.word() in _PUNCTUATION:
            found = "the end" if self.done() else shown(self.text())
            raise self.error(f"expected {of}, found {found}")
        self.at += 1
        return self.words[self.at - 1].text

    def parens(self, of: str) -> _Cursor:
        """What is between the parentheses that come next."""
        line = self.line
        if not self.take("("):
            raise self.error(f"expected ( and {of}")
        depth, start = 1, self.at
        while depth:
            if self.done():
                raise _Unreadable("a parenthesis is not closed", line)
            depth += {"(": 1, ")": -1}.get(self.word(), 0)
            self.at += 1
        return _Cursor(self.words[start : self.at - 1], line)

    def parts(self, most: int = MAX_COLUMNS + MAX_INDEXES) -> Iterator[_Cursor]:
        """What is left, cut at its commas outside parentheses."""
        depth, start, count = 0, self.at, 1
        for at in range(self.at, len(self.words)):
            word = self.words[at].word
            depth += {"(": 1, ")": -1}.get(word, 0)
            if word == "," and not depth:
                yield _Cursor(self.words[start:at], self.words[at].line)
                start, count = at + 1, count + 1
                if count > most:
                    raise _Unreadable(f"more than {most} parts", self.words[at].line)
        yield _Cursor(self.words[start:], self.line)
        self.at = len(self.words)

    def outline(self) -> list[str]:
        """What is left, with `()` for parentheses and a quote before what is quoted."""
        found: list[str] = []
        while not self.done():
            if self.word() == "(":
                self.parens("")
                found.append("()")
            else:
                found.append(self.word() or "'" + self.words[self.at].text.upper())
                self.at += 1
        return found


_PUNCTUATION = _set_of("( ) , . = ; - + * /")


# Types


_SYNONYMS = {
    "integer": "int",
    "int1": "tinyint",
    "int2": "smallint",
    "int3": "mediumint",
    "middleint": "mediumint",
    "int4": "int",
    "int8": "bigint",
    "dec": "decimal",
    "numeric": "decimal",
    "fixed": "decimal",
    "real": "double",
    "float4": "float",
    "float8": "double",
    "character": "char",
    "nchar": "char",
    "nvarchar": "varchar",
    "varcharacter": "varchar",
    "geomcollection": "geometrycollection",
}
_WHOLE = {
    ("BOOL",): ("tinyint", ["1"]),
    ("BOOLEAN",): ("tinyint", ["1"]),
    ("SERIAL",): ("bigint", []),
    ("LONG", "VARBINARY"): ("mediumblob", []),
    ("LONG", "CHAR", "VARYING"): ("mediumtext", []),
    ("LONG", "VARCHAR"): ("mediumtext", []),
    ("LONG",): ("mediumtext", []),
}
_DEFAULT_PARAMETERS = {"char": ["1"], "binary": ["1"], "bit": ["1"], "decimal": ["10", "0"]}
_NEED_PARAMETERS = frozenset(("varchar", "varbinary", "enum", "set"))
_FRACTIONS = frozenset(("time", "datetime", "timestamp"))
_LOB_SIZES = (("tiny", 1 << 8), ("", 1 << 16), ("medium", 1 << 24), ("long", 1 << 34))
_AS_BINARY = {"char": "binary", "varchar": "varbinary"} | {
    f"{size}text": f"{size}blob" for size, _ in _LOB_SIZES
}


def _type(cursor: _Cursor) -> tuple[str, list[str]]:
    """Read a type: its MySQL name and its parameters."""
    for words, found in _WHOLE.items():
        if cursor.take(*words):
            return found
    cursor.take("NATIONAL")
    line, told = cursor.line, cursor.name("a type").lower()
    base = _SYNONYMS.get(told, told)
    if base not in TYPES:
        raise _Unreadable(str(unknown_name("column type", told, TYPES)), line)
    if base == "double":
        cursor.take("PRECISION")
    if base == "char" and cursor.take_any("VARYING", "VARCHAR"):
        base = "varchar"
    parameters = _parameters(cursor, base) if cursor.word() == "(" else []
    if base in _NEED_PARAMETERS and not parameters:
        raise _Unreadable(f"{base} needs a length or labels in parentheses", line)
    return _as_stored(base, parameters)


def _parameters(cursor: _Cursor, base: str) -> list[str]:
    """The numbers or labels in a type's parentheses."""
    found: list[str] = []
    for part in cursor.parens("the type's length").parts(MAX_LABELS):
        word = part.words[0] if len(part.words) == 1 else None
        if base in ("enum", "set") and word and not word.word:
            label = word.text.rstrip(" ").replace("\\", "\\\\").replace("'", "''")
            found.append(f"'{label}'")
        elif base not in ("enum", "set") and word and word.word.isascii() and word.word.isdigit():
            found.append(word.word)
        else:
            raise part.error(f"{base} has something other than its length or labels in ( )")
    return found


def _as_stored(base: str, parameters: list[str]) -> tuple[str, list[str]]:
    """What MySQL makes of a type: `decimal` is decimal(10,0), `float(30)` is double."""
    if base == "decimal" and len(parameters) == 1:
        return base, [*parameters, "0"]
    if base in _FRACTIONS and parameters == ["0"]:
        return base, []
    if base == "float" and len(parameters) == 1:
        return ("float" if int(parameters[0][:9]) <= 24 else "double"), []
    if base in ("text", "blob") and parameters:
        # MySQL takes the smallest that holds so many characters, of up to four bytes each.
        most = int(parameters[0][:11]) * (4 if base == "text" else 1)
        return next((size for size, top in _LOB_SIZES if most < top), "long") + base, []
    return base, parameters or _DEFAULT_PARAMETERS.get(base, [])


# Columns


_ATTRIBUTES = _set_of("""
    NOT NULL DEFAULT AUTO_INCREMENT AUTO_RANDOM UNIQUE PRIMARY KEY COMMENT COLLATE CHARACTER CHAR
    SET CHARSET COLUMN_FORMAT FIXED DYNAMIC STORAGE DISK MEMORY GENERATED ALWAYS AS VIRTUAL STORED
    PERSISTENT ON UPDATE DELETE CASCADE RESTRICT NO ACTION REFERENCES MATCH FULL PARTIAL SIMPLE
    CONSTRAINT CHECK ENFORCED VISIBLE INVISIBLE UNSIGNED SIGNED ZEROFILL BINARY ASCII UNICODE BYTE
    SRID REF_SYSTEM_ID ENGINE_ATTRIBUTE SECONDARY_ENGINE_ATTRIBUTE SERIAL VALUE CLUSTERED
    NONCLUSTERED GLOBAL COMPRESSED FOR () = . - +
    """)
_BEFORE_ANY_WORD = _set_of("""
    DEFAULT COLLATE SET CHARSET REFERENCES CONSTRAINT SRID REF_SYSTEM_ID UPDATE COLUMN_FORMAT
    STORAGE FOR = . - +
    """)
_CHARSET_WORDS = ("SET", "CHARSET", "COLLATE")


class _Defined(NamedTuple):
    """A column definition."""

    name: str
    column: Column
    key: bool
    unique: bool


def _column(cursor: _Cursor, binary: bool) -> _Defined:
    """Read a column definition; `binary` says that the table's character set is that."""
    name = cursor.name("a column name")
    alias = cursor.word() == "SERIAL"
    base, parameters = _type(cursor)
    line = cursor.line
    words = cursor.outline()
    pairs = list(zip(["", *words], words))
    for before, word in pairs:
        known = word in _ATTRIBUTES or before in _BEFORE_ANY_WORD
        if not known and word[0] != "'" and not word.isdigit():
            raise _Unreadable(f"column {shown(name)}: {shown(word)} is no column attribute", line)
    key = any(w == "PRIMARY" or (w == "KEY" and b not in ("UNIQUE", "PRIMARY")) for b, w in pairs)
    serial = alias or "SERIAL" in words
    nullable = not (serial or key or "AUTO_INCREMENT" in words or ("NOT", "NULL") in pairs)
    generated = None
    if ("AS", "()") in pairs:
        generated = "stored" if {"STORED", "PERSISTENT"} & set(words) else "virtual"
    charsets = [w.lstrip("'") for b, w in pairs if b in _CHARSET_WORDS and w != "="]
    if "BYTE" in words or "BINARY" in charsets or (binary and not charsets):
        base = _AS_BINARY.get(base, base)
    mysql = base + (f"({','.join(parameters)})" if parameters else "")
    if alias or "UNSIGNED" in words or "ZEROFILL" in words:
        mysql += " unsigned"
    if "ZEROFILL" in words:
        mysql += " zerofill"
    return _Defined(name, Column(mysql, nullable, generated), key, serial or "UNIQUE" in words)


# Tables under construction


class _Index(NamedTuple):
    """An index; `columns` is empty where it is on an expression."""

    columns: tuple[str, ...]
    unique: bool


@dataclass
class _Draft:
    """A table that statements change. Index names are in lower case."""

    columns: dict[str, Column] = field(default_factory=dict)
    key: tuple[str, ...] = ()
    indexes: dict[str, _Index] = field(default_factory=dict)
    binary: bool = False
    """Whether text columns are binary unless they say otherwise."""
    ahead: bool = False
    """From a file, which may hold already what an event only now tells."""

    def copy(self) -> _Draft:
        """The same, to be changed apart."""
        return _Draft(dict(self.columns), self.key, dict(self.indexes), self.binary, self.ahead)

    def table(self) -> Table:
        """The finished table."""
        ready = [index for index in self.indexes.values() if index.columns]
        return Table(
            self.columns,
            self.key,
            tuple(index.columns for index in ready if index.unique),
            tuple(index.columns for index in ready if not index.unique),
        )

    def find(self, name: str) -> str | None:
        """A column's name as the table writes it: MySQL's column names ignore case."""
        if name in self.columns:
            return name
        lower = name.lower()
        return next((known for known in self.columns if known.lower() == lower), None)

    def get(self, name: str, line: int) -> str:
        """The same, of a column that must be there."""
        found = self.find(name)
        if found is None:
            raise _Unreadable(f"there is no column {shown(name)}", line)
        return found

    def set_key(self, names: tuple[str, ...]) -> None:
        """Make these columns the primary key, which takes NULL from them."""
        self.key = names
        for name in names:
            self.columns[name] = self.columns[name]._replace(nullable=False)

    def add_index(self, name: str, index: _Index) -> None:
        """Add an index; one without a name gets the name that MySQL gives it."""
        name = stem = name.lower() or (index.columns[0].lower() if index.columns else "expression")
        if name in self.indexes and self.ahead:
            del self.indexes[name]
        if len(self.indexes) >= MAX_INDEXES:
            raise _Unreadable(f"more than {MAX_INDEXES} indexes", 0)
        count = 2
        while name in self.indexes:
            name, count = f"{stem}_{count}", count + 1
        self.indexes[name] = index

    def drop_index(self, name: str, line: int) -> None:
        """Drop an index by its name."""
        if name.lower() == "primary":
            self.key = ()
        elif self.indexes.pop(name.lower(), None) is None and not self.ahead:
            raise _Unreadable(f"there is no index {shown(name)}", line)

    def put(self, defined: _Defined, line: int, old: str | None = None) -> None:
        """Add a column at the end, or in place of the column `old`."""
        name, column = defined.name, defined.column
        there = self.find(name)
        if there is not None and there != old:
            raise _Unreadable(f"column {shown(name)} is there twice", line)
        if old is None:
            self.columns[name] = column
        else:
            self.columns = {
                (name if known == old else known): (column if known == old else was)
                for known, was in self.columns.items()
            }
            self._in_keys(old, (name,))
        if len(self.columns) > MAX_COLUMNS:
            raise _Unreadable(f"more than {MAX_COLUMNS} columns", line)
        if defined.unique:
            self.add_index("", _Index((name,), True))
        self.set_key((name,) if defined.key else self.key)

    def drop(self, name: str) -> None:
        """Drop a column, and take it out of all keys."""
        del self.columns[name]
        self._in_keys(name, ())

    def _in_keys(self, old: str, new: tuple[str, ...]) -> None:
        """Write other columns for one in all keys; an index without columns is gone."""
        if new == (old,):
            return

        def swapped(names: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(n for name in names for n in (new if name == old else (name,)))

        self.key = swapped(self.key)
        for name, index in list(self.indexes.items()):
            columns = swapped(index.columns)
            if columns != index.columns:
                self.indexes[name] = index._replace(columns=columns)
                if not columns:
                    del self.indexes[name]

    def move(self, name: str, after: str | None) -> None:
        """Move a column behind another, or to the front."""
        names = [known for known in self.columns if known != name]
        names.insert(0 if after is None else names.index(after) + 1, name)
        self.columns = {known: self.columns[known] for known in names}


_INDEX_STARTS = _set_of("PRIMARY UNIQUE KEY INDEX FULLTEXT SPATIAL FOREIGN CHECK")
_SPECIAL_INDEXES = ("VECTOR", "COLUMNAR", "HYPO", "CLUSTERING")


def _is_index(cursor: _Cursor) -> bool:
    """Whether a definition is of an index or a constraint, not of a column."""
    word, following = cursor.word(), cursor.word(1)
    special = word in _SPECIAL_INDEXES and following in ("INDEX", "KEY")
    period = word == "PERIOD" and following == "FOR"
    return word in _INDEX_STARTS or word == "CONSTRAINT" or special or period


def _add_index(draft: _Draft, cursor: _Cursor) -> None:
    """Read an index or constraint into a table; foreign keys and checks say nothing of interest."""
    symbol = ""
    if cursor.take("CONSTRAINT") and cursor.word() not in _INDEX_STARTS:
        symbol = cursor.name("a constraint's name")
    if cursor.take_any("FOREIGN", "CHECK", "PERIOD"):
        return
    if cursor.take("PRIMARY"):
        cursor.take("KEY")
        _, columns = _index_columns(draft, cursor)
        draft.set_key(columns)
        return
    unique = cursor.take("UNIQUE")
    cursor.take_any("FULLTEXT", "SPATIAL", *_SPECIAL_INDEXES)
    cursor.take_any("INDEX", "KEY")
    cursor.take("IF", "NOT", "EXISTS")
    name, columns = _index_columns(draft, cursor)
    draft.add_index(name or symbol, _Index(columns, unique))


def _index_columns(draft: _Draft, cursor: _Cursor) -> tuple[str, tuple[str, ...]]:
    """An index's name, if it has one, and its columns; none where one is an expression."""
    name = ""
    while cursor.word() != "(":
        if cursor.take_any("USING", "TYPE"):
            cursor.name("an index type")
        elif name:
            raise cursor.error("expected ( and the index's columns")
        else:
            name = cursor.name("an index name")
    columns: list[str] = []
    for part in cursor.parens("the index's columns").parts(MAX_INDEX_COLUMNS):
        if part.word() == "(":
            return name, ()
        line = part.line
        columns.append(draft.get(part.name("a column name"), line))
    return name, tuple(columns)


def _made(body: _Cursor, options: _Cursor) -> _Draft:
    """The table of a CREATE TABLE's parentheses and what follows them."""
    draft = _Draft(binary=_binary_charset(options))
    indexes = []
    for part in body.parts():
        if part.done():
            raise part.error("a column definition is empty; is there a comma too many?")
        if _is_index(part):
            indexes.append(part)
        else:
            line = part.line
            draft.put(_column(part, draft.binary), line)
    for part in indexes:  # after all columns, which they may name before these come
        _add_index(draft, part)
    if not draft.columns:
        raise body.error("the table has no columns")
    return draft


def _binary_charset(options: _Cursor) -> bool:
    """Whether table options name `binary` as character set; a SELECT among them is refused."""
    words = [word for word in options.outline() if word != "="]
    if {"AS", "SELECT"} & set(words):
        raise options.error("CREATE TABLE … SELECT does not tell the columns; write them out")
    if ")" in words:
        raise options.error("a parenthesis is closed that was not opened")
    pairs = zip(["", *words], words)
    return any(b in _CHARSET_WORDS and w.lstrip("'") == "BINARY" for b, w in pairs)


# ALTER TABLE


_HARMLESS_SPECS = _set_of("""
    ENGINE COMMENT AUTO_INCREMENT AUTO_RANDOM_BASE AUTO_ID_CACHE AVG_ROW_LENGTH CHECKSUM COMPRESSION
    CONNECTION DATA INDEX DELAY_KEY_WRITE ENCRYPTION ENGINE_ATTRIBUTE INSERT_METHOD KEY_BLOCK_SIZE
    MAX_ROWS MIN_ROWS PACK_KEYS PASSWORD ROW_FORMAT SECONDARY_ENGINE SECONDARY_ENGINE_ATTRIBUTE
    SECONDARY_LOAD SECONDARY_UNLOAD STATS_AUTO_RECALC STATS_PERSISTENT STATS_SAMPLE_PAGES
    TABLESPACE UNION ALGORITHM LOCK FORCE ENABLE DISABLE WITH WITHOUT ALTER TTL TTL_ENABLE
    TTL_JOB_INTERVAL PLACEMENT SHARD_ROW_ID_BITS PRE_SPLIT_REGIONS CACHE NOCACHE ATTRIBUTES
    AFFINITY DEFAULT CHARACTER CHARSET COLLATE CONVERT
    STATS_OPTIONS STATS_BUCKETS STATS_TOPN WAIT NOWAIT PAGE_COMPRESSED TRANSACTIONAL SET
    """)
_LAST_SPECS = _set_of("""
    ORDER PARTITION REORGANIZE TRUNCATE COALESCE ANALYZE CHECK OPTIMIZE REBUILD REPAIR IMPORT
    DISCARD EXCHANGE REMOVE SPLIT MERGE COMPACT FIRST LAST
    """)
"""What comes last in an ALTER, may have commas of its own, and changes no column."""


def _altered(draft: _Draft, cursor: _Cursor) -> _Cursor | None:
    """Apply an ALTER's changes; the cursor is at the new name where one is a RENAME TO."""
    renamed = None
    for part in () if cursor.done() else cursor.parts():
        word, line = part.word(), part.line
        if word in _LAST_SPECS or (word in ("ADD", "DROP") and part.word(1) == "PARTITION"):
            break
        if word in _CHANGES:
            part.at += 1
            _CHANGES[word](draft, part)
        elif part.take("RENAME"):
            renamed = _rename_part(draft, part) or renamed
        elif word not in _HARMLESS_SPECS:
            raise _Unreadable(f"ALTER TABLE … {shown(word)} is not known", line)
        elif _binary_charset(part):
            raise _Unreadable("the character set becomes binary", line)
    if not draft.columns:
        raise cursor.error("no column is left")
    return renamed


def _rename_part(draft: _Draft, part: _Cursor) -> _Cursor | None:
    """RENAME COLUMN or INDEX, done; for RENAME TO, the words of the new name."""
    line = part.line
    if part.take_any("INDEX", "KEY"):
        old, new = _old_and_new(part)
        index = draft.indexes.get(old.lower())
        draft.drop_index(old, line)
        if index:
            draft.add_index(new, index)
        return None
    if part.take("COLUMN"):
        old, new = _old_and_new(part)
        name = draft.find(old)
        if name is None and draft.ahead and draft.find(new):
            return None
        name = draft.get(old, line)
        draft.put(_Defined(new, draft.columns[name], False, False), line, name)
        return None
    part.take_any("TO", "AS", "=")
    return part


def _old_and_new(part: _Cursor) -> tuple[str, str]:
    """Two names with TO between them."""
    old = part.name("a name")
    if not part.take("TO"):
        raise part.error("expected TO")
    return old, part.name("a name")


def _add(draft: _Draft, part: _Cursor) -> None:
    """ADD: an index, a constraint, a column, or several columns in parentheses."""
    if _is_index(part):
        _add_index(draft, part)
        return
    part.take("COLUMN")
    unless = part.take("IF", "NOT", "EXISTS")
    if part.word() == "(":
        for each in part.parens("columns").parts():
            if _is_index(each):
                _add_index(draft, each)
            else:
                _place(draft, each, None, unless)
        return
    _place(draft, part, None, unless)


def _modify(draft: _Draft, part: _Cursor) -> None:
    """MODIFY a column."""
    part.take("COLUMN")
    if_there = part.take("IF", "EXISTS")
    if not if_there or draft.find(part.text()):
        _place(draft, part, draft.get(part.text(), part.line))


def _change(draft: _Draft, part: _Cursor) -> None:
    """CHANGE a column, its name too."""
    part.take("COLUMN")
    if_there = part.take("IF", "EXISTS")
    line, old = part.line, part.name("a column name")
    name = draft.find(old)
    if name is None and if_there:
        return
    if name is None and draft.ahead:
        name = draft.find(part.text())
    _place(draft, part, name or draft.get(old, line))


def _place(draft: _Draft, part: _Cursor, old: str | None, unless: bool = False) -> None:
    """Put a column definition where FIRST or AFTER say, or in place of the column `old`."""
    line, words, moved, after = part.line, part.words[part.at :], False, None
    if len(words) > 2 and words[-1].word == "FIRST":
        words, moved = words[:-1], True
    elif len(words) > 3 and words[-2].word == "AFTER":
        words, moved, after = words[:-2], True, draft.get(words[-1].text, line)
    defined = _column(_Cursor(words, line), draft.binary)
    there = draft.find(defined.name)
    if old is None and there is not None:
        if unless:
            return
        old = there if draft.ahead else None
    draft.put(defined, line, old)
    if moved and after != defined.name:
        draft.move(defined.name, after)


def _drop(draft: _Draft, part: _Cursor) -> None:
    """DROP a column, a key or a constraint."""
    line = part.line
    if part.take_any("FOREIGN", "CHECK"):
        return
    if part.take("PRIMARY"):
        draft.key = ()
        return
    if part.take_any("INDEX", "KEY"):
        if_there = part.take("IF", "EXISTS")
        name = part.name("an index name")
        if not if_there or name.lower() in draft.indexes:
            draft.drop_index(name, line)
        return
    if part.take("CONSTRAINT"):
        part.take("IF", "EXISTS")
        name = part.name("a constraint's name")
        if name.lower() in (*draft.indexes, "primary"):
            draft.drop_index(name, line)
        return
    part.take("COLUMN")
    if_there = part.take("IF", "EXISTS")
    name = part.name("a column name")
    if draft.find(name) is not None or not (if_there or draft.ahead):
        draft.drop(draft.get(name, line))


_CHANGES: dict[str, Callable[[_Draft, _Cursor], None]] = {
    "ADD": _add,
    "MODIFY": _modify,
    "CHANGE": _change,
    "DROP": _drop,
}


# What is known


class _Absent(Enum):
    """Why a table is not known although something else would tell of it."""

    DROPPED = 1
    FORGOTTEN = 2


class _Known:
    """A table that is known, with what `complete` needs worked out."""

    def __init__(self, draft: _Draft) -> None:
        self.draft, self.table = draft, draft.table()
        self.labels = tuple(
            (name, base, Memo(convert).__getitem__)
            for name, column in draft.columns.items()
            if (base := values.base_type(column.mysql)) in ("enum", "set")
            and (convert := _LABELLERS[base](column.mysql)) is not None
        )


_LABELLERS = {"enum": values.enum_label, "set": values.set_labels}


class _Plan(NamedTuple):
    """How events with the same columns and the same own types are completed."""

    own: Types | None
    types: Types | None
    labels: tuple[tuple[str, Convert], ...]


_Content = tuple[_Known, tuple[str, ...], "tuple[tuple[str, ColumnType], ...] | None"]


def _worked_out(content: _Content) -> tuple[Types | None, tuple[tuple[str, Convert], ...]]:
    """An event's types and the columns whose numbers become labels."""
    known, names, told = content
    own, schema, there = dict(told or ()), known.table.types, set(names)
    types = {
        name: _merged(schema.get(name), own.get(name))
        for name in dict.fromkeys((*schema, *names, *own))
        if name in own or (name in there and name in schema)
    }
    labels = tuple(
        (name, convert)
        for name, base, convert in known.labels
        if name in there and _unlabelled(own.get(name), base)
    )
    return (schema if types == schema else types) or None, labels


def _merged(schema: ColumnType | None, own: ColumnType | None) -> ColumnType:
    """The schema's type with the event's own jdbc and flags, where it has them."""
    if schema is None or own is None:
        return schema or own or ColumnType()
    flags = schema.flags if own.flags is None else own.flags
    return ColumnType(schema.mysql, own.jdbc, flags)


def _unlabelled(own: ColumnType | None, base: str) -> bool:
    """Whether an event could not know the labels of an ENUM or SET column."""
    if own is None or own.mysql is None:
        return True
    return values.base_type(own.mysql) == base and not values.labels(own.mysql)


_IGNORED_VERBS = _set_of("""
    ANALYZE BEGIN BINLOG CALL CHANGE CHECK CHECKSUM COMMIT DEALLOCATE DELETE DELIMITER DESC DESCRIBE
    DO END EXECUTE EXPLAIN FLUSH GRANT HANDLER INSERT INSTALL KILL LOAD LOCK OPTIMIZE PREPARE PURGE
    RELEASE REPAIR REPLACE RESET REVOKE ROLLBACK SAVEPOINT SELECT SET SHOW SIGNAL START STOP
    TRUNCATE UNINSTALL UNLOCK UPDATE USE WITH XA
    """)
_OTHER_THINGS = _set_of("""
    AGGREGATE ALGORITHM BINDING DATABASE DEFINER EVENT FUNCTION GLOBAL INSTANCE LOADABLE LOGFILE
    PLACEMENT PREPARE PROCEDURE RANGE RESOURCE ROLE SCHEMA SEQUENCE SERVER SESSION SQL STATISTICS
    STATS_EXTENDED TABLESPACE TEMPORARY TRIGGER UNDO USER VIEW MASKING PACKAGE
    """)
_TABLE_THINGS = ("TABLE", "INDEX", "UNIQUE", "FULLTEXT", "SPATIAL", "DATABASE")
_ROUTINES = _set_of("PROCEDURE FUNCTION TRIGGER EVENT PACKAGE")


_DROP_DATABASE = (("DROP", "DATABASE"), ("DROP", "SCHEMA"))


class _Statement:
    """A statement's words after its verb, its default database, and the tables it names."""

    def __init__(self, text: str, line: int, database: str | None) -> None:
        head = _HEAD.match(text)
        self.verb, self.thing = (head[1].upper(), head[2].upper()) if head else ("", "")
        self.rest = text[head.end(1) :] if head else text
        self.line = line + text[: head.start(1) if head else 0].count("\n")
        self.database = database
        self.touched: list[Name] = []

    def cursor(self) -> _Cursor:
        """The words after the verb, which sqlglot would take for a whole command."""
        return _Cursor(_words(self.rest, self.line), self.line)

    def table(self, cursor: _Cursor) -> Name:
        """Read a table's name."""
        name, database = cursor.name("a table name"), self.database
        if cursor.take("."):
            database, name = name, cursor.name("a table name")
        self.touched.append((database, name))
        return database, name

    def routine(self) -> bool:
        """Whether the statement makes a routine, whose body has statements of its own."""
        words = set(self.rest[:1000].upper().split())
        return self.verb == "CREATE" and self.thing not in _TABLE_THINGS and bool(words & _ROUTINES)


class Schemas:
    """The tables that a file and the DDL events so far tell.

    >>> known = Schemas("USE shop; CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(80) NOT NULL)")
    >>> known.table("shop", "t").columns["name"]
    Column(mysql='varchar(80)', nullable=False, generated=None)
    >>> known.learn(Event("ddl", "alter", "shop", "t", ddl="ALTER TABLE t ADD price DEC(9,2)"))
    >>> known.table("shop", "t").columns["price"].mysql
    'decimal(9,2)'
    """

    def __init__(self, sql: str | None = None) -> None:
        self._tables: dict[str, dict[str | None, _Known | _Absent]] = {}
        self._bytes, self._most = 0, 0
        self._plans: dict[tuple[_Known, int, tuple[str, ...]], _Plan] = {}
        self._plan_bytes = 0
        self._contents = Memo(_worked_out)
        self._from_file = True
        if sql:
            self._read(sql)
        self._from_file = False
        self._most = self._bytes + MAX_LEARNT_BYTES

    def table(self, database: str | None, table: str | None) -> Table | None:
        """A table, if it is known. Without a database, the one table of that name.

        >>> Schemas("CREATE TABLE t (id INT)").table("any", "t").key
        ()
        """
        known = self._find(database, table)
        return None if known is None else known.table

    def learn(self, event: Event) -> None:
        """Follow a DDL event; a table whose change is not understood is forgotten.

        >>> known = Schemas("CREATE TABLE t (id INT)")
        >>> known.learn(Event("ddl", "alter", "shop", "t", ddl="ALTER TABLE t ADD id BROKEN"))
        >>> known.table("shop", "t")
        """
        if event.kind != "ddl":
            return
        touched: list[Name] = []
        try:
            self._follow(event, touched)
        except Exception:  # whatever hostile text brings about, the answer is to forget
            self._give_up(event, touched)

    def complete(self, event: Event) -> None:
        """Give a row event the key and the types of its table, and labels for numbers, in place.

        >>> known = Schemas("CREATE TABLE t (id INT PRIMARY KEY, size ENUM('S','M'))")
        >>> event = Event("row", "insert", "d", "t", after={"id": "1", "size": "2"})
        >>> event.format = "open-protocol"
        >>> known.complete(event)
        >>> event.key, event.after, event.types["size"].mysql
        (('id',), {'id': '1', 'size': 'M'}, "enum('S','M')")
        """
        if event.kind != "row":
            return
        known = self._find(event.database, event.table)
        if known is None:
            return
        event.key = known.table.key
        before, after, own = event.before, event.after, event.types
        image = before if after is None else after
        if image is None:
            return
        names = tuple(image)
        if before is not None and image is not before and before.keys() != image.keys():
            names = tuple({**image, **before})
        plan = self._plans.get((known, id(own), names))
        if plan is None or plan.own is not own:
            plan = self._plan(known, own, names)
        event.types = plan.types
        if plan.labels and (event.format, event.dialect) in NUMBERED:
            _label(image, plan.labels)
            if before is not None and before is not image:
                _label(before, plan.labels)

    # Lookups

    def _find(self, database: str | None, table: str | None) -> _Known | None:
        homes = self._tables.get(table)  # type: ignore[arg-type]  # None is no table's name
        if homes is None:
            return None
        found = homes.get(database) or homes.get(None)
        if found is None and database is None:
            there = [entry for entry in homes.values() if entry.__class__ is _Known]
            found = there[0] if len(there) == 1 else None
        return found if isinstance(found, _Known) else None

    def _entry(self, name: Name) -> _Known | _Absent | None:
        homes = self._tables.get(name[1], {})
        return homes.get(name[0]) or homes.get(None)

    def _plan(self, known: _Known, own: Types | None, names: tuple[str, ...]) -> _Plan:
        content = (known, names, None if own is None else tuple(own.items()))
        plan = _Plan(own, *self._contents[content])
        size = weight(content)
        if size <= CACHED_KEY_BYTES:
            self._plan_bytes += size
            if self._plan_bytes > CACHED_BYTES:
                self._plans.clear()
                self._plan_bytes = size
            self._plans[known, id(own), names] = plan
        return plan

    # Changes

    def _put(self, name: Name, entry: _Known | _Absent) -> None:
        """Note what is known of a table; the tables noted longest ago make room."""
        database, table = name
        homes = self._tables.pop(table, {})
        self._bytes += _weight(name, entry) - _weight(name, homes.get(database))
        homes[database] = entry
        self._tables[table] = homes
        while not self._from_file and self._bytes > self._most and len(self._tables) > 1:
            # All of one name go at once, so that nothing shows up that the newest had hidden.
            oldest = next(iter(self._tables))
            for home, gone in self._tables.pop(oldest).items():
                self._bytes -= _weight((home, oldest), gone)

    def _set(self, name: Name, draft: _Draft) -> None:
        self._put(self._home(name), _Known(draft))

    def _home(self, name: Name) -> Name:
        """Where a table without a database belongs: to the one table of its name."""
        database, table = name
        homes = self._tables.get(table, {})
        if database is not None or not homes or self._from_file:
            return name
        if len(homes) > 1:
            raise _Unreadable(f"several databases have a table {shown(table)}", 0)
        return next(iter(homes)), table

    def _remove(self, name: Name, why: _Absent) -> None:
        """Hide a table; without a database, all of its name."""
        database, table = name
        homes = self._tables.get(table)
        if homes is None:
            return
        if database is None and not self._from_file:
            for home in list(homes):
                self._put((home, table), why)
        elif database in homes or None in homes:
            self._put(name, why)

    def _remove_database(self, database: str | None, why: _Absent) -> None:
        for table in list(self._tables):
            self._remove((database, table), why)

    def _draft(self, name: Name, line: int) -> _Draft:
        """A table's draft, to be changed."""
        known = self._find(*name)
        if known is None:
            raise _Unreadable(f"table {shown(_dotted(name))} is not known", line)
        return known.draft.copy()

    # Statements

    def _read(self, sql: str) -> None:
        """Read a schema file."""
        database: str | None = None
        for line, text in _statements(sql):
            statement = _Statement(text, line, database)
            try:
                if statement.verb == "USE":
                    database = statement.cursor().name("a database")
                else:
                    self._run(statement)
            except _Unreadable as error:
                raise UsageError(
                    f"schema file, line {error.line}: {error.what}; write it as MySQL's "
                    "SHOW CREATE TABLE does, or leave the statement out"
                ) from None

    def _follow(self, event: Event, touched: list[Name]) -> None:
        """Apply a DDL event's statements."""
        sql = event.ddl or ""
        if len(sql) > MAX_DDL_LENGTH:
            raise _Unreadable("the statement is too long", 1)
        read = False
        for line, text in _statements(sql):
            if not text.strip():
                continue
            read = True
            statement = _Statement(text, line, event.database)
            statement.touched = touched
            self._run(statement)
            if statement.routine():
                break
        if not read and event.op != "truncate":
            raise _Unreadable("there is no statement", 1)

    def _give_up(self, event: Event, touched: list[Name]) -> None:
        """Forget what a statement named; a definition beside the statement tells the table anew."""
        if event.table is None and not touched:
            self._remove_database(event.database, _Absent.FORGOTTEN)
        for name in touched:
            self._remove(name, _Absent.FORGOTTEN)
        if event.table is None:
            return
        name = (event.database, event.table)
        self._remove(name, _Absent.FORGOTTEN)
        types = event.types or {}
        told = {n: Column(t.mysql) for n, t in types.items() if t.mysql is not None}
        if told and len(told) == len(types) <= MAX_COLUMNS and event.op != "drop":
            draft = _Draft(told)
            draft.set_key(tuple(n for n in event.key or () if n in told))
            self._put(name, _Known(draft))

    def _run(self, statement: _Statement) -> None:
        """Apply one statement."""
        verb, thing = statement.verb, statement.thing
        if thing in _OTHER_THINGS and (verb, thing) not in _DROP_DATABASE:
            return
        if verb in _VERBS:
            _VERBS[verb](self, statement, statement.cursor())
        elif verb not in _IGNORED_VERBS and (
            not self._from_file or thing in ("TABLE", "INDEX", "DATABASE")
        ):
            raise _Unreadable(f"{shown(verb)} is not a known statement", statement.line)

    def _create(self, statement: _Statement, cursor: _Cursor) -> None:
        cursor.take("OR", "REPLACE")
        if cursor.take("TABLE"):
            self._create_table(statement, cursor)
        elif cursor.word() in _INDEX_STARTS or cursor.word(1) == "INDEX":
            self._create_index(statement, cursor)
        else:
            _other(cursor)

    def _create_table(self, statement: _Statement, cursor: _Cursor) -> None:
        unless = cursor.take("IF", "NOT", "EXISTS")
        line, name = cursor.line, statement.table(cursor)
        if unless and self._entry(name) not in (None, _Absent.DROPPED):
            return
        body = cursor
        if cursor.word() == "(":
            body = cursor.parens("columns")
        if body.take("LIKE"):
            draft = self._draft(statement.table(body), line)
        elif body is cursor or body.word() in ("SELECT", "WITH", "("):
            raise _Unreadable("the statement does not tell the table's columns", line)
        else:
            draft = _made(body, cursor)
        draft.ahead = self._from_file
        self._set(name, draft)

    def _create_index(self, statement: _Statement, cursor: _Cursor) -> None:
        """CREATE INDEX name ON table (columns)."""
        unique = cursor.take("UNIQUE")
        cursor.take_any("FULLTEXT", "SPATIAL", *_SPECIAL_INDEXES)
        if cursor.take("REFERENCE"):  # a spatial reference system
            return
        cursor.take_any("INDEX", "KEY")
        unless = cursor.take("IF", "NOT", "EXISTS")
        index = cursor.name("an index name")
        while not cursor.done() and not cursor.take("ON"):
            cursor.at += 1
        line, name = cursor.line, statement.table(cursor)
        draft = self._draft(name, line)
        if unless and index.lower() in draft.indexes:
            return
        _, columns = _index_columns(draft, cursor)
        draft.add_index(index, _Index(columns, unique))
        self._set(name, draft)

    def _alter(self, statement: _Statement, cursor: _Cursor) -> None:
        while cursor.take_any("ONLINE", "OFFLINE", "IGNORE"):
            pass
        if not cursor.take("TABLE"):
            _other(cursor)
            return
        if_there = cursor.take("IF", "EXISTS")
        line, name = cursor.line, statement.table(cursor)
        if if_there and self._entry(name) is None:
            return
        draft = self._draft(name, line)
        target = _altered(draft, cursor)
        if target is None:
            self._set(name, draft)
            return
        new = statement.table(target)
        self._remove(name, _Absent.DROPPED)
        self._set(new, draft)

    def _rename(self, statement: _Statement, cursor: _Cursor) -> None:
        if not cursor.take_any("TABLE", "TABLES"):
            _other(cursor)
            return
        cursor.take("IF", "EXISTS")
        pairs = []
        for part in cursor.parts():
            old = statement.table(part)
            if not part.take("TO"):
                raise part.error("expected TO")
            pairs.append((old, statement.table(part), part.line))
        for old, new, line in pairs:
            known = self._find(*old)
            if known is None:
                # Nothing is known of the new table either: the old one may come back under it.
                self._remove(new, _Absent.FORGOTTEN)
                if self._from_file:
                    raise _Unreadable(f"table {shown(_dotted(old))} is not known", line)
                continue
            self._remove(old, _Absent.DROPPED)
            self._set(new, known.draft)

    def _drop(self, statement: _Statement, cursor: _Cursor) -> None:
        if cursor.take_any("TABLE", "TABLES"):
            cursor.take("IF", "EXISTS")
            for part in cursor.parts():
                self._remove(statement.table(part), _Absent.DROPPED)
        elif cursor.take_any("DATABASE", "SCHEMA"):
            cursor.take("IF", "EXISTS")
            self._remove_database(cursor.name("a database"), _Absent.DROPPED)
        elif cursor.take("INDEX"):
            if_there = cursor.take("IF", "EXISTS")
            line, index = cursor.line, cursor.name("an index name")
            if not cursor.take("ON"):
                raise cursor.error("expected ON and a table")
            name = statement.table(cursor)
            draft = self._draft(name, line)
            if not if_there or index.lower() in draft.indexes:
                draft.drop_index(index, line)
            self._set(name, draft)
        else:
            _other(cursor)


_VERBS: dict[str, Callable[[Schemas, _Statement, _Cursor], None]] = {
    "CREATE": Schemas._create,
    "ALTER": Schemas._alter,
    "RENAME": Schemas._rename,
    "DROP": Schemas._drop,
}


def _other(cursor: _Cursor) -> None:
    """Let pass what makes, changes or drops something that is no table."""
    if cursor.word() not in _OTHER_THINGS:
        raise cursor.error(f"expected TABLE, found {shown(cursor.word())}")


def _label(image: Image, labels: tuple[tuple[str, Convert], ...]) -> None:
    """Write labels for numbers, in place."""
    for name, convert in labels:
        value = image.get(name)
        if value is not None:
            image[name] = convert(value)


def _weight(name: Name, entry: _Known | _Absent | None) -> int:
    """About how many bytes are held of a table."""
    if entry is None:
        return 0
    columns = entry.draft.columns.items() if isinstance(entry, _Known) else ()
    return weight(name) + sum(weight((n, c.mysql)) for n, c in columns)


def _dotted(name: Name) -> str:
    """A table's name as it is written."""
    return ".".join(part for part in name if part is not None)
