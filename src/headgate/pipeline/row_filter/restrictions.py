"""What a condition must not contain: non-deterministic functions and unbounded patterns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from sqlglot import Token, TokenType, exp

from headgate.core.errors import UsageError, shown

NONDETERMINISTIC = frozenset(
    {
        "rand", "randn", "random", "uuid", "uniform", "randstr", "shuffle", "now",
        "current_timestamp", "current_date", "curdate", "current_time", "localtimestamp",
        "current_user", "user", "session_user", "current_database", "current_schema",
        "current_catalog", "current_timezone", "input_file_name", "input_file_block_start",
        "input_file_block_length", "monotonically_increasing_id", "spark_partition_id", "reflect",
        "java_method", "try_reflect",
    }
)  # fmt: skip
"""Functions that may give another result for the same row on replay."""
CLOCKS_WITHOUT_ARGUMENT = ("unix_timestamp", "to_unix_timestamp")
BARE_CLOCKS = {
    TokenType.CURRENT_DATE, TokenType.CURRENT_TIME, TokenType.CURRENT_TIMESTAMP,
    TokenType.CURRENT_USER, TokenType.CURRENT_DATETIME,
}  # fmt: skip
PLAIN_LITERALS = (TokenType.STRING, TokenType.RAW_STRING)
SPECIAL_TIME = re.compile(r"\s*(now|today|tomorrow|yesterday)\b", re.IGNORECASE)
REGEX_FUNCTIONS = ("rlike", "regexp", "split")
_TYPED_LITERALS = ("date", "timestamp", "timestamp_ltz", "timestamp_ntz")
_REPEATED_GROUP = re.compile(r"(?<!\\)\)[*+{]")

Node = Any
"""A node of sqlglot's tree; the name of its base class differs between versions."""


def refuse_nondeterministic(tokens: Sequence[Token], columns: Sequence[tuple[int, int]]) -> None:
    """Reject what depends on chance, the clock or the session."""
    for n, token in enumerate(tokens):
        after = [each.token_type for each in tokens[n + 1 : n + 3]]
        call = after[:1] == [TokenType.L_PAREN]
        name = token.text.lower()
        bare = token.token_type in BARE_CLOCKS
        bare = bare and not any(start <= token.start < end for start, end in columns)
        empty = call and after[1:] == [TokenType.R_PAREN] and name in CLOCKS_WITHOUT_ARGUMENT
        text = token.token_type in PLAIN_LITERALS
        timed = (
            text
            and n > 0
            and tokens[n - 1].text.lower() in _TYPED_LITERALS
            and SPECIAL_TIME.match(token.text)
        )
        if timed or bare or empty or (call and not text and name in NONDETERMINISTIC):
            raise UsageError(
                f"{shown(name)} is non-deterministic; conditions must give the same result on "
                "replay: write the value out, or compare with a column of the row"
            )


def refuse_slow_patterns(tree: Node, tokens: Sequence[Token]) -> None:
    """Reject regular expressions that overflow the stack or run forever on a long text."""
    if not any(t.text.lower().startswith(REGEX_FUNCTIONS) for t in tokens):
        return
    for token in tokens:
        if token.token_type in PLAIN_LITERALS and _REPEATED_GROUP.search(token.text):
            raise UsageError(
                f"{shown(token.text)} repeats a group, and Java's regular expressions run out of "
                "stack on a long text; repeat a class such as [ab]* instead"
            )
    for node in tree.walk():
        if _is_regex(node) and any(each.find(exp.Column) for each in _pattern(node)):
            raise UsageError(
                "it takes a regular expression from the row, which may run forever; write the "
                "expression out, or use contains() or startswith()"
            )


def _is_regex(node: Node) -> bool:
    name = node.name if isinstance(node, exp.Anonymous) else type(node).__name__
    return isinstance(node, exp.Func | exp.Binary) and name.lower().startswith(REGEX_FUNCTIONS)


def _pattern(node: Node) -> list[Node]:
    """The second argument of a function."""
    if isinstance(node, exp.Anonymous):
        return list(node.expressions[1:2])
    pattern = node.args.get("expression")
    return [] if pattern is None else [pattern]
