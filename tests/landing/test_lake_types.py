"""MySQL's types in a lake: which type, which value, and what does not fit."""

from __future__ import annotations

import re
from base64 import b64encode
from dataclasses import fields
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from paths import DOCS

from headgate.core.errors import UsageError
from headgate.core.mysql_types import COLUMN_TYPES
from headgate.core.options import build
from headgate.landing.types import (
    TypePreferences,
    arrow_type,
    lake_type,
    lake_type_of,
    typed,
    upcast,
    wider,
)

CONTEXT = Context(prec=70)
TEXT_SHAPES = TypePreferences(geometry="string")
LONG = "9" * 35 + "." + "1" * 30
LAKE_TYPES = [
    "boolean", "tinyint", "smallint", "int", "bigint", "decimal(5,2)", "decimal(20,0)",
    "decimal(38,30)", "float", "double", "date", "timestamp", "timestamp_ntz", "string", "binary",
]  # fmt: skip

VALUES: list[tuple[str, str, str, Any]] = [
    # MySQL type, lake type, canonical text, value
    ("tinyint", "tinyint", "-128", -128),
    ("tinyint(4)", "tinyint", "127", 127),
    ("tinyint(1)", "tinyint", "2", 2),
    ("bool", "tinyint", "1", 1),
    ("tinyint unsigned", "smallint", "255", 255),
    ("smallint", "smallint", "-32768", -32768),
    ("smallint(5) unsigned", "int", "65535", 65535),
    ("mediumint", "int", "-8388608", -8388608),
    ("mediumint unsigned", "int", "16777215", 16777215),
    ("int(11)", "int", "-2147483648", -2147483648),
    ("INT UNSIGNED", "bigint", "4294967295", 4294967295),
    ("int(8) unsigned zerofill", "bigint", "00000042", 42),
    ("int(5) zerofill", "bigint", "00042", 42),
    ("bigint", "bigint", "-9223372036854775808", -(2**63)),
    ("INT64", "bigint", "9223372036854775807", 2**63 - 1),
    ("bigint(20) unsigned", "decimal(20,0)", "18446744073709551615", Decimal(2**64 - 1)),
    ("decimal(10,2)", "decimal(10,2)", "-99999999.99", Decimal("-99999999.99")),
    ("DECIMAL(12, 2) unsigned", "decimal(12,2)", "1.10", Decimal("1.10")),
    ("numeric(38,0)", "decimal(38,0)", "9" * 38, Decimal("9" * 38)),
    ("decimal(38,30)", "decimal(38,30)", "-12345678." + "9" * 30,
     Decimal("-12345678." + "9" * 30)),
    ("decimal(5)", "decimal(5,0)", "12345", Decimal(12345)),
    ("decimal(65,30)", "string", LONG, LONG),
    ("decimal(39,0)", "string", "9" * 39, "9" * 39),
    ("decimal", "string", "1.10", "1.10"),
    ("float", "float", "0.1", 0.10000000149011612),
    ("float", "float", "3.4028235e38", 3.4028234663852886e38),
    ("float(7,3)", "float", "1234.5", 1234.5),
    ("float(53)", "double", "0.1", 0.1),
    ("double", "double", "-1.7976931348623157e308", -1.7976931348623157e308),
    ("double unsigned", "double", "5e-324", 5e-324),
    ("real", "double", "1", 1.0),
    ("bit(1)", "boolean", "1", True),
    ("bit(1)", "boolean", "0", False),
    ("bit(8)", "bigint", "255", 255),
    ("bit(63)", "bigint", "9223372036854775807", 2**63 - 1),
    ("bit(64)", "decimal(20,0)", "18446744073709551615", Decimal(2**64 - 1)),
    ("bit", "decimal(20,0)", "257", Decimal(257)),
    ("date", "date", "1000-01-01", date(1000, 1, 1)),
    ("date", "date", "9999-12-31", date(9999, 12, 31)),
    ("date", "date", "0001-01-01", date(1, 1, 1)),
    ("datetime", "timestamp_ntz", "2024-02-29 23:59:59", datetime(2024, 2, 29, 23, 59, 59)),
    ("datetime(3)", "timestamp_ntz", "2024-05-01 08:00:00.120",
     datetime(2024, 5, 1, 8, 0, 0, 120_000)),
    ("datetime(6)", "timestamp_ntz", "9999-12-31 23:59:59.999999",
     datetime(9999, 12, 31, 23, 59, 59, 999_999)),
    ("datetime", "timestamp_ntz", "0001-01-01 00:00:00", datetime(1, 1, 1)),
    ("timestamp", "timestamp", "1970-01-01 00:00:01", datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)),
    ("timestamp(6)", "timestamp", "2038-01-19 03:14:07.999999",
     datetime(2038, 1, 19, 3, 14, 7, 999_999, tzinfo=UTC)),
    ("time", "string", "-838:59:59", "-838:59:59"),
    ("time(6)", "string", "838:59:58.999999", "838:59:58.999999"),
    ("year", "smallint", "2155", 2155),
    ("year(4)", "smallint", "0000", 0),
    ("char(3)", "string", "abc", "abc"),
    ("varchar(255)", "string", "", ""),
    ("tinytext", "string", "a\nb", "a\nb"),
    ("text", "string", "价格", "价格"),
    ("mediumtext", "string", "x" * 70_000, "x" * 70_000),
    ("longtext", "string", "\0", "\0"),
    ("enum('a','it''s')", "string", "it's", "it's"),
    ("set('a','b')", "string", "a,b", "a,b"),
    ("json", "string", '{"a": 1.10}', '{"a": 1.10}'),
    ("binary(3)", "binary", "AAAA", b"\0\0\0"),
    ("varbinary(16)", "binary", "", b""),
    ("tinyblob", "binary", "/w==", b"\xff"),
    ("blob", "binary", "Bf8=", b"\x05\xff"),
    ("mediumblob", "binary", "YQ==", b"a"),
    ("longblob", "binary", b64encode(bytes(70_000)).decode(), bytes(70_000)),
    ("geometry", "binary", "5hAAAAEBAAAA", b"\xe6\x10\0\0\x01\x01\0\0\0"),
    ("point", "binary", "AAAA", b"\0\0\0"),
    ("vector", "string", "[1,2.5]", "[1,2.5]"),
    ("vector(3)", "string", "[1,2,3]", "[1,2,3]"),
    ("uuid", "string", "123e4567-e89b-12d3-a456-426655440000",
     "123e4567-e89b-12d3-a456-426655440000"),
    ("inet4", "string", "10.0.0.1", "10.0.0.1"),
    ("inet6", "string", "::1", "::1"),
    ("INTERVAL_DAY_TO_SECOND", "string", "+01 02:03:04.5", "+01 02:03:04.5"),
    ("tsvector", "string", "'a':1", "'a':1"),
    ("int4range", "string", "[1,2)", "[1,2)"),
    ("", "string", "1", "1"),
]  # fmt: skip


