"""Compares tables of two sides: checksums first, then the rows of what differs.

A checksum does not depend on the order of rows: it is their number and the sum of their hashes, for
each bucket of keys. Rows are brought together only for the buckets that differ.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
)

from headgate.verification.sides import KeyText, SideTable

BUCKETS = 256
MOST_DIGITS = 38
DIGITS: dict[type, int] = {
    BooleanType: 1,
    ByteType: 3,
    ShortType: 5,
    IntegerType: 10,
    LongType: 19,
}
"""How many digits a whole number of a type has."""
Hashes = tuple["int | None", "int | None"]
"""The hash of a row in the source and in the target; None where it is not there."""


@dataclass(frozen=True)
class Pair:
    """A table on both sides, as columns that compare."""

    name: str
    key: tuple[str, ...]
    """The columns that identify a row: all of them where the table has no key."""
    columns: tuple[str, ...]
    source: DataFrame
    target: DataFrame
    has_key: bool
    lacking: tuple[str, ...] = ()
    """Columns that the target lacks."""
    notes: tuple[str, ...] = ()


class Sums(dict[int, tuple[int, int]]):
    """By bucket, the number of rows and the sum of their hashes.

    >>> sums = Sums({0: (2, 12), 7: (1, -3)})
    >>> sums.rows, sums.checksum
    (3, '9')
    """

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return sum(rows for rows, _ in self.values())

    @property
    def checksum(self) -> str:
        """The sum of all hashes, as text: it has more digits than numbers of JSON."""
        return str(sum(total for _, total in self.values()))


@dataclass
class RowDifference:
    """A row that differs, its values as text."""

    kind: str
    key: KeyText
    source: tuple[str | None, ...] | None
    target: tuple[str | None, ...] | None
    copies: tuple[int, int]
    """How many rows of that key each side has."""


@dataclass
class Differences:
    """The rows that differ."""

    counts: dict[str, int] = field(default_factory=dict)
    """By kind: missing, extra, different, duplicate."""
    rows: list[RowDifference] = field(default_factory=list)


def paired(name: str, source: SideTable, target: SideTable) -> Pair:
    """A table on both sides, in the columns of the source and in types that both have."""
    types = [{f.name: f.dataType for f in side.rows.schema.fields} for side in (source, target)]
    columns = tuple(column for column in types[0] if column in types[1])
    lacking = tuple(column for column in types[0] if column not in types[1])
    more = [column for column in types[1] if column not in types[0]]
    notes = [*source.notes, *target.notes]
    if more:
        notes.append(f"columns of the target only, not compared: {', '.join(more)}")
    common = {}
    for column in columns:
        one, other = types[0][column], types[1][column]
        common[column] = common_type(one, other)
        if one != other:
            both = f"{one.simpleString()} in the source, {other.simpleString()} in the target"
            notes.append(f"column {column} is {both}")
    key = source.key if source.key is not None else target.key
    key = tuple(key or ())
    has_key = bool(key) and set(key) <= set(columns)
    if key and not has_key:
        notes.append(f"the target lacks a column of the key ({', '.join(key)}): rows as a whole")
    json = source.json | target.json
    chosen = [compared(column, common[column], column in json) for column in columns]
    return Pair(
        name,
        key if has_key else columns,
        columns,
        source.rows.select(*chosen),
        target.rows.select(*chosen),
        has_key,
        lacking,
        tuple(notes),
    )


def compared(name: str, type_: DataType, is_json: bool) -> Column:
    """A column in the form that is compared; the text of JSON in one spelling."""
    value = quoted(name).cast(type_)
    if is_json:
        value = F.coalesce(F.to_json(F.try_parse_json(value)), value)
    return value.alias(name)


def quoted(name: str) -> Column:
    """A column by its name, which may have any character."""
    return F.col(f"`{name.replace('`', '``')}`")


def common_type(one: DataType, other: DataType) -> DataType:
    """A type in which values of two types compare exactly.

    >>> common_type(IntegerType(), DecimalType(12, 2))
    DecimalType(12,2)
    >>> common_type(DecimalType(12, 2), StringType())
    StringType()
    """
    if one == other:
        return one
    numbers = [digits_of(each) for each in (one, other)]
    if None not in numbers:
        scale = max(scale for _, scale in filter(None, numbers))
        whole = max(digits - scale for digits, scale in filter(None, numbers))
        return DecimalType(whole + scale, scale) if whole + scale <= MOST_DIGITS else StringType()
    if {type(one), type(other)} == {FloatType, DoubleType}:
        return DoubleType()
    return StringType()


def digits_of(type_: DataType) -> tuple[int, int] | None:
    """The digits of an exact number, and how many of them are behind the point."""
    if isinstance(type_, DecimalType):
        return type_.precision, type_.scale
    digits = DIGITS.get(type(type_))
    return None if digits is None else (digits, 0)


def row_hash(names: Iterable[str]) -> Column:
    """A hash of columns; Spark's own passes over nulls, so that they could change places."""
    return F.xxhash64(*(part for name in names for part in (quoted(name).isNull(), quoted(name))))


def bucket_of(key: Iterable[str]) -> Column:
    """The bucket of a row."""
    return F.pmod(row_hash(key), F.lit(BUCKETS)).cast("int")


