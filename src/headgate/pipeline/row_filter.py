"""Row conditions: a filter's `where`, judged by Spark SQL over the typed row, message by message.

Two lazy stages come before the worker's pass. `looked_at` takes out of each message the few values
that conditions refer to; `judged` replaces them with a verdict per row. The text of a condition is
Spark's to parse: only its columns are replaced, in place. Whatever goes wrong in working one out is
a verdict on that row and not the end of the job.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa
import sqlglot
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType
from sqlglot import Token, TokenType, exp

from headgate.arrow.events import TEXT_MAP, bounded, decode_parts, most_bytes_of, text_maps
from headgate.codec.decoder import decoder
from headgate.codec.schemas import Schemas
from headgate.config.job import Job
from headgate.core.cache import Plans
from headgate.core.errors import UsageError, shown, unknown_name
from headgate.core.event import Event, Image, Types
from headgate.core.mysql_types import parse_type
from headgate.schema.tables import Table
from headgate.selection.filters import Filter
from headgate.selection.selection import Selection, SelectionError
from headgate.spark.api import fast_worker, parse_schema

IMAGES_DDL = (
    "images array<struct<rule: int, signature: string, "
    "old: map<string, string>, new: map<string, string>>>"
)
IMAGE = pa.struct(
    [("rule", pa.int32()), ("signature", pa.string()), ("old", TEXT_MAP), ("new", TEXT_MAP)]
)
NOT_TAKEN = -1
"""The rule of a row that the job leaves out anyway: it is dropped unjudged."""
UNTYPED = "?"
ENOUGH_SIGNATURES, MOST_SIGNATURES = 64, 256
"""With that many combinations of types, a condition takes no new ones; messages are hostile."""
MOST_DIGITS = 38
MOST_REFUSALS = 1_000
ROW, NEW, OLD = "row", "new", "old"
IMAGE_OF = {
    ROW: "coalesce(headgate_row.new, headgate_row.old)",
    NEW: "headgate_row.new",
    OLD: "headgate_row.old",
}
UNREPEATABLE = frozenset(
    {
        "rand", "randn", "random", "uuid", "uniform", "randstr", "shuffle", "now",
        "current_timestamp", "current_date", "curdate", "current_time", "localtimestamp",
        "current_user", "user", "session_user", "current_database", "current_schema",
        "current_catalog", "current_timezone", "input_file_name", "input_file_block_start",
        "input_file_block_length", "monotonically_increasing_id", "spark_partition_id", "reflect",
        "java_method", "try_reflect",
    }
)  # fmt: skip
"""Functions that do not say the same of a row when it comes again."""
CLOCKS_WITHOUT_ARGUMENT = ("unix_timestamp", "to_unix_timestamp")
BARE_CLOCKS = {
    TokenType.CURRENT_DATE, TokenType.CURRENT_TIME, TokenType.CURRENT_TIMESTAMP,
    TokenType.CURRENT_USER, TokenType.CURRENT_DATETIME,
}  # fmt: skip
REGEX_FUNCTIONS = ("rlike", "regexp", "split")
FAMILY_TYPES = {
    "integer": "DECIMAL(20,0)", "bit": "DECIMAL(20,0)", "float": "DOUBLE", "double": "DOUBLE",
    "date": "DATE", "datetime": "TIMESTAMP", "timestamp": "TIMESTAMP", "year": "INT",
    "string": "STRING", "enum": "STRING", "set": "STRING", "json": "STRING", "time": "STRING",
    "binary": "BINARY",
}  # fmt: skip
DATE_TEXT = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
TEXTS = {
    "DOUBLE": "^[+-]?[0-9]{0,400}([.][0-9]{0,400})?([eE][+-]?[0-9]{1,4})?$",
    "DATE": f"^{DATE_TEXT}$",
    "TIMESTAMP": f"^{DATE_TEXT} [0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}([.][0-9]{{1,6}})?$",
    "INT": "^[0-9]{1,4}$",
}
"""What a type's values look like. Spark casts more than that, rounds what does not fit, and needs
minutes for a number of a million digits."""
NEEDED = {
    "spark.sql.ansi.enabled": ("true",),
    "spark.sql.session.timeZone": ("UTC", "Etc/UTC", "GMT", "Z", "+00:00"),
    "spark.sql.parser.escapedStringLiterals": ("false",),
}
"""Settings without which a condition means something else than it says."""

_PLAIN = re.compile(r"[A-Za-z0-9_ .,:;()^?+*\[\]{}/<>=|-]*")
_SPECIAL_TIME = re.compile(r"\s*(now|today|tomorrow|yesterday)\b", re.IGNORECASE)
_REPEATED_GROUP = re.compile(r"(?<!\\)\)[*+{]")
_TYPE = re.compile(r"[^,(]+(?:\([^)]*\))?")
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)", re.IGNORECASE)
_PLAIN_LITERALS = (TokenType.STRING, TokenType.RAW_STRING)
_TYPED_LITERALS = ("date", "timestamp", "timestamp_ltz", "timestamp_ntz")

Node = Any
"""A node of sqlglot's tree; its base class has another name from version to version."""


