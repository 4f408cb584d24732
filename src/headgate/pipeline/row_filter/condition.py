"""A row condition parsed: the columns it refers to, and the SQL text between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import sqlglot
from sqlglot import Token, exp

from headgate.config.job import Job
from headgate.core.errors import UsageError, shown
from headgate.pipeline.row_filter.restrictions import (
    PLAIN_LITERALS,
    SPECIAL_TIME,
    Node,
    refuse_nondeterministic,
    refuse_slow_patterns,
)
from headgate.selection.filters import Filter

ROW, NEW, OLD = "row", "new", "old"
IMAGE_OF = {
    ROW: "coalesce(headgate_row.new, headgate_row.old)",
    NEW: "headgate_row.new",
    OLD: "headgate_row.old",
}


class ImageColumn(NamedTuple):
    """A column that a condition refers to, in the current row, the new one or the old one."""

    image: str
    name: str

    @property
    def label(self) -> str:
        """The column as a condition writes it, without quotes."""
        return self.name if self.image == ROW else f"{self.image}.{self.name}"


class Condition:
    """The `where` of a filter, parsed: its columns, and the text between them.

    >>> condition = Condition("amount > 100 AND old.status <> new.`status`")
    >>> [column.label for column in condition.columns]
    ['amount', 'old.status', 'new.status']
    >>> condition.filled(["A", "B", "C"])
    'A > 100 AND B <> C'
    """

    def __init__(self, where: str) -> None:
        self.where = where
        tree, tokens = _parsed(where)
        column_spans = _columns(tree)
        refuse_nondeterministic(tokens, [span for span, _ in column_spans])
        refuse_slow_patterns(tree, tokens)
        numbers: dict[tuple[str, str], int] = {}
        columns: list[ImageColumn] = []
        cuts: list[tuple[int, int, int | str]] = []
        for (start, end), column in column_spans:
            at = numbers.setdefault((column.image, column.name.casefold()), len(columns))
            if at == len(columns):
                columns.append(column)
            cuts.append((start, end, at))
        for token in tokens:
            # Spark reads such a text as the current time where it casts a constant, which differs
            # at each replay; this is the same text, but not a constant.
            if token.token_type in PLAIN_LITERALS and SPECIAL_TIME.match(token.text):
                text = where[token.start : token.end + 1]
                same = f"concat(left(headgate_row.signature, 0), {text})"
                cuts.append((token.start, token.end + 1, same))
        self.columns = tuple(columns)
        self._cuts = tuple(sorted(cuts))

    def filled(self, values: Sequence[str]) -> str:
        """The condition's text with SQL in place of its columns.

        >>> Condition("a + a > b").filled(["1", "2"])
        '1 + 1 > 2'
        """
        parts, last = [], 0
        for start, end, what in self._cuts:
            parts += [self.where[last:start], what if isinstance(what, str) else values[what]]
            last = end
        return "".join([*parts, self.where[last:]])


def conditions_of(job: Job) -> dict[int, Condition]:
    """The conditions of a job, by the number of their filter.

    A condition that cannot be parsed, that needs more than one row, or that is non-deterministic,
    is rejected.
    """
    conditions = {}
    for rule, filter_ in enumerate(job.filters):
        if filter_.where:
            try:
                conditions[rule] = Condition(filter_.where)
            except UsageError as error:
                raise UsageError(f"{describe_filter(filter_)}: {error}") from None
    return conditions


def describe_filter(filter_: Filter) -> str:
    """A filter, as errors name it."""
    return f"filter on {shown(filter_.table)}, where {shown(filter_.where)}"


def _parsed(where: str) -> tuple[Node, list[Token]]:
    """The tree and the tokens of a valid condition."""
    if "${" in where:
        raise UsageError("Spark would replace '${'; write concat('$', '{…') for such a text")
    try:
        tokens = sqlglot.tokenize(where, read="spark")
        trees = sqlglot.parse(where, read="spark")
    except Exception as error:  # for odd text sqlglot raises errors of any kind
        errors = getattr(error, "errors", None)
        place = f" at line {errors[0]['line']}, column {errors[0]['col']}" if errors else ""
        raise UsageError(
            f"not a valid Spark SQL condition{place}; write it as after WHERE, with unusual "
            "names in backticks"
        ) from None
    tree: Node = trees[0]
    if len(trees) != 1 or tree is None:
        raise UsageError("it is not one condition; join several with AND, or remove where")
    for kind, what in _FORBIDDEN:
        if tree.find(kind):
            raise UsageError(
                f"it has {what}, but conditions apply to single rows; use only columns of the row"
            )
    if not isinstance(tree, exp.Condition):
        raise UsageError("it is a statement, not a condition; write what would follow WHERE")
    return tree, tokens


_FORBIDDEN: tuple[tuple[type[Any], str], ...] = (
    (exp.Query, "a subquery"),
    (exp.Window, "a window function"),
    (exp.AggFunc, "an aggregate function"),
    (exp.Star, "a *"),
    (exp.Parameter, "a parameter"),
    (exp.Placeholder, "a parameter"),
    (exp.SessionParameter, "a parameter"),
)


def _columns(tree: Node) -> list[tuple[tuple[int, int], ImageColumn]]:
    """The columns of a condition and where in its text they are, in order."""
    columns = []
    for node in tree.find_all(exp.Column):
        parts = node.parts
        *qualifiers, name = (part.name for part in parts)
        image = qualifiers[0].lower() if qualifiers else ROW
        if len(qualifiers) > 1 or image not in IMAGE_OF or (qualifiers and image == ROW):
            dotted = ".".join([*qualifiers, name])
            raise UsageError(
                f"{shown(dotted)} is not a column; write {name} for the current row, new.{name} "
                f"or old.{name}"
            )
        spans = [(part.meta.get("start"), part.meta.get("end")) for part in parts]
        start, end = spans[0][0], spans[-1][1]
        if start is None or end is None:
            raise UsageError(f"cannot parse the column {shown(name)}; write it in backticks")
        columns.append(((start, end + 1), ImageColumn(image, name)))
    return sorted(columns)
