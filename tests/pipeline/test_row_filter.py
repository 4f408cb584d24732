from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import pytest
from messages import canal, maxwell
from pyspark.sql import DataFrame, SparkSession

from headgate.config.job import Job, Source
from headgate.core.errors import UsageError
from headgate.pipeline.row_filter import restrictions
from headgate.pipeline.row_filter.check import check_conditions
from headgate.pipeline.row_filter.condition import Condition, conditions_of
from headgate.pipeline.row_filter.sql import literal
from headgate.pipeline.row_filter.types import spark_type
from headgate.pipeline.row_filter.values import images_of, with_condition_values
from headgate.pipeline.row_filter.verdicts import with_verdicts
from headgate.selection.filters import Filter
from headgate.selection.tables import Tables
from headgate.sources.kafka import KafkaSource
from headgate.sources.stdin import StdinSource

KAFKA = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    "headers array<struct<key:string,value:binary>>"
)
TYPES = {
    "id": "bigint(20) unsigned",
    "amount": "decimal(12,2)",
    "note": "varchar(20)",
    "f": "double",
    "d": "date",
    "t": "datetime(6)",
    "y": "year(4)",
    "b": "varbinary(8)",
    "z": "int(11)",
    "fine": "decimal(38,30)",
}
ROW = {
    "id": "9007199254740993",
    "amount": "100.10",
    "note": "abc",
    "f": "0.5",
    "d": "2024-02-29",
    "t": "2024-02-29 12:00:00.123456",
    "y": "2024",
    "b": "\x00\x01ÿ",
    "z": "0",
    "fine": "0.000000000000000000000000000001",
}


def job(*filters: Filter, schema: str | None = None, **changes: Any) -> Job:
    source = Source(StdinSource(), "canal-json")
    changes |= {"filters": filters, "schema": schema}
    return Job(name="j", source=source, sinks=(), checkpoint="c", dead_letters="d", **changes)


def kafka(spark: SparkSession, values: list[bytes]) -> DataFrame:
    rows = [
        (b"k", v, "cdc", 0, n, None, [("h", b"1")] if n else None) for n, v in enumerate(values)
    ]
    return spark.createDataFrame(rows, KAFKA)


def verdicts(spark: SparkSession, job: Job, values: list[bytes]) -> list[list[str]]:
    """What the engine does: judge, add the signatures that were unknown, judge again."""
    looked = with_condition_values(kafka(spark, values), job).persist()
    known: dict[int, set[str]] = {}
    for row in looked.select("images").collect():
        for image in row.images:
            known.setdefault(image.rule, set()).add(image.signature)
    found = with_verdicts(looked, job, known).orderBy("offset").collect()
    looked.unpersist()
    return [row.verdicts for row in found]


def each(spark: SparkSession, cases: dict[str, dict[str, str | None]]) -> dict[str, str]:
    """The verdicts of many conditions on a row each, in one Spark job; codes only."""
    filters = [Filter(f"shop.t{n}", where=where) for n, where in enumerate(cases)]
    values = [
        canal(table=f"t{n}", data=[ROW | changes], mysqlType=TYPES)
        for n, changes in enumerate(cases.values())
    ]
    found = verdicts(spark, job(*filters), values)
    return {where: one.partition("|")[0] for where, (one,) in zip(cases, found)}


# Reading a condition


def test_columns_and_their_places() -> None:
    condition = Condition("NEW.amount > old.`a``b` OR `it's` = Amount OR amount IS NULL")
    columns = [("new", "amount"), ("old", "a`b"), ("row", "it's"), ("row", "Amount")]

    assert columns == list(condition.columns)
    assert "1 > 2 OR 3 = 4 OR 4 IS NULL" == condition.filled(["1", "2", "3", "4"])


def test_variables_of_lambdas_are_no_columns() -> None:
    condition = Condition("exists(split(note, ','), x -> x = id)")

    assert ["note", "id"] == [column.name for column in condition.columns]


