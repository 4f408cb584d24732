"""SQL text cut into statements and words.

The words are those of sqlglot's tokenizer. Its parser is not used: MySQL's `int8`, `real`,
`point`, `national char`, `RENAME TABLE` and most of ALTER come out of it wrong or not at all, while
a schema needs only names, types and keys.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

from headgate.core.errors import HeadgateError, shown

MAX_COLUMNS, MAX_INDEXES = 4096, 512
"""Of a table; at least as many as MySQL and TiDB allow."""


def set_of(words: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(words.split())


_PUNCTUATION = set_of("( ) , . = ; - + * /")
_DEPTH = {"(": 1, ")": -1}


class Unreadable(HeadgateError):
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


def statements(sql: str) -> Iterator[tuple[int, str]]:
    """Each statement and its line; comments become blanks, what MySQL runs of them stays.

    >>> list(statements("/*!40101 SET a=';' */; -- no\\nuse b"))
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


class Word(NamedTuple):
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


def words(sql: str, line: int) -> list[Word]:
    """The words of a statement's text that starts in `line`.

    >>> [(w.text, w.word) for w in words("a primary  key 'x'", 1)]
    [('a', 'A'), ('PRIMARY', 'PRIMARY'), ('KEY', 'KEY'), ('x', '')]
    """
    tokenize, quoted, error = _tokenizer()
    try:
        tokens = tokenize(sql)
    except error:
        raise Unreadable("a quote is not closed", line) from None
    found: list[Word] = []
    for token in tokens:
        at = token.line + line - 1
        if token.token_type in quoted:
            found.append(Word(token.text, "", at))
        else:  # the tokenizer makes one token of PRIMARY KEY
            for word in token.text.split():
                found.append(Word(word, word.upper(), at))
    return found


class Cursor:
    """A walk over words."""

    def __init__(self, words: list[Word], line: int) -> None:
        self.words, self.at = words, 0
        self.last_line = words[-1].line if words else line

    @property
    def line(self) -> int:
        """The line of the next word."""
        return self.last_line if self.done() else self.words[self.at].line

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

    def error(self, what: str) -> Unreadable:
        """An error at the next word."""
        return Unreadable(what, self.line)

    def name(self, of: str) -> str:
        """A name, quoted or not. ANSI_QUOTES has names in double quotes."""
        if self.done() or self.word() in _PUNCTUATION:
            found = "the end" if self.done() else shown(self.text())
            raise self.error(f"expected {of}, found {found}")
        self.at += 1
        return self.words[self.at - 1].text

    def parens(self, of: str) -> Cursor:
        """What is between the parentheses that come next."""
        line = self.line
        if not self.take("("):
            raise self.error(f"expected ( and {of}")
        depth, start = 1, self.at
        while depth:
            if self.done():
                raise Unreadable("a parenthesis is not closed", line)
            depth += _DEPTH.get(self.words[self.at].word, 0)
            self.at += 1
        return Cursor(self.words[start : self.at - 1], line)

    def parts(self, most: int = MAX_COLUMNS + MAX_INDEXES) -> Iterator[Cursor]:
        """What is left, cut at its commas outside parentheses."""
        depth, start, count = 0, self.at, 1
        for at in range(self.at, len(self.words)):
            word = self.words[at].word
            depth += _DEPTH.get(word, 0)
            if word == "," and not depth:
                yield Cursor(self.words[start:at], self.words[at].line)
                start, count = at + 1, count + 1
                if count > most:
                    raise Unreadable(f"more than {most} parts", self.words[at].line)
        yield Cursor(self.words[start:], self.line)
        self.at = len(self.words)

    def outline(self) -> list[str]:
        """What is left, with `()` for parentheses and a quote before what is quoted."""
        found: list[str] = []
        while not self.done():
            if self.word() == "(":
                self.parens("")
                found.append("()")
            else:
                found.append(self.word() or "'" + self.text().upper())
                self.at += 1
        return found
