"""Typed columns: a value that does not match its column's type is a misfit, never another value."""

from __future__ import annotations

import time
from decimal import Context, Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.arrow.casts import cast
from headgate.arrow.events import TIME


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("0x10", pa.int64()),
        ("0X1f", pa.int8()),
        ("inf", pa.float64()),
        ("NaN", pa.float64()),
        ("1e400", pa.float64()),
        ("3.5e38", pa.float32()),
        ("0000-01-01", pa.date32()),
        ("0000-01-01 00:00:00", pa.timestamp("us")),
        ("0000-01-01 00:00:00", TIME),
    ],
)
def test_what_mysql_never_writes_is_a_misfit(text: str, type_: pa.DataType) -> None:
    column, misfits = cast(pa.array([None, text, None]), type_)

    assert {1: text} == misfits
    assert [None] * 3 == column.to_pylist()


@pytest.mark.parametrize(
    "text",
    [
        "9" * 39,
        "1" * 40,
        "9" * 1_000_000,
        "340282366920938463463374607431768211456",
        "0." + "1" * 39,
        "1e-77",
        "1e-9999999",
        "1e9999999",
        "1e-99999999999",
        "1.105",
        "1" + "0" * 36,
        "1.2.3",
        "",
        "-",
        ".",
        "٣",
    ],
)
def test_a_number_beyond_the_digits_of_a_decimal_is_a_misfit(text: str) -> None:
    column, misfits = cast(pa.array(["1.10", text]), pa.decimal128(38, 2))

    assert {1: text} == misfits
    assert [Decimal("1.10"), None] == column.to_pylist()


CONTEXT = Context(prec=200)
numbers = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "-"]),
    st.text("0123456789", min_size=1, max_size=45),
    st.one_of(st.just(""), st.text("0123456789", max_size=45).map(".{}".format)),
    st.one_of(st.just(""), st.integers(-90, 90).map("e{}".format)),
)
types = st.integers(1, 38).flatmap(
    lambda digits: st.integers(0, digits).map(lambda scale: pa.decimal128(digits, scale))
)


@given(st.lists(numbers, max_size=5), types)
def test_a_decimal_is_exact_or_a_misfit(texts: list[str], type_: pa.DataType) -> None:
    column, misfits = cast(pa.array(texts, pa.string()), type_)

    for row, (text, value) in enumerate(zip(texts, column.to_pylist())):
        exact = Decimal(text)
        _, digits, exponent = exact.normalize(CONTEXT).as_tuple()
        whole, behind = len(digits) + exponent, -exponent
        fits = not exact or (behind <= type_.scale and whole <= type_.precision - type_.scale)
        assert (row in misfits) is not fits
        assert value == (exact if fits else None)


def test_misfits_among_many_rows_are_found_with_their_rows() -> None:
    wrong = {7: "x", 4_000: "2024-02-30 00:00:00", 9_999: "x"}
    texts = [wrong.get(row, f"2024-05-01 08:{row % 60:02}:00") for row in range(10_000)]
    texts[5] = None

    column, misfits = cast(pa.array(texts), pa.timestamp("us"))

    assert wrong == misfits
    assert {5, *wrong} == {row for row, value in enumerate(column.to_pylist()) if value is None}
    assert "2024-05-01 08:09:00" == str(column[9].as_py())


def test_values_beside_a_misfit_in_a_slice_stay() -> None:
    texts = pa.array(["0x1", "1", "2", "0x2", "3"])[1:]

    column, misfits = cast(texts, pa.int32())

    assert {2: "0x2"} == misfits
    assert [1, 2, None, 3] == column.to_pylist()


def test_many_zero_dates_cost_little_more_than_none() -> None:
    days = [f"20{row % 30:02}-05-01 08:00:{row % 60:02}" for row in range(50_000)]
    zeros = [text if row % 3 else "0000-00-00 00:00:00" for row, text in enumerate(days)]

    def seconds(texts: list[str]) -> float:
        column = pa.array(texts)
        start = time.process_time()
        cast(column, TIME)
        return time.process_time() - start

    seconds(days)
    assert min(seconds(zeros) for _ in range(3)) < 0.1  # 2 µs a row