class ColumnOf(NamedTuple):
    """A column that a condition refers to, in the row as it is, the new one or the old one."""

    image: str
    name: str

    @property
    def label(self) -> str:
        """The column as a condition writes it, without quotes."""
        return self.name if self.image == ROW else f"{self.image}.{self.name}"


class Condition:
    """The `where` of a filter, taken apart: its columns, and the text between them.

    >>> condition = Condition("amount > 100 AND old.status <> new.`status`")
    >>> [column.label for column in condition.columns]
    ['amount', 'old.status', 'new.status']
    >>> condition.filled(["A", "B", "C"])
    'A > 100 AND B <> C'
    """

    def __init__(self, where: str) -> None:
        self.where = where
        tree, tokens = _parsed(where)
        found = _columns(tree)
        _refuse_unrepeatable(tokens, [span for span, _ in found])
        _refuse_slow_patterns(tree, tokens)
        numbers: dict[tuple[str, str], int] = {}
        columns: list[ColumnOf] = []
        cuts: list[tuple[int, int, int | str]] = []
        for (start, end), column in found:
            at = numbers.setdefault((column.image, column.name.casefold()), len(columns))
            if at == len(columns):
                columns.append(column)
            cuts.append((start, end, at))
        for token in tokens:
            # Spark reads such a text as a time where it casts a constant, and the time is another
            # one at each replay; this one is the same text, and no constant.
            if token.token_type in _PLAIN_LITERALS and _SPECIAL_TIME.match(token.text):
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

    A condition that cannot be read, that cannot be judged row by row, or that says something else
    of the same row another time, is refused.
    """
    found = {}
    for rule, filter_ in enumerate(job.filters):
        if filter_.where:
            try:
                found[rule] = Condition(filter_.where)
            except UsageError as error:
                raise UsageError(f"{_named(filter_)}: {error}") from None
    return found


def _named(filter_: Filter) -> str:
    return f"filter on {shown(filter_.table)}, where {shown(filter_.where)}"


def _parsed(where: str) -> tuple[Node, list[Token]]:
    """The tree and the tokens of a condition that is one."""
    if "${" in where:
        raise UsageError("Spark would replace '${'; write concat('$', '{…') for such a text")
    try:
        tokens = sqlglot.tokenize(where, read="spark")
        trees = sqlglot.parse(where, read="spark")
    except Exception as error:  # sqlglot raises whatever comes up in odd text
        told = getattr(error, "errors", None)
        place = f" at line {told[0]['line']}, column {told[0]['col']}" if told else ""
        raise UsageError(
            f"it is no condition of Spark SQL{place}; write it as after WHERE, names with "
            "odd characters in backticks"
        ) from None
    tree: Node = trees[0]
    if len(trees) != 1 or tree is None:
        raise UsageError("it is not one condition; join several with AND, or leave where out")
    for kind, what in _REFUSED:
        if tree.find(kind):
            raise UsageError(
                f"it has {what}, and a row is judged by itself; use the columns of the row only"
            )
    if not isinstance(tree, exp.Condition):
        raise UsageError("it is a statement and no condition; write what would follow WHERE")
    return tree, tokens


_REFUSED: tuple[tuple[type[Any], str], ...] = (
    (exp.Query, "a subquery"),
    (exp.Window, "a window function"),
    (exp.AggFunc, "an aggregate function"),
    (exp.Star, "a *"),
    (exp.Parameter, "a parameter"),
    (exp.Placeholder, "a parameter"),
    (exp.SessionParameter, "a parameter"),
)


def _columns(tree: Node) -> list[tuple[tuple[int, int], ColumnOf]]:
    """The columns of a condition and where in its text they are, in order."""
    found = []
    for node in tree.find_all(exp.Column):
        parts = node.parts
        *qualifiers, name = (part.name for part in parts)
        image = qualifiers[0].lower() if qualifiers else ROW
        if len(qualifiers) > 1 or image not in IMAGE_OF or (qualifiers and image == ROW):
            dotted = ".".join([*qualifiers, name])
            raise UsageError(
                f"{shown(dotted)} is no column; write {name} for the row as it is, new.{name} "
                f"or old.{name}"
            )
        spans = [(part.meta.get("start"), part.meta.get("end")) for part in parts]
        start, end = spans[0][0], spans[-1][1]
        if start is None or end is None:
            raise UsageError(f"the column {shown(name)} is not understood; write it in backticks")
        found.append(((start, end + 1), ColumnOf(image, name)))
    return sorted(found)


def _refuse_unrepeatable(tokens: Sequence[Token], columns: Sequence[tuple[int, int]]) -> None:
    """Refuse what depends on chance, the clock or the session."""
    for n, token in enumerate(tokens):
        after = [each.token_type for each in tokens[n + 1 : n + 3]]
        call = after[:1] == [TokenType.L_PAREN]
        name = token.text.lower()
        bare = token.token_type in BARE_CLOCKS
        bare = bare and not any(start <= token.start < end for start, end in columns)
        empty = call and after[1:] == [TokenType.R_PAREN] and name in CLOCKS_WITHOUT_ARGUMENT
        text = token.token_type in _PLAIN_LITERALS
        timed = (
            text
            and n > 0
            and tokens[n - 1].text.lower() in _TYPED_LITERALS
            and _SPECIAL_TIME.match(token.text)
        )
        if timed or bare or empty or (call and not text and name in UNREPEATABLE):
            raise UsageError(
                f"{shown(name)} says something else each time, and a replay must judge the same; "
                "write the value out, or compare with a column of the row"
            )


def _refuse_slow_patterns(tree: Node, tokens: Sequence[Token]) -> None:
    """Refuse regular expressions with which a long text ends the JVM or takes forever."""
    if not any(t.text.lower().startswith(REGEX_FUNCTIONS) for t in tokens):
        return
    for token in tokens:
        if token.token_type in _PLAIN_LITERALS and _REPEATED_GROUP.search(token.text):
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
    found = node.args.get("expression")
    return [] if found is None else [found]


# Types


def spark_type(mysql: str | None) -> str:
    """The Spark type in which a condition sees a MySQL column; `?` where that is not known.

    Of a DECIMAL with more digits than Spark has, only values that fit are judged.

    >>> spark_type("bigint unsigned"), spark_type("decimal(12,2)"), spark_type("decimal(65,30)")
    ('DECIMAL(20,0)', 'DECIMAL(12,2)', 'DECIMAL(38,30)')
    >>> spark_type("varchar(80)"), spark_type("datetime(6)"), spark_type(None)
    ('STRING', 'TIMESTAMP', '?')
    """
    type_ = parse_type(mysql)
    if type_.family != "decimal":
        return FAMILY_TYPES.get(type_.family, UNTYPED)
    if type_.length is None:  # messages leave the digits out
        return "DECIMAL(38,18)"
    digits, scale = type_.length, type_.scale or 0
    if not scale <= digits <= 65 or not digits or scale > 30:
        return UNTYPED
    return f"DECIMAL({min(digits, MOST_DIGITS)},{scale})"


def signature(condition: Condition, types: Types | None) -> str:
    """The types of a condition's columns, in their order.

    >>> from headgate.core.event import ColumnType
    >>> signature(Condition("a > b"), {"A": ColumnType("int")})
    'DECIMAL(20,0),?'
    """
    told = types or {}
    found = (name_in(told, column.name) for column in condition.columns)
    return ",".join(spark_type(None if name is None else told[name].mysql) for name in found)


def name_in(names: Mapping[str, Any], name: str) -> str | None:
    """A name as it is written among others: the same, or the same but for its case.

    >>> name_in({"ID": 1, "id": 2}, "id"), name_in({"ID": 1}, "id"), name_in({}, "id")
    ('id', 'ID', None)
    """
    if name in names:
        return name
    folded = name.casefold()
    return next((each for each in names if each.casefold() == folded), None)


# Looking at messages


def looked_at(messages: DataFrame, job: Job) -> DataFrame:
    """Messages with `images`: of each row under a condition, what the condition refers to.

    Rows are in the order of the message's events. A row that the job does not take has the rule
    NOT_TAKEN, and one of which the selection cannot say that has no rule.
    """
    conditions, selection = conditions_of(job), Selection(job)
    options = dict(job.source.options)
    if job.schema is not None:
        options.setdefault("schema", job.schema)
    format, schema = job.source.format, options.get("schema")
    # Only what a worker needs is sent to it: the job may hold secrets.

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with fast_worker():
            decode = decoder(format, **options)
            limit = most_bytes_of(options)
            look = _Looker(conditions, selection, Schemas(schema))
            for batch in batches:
                for several in bounded(batch):
                    for part, events, counts in decode_parts(several, decode, limit):
                        yield part.append_column("images", look.images(events, counts))

    out = StructType([*messages.schema.fields, *parse_schema(IMAGES_DDL).fields])
    return messages.mapInArrow(run, out)


class _Looker:
    """Takes out of events what conditions refer to."""

    def __init__(
        self, conditions: Mapping[int, Condition], selection: Selection, schemas: Schemas
    ) -> None:
        self.conditions, self.selection, self.schemas = conditions, selection, schemas
        self.signatures: dict[int, Callable[[Types | None], str]] = {
            rule: Plans(partial(signature, condition)) for rule, condition in conditions.items()
        }

    def images(self, events: Sequence[Event], counts: Sequence[int]) -> pa.Array:
        """The images of a batch's messages, of which each has so many events."""
        rules: list[int | None] = []
        signatures: list[str | None] = []
        olds: list[Image | None] = []
        news: list[Image | None] = []
        offsets, at = [0], 0
        for count in counts:
            for event in events[at : at + count]:
                rule = self.selection.condition_of(event)
                if rule is None:
                    continue
                taken = self.taken(event)
                if not taken:
                    rules.append(None if taken is None else NOT_TAKEN)
                    signatures.append(None)
                    olds.append(None)
                    news.append(None)
                    continue
                rules.append(rule)
                signatures.append(self.signature(rule, event))
                old, new = images_of(event)
                columns = self.conditions[rule].columns
                olds.append(_cut(old, columns, OLD, new is None))
                news.append(_cut(new, columns, NEW, True))
            at += count
            offsets.append(len(rules))
        rows = pa.StructArray.from_arrays(
            [
                pa.array(rules, pa.int32()),
                pa.array(signatures, pa.string()),
                text_maps(olds),
                text_maps(news),
            ],
            fields=list(IMAGE),
        )
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), rows)

    def taken(self, event: Event) -> bool | None:
        """Whether the job takes an event; None where the pass will say why it cannot be said."""
        try:
            return self.selection.wants(event)
        except SelectionError:
            return None

    def signature(self, rule: int, event: Event) -> str:
        """The types of a condition's columns in an event's table."""
        found = self.signatures[rule](event.types)
        if UNTYPED in found:
            table = self.schemas.table(event.database, event.table, event.schema)
            if table is not None:
                return signature(self.conditions[rule], {**table.types, **(event.types or {})})
        return found


