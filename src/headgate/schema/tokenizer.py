"""SQL text cut into statements and words, as MySQL reads it.

sqlglot's parser is not used: MySQL's `int8`, `real`, `point`, `national char`, `RENAME TABLE` and
most of ALTER come out of it wrong or not at all, while a schema needs only names, types and keys.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from headgate.core.errors import HeadgateError, shown

MAX_COLUMNS, MAX_INDEXES = 4096, 512
"""Of a table; at least as many as MySQL and TiDB allow."""


def set_of(words: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(words.split())


class Unreadable(HeadgateError):
    """A statement is broken or does not fit the tables that are known.

    `at` is where in the text; None where only the statement as a whole is to blame.
    """

    def __init__(self, reason: str, at: int | None = None) -> None:
        super().__init__(reason)
        self.reason, self.at = reason, at


class Word(NamedTuple):
    """One token: a word, a quoted name or text, or a punctuation mark."""

    text: str
    """Without quotes, and with the escapes in them resolved."""
    word: str
    """In upper case; empty where it is quoted."""
    start: int
    end: int
    quote: str = ""


class Words(NamedTuple):
    """The words of one statement."""

    sql: str
    words: list[Word]
    unclosed: int | None = None
    """Where a quote is opened that is never closed: the words end there."""


_TOKEN = re.compile(
    r"""
    \s+ | N(?=')
    | (?P<word>[\w$]+)
    | (?P<mark>[(),.=])
    | (?P<end>;)
    | (?P<quoted>`(?:[^`]|``)*+` | '(?:[^'\\]|\\.|'')*+' | "(?:[^"\\]|\\.|"")*+")
    | (?P<open>/\*M?!\d*)
    | (?P<close>\*/)
    | /\*.*?(?:\*/|\Z) | --(?=\s|\Z)[^\n]*+ | \#[^\n]*+
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_QUOTES = ("'", '"', "`")
_DATA_VERBS = set_of("INSERT REPLACE")
_DATA_WORDS = 40
_PLAIN = ("word", "mark", "quoted")
_ESCAPE = re.compile(r"\\(.)|''|\"\"", re.DOTALL)
_ESCAPED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}
_KEPT = ("%", "_")
"""What keeps its backslash: it is for LIKE to read."""

