"""New names for the tables in the text of a DDL statement.

Only the names change: the rest of the text stays byte for byte. A statement that is not understood
stays as it is, for a wrong guess would change another table than the one that was meant.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

MAX_LENGTH = 256 * 1024
Name = tuple["str | None", str]
"""A table's database and name."""

# MySQL runs what is in /*! */: only the marks around it are skipped. A quote left open is `other`.
_TOKEN = re.compile(
    r"""
    (?P<skip>\s+ | /\*M?!\d* | \*/ | /\*.*?(?:\*/|\Z) | --(?=\s|\Z)[^\n]* | \#[^\n]*)
    | (?P<name>`(?:[^`]|``)*+` | "(?:[^"\\]|"")*+")
    | (?P<text>'(?:[^'\\]|\\.|'')*+' | "(?:[^"\\]|\\.|"")*+")
    | (?P<word>[\w$]+)
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)


class _Token(NamedTuple):
    kind: str
    text: str
    word: str
    """In upper case; empty where it is quoted."""
    start: int
    end: int


class _Spot(NamedTuple):
    """A table's name in the text."""

    database: str | None
    table: str
    quote: str
    start: int
    end: int


class _Unclear(Exception):
    """The statement is not one whose names are known."""


_END = _Token("end", "", "", 0, 0)


class _Walk:
    """A walk over the tokens of one statement."""

    def __init__(self, tokens: list[_Token]) -> None:
        self.tokens, self.at = tokens, 0
        self.spots: list[_Spot] = []

    def next(self, ahead: int = 0) -> _Token:
        at = self.at + ahead
        return self.tokens[at] if at < len(self.tokens) else _END

    def take(self, *words: str) -> bool:
        if any(self.next(n).word != word for n, word in enumerate(words)):
            return False
        self.at += len(words)
        return True

    def take_any(self, *words: str) -> bool:
        return any(self.take(word) for word in words)

    def name(self) -> None:
        """Note the table's name that comes next."""
        parts = [self.part()]
        if self.take("."):
            parts.append(self.part())
        quote = '"' if any(part.text.startswith('"') for part in parts) else "`"
        names = [_plain(part) for part in parts]
        database = names[0] if len(names) > 1 else None
        self.spots.append(_Spot(database, names[-1], quote, parts[0].start, parts[-1].end))

    def part(self) -> _Token:
        token = self.next()
        if token.kind not in ("name", "word"):
            raise _Unclear
        self.at += 1
        return token

    def names(self) -> None:
        """Names separated by commas."""
        self.name()
        while self.take(","):
            self.name()


def renamed(
    sql: str, database: str | None, new_database: str | None, rename: Callable[[Name], Name]
) -> str | None:
    """The statement with new names for its tables; None where it is not understood.

    `database` is that of names without one, `new_database` what it is called from now on.

    >>> renamed("ALTER TABLE t ADD x INT", "shop", "lake", lambda name: ("lake", "t2"))
    'ALTER TABLE `t2` ADD x INT'
    """
    if len(sql) > MAX_LENGTH:
        return None
    try:
        spots = [spot for tokens in _statements(sql) for spot in _spots(tokens)]
    except _Unclear:
        return None
    parts, at = [], 0
    for spot in spots:
        old = (spot.database or database, spot.table)
        new = rename(old)
        if new == old and (spot.database is not None or database == new_database):
            continue
        bare = spot.database is None and new[0] == new_database
        names = [name for name in ((None if bare else new[0]), new[1]) if name is not None]
        parts += [sql[at : spot.start], ".".join(_quoted(name, spot.quote) for name in names)]
        at = spot.end
    return "".join([*parts, sql[at:]])


def _statements(sql: str) -> list[list[_Token]]:
    """The tokens of each statement."""
    found: list[list[_Token]] = [[]]
    for match in _TOKEN.finditer(sql):
        kind, text = match.lastgroup or "other", match[0]
        if kind == "skip":
            continue
        if text in "'\"`":
            raise _Unclear  # a quote that is not closed
        if text == ";":
            found.append([])
            continue
        word = "" if kind in ("name", "text") else text.upper()
        found[-1].append(_Token(kind, text, word, match.start(), match.end()))
    return [tokens for tokens in found if tokens]


def _spots(tokens: list[_Token]) -> list[_Spot]:
    """The tables that a statement names."""
    walk = _Walk(tokens)
    verb = walk.next().word
    walk.at = 1
    if verb not in _VERBS:
        raise _Unclear
    _VERBS[verb](walk)
    return sorted(walk.spots, key=lambda spot: spot.start)


def _create(walk: _Walk) -> None:
    walk.take("OR", "REPLACE")
    walk.take("TEMPORARY")
    if not walk.take("TABLE"):
        _index(walk)
        return
    walk.take("IF", "NOT", "EXISTS")
    walk.name()
    if walk.take("LIKE") or walk.take("(", "LIKE"):
        walk.name()
    _references(walk)


def _alter(walk: _Walk) -> None:
    while walk.take_any("ONLINE", "OFFLINE", "IGNORE"):
        pass
    if not walk.take("TABLE"):
        raise _Unclear
    walk.take("IF", "EXISTS")
    walk.name()
    _references(walk)


def _references(walk: _Walk) -> None:
    """What is left of a CREATE or ALTER: other tables stand after few words, all of them reserved.

    RENAME stands for a new name only outside parentheses.
    """
    depth = 0
    while walk.at < len(walk.tokens):
        word = walk.next().word
        walk.at += 1
        depth += {"(": 1, ")": -1}.get(word, 0)
        if word in ("SELECT", "UNION", "TABLE", "VALUES") and not _of_partition(walk, word):
            raise _Unclear
        if word == "REFERENCES":
            walk.name()
        elif word == "RENAME" and not depth and walk.next().word not in ("COLUMN", "INDEX", "KEY"):
            walk.take_any("TO", "AS", "=")
            walk.name()
        elif word == "WITH" and walk.take("TABLE"):  # EXCHANGE PARTITION p WITH TABLE t
            walk.name()


def _of_partition(walk: _Walk, word: str) -> bool:
    """Whether VALUES is that of a partition's definition."""
    return word == "VALUES" and walk.next().word in ("LESS", "IN")


def _index(walk: _Walk) -> None:
    """CREATE or DROP INDEX name … ON table."""
    walk.take_any("UNIQUE", "FULLTEXT", "SPATIAL")
    if not walk.take("INDEX"):
        raise _Unclear
    while walk.at < len(walk.tokens) and not walk.take("ON"):
        walk.at += 1
    walk.name()


def _drop(walk: _Walk) -> None:
    walk.take("TEMPORARY")
    if not walk.take_any("TABLE", "TABLES"):
        _index(walk)
        return
    walk.take("IF", "EXISTS")
    walk.names()


def _truncate(walk: _Walk) -> None:
    walk.take("TABLE")
    walk.name()


def _rename(walk: _Walk) -> None:
    if not walk.take_any("TABLE", "TABLES"):
        raise _Unclear
    walk.take("IF", "EXISTS")
    while True:
        walk.name()
        if not walk.take("TO"):
            raise _Unclear
        walk.name()
        if not walk.take(","):
            return


_VERBS: dict[str, Callable[[_Walk], None]] = {
    "CREATE": _create,
    "ALTER": _alter,
    "DROP": _drop,
    "TRUNCATE": _truncate,
    "RENAME": _rename,
}


def _plain(token: _Token) -> str:
    if token.kind == "word":
        return token.text
    quote = token.text[0]
    return token.text[1:-1].replace(quote * 2, quote)


def _quoted(name: str, quote: str) -> str:
    return quote + name.replace(quote, quote * 2) + quote