def images_of(event: Event) -> tuple[Image | None, Image | None]:
    """The old and the new row: None where a change has none, empty where it was not sent.

    >>> images_of(Event("row", "update", after={"id": "1"}))
    ({}, {'id': '1'})
    >>> images_of(Event("row", "insert", after={"id": "1"}))
    (None, {'id': '1'})
    """
    old = (event.before or {}) if event.op in ("update", "delete") else None
    new = None if event.op == "delete" else (event.after or {})
    return old, new


def _cut(
    image: Image | None, columns: Sequence[ColumnOf], which: str, current: bool
) -> Image | None:
    """The values of an image that a condition refers to, under the condition's names."""
    if image is None:
        return None
    found: Image = {}
    for column in columns:
        if column.image == which or (current and column.image == ROW):
            name = name_in(image, column.name)
            if name is not None:
                found[column.name] = image[name]
    return found


# Judging


def judged(looked: DataFrame, job: Job, signatures: Mapping[int, Collection[str]]) -> DataFrame:
    """Messages with `verdicts` in place of `images`: a text per row.

    `keep`, `drop`, or the code and the sentence of a dead letter, as `code|sentence`. Where the
    types of a row are none of its filter's `signatures`: `unknown-signature|<signature>`.
    """
    spark = looked.sparkSession
    cases = []
    for rule, condition in conditions_of(job).items():
        known = signatures.get(rule, ())
        told = job.filters[rule].table
        cases.append(f"WHEN {rule} THEN {_verdict(spark, condition, told, known)}")
    verdict = f"""
        CASE
            WHEN headgate_row.rule = {NOT_TAKEN} THEN 'drop'
            WHEN headgate_row.old IS NULL AND headgate_row.new IS NULL THEN 'keep'
            ELSE CASE headgate_row.rule {" ".join(cases)} ELSE 'keep' END
        END
    """
    verdicts = F.expr(_each(verdict)).alias("verdicts")
    kept = [F.col(name) for name in looked.columns if name != "images"]
    return looked.select(*kept, verdicts)