_DELIMITER = re.compile(r"^[ \t]*DELIMITER\b", re.IGNORECASE | re.MULTILINE)
_ROUTINES = re.compile(
    r"""
    '(?:[^'\\]|\\.)*+'? | "(?:[^"\\]|\\.)*+"? | `[^`]*+`?
    | (?P<blank>^[ \t]*DELIMITER[ \t]+(?:;;|[^\w\s;]).*?(?:^[ \t]*DELIMITER[ \t]*;(?!;)|\Z)
        | ^[ \t]*DELIMITER[ \t]*;(?!;))
    | /\*(?!M?!).*?(?:\*/|\Z) | --(?=\s|\Z)[^\n]*+ | \#[^\n]*+
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE | re.IGNORECASE,
)
_NOT_LINE_END = re.compile(r"[^\n]")


def statements(sql: str, most: int | None = None) -> Iterator[Words]:
    """The words of each statement that has some; of comments, only what MySQL runs of them.

    With `most`, only the first statement's first words. Of rows in a dump, too, only the first
    words are given.

    >>> [[w.text for w in s.words] for s in statements("/*!40101 SET a=';' */; -- no\\nuse `b`")]
    [['SET', 'a', '=', ';'], ['use', 'b']]
    """
    text = _without_routines(sql) if _DELIMITER.search(sql) else sql
    words: list[Word] = []
    executable = skipping = False
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup
        if kind is None or (skipping and kind in _PLAIN):
            continue
        token, start = match[0], match.start()
        if kind == "end":
            if words:
                yield Words(sql, words)
                words, skipping = [], False
        elif kind == "open":
            executable = True
        elif kind == "close" and executable:
            executable = False
        elif kind == "other" and token in _QUOTES:
            yield Words(sql, words, start)
            return
        elif not skipping:
            words.append(_word(kind, token, start, match.end()))
            if len(words) == most:
                break
            skipping = len(words) == _DATA_WORDS and words[0].word in _DATA_VERBS
    if words:
        yield Words(sql, words)


def _word(kind: str, token: str, start: int, end: int) -> Word:
    if kind == "quoted":
        return Word(_unquoted(token), "", start, end, token[0])
    return Word(token, token.upper(), start, end)


def _without_routines(sql: str) -> str:
    """The text with blanks for what the client's DELIMITER command encloses: bodies of routines."""
    return _ROUTINES.sub(
        lambda match: _NOT_LINE_END.sub(" ", match[0]) if match["blank"] else match[0], sql
    )


def _unquoted(token: str) -> str:
    """The name or text in quotes.

    >>> _unquoted("`a``b`"), _unquoted("'it''s \\\\'so\\\\' \\\\%'")
    ('a`b', "it's 'so' \\\\%")
    """
    quote, text = token[0], token[1:-1]
    if quote == "`":
        return text.replace("``", "`")
    if "\\" not in text:
        return text.replace(quote * 2, quote)

    def resolved(match: re.Match[str]) -> str:
        char = match[1]
        if char is None:
            return quote if match[0][0] == quote else match[0]
        return match[0] if char in _KEPT else _ESCAPED.get(char, char)

    return _ESCAPE.sub(resolved, text)


_DEPTH = {"(": 1, ")": -1}


class Cursor:
    """A walk over some of a statement's words."""

    __slots__ = ("at", "end", "words")

    def __init__(self, words: list[Word], at: int = 0, end: int | None = None) -> None:
        self.words, self.at = words, at
        self.end = len(words) if end is None else end

    @property
    def place(self) -> int:
        """Where in the text the next word is; at the end, where the last one is."""
        at = min(self.at, self.end - 1)
        return self.words[at].start if 0 <= at < len(self.words) else 0

    def done(self) -> bool:
        """Whether no word is left."""
        return self.at >= self.end

    def word(self, ahead: int = 0) -> str:
        """The next word in upper case; empty where it is quoted or there is none."""
        at = self.at + ahead
        return self.words[at].word if at < self.end else ""

    def text(self) -> str:
        """The next word as it is written; empty where there is none."""
        return "" if self.at >= self.end else self.words[self.at].text

    def take(self, *words: str) -> bool:
        """Step over these words if they come next."""
        at = self.at
        for word in words:
            if at >= self.end or self.words[at].word != word:
                return False
            at += 1
        self.at = at
        return True

    def take_any(self, *words: str) -> bool:
        """Step over one of these words if it comes next."""
        if self.word() not in words or self.done():
            return False
        self.at += 1
        return True

    def error(self, reason: str) -> Unreadable:
        """An error at the next word."""
        return Unreadable(reason, self.place)

    def name_word(self, of: str) -> Word:
        """A name, quoted or not. ANSI_QUOTES has names in double quotes."""
        if not self.done():
            word = self.words[self.at]
            if word.quote or word.word[0].isalnum() or word.word[0] in "_$":
                self.at += 1
                return word
        text = "the end" if self.done() else shown(self.text())
        raise self.error(f"expected {of}, found {text}")

    def name(self, of: str) -> str:
        """The text of a name."""
        return self.name_word(of).text

    def parens(self, of: str) -> Cursor:
        """What is between the parentheses that come next."""
        place = self.place
        if not self.take("("):
            raise self.error(f"expected ( and {of}")
        start, depth, words = self.at, 1, self.words
        for at in range(start, self.end):
            depth += _DEPTH.get(words[at].word, 0)
            if not depth:
                self.at = at + 1
                return Cursor(words, start, at)
        raise Unreadable("a parenthesis is not closed", place)

    def parts(self, most: int = MAX_COLUMNS + MAX_INDEXES) -> Iterator[Cursor]:
        """What is left, cut at its commas outside parentheses."""
        depth, start, count, words = 0, self.at, 1, self.words
        for at in range(start, self.end):
            word = words[at].word
            if word == "," and not depth:
                yield Cursor(words, start, at)
                start, count = at + 1, count + 1
                if count > most:
                    raise Unreadable(f"more than {most} parts", words[at].start)
            else:
                depth += _DEPTH.get(word, 0)
        yield Cursor(words, start, self.end)
        self.at = self.end

    def outline(self) -> list[str]:
        """What is left, with `()` for parentheses and a quote before what is quoted."""
        outline: list[str] = []
        while self.at < self.end:
            word = self.words[self.at]
            if word.word == "(":
                self.parens("")
                outline.append("()")
            else:
                outline.append(word.word or "'" + word.text.upper())
                self.at += 1
        return outline