def checksums(pairs: Sequence[Pair]) -> list[tuple[Sums, Sums]]:
    """The checksums of tables on both sides: one Spark job for all of them."""
    parts = [
        frame.select(
            F.lit(number).alias("table"),
            F.lit(side).alias("side"),
            bucket_of(pair.key).alias("bucket"),
            row_hash(pair.columns).cast("decimal(20,0)").alias("hash"),
        )
        for number, pair in enumerate(pairs)
        for side, frame in enumerate((pair.source, pair.target))
    ]
    sums = [(Sums(), Sums()) for _ in pairs]
    totals = reduce(DataFrame.unionAll, parts).groupBy("table", "side", "bucket")
    for row in totals.agg(F.count("*").alias("rows"), F.sum("hash").alias("total")).collect():
        sums[row.table][row.side][row.bucket] = (row.rows, int(row.total))
    return sums


def differing_buckets(source: Sums, target: Sums) -> list[int]:
    """The buckets whose checksums differ.

    >>> differing_buckets(Sums({1: (1, 5), 2: (1, 6)}), Sums({1: (1, 5)}))
    [2]
    """
    return sorted(b for b in {*source, *target} if source.get(b) != target.get(b))


def joined(pair: Pair, buckets: Collection[int]) -> DataFrame:
    """The rows of some buckets that differ: kind, hash of the key, and both rows."""
    everything = len(buckets) >= BUCKETS

    def grouped(frame: DataFrame) -> DataFrame:
        chosen = frame if everything else frame.where(bucket_of(pair.key).isin(*buckets))
        row = F.struct(*(quoted(name) for name in pair.columns)).alias("row")
        hash_ = row_hash(pair.columns)
        # A table that was merged wrongly may have two rows of one key.
        return chosen.groupBy(
            row_hash(pair.key).alias("key_hash"),
            F.struct(*(quoted(name) for name in pair.key)).alias("key"),
        ).agg(
            F.count("*").alias("copies"),
            F.sum(hash_.cast("decimal(20,0)")).alias("total"),
            F.min_by(F.struct(hash_.alias("hash"), row), hash_).alias("one"),
        )

    s, t = grouped(pair.source).alias("s"), grouped(pair.target).alias("t")
    same = (F.col("s.key_hash") == F.col("t.key_hash")) & F.col("s.key").eqNullSafe(F.col("t.key"))
    kind = F.expr("""
        CASE WHEN t.copies IS NULL THEN 'missing' WHEN s.copies IS NULL THEN 'extra'
             WHEN s.copies < t.copies THEN 'duplicate' WHEN s.copies > t.copies THEN 'missing'
             WHEN s.total <> t.total THEN 'different' END
    """)
    return (
        s.join(t, same, "full_outer")
        .select(
            kind.alias("kind"),
            F.expr("coalesce(s.key_hash, t.key_hash)").alias("key_hash"),
            F.expr("coalesce(s.key, t.key)").alias("key"),
            F.expr("s.one.hash").alias("source_hash"),
            F.expr("t.one.hash").alias("target_hash"),
            F.expr("s.one.row").alias("source"),
            F.expr("t.one.row").alias("target"),
            F.expr("struct(coalesce(s.copies, 0) AS s, coalesce(t.copies, 0) AS t)").alias("n"),
        )
        .where("kind IS NOT NULL")
    )


def of_keys(rows: DataFrame, only: Collection[int]) -> DataFrame:
    """Of rows that differ, those with these hashes of their keys."""
    keys = rows.sparkSession.createDataFrame([(key,) for key in only], "key_hash bigint")
    return rows.join(keys.hint("broadcast"), "key_hash", "left_semi")


def hashes(
    pair: Pair, buckets: Collection[int], most: int, only: Collection[int] | None = None
) -> dict[int, Hashes]:
    """The hashes of rows that differ, by the hash of their key; at most so many."""
    rows = joined(pair, buckets)
    if only is not None:
        rows = of_keys(rows, only)
    collected = rows.select("key_hash", "source_hash", "target_hash").limit(most).collect()
    return {row.key_hash: (row.source_hash, row.target_hash) for row in collected}


def differences(
    pair: Pair, buckets: Collection[int], most: int, only: Collection[int] | None = None
) -> Differences:
    """How many rows differ, and the first of them; `only` are hashes of their keys."""
    rows = joined(pair, buckets)
    if only is not None:
        rows = of_keys(rows, only)
    result = Differences({row.kind: row["count"] for row in rows.groupBy("kind").count().collect()})
    types = {f.name: f.dataType for f in pair.source.schema.fields}
    shown = rows.orderBy("key").limit(most)
    for row in shown.select(
        "kind",
        texts_of("key", pair.key, types).alias("key"),
        texts_of("source", pair.columns, types).alias("source"),
        texts_of("target", pair.columns, types).alias("target"),
        "n",
    ).collect():
        source, target = (None if r is None else tuple(r) for r in (row.source, row.target))
        copies = (int(row.n.s), int(row.n.t))
        result.rows.append(RowDifference(row.kind, tuple(row.key), source, target, copies))
    return result


def texts_of(struct: str, names: Sequence[str], types: dict[str, Any]) -> Column:
    """The members of a struct as an array of texts; null where it is null."""
    members = []
    for name in names:
        member = F.col(struct).getField(name)
        is_binary = isinstance(types[name], BinaryType)
        members.append(F.base64(member) if is_binary else member.cast("string"))
    return F.when(F.col(struct).isNotNull(), F.array(*members))