@pytest.mark.parametrize(("mysql", "lake", "text", "value"), VALUES)
def test_a_value_lands_in_the_type_of_its_column(
    mysql: str, lake: str, text: str, value: Any
) -> None:
    assert lake == lake_type(mysql)

    column, misfits = typed(pa.array([text, None]), mysql, lake)

    assert {} == misfits
    assert [value, None] == column.to_pylist()
    assert arrow_type(lake) == column.type
    assert lake == lake_type_of(column.type)


def test_every_column_type_of_mysql_is_in_the_table_above() -> None:
    synonyms = {"boolean", "integer", "dec", "fixed"}
    spatial = {name for name in COLUMN_TYPES if lake_type(name, TEXT_SHAPES) != lake_type(name)}
    shown = {mysql.lower().split("(")[0].split(" ")[0] for mysql, *_ in VALUES}

    assert set() == COLUMN_TYPES - shown - synonyms - spatial
    assert {"geometry", "point"} == shown & spatial


def test_the_documentation_names_every_type_and_every_choice() -> None:
    page = (DOCS / "lake-types.md").read_text()

    synonyms = {"bool", "integer", "dec", "fixed", "numeric"}
    spatial = {name for name in COLUMN_TYPES if lake_type(name, TEXT_SHAPES) != lake_type(name)}
    for name in COLUMN_TYPES - synonyms - spatial:
        assert re.search(rf"\| .*\b{name.upper()}\b", page), name
    for lake in LAKE_TYPES:
        assert f"`{lake.split('(')[0]}" in page, lake
    for each in fields(TypePreferences):
        assert f"| `{each.name}` |" in page, each.name
        for choice in each.metadata["choices"]:
            assert f"`{choice}`" in page, choice


