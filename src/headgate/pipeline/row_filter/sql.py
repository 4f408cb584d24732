"""The SQL that evaluates one condition for a row of known types."""

from __future__ import annotations

import re

from headgate.core.errors import shown
from headgate.pipeline.row_filter.condition import IMAGE_OF, Condition
from headgate.pipeline.row_filter.types import types_in

DATE_TEXT = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
TEXTS = {
    "DOUBLE": "^[+-]?[0-9]{0,400}([.][0-9]{0,400})?([eE][+-]?[0-9]{1,4})?$",
    "DATE": f"^{DATE_TEXT}$",
    "TIMESTAMP": f"^{DATE_TEXT} [0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}([.][0-9]{{1,6}})?$",
    "INT": "^[0-9]{1,4}$",
}
"""What a type's values look like. Spark casts more than that, rounds what does not fit, and needs
minutes for a number of a million digits."""
_PLAIN = re.compile(r"[A-Za-z0-9_ .,:;()^?+*\[\]{}/<>=|-]*")
DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)", re.IGNORECASE)


def per_row(verdict: str) -> str:
    """SQL that applies a verdict to each image."""
    return f"transform(images, headgate_row -> {verdict})"


def condition_sql(condition: Condition, signature: str, table: str) -> str:
    """SQL of the verdict on a row whose columns are there and have these types."""
    cases, values = [], []
    for column, type_ in zip(condition.columns, types_in(signature)):
        text = f"element_at({IMAGE_OF[column.image]}, {literal(column.name)})"
        value, misfit = typed(text, type_)
        values.append(value)
        if misfit is not None:
            reason = (
                f"condition-value|column {shown(column.label)} has a value that is not a valid "
                f"{type_}, and the condition on {shown(table)} uses it; correct the table's schema "
                "or the producer"
            )
            cases.append(f"WHEN {text} IS NOT NULL AND ({misfit}) THEN {literal(reason)}")
    # try_to_binary gives NULL for any error within its argument, and IF never is NULL; a condition
    # that is NULL is false.
    decision = f"IF((\n{condition.filled(values)}\n), 'keep', 'drop')"
    failed = literal(
        f"condition-error|the condition on {shown(table)} cannot be evaluated for this row (a "
        "division by zero, an overflow, an invalid number …); use try_divide or try_cast"
    )
    verdict = f"coalesce(CAST(try_to_binary({decision}, 'utf-8') AS STRING), {failed})"
    return f"CASE {' '.join(cases)} ELSE {verdict} END" if cases else verdict


def typed(text: str, type_: str) -> tuple[str, str | None]:
    """SQL that casts a text to its type, and SQL for whether the text is invalid for it.

    >>> typed("t", "STRING")
    ('t', None)
    >>> typed("t", "DATE")[0]
    'TRY_CAST(t AS DATE)'
    """
    if type_ == "STRING":
        return text, None
    if type_ == "BINARY":
        value = f"try_to_binary({text}, 'base64')"
        return value, f"{value} IS NULL"
    value = f"TRY_CAST({text} AS {type_})"
    decimal = DECIMAL.fullmatch(type_)
    pattern = (
        f"^[+-]?[0-9]{{0,65}}([.][0-9]{{0,{decimal[2]}}}0{{0,65}})?$" if decimal else TEXTS[type_]
    )
    misfit = f"NOT {text} RLIKE '{pattern}' OR {value} IS NULL"
    if type_ == "DOUBLE":
        misfit += f" OR abs({value}) = double('Infinity')"
    return value, misfit


def literal(text: str) -> str:
    """A text as a SQL literal, whatever is in it and however Spark reads escapes.

    >>> literal("amount"), literal("it's")
    ("'amount'", "decode(X'69742773', 'UTF-8')")
    """
    if _PLAIN.fullmatch(text):
        return f"'{text}'"
    return f"decode(X'{text.encode(errors='replace').hex()}', 'UTF-8')"