def test_a_column_called_old_or_new() -> None:
    columns = Condition("old > 1 AND new.new = old.old").columns

    assert ["old", "new.new", "old.old"] == [column.label for column in columns]


def test_a_condition_pickles() -> None:
    condition = pickle.loads(pickle.dumps(Condition("a > 1")))

    assert "x > 1" == condition.filled(["x"])


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("amount >", "not a valid Spark SQL condition at line 1"),
        ("amount > 1 /* x", "not a valid Spark SQL condition"),
        ("new.*", "a \\*"),
        ("(" * 5000 + "a", "not a valid Spark SQL condition"),
        ("", "not one condition"),
        ("a > 1; b > 2", "not one condition"),
        ("a IN (SELECT 1)", "a subquery"),
        ("EXISTS (SELECT 1)", "a subquery"),
        ("SELECT 1", "a subquery"),
        ("DROP TABLE x", "a statement"),
        ("a > 1 AS b", "a statement"),
        ("max(a) > 1", "an aggregate"),
        ("count(*) > 1", "an aggregate|a \\*"),
        ("row_number() OVER (ORDER BY a) > 1", "a window"),
        ("* > 1", "a \\*"),
        (":x > 1", "a parameter"),
        ("a = '${spark.app.name}'", "replace"),
        ("orders.amount > 1", "new.amount or old.amount"),
        ("new.a.b > 1", "is not a column"),
        ("rand() > a", "'rand' is non-deterministic"),
        ("`rand`() > a", "'rand' is non-deterministic"),
        ("uuid() = a", "'uuid'"),
        ("a > now ()", "'now'"),
        ("a > current_timestamp", "'current_timestamp'"),
        ("a > CURRENT_DATE()", "'current_date'"),
        ("a > unix_timestamp()", "'unix_timestamp'"),
        ("a > DATE 'today'", "'today'"),
        ("note RLIKE '^(a|b)*$'", "repeats a group"),
        ("regexp_like(note, '(ab)+')", "repeats a group"),
        ("note RLIKE id", "from the row"),
        ("regexp_count(note, id) > 1", "from the row"),
    ],
)
def test_what_is_refused(where: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Condition(where)


@pytest.mark.parametrize(
    "where",
    [
        "rand > 1",
        "new.current_date > old.current_date",
        "unix_timestamp(t) > 1",
        "note RLIKE '^(a|b)[cd]*\\\\)+$'",
        "aggregate(array(1), 0, (x, y) -> x + y) = z -- a comment",
    ],
)
def test_what_is_not_refused(where: str) -> None:
    assert Condition(where).columns


def test_a_refusal_names_the_filter() -> None:
    with pytest.raises(UsageError, match=r"filter on 'shop\.\*', where 'a >': .*; write"):
        conditions_of(job(Filter("shop.*", where="a >")))


@pytest.mark.parametrize(
    ("mysql", "spark"),
    [
        ("tinyint(1)", "DECIMAL(20,0)"),
        ("bit(64)", "DECIMAL(20,0)"),
        ("bool", "DECIMAL(20,0)"),
        ("decimal(5)", "DECIMAL(5,0)"),
        ("decimal", "DECIMAL(38,18)"),
        ("decimal(65,2)", "DECIMAL(38,2)"),
        ("decimal(5,10)", "?"),
        ("decimal(0,0)", "?"),
        ("decimal(900,2)", "?"),
        ("float unsigned", "DOUBLE"),
        ("timestamp", "TIMESTAMP"),
        ("year", "INT"),
        ("enum('a','b')", "STRING"),
        ("time(3)", "STRING"),
        ("longblob", "BINARY"),
        ("point", "?"),
        ("x') OR 1=1 --", "?"),
        (None, "?"),
    ],
)
def test_types(mysql: str | None, spark: str) -> None:
    assert spark == spark_type(mysql)


def test_an_old_row_that_was_not_sent_is_not_one_that_is_not_there() -> None:
    from headgate.core.event import Event

    assert ({}, {"a": "1"}) == images_of(Event("row", "update", after={"a": "1"}))
    assert (None, {"a": "1"}) == images_of(Event("row", "snapshot", after={"a": "1"}))
    assert ({"a": "1"}, None) == images_of(Event("row", "delete", before={"a": "1"}))


# Looking


def test_messages_stay_as_they_were(spark: SparkSession) -> None:
    values = [canal(), b"{", canal(data=[{"id": "1"}, {"id": "2"}], table="other")]
    messages = kafka(spark, values)
    looked = with_condition_values(
        messages, job(Filter("shop.orders", where="AMOUNT > 1 OR old.id > 1"))
    )

    assert [*messages.columns, "images"] == looked.columns
    assert [tuple(row) for row in messages.collect()] == [
        tuple(row[:-1]) for row in looked.collect()
    ]
    (image,), invalid, other = (row.images for row in looked.collect())
    assert ([], []) == (invalid, other)
    assert (0, "DECIMAL(12,2),DECIMAL(20,0)") == (image.rule, image.signature)
    assert (None, {"AMOUNT": "1.10"}) == (image.old, image.new)


def test_a_row_that_the_job_leaves_out_is_not_judged(spark: SparkSession) -> None:
    rules = job(
        Filter("shop.*", ops=("insert",), where="nothing > 1"), tables=Tables(exclude=("*.tmp",))
    )
    values = [canal(type="DELETE"), canal(table="tmp"), canal(type="TRUNCATE", data=None)]
    found = verdicts(spark, rules, values)

    assert [["drop"], ["drop"]] == found[:2]
    assert not [v for v in found[2] if v not in ("keep", "drop")]


# Judging


def test_rows_of_each_operation(spark: SparkSession) -> None:
    update = canal(type="UPDATE", old=[{"amount": "300.00"}])
    values = [
        canal(),
        update,
        canal(type="DELETE"),
        canal(data=[{"amount": "9"}, {"amount": None}]),
    ]
    wheres = [
        "amount > 1",
        "old.amount > new.amount",
        "new.amount IS NULL",
        "coalesce(old.amount, 0) = 0",
    ]
    expected = [
        [["keep"], ["keep"], ["keep"], ["keep", "drop"]],
        [["drop"], ["keep"], ["drop"], ["drop", "drop"]],
        [["drop"], ["drop"], ["keep"], ["drop", "keep"]],
        [["keep"], ["drop"], ["drop"], ["keep", "keep"]],
    ]
    found = [verdicts(spark, job(Filter("shop.orders", where=w)), values) for w in wheres]

    assert expected == found


def test_every_type_is_compared_as_what_it_is(spark: SparkSession) -> None:
    true = [
        "id = 9007199254740993 AND id <> 9007199254740992",
        "id % 2 = 1 AND id / 2 > 1",
        "amount > 100.09 AND amount < 100.11",
        "note LIKE 'a%' AND upper(note) = 'ABC'",
        "f = 0.5 AND f * 2 = 1",
        "d = '2024-02-29' AND d < DATE '2024-03-01' AND year(d) = 2024",
        "t > '2024-02-29 12:00:00.123' AND hour(t) = 12",
        "t = TIMESTAMP '2024-02-29 12:00:00.123456'",
        "y = 2024 AND y + 1 = 2025",
        "b = X'0001FF' AND length(b) = 3",
        "fine > 0 AND fine < 0.001",
        "note <> 'now' AND note <> 'today is fine'",
        "NOTE = 'abc' -- a comment",
        "note RLIKE '^[a-c]+$' AND exists(split(note, ''), i -> i = 'b')",
        "CASE WHEN z = 0 THEN true ELSE 1 / z > 0 END",
        "try_divide(1, z) IS NULL",
        "CAST(id AS STRING) = '9007199254740993'",
        'CAST(note AS STRING) = "abc"',
        "1 = 1",
    ]

    assert dict.fromkeys(true, "keep") == each(spark, {where: {} for where in true})


def test_what_goes_wrong_is_a_verdict_on_the_row(spark: SparkSession) -> None:
    """Spark 4 raises for these; the job must go on."""
    failing = [
        "1 / z > 1",
        "amount > 1 / 0",
        "1 / 0 > 1",
        "z % 0 = 1",
        "id % z = 1",
        "note > 1",
        "CAST(note AS INT) = 1",
        "CAST(id AS INT) = 1",
        "note::date > d",
        "to_date(note) = d",
        "to_timestamp(note, 'yyyy') = t",
        "date_add(d, CAST(id AS INT)) > d",
        "element_at(array(1), CAST(z AS INT)) = 1",
        "array(1)[CAST(amount AS INT)] = 1",
        "raise_error(note) IS NULL",
        "assert_true(note = 'x') IS NULL",
        "CAST(id AS BIGINT) + 9223372036854775807 > 1",
        "id * id * id * id > 1",
        "parse_json(note) IS NULL",
        "exists(array(1), x -> x / z > 1)",
        "d > CAST('today' AS DATE)",
        "d > 'tomorrow'",
        "note RLIKE '['",
        "make_date(y, 13, 1) > d",
        "to_number(note, '999') = 1",
        "decode(b, 'nope') = note",
        "aes_decrypt(b, b) = b",
        "CAST(note AS BOOLEAN)",
        "unhex('f') = b OR unhex(concat('x', note)) = b OR 1 / z > 0",
    ]

    assert dict.fromkeys(failing, "condition-error") == each(spark, {w: {} for w in failing})


def test_what_is_not_one_for_its_types(spark: SparkSession) -> None:
    """Spark's analysis refuses these, or would round before it compares."""
    mistyped = [
        "amount",
        "amount = true",
        "d > 5",
        "b > 1",
        "array(1)[id] = 1",
        "foo(amount) > 1",
        "id = '9007199254740992'",
        "amount IN ('1', '2')",
        "note > 1.5",
        "fine > id",
    ]

    assert dict.fromkeys(mistyped, "condition-type") == each(spark, {w: {} for w in mistyped})


def test_a_value_that_does_not_fit_its_type_is_never_rounded(spark: SparkSession) -> None:
    digits = "9" * 3_000_000  # Spark would take minutes to find that it is no DECIMAL
    misfits: dict[str, dict[str, str | None]] = {
        "amount > 1": {"amount": "1.001"},
        "amount > 2": {"amount": "10000000000.00"},
        "id > 1": {"id": "1.5"},
        "id > 2": {"id": digits},
        "z > 1": {"z": "0x10"},
        "f > 1": {"f": "1e999"},
        "f > 2": {"f": "NaN"},
        "f > 3": {"f": "1d"},
        "d > '2020-01-01'": {"d": "0000-00-00"},
        "d > '2020-01-02'": {"d": "2024"},
        "t > '2020-01-01'": {"t": "2024-02-30 00:00:00"},
        "y > 1": {"y": "abcd"},
    }
    fits: dict[str, dict[str, str | None]] = {
        "amount = 1": {"amount": "1.0000"},
        "id > 0": {"id": "18446744073709551615"},
        "z < 0": {"z": "-9223372036854775808"},
        "f > 0": {"f": "1.5e-3"},
    }
    found = each(spark, misfits | fits)

    assert dict.fromkeys(misfits, "condition-value") | dict.fromkeys(fits, "keep") == found


def test_null_is_no_misfit_and_does_not_hold(spark: SparkSession) -> None:
    cases: dict[str, dict[str, str | None]] = {
        "amount > 1": {"amount": None},
        "NOT amount > 1": {"amount": None},
        "NOT amount <=> 1": {"amount": None},
    }

    assert ["drop", "drop", "keep"] == list(each(spark, cases).values())


def test_a_column_that_is_not_there_parks_the_row(spark: SparkSession) -> None:
    rules = job(Filter("shop.*", where="amount > 1 OR old.gone IS NULL OR total > 1"))
    found = verdicts(spark, rules, [canal(), canal(data=[{"total": "1"}])])
    said = (
        "no-such-column|the row has no column 'total', which the condition on 'shop.*' uses; "
        "correct the condition, or let the producer send the column"
    )

    assert said == found[0][0]
    assert "no-such-column|the row has no column 'amount'" in found[1][0]


def test_an_old_row_that_was_not_sent_parks_the_update(spark: SparkSession) -> None:
    sent = maxwell(type="update", data={"id": 1}, old=None)
    rules = job(
        Filter("shop.orders", where="old.id IS NULL"), schema="CREATE TABLE orders (id INT)"
    )
    rules = replace(rules, source=Source(StdinSource(), "maxwell"))
    (found,) = verdicts(spark, rules, [sent])

    assert found[0].startswith("no-such-column|the old row has no column 'id'")


def test_a_type_that_nobody_tells_parks_the_row_and_a_schema_mends_it(spark: SparkSession) -> None:
    message = canal(mysqlType=None, sqlType=None, data=[{"ID": "1", "amount": "7.00"}])
    where = Filter("shop.orders", where="id < 2 AND amount > 5")
    schema = "CREATE TABLE orders (id INT PRIMARY KEY, amount DECIMAL(12,2))"
    (untyped,) = verdicts(spark, job(where), [message])
    (typed,) = verdicts(spark, job(where, schema=schema), [message])

    assert untyped[0].startswith("condition-type|the type of column 'id' is unknown")
    assert "give the job a schema" in untyped[0]
    assert ["keep"] == typed


def test_labels_come_from_the_schema(spark: SparkSession) -> None:
    schema = "CREATE TABLE orders (id INT PRIMARY KEY, size ENUM('S','M'))"
    message = canal(mysqlType={"id": "int", "size": "enum"}, data=[{"id": "1", "size": "2"}])
    (found,) = verdicts(
        spark, job(Filter("shop.orders", where="size = 'M'"), schema=schema), [message]
    )

    assert ["keep"] == found


def test_a_signature_that_is_new_is_asked_for(spark: SparkSession) -> None:
    rules = job(Filter("shop.orders", where="amount > 1"))
    looked = with_condition_values(kafka(spark, [canal()]), rules)
    many = {
        0: {f"DECIMAL({n},0)" for n in range(1, 39)} | {f"DECIMAL(38,{n})" for n in range(1, 31)}
    }

    assert ["unknown-signature|DECIMAL(12,2)"] == with_verdicts(looked, rules, {}).first().verdicts
    (full,) = with_verdicts(looked, rules, many).first().verdicts
    assert full.startswith("condition-type|the columns in the condition on 'shop.orders' come in")


def test_hostile_names_stay_names(spark: SparkSession) -> None:
    names = ["a'b", "a\\", "a\\'b", "') OR true --", 'a"b', "$x", "ä€😀", "a\nb", "a`b", "x.y"]
    filters = [
        Filter(f"shop.t{n}", where=f"`{name.replace('`', '``')}` = 5")
        for n, name in enumerate(names)
    ]
    values = [
        canal(table=f"t{n}", data=[{name: str(v)}], mysqlType={name: "int"})
        for v in (5, 6)
        for n, name in enumerate(names)
    ]
    found = verdicts(spark, job(*filters), values)

    assert [["keep"]] * len(names) + [["drop"]] * len(names) == found


@pytest.mark.parametrize("text", ["", "plain", "it's", "\\", "${x}", "a\nb", "ä😀\0"])
def test_literals_mean_their_text(spark: SparkSession, text: str) -> None:
    assert text == spark.sql(f"SELECT {literal(text)} AS t").first().t


# Checking at the start


def test_a_column_that_the_schema_has_not_is_refused(spark: SparkSession) -> None:
    schema = "CREATE TABLE shop.orders (id INT, amount DECIMAL(9,2)); CREATE TABLE shop.x (id INT);"
    rules = job(Filter("shop.orders", where="id > 1 AND amout > 1"), schema=schema)

    with pytest.raises(
        UsageError,
        match=r"filter on 'shop.orders', where .*: unknown column of shop.orders 'amout'; "
        "did you mean 'amount'",
    ):
        check_conditions(spark, rules)
    with pytest.raises(UsageError, match=r"unknown column of shop\.x 'amount'"):
        check_conditions(spark, job(Filter("shop.*", where="amount > 1"), schema=schema))
    left_out = Tables(exclude=("shop.x",))
    check_conditions(
        spark, job(Filter("shop.*", where="AMOUNT > 1"), schema=schema, tables=left_out)
    )


def test_a_table_without_a_database_is_that_of_any(spark: SparkSession) -> None:
    schema = "CREATE TABLE orders (id INT)"

    for table in ("shop.orders", "sh*.ord*", "*.*"):
        with pytest.raises(UsageError, match="'amount'"):
            check_conditions(spark, job(Filter(table, where="amount > 1"), schema=schema))
    check_conditions(spark, job(Filter("shop.other", where="amount > 1"), schema=schema))


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("d > 5", 'Spark says: Cannot resolve "\\(d > 5\\)"'),
        ("amount", "Spark says"),
        ("amount = '100'", "compare a string as a double"),
        ("foo(amount) = 1", "Cannot resolve routine `foo`"),
        ("histogram_numeric(amount, 5) IS NULL", "Spark says"),
        ("explode(array(amount)) = 1", "Spark says"),
    ],
)
def test_what_spark_refuses_is_refused_at_the_start(
    spark: SparkSession, where: str, said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    schema = "CREATE TABLE shop.t (amount DECIMAL(9,2), d DATE)"

    with pytest.raises(UsageError, match=said):
        check_conditions(spark, job(Filter("shop.t", where=where), schema=schema))
    assert "" == capfd.readouterr().err


def test_without_a_schema_only_what_no_types_could_mend_is_refused(spark: SparkSession) -> None:
    check_conditions(
        spark, job(Filter("*.*", where="amount > 5 AND d + INTERVAL 1 DAY > t AND b = X'00'"))
    )
    check_conditions(spark, job(Filter("*.*", where="array(1)[n] = 1 AND amount = '5'")))
    for where in (
        "foo(amount) = 1",
        "sum_of(a) > 1",
        "substring(a) = b",
        "histogram_numeric(a, 5) = b",
    ):
        with pytest.raises(UsageError, match="Spark says"):
            check_conditions(spark, job(Filter("*.*", where=where)))


def test_spark_tells_of_functions_of_chance_that_are_not_listed(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restrictions, "NONDETERMINISTIC", frozenset())

    for schema in (None, "CREATE TABLE shop.t (amount INT)"):
        with pytest.raises(UsageError, match="must give the same result on replay"):
            check_conditions(spark, job(Filter("shop.t", where="rand() > amount"), schema=schema))


def test_a_setting_that_changes_what_conditions_mean_is_refused(spark: SparkSession) -> None:
    rules = job(Filter("*.*", where="a > 1"))
    other = spark.newSession()
    other.conf.set("spark.sql.ansi.enabled", "false")

    with pytest.raises(UsageError, match=r"spark\.sql\.ansi\.enabled=true"):
        check_conditions(other, rules)
    check_conditions(other, job())
    other.conf.set("spark.sql.ansi.enabled", "true")
    other.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    with pytest.raises(UsageError, match="timeZone=UTC"):
        check_conditions(other, rules)


def test_secrets_are_not_sent_to_workers(spark: SparkSession) -> None:
    from pyspark.cloudpickle import dumps

    sent: list[Any] = []

    class Frame:
        schema = kafka(spark, []).schema

        def mapInArrow(self, run: Any, out: Any) -> None:
            sent.append(run)

    client = {"kafka.sasl.jaas.config": "hunter2"}
    source = Source(KafkaSource(("t",), "earliest", client), "canal-json")
    rules = replace(job(Filter("*.*", where="a > 1")), source=source)
    with_condition_values(Frame(), rules)  # type: ignore[arg-type]

    assert b"hunter2" not in dumps(sent[0])