def test_a_column_without_a_known_type_is_text() -> None:
    column, misfits = typed(pa.array(["1", "x"]), None, lake_type(None))

    assert (["1", "x"], {}) == (column.to_pylist(), misfits)


@pytest.mark.parametrize(
    ("mysql", "text"),
    [
        ("tinyint", "128"),
        ("tinyint unsigned", "-1"),
        ("int", "2147483648"),
        ("int unsigned", "-1"),
        ("bigint", "18446744073709551615"),
        ("bigint unsigned", "-1"),
        ("bigint unsigned", "1" * 21),
        ("int", "1.5"),
        ("int", ""),
        ("int", " 1"),
        ("decimal(10,2)", "1.105"),
        ("decimal(10,2)", "999999999.00"),
        ("decimal(38,0)", "9" * 39),
        ("double", "1e400"),
        ("float", "nan"),
        ("bit(1)", "2"),
        ("bit(8)", "b'1'"),
        ("date", "0000-00-00"),
        ("date", "2024-00-10"),
        ("date", "2024-02-30"),
        ("date", "infinity"),
        ("datetime", "0000-00-00 00:00:00"),
        ("datetime(6)", "2024-05-01 08:00:00.1234567"),
        ("timestamp", "0000-00-00 00:00:00"),
        ("timestamp", "2024-05-01 08:00:00+02:00"),
        ("year", "x"),
        ("blob", "no base64"),
        ("blob", "YQ"),
        ("geometry", "POINT(1 1)"),
    ],
)
def test_a_value_that_does_not_fit_its_column_is_a_misfit(mysql: str, text: str) -> None:
    column, misfits = typed(pa.array([None, text, None]), mysql, lake_type(mysql))

    assert {1: text} == misfits
    assert [None] * 3 == column.to_pylist()


# Preferences


ZERO_DATES = ["0000-00-00", "2024-00-10", "2024-02-30", "0000-01-01"]


@pytest.mark.parametrize("mysql", ["date", "datetime(3)", "timestamp"])
def test_zero_dates_are_misfits_or_null_or_text(mysql: str) -> None:
    time_of_day = "" if mysql == "date" else " 00:00:00"
    zeros = [day + time_of_day for day in ZERO_DATES]
    texts = pa.array([*zeros, "2024-05-01" + time_of_day, "x"])

    def landed(choice: str) -> tuple[pa.Array, dict[int, str]]:
        preferences = TypePreferences(zero_dates=choice)
        return typed(texts, mysql, lake_type(mysql, preferences), preferences)

    column, misfits = landed("misfit")
    assert {**dict(enumerate(zeros)), 5: "x"} == misfits
    nulled, misfits = landed("null")
    assert {5: "x"} == misfits
    assert nulled.equals(column)
    assert [4] == [row for row, value in enumerate(nulled.to_pylist()) if value is not None]
    column, misfits = landed("string")
    assert (texts.to_pylist(), {}) == (column.to_pylist(), misfits)


@pytest.mark.parametrize(
    ("mysql", "lake"),
    [
        ("decimal(65,30)", "decimal(38,30)"),
        ("decimal(39,2)", "decimal(38,2)"),
        ("decimal(38,30)", "decimal(38,30)"),
        ("decimal", "decimal(38,18)"),
        ("decimal(100,90)", "string"),
    ],
)
def test_long_decimals_may_be_cut_to_38_digits(mysql: str, lake: str) -> None:
    assert lake == lake_type(mysql, TypePreferences(decimal_overflow="decimal38"))


def test_of_a_decimal_with_38_digits_only_what_fits_lands() -> None:
    column, misfits = typed(pa.array([LONG, "1.5"]), "decimal(65,30)", "decimal(38,30)")

    assert {0: LONG} == misfits
    assert [None, Decimal("1.5")] == column.to_pylist()


@pytest.mark.parametrize("mysql", ["tinyint(1)", "bool", "BOOLEAN"])
def test_tinyint1_may_be_a_boolean(mysql: str) -> None:
    preferences = TypePreferences(tinyint1="boolean")

    column, misfits = typed(pa.array(["1", "0", "2", None]), mysql, lake_type(mysql, preferences))

    assert [True, False, None, None] == column.to_pylist()
    assert {2: "2"} == misfits
    assert ["tinyint", "smallint"] == [
        lake_type(other, preferences) for other in ("tinyint", "tinyint(1) unsigned")
    ]