def _each(verdict: str) -> str:
    return f"transform(images, headgate_row -> {verdict})"


def _verdict(spark: SparkSession, condition: Condition, table: str, known: Collection[str]) -> str:
    """SQL of one condition's verdict on a row."""
    cases = []
    for column in condition.columns:
        image = IMAGE_OF[column.image]
        missing = f"{image} IS NOT NULL AND NOT map_contains_key({image}, {literal(column.name)})"
        cases.append((missing, literal(_absent(column, table))))
    plain = "split(regexp_replace(headgate_row.signature, '[(][^)]*[)]', ''), ',')"
    for at, column in enumerate(condition.columns):
        unknown = f"instr(headgate_row.signature, '{UNTYPED}') > 0 AND {plain}[{at}] = '{UNTYPED}'"
        cases.append((unknown, literal(_untyped(column, table))))
    for each in sorted(known)[:MOST_SIGNATURES]:
        cases.append(
            (f"headgate_row.signature = '{each}'", _typed_verdict(spark, condition, each, table))
        )
    last = "concat('unknown-signature|', headgate_row.signature)"
    if len(known) >= ENOUGH_SIGNATURES:
        last = literal(
            f"condition-type|the columns in the condition on {shown(table)} come in more than "
            f"{ENOUGH_SIGNATURES} combinations of types; give the job a schema"
        )
    listed = " ".join(f"WHEN {when} THEN {then}" for when, then in cases)
    return f"CASE {listed} ELSE {last} END" if cases else last


