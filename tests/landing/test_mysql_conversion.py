"""What MySQL 8 makes of existing values, by ALTER TABLE … MODIFY and ADD COLUMN.

Both tables say what a server does to rows that are there: a type change converts their values, a
new column gives them a value. Nothing of it is in the binlog but the statement.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.core.mysql_types import parse_type
from headgate.landing.conversion import NotConvertible, converted, selected
from headgate.landing.defaults import existing_value
from headgate.landing.mysql_conversion import text_rule
from headgate.landing.mysql_times import NotComputable
from headgate.landing.operations import ColumnSource
from headgate.landing.shape import table_shape
from headgate.landing.types import TypePreferences, arrow_type, lake_type, typed
from headgate.schema.changes import AddColumn, TableId
from headgate.schema.ddl import changes

CONVERSIONS: list[tuple[str, str, dict[str, str]]] = [
    # Numbers: rounded away from zero at half, clipped to what the type holds
    ("bigint", "int", {"5": "5", "-5": "-5", "3000000000": "2147483647"}),
    ("int", "int unsigned", {"7": "7", "-7": "0"}),
    ("int", "tinyint", {"127": "127", "128": "127", "-200": "-128"}),
    ("decimal(10,3)", "decimal(10,1)", {"1.250": "1.3", "-1.250": "-1.3", "0.040": "0.0"}),
    ("decimal(10,3)", "decimal(4,1)", {"9999.000": "999.9", "-9999.000": "-999.9"}),
    ("decimal(10,2)", "int", {"2.50": "3", "-2.50": "-3", "2.49": "2", "-0.40": "0"}),
    ("decimal(65,30)", "decimal(65,2)", {"1" * 35 + "." + "5" * 30: "1" * 35 + ".56"}),
    ("double", "int", {"2.5": "2", "3.5": "4", "-2.5": "-2", "1e300": "2147483647"}),
    ("double", "decimal(6,2)", {"1.005": "1.01", "2.675": "2.68", "1e9": "9999.99"}),
    ("int", "decimal(6,2)", {"12": "12.00", "123456": "9999.99"}),
    ("decimal(20,5)", "double", {"0.10000": "0.1", "12345678901234.56789": "12345678901234.568"}),
    ("bigint", "float", {"16777217": "16777216.0"}),
    ("bit(8)", "int", {"255": "255"}),
    ("int", "bit(4)", {"7": "7", "99": "15", "-1": "0"}),
    ("year", "int", {"2024": "2024"}),
    ("int", "year", {"2024": "2024"}),
    # Text that is read as a number: as far as it is one
    ("varchar(20)", "int", {"42": "42", " 42": "42", "1.5": "2", "1e3": "1000", "7 up": "7"}),
    ("varchar(20)", "int", {"": "0", "up": "0", "99999999999": "2147483647", "-.5": "-1"}),
    ("varchar(20)", "decimal(5,2)", {"1.005": "1.01", "1e-999999": "0.00", "1e999999": "999.99"}),
    ("varchar(20)", "double", {"0.1": "0.1", "1e3x": "1000.0"}),
    # Text
    ("int", "varchar(20)", {"-42": "-42"}),
    ("int(5) unsigned zerofill", "varchar(20)", {"42": "00042"}),
    ("decimal(10,2)", "varchar(4)", {"1.50": "1.50", "-12.50": "-12."}),
    ("year", "char(4)", {"2024": "2024", "0": "0000"}),
    ("varchar(20)", "varchar(3)", {"abc": "abc", "日本語文": "日本語", "ab  ": "ab "}),
    ("varchar(20)", "char(5)", {"ab  ": "ab", "abcdef": "abcde"}),
    ("text", "varchar(2)", {"xyz": "xy"}),
    ("varchar(20)", "json", {'{"b":1}': '{"b":1}'}),
    ("date", "varchar(20)", {"2024-02-29": "2024-02-29"}),
    ("datetime(3)", "varchar(30)", {"2024-02-29 01:02:03.400": "2024-02-29 01:02:03.400"}),
    ("time", "varchar(20)", {"-838:59:59": "-838:59:59"}),
    # Bytes, in base64
    ("varbinary(4)", "binary(4)", {"/w==": "/wAAAA==", "AQIDBA==": "AQIDBA=="}),
    ("varbinary(4)", "varbinary(2)", {"AQIDBA==": "AQI="}),
    # Labels: by name, whatever their number
    ("enum('a','b')", "enum('b','a')", {"a": "a", "b": "b"}),
    ("enum('a','b')", "enum('A','c')", {"a": "A", "b": ""}),
    ("enum('a','b')", "varchar(9)", {"a": "a"}),
    ("enum('a','b')", "int", {"a": "1", "b": "2", "": "0"}),
    ("varchar(9)", "enum('a','b')", {"B": "b", "2": "b", "x": ""}),
    ("int", "enum('a','b')", {"1": "a", "9": ""}),
    ("set('a','b','c')", "set('c','a')", {"a,b,c": "c,a", "b": ""}),
    ("set('a','b','c')", "int", {"a,c": "5", "": "0"}),
    # Dates and times: rounded
    ("datetime(6)", "datetime(3)", {"2024-01-01 00:00:00.000500": "2024-01-01 00:00:00.001"}),
    ("datetime(6)", "datetime", {"2024-12-31 23:59:59.500000": "2025-01-01 00:00:00"}),
    ("datetime", "datetime", {"0000-00-00 00:00:00": "0000-00-00 00:00:00"}),
    ("timestamp(6)", "timestamp", {"2024-01-01 00:00:00.499999": "2024-01-01 00:00:00"}),
    ("datetime", "date", {"2024-02-29 23:59:59": "2024-02-29"}),
    ("datetime(1)", "date", {"2024-02-29 23:59:59.5": "2024-03-01"}),
    ("datetime(3)", "time", {"2024-02-29 01:02:03.600": "01:02:04"}),
    ("date", "datetime(2)", {"2024-02-29": "2024-02-29 00:00:00.00"}),
    ("date", "time", {"2024-02-29": "00:00:00"}),
    ("time(3)", "time", {"10:00:00.500": "10:00:01", "-10:00:00.500": "-10:00:01"}),
    ("time", "time(2)", {"10:00:00": "10:00:00.00"}),
    ("varchar(30)", "datetime", {"2024-02-29 10:00:00": "2024-02-29 10:00:00"}),
    ("varchar(30)", "date", {"2024-02-29": "2024-02-29"}),
]


@pytest.mark.parametrize(("old", "new", "values"), CONVERSIONS)
def test_conversion(old: str, new: str, values: dict[str, str]) -> None:
    rule = text_rule(parse_type(old), parse_type(new), as_text=True)

    assert values == {text: rule(text) if rule else text for text in values}


SAME = [
    ("int", "bigint"), ("int unsigned", "bigint"), ("tinyint(1)", "int(11)"),
    ("int", "decimal(12,2)"), ("decimal(10,2)", "decimal(12,4)"), ("float", "double"),
    ("varchar(20)", "varchar(40)"), ("varchar(20)", "text"), ("char(5)", "varchar(5)"),
    ("tinytext", "longtext"), ("enum('a')", "enum('a','b')"), ("set('a')", "set('a','b')"),
    ("datetime", "datetime(6)"), ("blob", "blob"), ("json", "json"), ("point", "point"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new"), SAME)
def test_values_that_stay_what_they_are(old: str, new: str) -> None:
    assert text_rule(parse_type(old), parse_type(new)) is None


UNKNOWABLE = [
    ("datetime", "timestamp"), ("timestamp", "datetime"), ("timestamp", "varchar(30)"),
    ("varchar(30)", "timestamp"), ("time", "datetime"), ("json", "text"), ("double", "varchar(9)"),
    ("varchar(9)", "varbinary(9)"), ("blob", "text"), ("point", "polygon"), ("int", "date"),
    ("datetime", "bigint"), ("bit(8)", "varchar(9)"), ("varchar(9)", "uuid"), ("int", "float(7,2)"),
    ("varchar(9)", "point"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new"), UNKNOWABLE)
def test_conversions_that_nobody_can_compute(old: str, new: str) -> None:
    with pytest.raises(NotComputable):
        text_rule(parse_type(old), parse_type(new))


BAD_VALUES = [
    ("varchar(30)", "date", "29.2.2024"),
    ("varchar(30)", "datetime", "soon"),
    ("varchar(30)", "time", "noon"),
    ("datetime(1)", "time", "2024-02-29 23:59:59.5"),
    ("datetime(1)", "datetime", "2024-02-30 23:59:59.5"),
    ("varchar(9)", "year", "99"),
    ("varchar(9)", "double", "1e999"),
    ("text", "tinytext", "x" * 256),
]


@pytest.mark.parametrize(("old", "new", "text"), BAD_VALUES)
def test_values_that_nobody_can_convert(old: str, new: str, text: str) -> None:
    rule = text_rule(parse_type(old), parse_type(new))

    assert rule is not None
    with pytest.raises(NotComputable):
        rule(text)


# As landed columns

COLUMNS: list[tuple[list[str], list[str | None], list[Any]]] = [
    (["int", "bigint"], ["5", None], [5, None]),
    (["decimal(10,3)", "decimal(10,1)"], ["1.250", None], [Decimal("1.3"), None]),
    (["bigint unsigned", "int unsigned"], ["18446744073709551615"], [4294967295]),
    (["float", "double"], ["0.1"], [0.10000000149011612]),
    (["float", "decimal(10,9)"], ["0.1"], [Decimal("0.100000001")]),
    (["bit(1)", "int"], ["1", "0"], [1, 0]),
    (["varchar(9)", "int", "varchar(9)"], ["1.5", "x"], ["2", "0"]),
    (["varbinary(2)", "binary(3)"], ["AQI="], [b"\x01\x02\x00"]),
    (["date", "datetime"], ["2024-02-29"], [datetime(2024, 2, 29)]),
    (["datetime(3)", "date"], ["2024-02-29 12:00:00.000"], [date(2024, 2, 29)]),
    (["datetime(3)", "varchar(30)"], ["2024-02-29 12:00:00.500"], ["2024-02-29 12:00:00.500"]),
    (["decimal(50,2)", "decimal(50,4)"], ["1.25"], ["1.2500"]),
    (["varchar(9)", "varchar(20)"], [None], [None]),
]


@pytest.mark.parametrize(("types", "texts", "expected"), COLUMNS)
def test_landed_columns(types: list[str], texts: list[str | None], expected: list[Any]) -> None:
    prefer = TypePreferences()
    column, misfits = typed(pa.array(texts, pa.string()), types[0], lake_type(types[0]), prefer)
    assert {} == misfits
    lake = lake_type(types[-1])
    result = converted(column, tuple(types), lake, prefer)

    assert expected == result.to_pylist()
    assert arrow_type(lake) == result.type


NUMBERS = ["int", "tinyint unsigned", "bigint", "decimal(8,3)", "decimal(4,1)", "decimal(6,0)",
           "decimal(38,4)"]  # fmt: skip
TIMES = [f"{family}({digits})" for family in ("datetime", "timestamp") for digits in range(1, 7)]
MOMENTS = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)).map(
    lambda at: at.isoformat(" ", "microseconds")
)


@given(
    st.sampled_from(NUMBERS),
    st.sampled_from(NUMBERS),
    st.lists(st.decimals(-1_000_000, 1_000_000, places=3)),
)
def test_numbers_are_rounded_at_once_as_one_by_one(
    old: str, new: str, numbers: list[Decimal]
) -> None:
    check_all_at_once(old, new, [f"{number:f}" for number in numbers])


@given(st.sampled_from(TIMES), st.integers(0, 6), st.lists(MOMENTS))
def test_times_are_rounded_at_once_as_one_by_one(old: str, digits: int, texts: list[str]) -> None:
    check_all_at_once(old, f"{old.partition('(')[0]}({digits})", texts)


def check_all_at_once(old: str, new: str, texts: list[str]) -> None:
    """Columns become what their values become, each by itself."""
    values = texts
    if parse_type(old).family in ("integer", "decimal"):
        fit = text_rule(parse_type("varchar(40)"), parse_type(old))
        assert fit is not None
        values = [fit(text) for text in texts]
    rule = text_rule(parse_type(old), parse_type(new))
    expected = [rule(value) if rule else value for value in values]
    column, _ = typed(pa.array([*values, None], pa.string()), old, lake_type(old))
    wanted, _ = typed(pa.array([*expected, None], pa.string()), new, lake_type(new))

    assert wanted == converted(column, (old, new), lake_type(new), TypePreferences())


def test_a_value_that_cannot_be_converted_names_its_column_and_not_itself() -> None:
    shape = table_shape(TableId("d", "t"), {"day": "date"})
    sources = {"day": ColumnSource(("varchar(20)", "date"), "day")}
    rows = pa.table({"day": ["2024-02-29", "secret"]})

    with pytest.raises(NotConvertible, match="column 'day'") as caught:
        selected(rows, shape, sources, TypePreferences())
    assert "secret" not in str(caught.value)


# Values of new columns

NOON = datetime(2026, 5, 4, 12, 30, 15, 250_000, tzinfo=UTC)
VALUES: dict[str, str | None] = {
    "INT": None,
    "INT NULL DEFAULT NULL": None,
    "INT DEFAULT 5": "5",
    "INT DEFAULT '5'": "5",
    "INT DEFAULT -5": "-5",
    "INT DEFAULT (5)": "5",
    "INT DEFAULT 1.5": "2",
    "BOOL DEFAULT TRUE": "1",
    "DECIMAL(5,2) DEFAULT 1": "1.00",
    "DOUBLE DEFAULT 1.5": "1.5",
    "BIT(4) DEFAULT b'101'": "5",
    "VARCHAR(9) DEFAULT 'it''s'": "it's",
    "CHAR(3) DEFAULT 'a  '": "a",
    "TEXT DEFAULT ('x')": "x",
    "VARCHAR(9) DEFAULT (NULL)": None,
    "VARCHAR(9) DEFAULT ''": "",
    "VARBINARY(4) DEFAULT 'ab'": "YWI=",
    "BINARY(3) DEFAULT 'ab'": "YWIA",
    "BINARY(2) DEFAULT 0xFF01": "/wE=",
    "INT DEFAULT 0x10": "16",
    "VARCHAR(9) DEFAULT x'4142'": "AB",
    "ENUM('new','paid') DEFAULT 'PAID'": "paid",
    "SET('a','b') DEFAULT 'b,a'": "a,b",
    "JSON DEFAULT (JSON_ARRAY())": "[]",
    "JSON DEFAULT ('{}')": "{}",
    "DATE DEFAULT '2024-02-29'": "2024-02-29",
    "DATETIME DEFAULT '2024-02-29'": "2024-02-29 00:00:00",
    "DATETIME(2) DEFAULT '2024-02-29 01:02:03'": "2024-02-29 01:02:03.00",
    "TIMESTAMP DEFAULT '2024-02-29 08:00:00'": "2024-02-29 00:00:00",
    "TIMESTAMP DEFAULT CURRENT_TIMESTAMP": "2026-05-04 12:30:15",
    "TIMESTAMP(3) DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE NOW(3)": "2026-05-04 12:30:15.250",
    "DATETIME DEFAULT NOW()": "2026-05-04 20:30:15",
    "DATE DEFAULT (CURRENT_DATE)": "2026-05-04",
    # NOT NULL, and no default
    "INT NOT NULL": "0",
    "DECIMAL(5,2) NOT NULL": "0.00",
    "FLOAT NOT NULL": "0",
    "BIT(3) NOT NULL": "0",
    "YEAR NOT NULL": "0000",
    "VARCHAR(9) NOT NULL": "",
    "LONGTEXT NOT NULL": "",
    "BINARY(2) NOT NULL": "AAA=",
    "BLOB NOT NULL": "",
    "ENUM('new','paid') NOT NULL": "new",
    "SET('a','b') NOT NULL": "",
    "DATE NOT NULL": "0000-00-00",
    "TIME NOT NULL": "00:00:00",
    "DATETIME NOT NULL": "0000-00-00 00:00:00",
    "TIMESTAMP NOT NULL": "0000-00-00 00:00:00",
    "JSON NOT NULL": "null",
}


def value(column: str, time: datetime | None = NOON) -> str | None:
    change = changes(f"ALTER TABLE t ADD n {column}")[0]
    assert isinstance(change, AddColumn)
    return existing_value(change.column, change.column.mysql, time, "Asia/Shanghai")


@pytest.mark.parametrize("column", VALUES)
def test_rows_that_are_there_get_the_value_of_a_new_column(column: str) -> None:
    assert VALUES[column] == value(column)


@pytest.mark.parametrize(
    "column",
    [
        "INT AS (a + 1)",
        "INT GENERATED ALWAYS AS (a + 1) STORED",
        "INT DEFAULT (a + 1)",
        "INT DEFAULT (1 + 1)",
        "CHAR(36) DEFAULT (UUID())",
        "BIGINT AUTO_INCREMENT",
        "SERIAL",
        "POINT NOT NULL",
        "UUID NOT NULL",
        "TIME DEFAULT '100'",
        "DATE DEFAULT '29.2.2024'",
    ],
)
def test_a_value_that_nobody_tells(column: str) -> None:
    with pytest.raises(NotComputable):
        value(column)


def test_the_time_of_a_statement_that_has_none_is_not_made_up() -> None:
    with pytest.raises(NotComputable, match="time of the statement"):
        value("TIMESTAMP DEFAULT CURRENT_TIMESTAMP", None)