def test_geometry_may_be_text() -> None:
    preferences = TypePreferences(geometry="string")

    column, misfits = typed(pa.array(["POINT(1 1)"]), "point", lake_type("point", preferences))

    assert (["POINT(1 1)"], {}) == (column.to_pylist(), misfits)


def test_preferences_are_options() -> None:
    given = {"zero-dates": "null", "tinyint1": "boolean", "json": "string"}

    assert TypePreferences(zero_dates="null", tinyint1="boolean") == build(TypePreferences, given)


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("json", "variant", "use json: string, and parse_json"),
        ("json", "text", "json cannot be 'text'; it is one of: string"),
        ("zero_dates", "epoch", "one of: misfit, null, string"),
        ("decimal_overflow", "double", "one of: string, decimal38"),
    ],
)
def test_what_cannot_be_landed_is_refused(name: str, value: str, error: str) -> None:
    with pytest.raises(UsageError, match=error):
        build(TypePreferences, {name: value})


def test_an_unknown_lake_type_is_refused_by_name() -> None:
    for lake in ("decimal(39,0)", "decimal(2,3)", "decimal(0,0)", "integer"):
        with pytest.raises(UsageError, match="unknown lake type"):
            arrow_type(lake)


# There and back: the landed value is the source's value, digit by digit

integer_ranges = {
    "tinyint": (-(2**7), 2**7 - 1),
    "tinyint unsigned": (0, 2**8 - 1),
    "smallint unsigned": (0, 2**16 - 1),
    "mediumint": (-(2**23), 2**23 - 1),
    "int": (-(2**31), 2**31 - 1),
    "int unsigned": (0, 2**32 - 1),
    "bigint": (-(2**63), 2**63 - 1),
    "bigint unsigned": (0, 2**64 - 1),
    "bit(63)": (0, 2**63 - 1),
    "bit(64)": (0, 2**64 - 1),
}


@st.composite
def integers(draw: st.DrawFn) -> tuple[str, list[str]]:
    mysql, (low, high) = draw(st.sampled_from(list(integer_ranges.items())))
    return mysql, draw(st.lists(st.integers(low, high).map(str)))


@st.composite
def decimals(draw: st.DrawFn) -> tuple[str, list[str]]:
    digits = draw(st.integers(1, 65))
    scale = draw(st.integers(0, min(digits, 30)))
    numbers = st.integers(-(10**digits) + 1, 10**digits - 1)
    texts = (f"{Decimal(n).scaleb(-scale, CONTEXT):f}" for n in draw(st.lists(numbers)))
    return f"decimal({digits},{scale})", list(texts)


@st.composite
def datetimes(draw: st.DrawFn) -> tuple[str, list[str]]:
    digits = draw(st.integers(0, 6))
    base = draw(st.sampled_from(["datetime", "timestamp"]))
    steps = draw(st.lists(st.integers(0, 10**14)))
    unit = timedelta(microseconds=10 ** (6 - digits))
    times = (datetime(1000, 1, 1) + unit * (step % (10**11)) for step in steps)
    texts = [f"{t:%Y-%m-%d %H:%M:%S.%f}".rjust(26, "0") for t in times]
    mysql = f"{base}({digits})" if digits else base
    return mysql, [text[: 20 + digits] if digits else text[:19] for text in texts]


@st.composite
def days(draw: st.DrawFn) -> tuple[str, list[str]]:
    return "date", [day.isoformat() for day in draw(st.lists(st.dates()))]


@given(st.one_of(integers(), decimals(), datetimes(), days()))
def test_landed_values_give_the_same_text_back(column: tuple[str, list[str]]) -> None:
    mysql, texts = column

    landed, misfits = typed(pa.array(texts, pa.string()), mysql, lake_type(mysql))

    assert {} == misfits
    assert texts == upcast(landed, "string", mysql).to_pylist()


@given(st.lists(st.one_of(st.none(), st.binary())))
def test_landed_bytes_are_the_source_s(values: list[bytes | None]) -> None:
    texts = [None if value is None else b64encode(value).decode() for value in values]

    assert values == typed(pa.array(texts, pa.string()), "blob", "binary")[0].to_pylist()


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False)))
def test_landed_doubles_are_the_source_s(values: list[float]) -> None:
    texts = pa.array([repr(value) for value in values], pa.string())

    landed, misfits = typed(texts, "double", "double")

    assert (values, {}) == (landed.to_pylist(), misfits)