def _absent(column: ColumnOf, table: str) -> str:
    row = {ROW: "row", NEW: "new row", OLD: "old row"}[column.image]
    return (
        f"no-such-column|the {row} has no column {shown(column.name)}, which the condition on "
        f"{shown(table)} uses; correct the condition, or let the producer send the column"
    )


def _untyped(column: ColumnOf, table: str) -> str:
    return (
        f"condition-type|the type of column {shown(column.name)} is not known to the condition on "
        f"{shown(table)}; give the job a schema, or leave the column out of the condition"
    )


def _typed_verdict(spark: SparkSession, condition: Condition, signature: str, table: str) -> str:
    """SQL of the verdict on a row of known types, all of whose columns are there."""
    refused = refusal(spark, condition, signature)
    if refused is not None:
        return literal(
            f"condition-type|the condition on {shown(table)} is not one for the types of its "
            f"columns ({signature}): {refused}"
        )
    return _guarded(condition, signature, table)


def _guarded(condition: Condition, signature: str, table: str) -> str:
    cases, values = [], []
    for column, type_ in zip(condition.columns, types_in(signature)):
        text = f"element_at({IMAGE_OF[column.image]}, {literal(column.name)})"
        value, misfit = typed(text, type_)
        values.append(value)
        if misfit is not None:
            said = (
                f"condition-value|column {shown(column.label)} holds what is no {type_}, and the "
                f"condition on {shown(table)} uses it; correct the table's schema or the producer"
            )
            cases.append(f"WHEN {text} IS NOT NULL AND ({misfit}) THEN {literal(said)}")
    # try_to_binary gives NULL for whatever goes wrong within its argument, and IF never does;
    # a condition that is NULL is one that does not hold.
    held = f"IF((\n{condition.filled(values)}\n), 'keep', 'drop')"
    failed = literal(
        f"condition-error|the condition on {shown(table)} cannot be worked out for this row (a "
        "division by zero, an overflow, a text that is no number …); use try_divide or try_cast"
    )
    judged = f"coalesce(CAST(try_to_binary({held}, 'utf-8') AS STRING), {failed})"
    return f"CASE {' '.join(cases)} ELSE {judged} END" if cases else judged


def types_in(signature: str) -> list[str]:
    """The types of a signature.

    >>> types_in("DECIMAL(12,2),STRING")
    ['DECIMAL(12,2)', 'STRING']
    """
    return _TYPE.findall(signature)


def typed(text: str, type_: str) -> tuple[str, str | None]:
    """SQL that gives a text its type, and SQL that says whether it is none of that type.

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
    decimal = _DECIMAL.fullmatch(type_)
    pattern = (
        f"^[+-]?[0-9]{{0,65}}([.][0-9]{{0,{decimal[2]}}}0{{0,65}})?$" if decimal else TEXTS[type_]
    )
    misfit = f"NOT {text} RLIKE '{pattern}' OR {value} IS NULL"
    if type_ == "DOUBLE":
        misfit += f" OR abs({value}) = double('Infinity')"
    return value, misfit


def literal(text: str) -> str:
    """A text as SQL that means it whatever is in it, and however Spark reads escapes.

    >>> literal("amount"), literal("it's")
    ("'amount'", "decode(X'69742773', 'UTF-8')")
    """
    if _PLAIN.fullmatch(text):
        return f"'{text}'"
    return f"decode(X'{text.encode(errors='replace').hex()}', 'UTF-8')"


# What Spark refuses


def check(spark: SparkSession, job: Job) -> None:
    """Refuse conditions that Spark refuses, and those on columns that the job's schema has not.

    Where the schema does not tell a filter's tables, only what no types could mend is refused.
    """
    conditions = conditions_of(job)
    if not conditions:
        return
    for name, right in NEEDED.items():
        found = spark.conf.get(name)
        if found not in right:
            raise UsageError(
                f"row conditions need the Spark setting {name}={right[0]}, and it is {found}; "
                "leave it as it is by default"
            )
    tables = _tables(job)
    for rule, condition in conditions.items():
        filter_ = job.filters[rule]
        known = tables.get(rule, {})
        for name, table in known.items():
            for column in condition.columns:
                if name_in(table.columns, column.name) is None:
                    said = unknown_name(f"column of {name}", column.name, table.columns)
                    raise UsageError(f"{_named(filter_)}: {said}")
            types = signature(condition, table.types)
            if UNTYPED in types:
                continue
            refused = refusal(spark, condition, types)
            if refused is not None:
                raise UsageError(f"{_named(filter_)}: {refused} (in {name}: {types})")
        if not known:
            refused = _refused_by_spark(spark, condition, ["VOID"] * len(condition.columns))
            if refused is not None:
                raise UsageError(f"{_named(filter_)}: {refused}")


def _tables(job: Job) -> dict[int, dict[str, Table]]:
    """The tables of the job's schema that come under each condition."""
    schemas, selection = Schemas(job.schema), Selection(job)
    found: dict[int, dict[str, Table]] = {}
    for table, homes in schemas._catalog.tables.items():
        for home in homes:
            # A table without a database is that of any; these are the ones that filters name.
            names = [home] if home is not None else [_database(each) for each in job.filters]
            for database in names:
                known = schemas.table(database, table)
                event = Event("row", "insert", database, table)
                rule = selection.condition_of(event)
                if known is not None and rule is not None and _taken(selection, event):
                    found.setdefault(rule, {})[f"{database}.{table}"] = known
    return found