# Wider types


@pytest.mark.parametrize(
    ("narrow", "other", "both"),
    [
        ("tinyint", "smallint", "smallint"),
        ("smallint", "int", "int"),
        ("int", "bigint", "bigint"),
        ("boolean", "tinyint", "tinyint"),
        ("bigint", "decimal(20,0)", "decimal(20,0)"),
        ("boolean", "decimal(20,0)", "decimal(20,0)"),
        ("bigint", "decimal(5,2)", "decimal(21,2)"),
        ("decimal(10,2)", "decimal(12,2)", "decimal(12,2)"),
        ("decimal(10,2)", "decimal(10,4)", "decimal(12,4)"),
        ("decimal(38,0)", "decimal(38,30)", "string"),
        ("float", "double", "double"),
        ("smallint", "float", "float"),
        ("int", "float", "double"),
        ("int", "double", "double"),
        ("date", "timestamp_ntz", "timestamp_ntz"),
        ("int", "string", "string"),
        ("decimal(38,30)", "string", "string"),
        ("double", "string", "string"),
        ("timestamp", "string", "string"),
        ("bigint", "double", None),
        ("bigint", "float", None),
        ("decimal(5,2)", "double", None),
        ("binary", "string", None),
        ("binary", "int", None),
        ("date", "timestamp", None),
        ("timestamp", "timestamp_ntz", None),
        ("date", "int", None),
        ("boolean", "date", None),
    ],
)
def test_the_type_that_holds_both(narrow: str, other: str, both: str | None) -> None:
    assert both == wider(narrow, other)
    assert both == wider(other, narrow)


@pytest.mark.parametrize("a", LAKE_TYPES)
@pytest.mark.parametrize("b", LAKE_TYPES)
def test_a_wider_type_holds_both(a: str, b: str) -> None:
    both = wider(a, b)
    if both is None:
        with pytest.raises(ValueError, match="does not hold every value"):
            upcast(pa.nulls(1, arrow_type(a)), b)
        return

    assert both == wider(a, both) == wider(both, b)
    for lake in (a, b):
        assert [None] == upcast(pa.nulls(1, arrow_type(lake)), both).to_pylist()


EXTREMES = {
    "boolean": ["1", "0"],
    "tinyint": ["-128", "127"],
    "smallint": ["-32768", "32767"],
    "int": ["-2147483648", "2147483647"],
    "bigint": ["-9223372036854775808", "9223372036854775807"],
    "decimal(5,2)": ["-999.99", "0.00", "0.01"],
    "decimal(20,0)": ["-99999999999999999999", "99999999999999999999"],
    "decimal(38,30)": ["0." + "0" * 29 + "1", "0." + "0" * 30, "-99999999." + "9" * 30],
    "date": ["0001-01-01", "9999-12-31"],
    "timestamp": ["0001-01-01 00:00:00.000000", "9999-12-31 23:59:59.999999"],
    "timestamp_ntz": ["0001-01-01 00:00:00.000000", "9999-12-31 23:59:59.999999"],
    "string": ["", "x"],
}


UPCASTS = [
    (lake, target)
    for lake in EXTREMES
    for target in LAKE_TYPES
    if lake != target and wider(lake, target) == target
]


@pytest.mark.parametrize(("lake", "target"), UPCASTS)
def test_an_upcast_keeps_every_value(lake: str, target: str) -> None:
    texts = EXTREMES[lake]
    column, _ = typed(pa.array(texts), None, lake)

    landed = upcast(column, target)

    assert arrow_type(target) == landed.type
    if target == "string":
        assert texts == landed.to_pylist()
    elif target == "timestamp_ntz":
        assert [f"{text} 00:00:00" for text in texts] == [str(v) for v in landed.to_pylist()]
    else:
        assert list(map(Decimal, texts)) == list(map(Decimal, landed.to_pylist()))


def test_a_time_as_text_has_the_digits_of_its_column() -> None:
    column = pa.array([datetime(2024, 5, 1, 8, 0, 0, 120_000)], pa.timestamp("us"))

    assert ["2024-05-01 08:00:00.120"] == upcast(column, "string", "datetime(3)").to_pylist()
    assert ["2024-05-01 08:00:00.120000"] == upcast(column, "string").to_pylist()