def _database(filter_: Filter) -> str:
    """A database that a filter's pattern fits."""
    return filter_.table.partition(".")[0].replace("*", "").replace("?", "x") or "any"


def _taken(selection: Selection, event: Event) -> bool:
    """Whether any change of a table is taken."""
    for op in ("insert", "update", "delete", "snapshot"):
        event.op = op
        try:
            if selection.wants(event):
                return True
        except SelectionError:
            return True
    return False


_refusals: dict[tuple[str, str], str | None] = {}


def refusal(spark: SparkSession, condition: Condition, signature: str) -> str | None:
    """Why a condition cannot be judged for columns of these types; None if it can."""
    key = condition.where, signature
    if key not in _refusals:
        if len(_refusals) >= MOST_REFUSALS:
            _refusals.clear()
        _refusals[key] = _refused_by_spark(spark, condition, types_in(signature), signature)
    return _refusals[key]


def _refused_by_spark(
    spark: SparkSession,
    condition: Condition,
    types: Sequence[str],
    signature: str | None = None,
) -> str | None:
    """What Spark's analysis says against a condition; without a signature, types are not known."""
    names = [f"`{column.label.replace('`', '``')}`" for column in condition.columns]
    columns = [f"CAST(NULL AS {type_}) AS {name}" for name, type_ in zip(names, types)]
    columns.append("named_struct('signature', '') AS headgate_row")
    with _quiet():
        try:
            row = spark.sql(f"SELECT {', '.join(columns)}")
            found = row.where(f"(\n{condition.filled(names)}\n)")
            if signature is not None:
                images = spark.sql(f"SELECT CAST(NULL AS {IMAGES_DDL.partition(' ')[2]}) AS images")
                images.select(F.expr(_each(_guarded(condition, signature, ""))))
        except AnalysisException as error:
            if signature is None and (error.getCondition() or "").startswith("DATATYPE_MISMATCH"):
                return None  # other types than none at all may be right
            return f"{_said(error)}; correct the condition"
    plan = _analysed(found)
    if not plan.deterministic():
        return (
            "it says something else of the same row each time, and a replay must judge the same; "
            "use the columns of the row only"
        )
    if signature is None:
        return None
    java: Any = spark._jvm
    asked_for = java.org.apache.spark.sql.catalyst.expressions.Cast.USER_SPECIFIED_CAST()
    return _lossy_cast(plan.condition(), asked_for)


def _analysed(found: DataFrame) -> Any:
    """Spark's own tree of a query."""
    frame: Any = found
    return frame._jdf.queryExecution().analyzed()


def _said(error: AnalysisException) -> str:
    """Spark's sentence, on one line and without what follows it."""
    message = str(error).partition("SQLSTATE")[0]
    message = re.sub(r"^\[[\w.]+\]\s*", "", " ".join(message.split()))
    return f"Spark says: {message[:400].rstrip(' .;')}"


def _lossy_cast(node: Any, asked_for: Any) -> str | None:
    """Say where Spark would compare numbers after rounding them, of its own accord."""
    if node.getClass().getSimpleName() == "Cast":
        before, after = (each.dataType().simpleString() for each in (node.child(), node))
        if not node.getTagValue(asked_for).isDefined() and _rounds(before, after):
            return (
                f"Spark would compare a {before} as a {after}, which rounds it; write numbers "
                "without quotes, or CAST to the type that is meant"
            )
    children = node.children()
    for n in range(children.size()):
        found = _lossy_cast(children.apply(n), asked_for)
        if found is not None:
            return found
    return None


def _rounds(before: str, after: str) -> bool:
    """Whether a cast between two types may round.

    >>> _rounds("string", "double"), _rounds("decimal(38,30)", "decimal(38,18)")
    (True, True)
    >>> _rounds("string", "bigint"), _rounds("decimal(12,2)", "decimal(22,2)")
    (False, False)
    """
    scales = [_DECIMAL.fullmatch(each) for each in (before, after)]
    if scales[0] and scales[1]:
        return int(scales[0][2]) > int(scales[1][2])
    return before == "string" and after in ("double", "float")


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep PySpark from logging an error that is answered here."""
    logger = logging.getLogger("SQLQueryContextLogger")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before
