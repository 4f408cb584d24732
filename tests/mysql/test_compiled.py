"""The compiled loops and the plain ones read the same rows alike, whatever is in them."""

from __future__ import annotations

import random
import struct
from typing import Any

import numpy as np
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.mysql import images, table_map
from headgate.mysql.batches import position_texts
from headgate.mysql.columns import ColumnSpec
from headgate.mysql.errors import BinlogError
from headgate.mysql.images import Cells, Layout
from headgate.mysql.table_map import MappedColumn
from headgate.mysql.values import reader

compiled = pytest.importorskip("headgate.mysql.compiled", reason="no Numba")

Cell = st.SearchStrategy[bytes]


def fixed(size: int) -> Cell:
    return st.binary(min_size=size, max_size=size)


def prefixed(values: Cell, width: int) -> Cell:
    return values.map(lambda value: len(value).to_bytes(width, "little") + value)


def column(kind: int, meta: int = 0, **known: Any) -> ColumnSpec:
    return ColumnSpec("c", known.pop("mysql", ""), MappedColumn(kind, meta, True), **known)


def integers() -> list[tuple[ColumnSpec, Cell]]:
    sizes = {table_map.TINY: 1, table_map.SHORT: 2, table_map.INT24: 3, table_map.LONG: 4,
             table_map.LONGLONG: 8}  # fmt: skip
    return [
        (column(kind, unsigned=unsigned), fixed(size))
        for kind, size in sizes.items()
        for unsigned in (False, True)
    ]


def decimals() -> list[tuple[ColumnSpec, Cell]]:
    found = []
    for precision, scale in ((1, 0), (9, 9), (10, 2), (18, 9), (19, 0), (30, 30), (65, 30)):
        spec = column(table_map.NEWDECIMAL, precision << 8 | scale)
        size = reader(spec).size
        # Groups of digits that are none print alike too, but are not what a server writes.
        digits = st.integers(0, 10**precision - 1).map(
            lambda number, p=precision, s=scale, size=size: packed_decimal(number, p, s)
        )
        found.append((spec, st.tuples(digits, st.booleans()).map(negated)))
        assert size == len(packed_decimal(0, precision, scale))
    return found


def packed_decimal(number: int, precision: int, scale: int) -> bytes:
    text = f"{number:0{precision}d}"
    whole, fraction = text[: precision - scale], text[precision - scale :]
    groups = [whole[: len(whole) % 9]]
    groups += [whole[at : at + 9] for at in range(len(whole) % 9, len(whole), 9)]
    groups += [fraction[at : at + 9] for at in range(0, len(fraction), 9)]
    sizes = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
    data = b"".join(int(each).to_bytes(sizes[len(each)], "big") for each in groups if each)
    return bytes([data[0] ^ 0x80]) + data[1:]


def negated(value: tuple[bytes, bool]) -> bytes:
    data, negative = value
    return bytes(byte ^ 0xFF for byte in data) if negative else data


def times() -> list[tuple[ColumnSpec, Cell]]:
    found = [(column(table_map.DATE), fixed(3)), (column(table_map.YEAR), fixed(1))]
    for digits in range(7):
        # As large as a fraction gets; with an odd number of digits it ends in a zero.
        unit = 10 if digits & 1 else 1
        size = (digits + 1) // 2
        fraction = st.integers(0, 10**digits - 1).map(
            lambda number, u=unit, s=size: (number * u).to_bytes(s, "big")
        )
        for kind, whole in (
            (table_map.DATETIME2, fixed(5).map(lambda data: bytes([data[0] | 0x80]) + data[1:])),
            (table_map.TIMESTAMP2, fixed(4)),
        ):
            both = st.tuples(whole, fraction).map(b"".join)
            found.append((column(kind, digits), both))
        time = st.integers(0, (1 << 23) - 1)
        found.append((column(table_map.TIME2, digits), st.tuples(time, fraction, st.booleans()).map(
            lambda value, s=size: packed_time(*value, s))))  # fmt: skip
    return found


def packed_time(clock: int, fraction: bytes, negative: bool, size: int) -> bytes:
    number = clock << 8 * size | int.from_bytes(fraction, "big")
    middle = 0x800000 << 8 * size
    return (middle - number if negative else middle + number).to_bytes(3 + size, "big")


def strings() -> list[tuple[ColumnSpec, Cell]]:
    text = st.text(max_size=40).map(lambda value: value.encode("utf-8", "replace"))
    octets = st.binary(max_size=60)
    many = tuple(f"m{number}" for number in range(64))
    return [
        (column(table_map.VARCHAR, 200, charset="utf8mb4"), prefixed(text, 1)),
        (column(table_map.VARCHAR, 2000, charset="latin1"), prefixed(octets, 2)),
        (column(table_map.BLOB, 3, charset="gbk"), prefixed(text.map(ascii_only), 3)),
        (column(table_map.STRING, 64, charset="binary"), prefixed(octets, 1)),
        (column(table_map.BLOB, 2, charset="binary"), prefixed(octets, 2)),
        (column(table_map.ENUM, 1, labels=("a", "é", "")), fixed(1)),
        (column(table_map.ENUM, 2, labels=("a",) * 300), fixed(2)),
        (column(table_map.SET, 1, labels=("r", "g", "ü")), fixed(1)),
        (column(table_map.SET, 8, labels=many), fixed(8)),
        (column(table_map.BIT, 2 << 8 | 1), fixed(3)),
        (column(table_map.BIT, 8 << 8), fixed(8)),
        (column(table_map.DOUBLE), st.floats(allow_nan=False, allow_infinity=False).map(
            lambda number: struct.pack("<d", number))),
        (column(table_map.FLOAT), st.floats(width=32, allow_nan=False, allow_infinity=False).map(
            lambda number: struct.pack("<f", number))),
    ]  # fmt: skip


def ascii_only(data: bytes) -> bytes:
    return data.decode().encode("ascii", "ignore")


COLUMNS = [*integers(), *decimals(), *times(), *strings()]


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[Layout], list[bytes]]:
    """One or two images of some columns, and the rows of some events."""
    layouts, cells = [], []
    for _ in range(draw(st.integers(1, 2))):
        chosen = draw(st.lists(st.sampled_from(COLUMNS), min_size=1, max_size=12))
        names = [f"c{at}" for at in range(len(chosen))]
        layouts.append(Layout(range(len(chosen)), names, [reader(spec) for spec, _ in chosen]))
        cells.append([values for _, values in chosen])
    events = []
    for _ in range(draw(st.integers(1, 3))):
        rows = b""
        for _ in range(draw(st.integers(0, 4))):
            for columns in cells:
                values = [draw(st.none() | values) for values in columns]
                nulls = sum(1 << at for at, value in enumerate(values) if value is None)
                rows += nulls.to_bytes((len(values) + 7) // 8, "little")
                rows += b"".join(value for value in values if value is not None)
        events.append(rows)
    return layouts, events


@given(tables())
@settings(deadline=None, max_examples=examples(100))
def test_same_rows(table: tuple[list[Layout], list[bytes]]) -> None:
    layouts, events = table
    data, ends = b"".join(events), np.cumsum([len(event) for event in events], dtype=np.int64)
    plain, fast = images.walk(data, ends.tolist(), layouts), compiled.walk(data, ends, layouts)
    assert fast.counts == plain.counts
    for layout, one, other in zip(layouts, plain.images, fast.images):
        assert (one.lengths == other.lengths).all()
        assert (one.starts == other.starts).all()
        assert compiled.texts(data, other, layout).equals(images.texts(data, one, layout))


def floats(code: str) -> list[bytes]:
    """Numbers at the ends of every power of two, small and whole ones, and any bits."""
    size, source = struct.calcsize(code), random.Random(8)
    fraction_bits, exponents = (52, 1 << 11) if size == 8 else (23, 1 << 8)
    last = (1 << fraction_bits) - 1
    numbers = [e << fraction_bits | f for e in range(exponents) for f in (0, 1, 2, last - 1, last)]
    numbers += range(2000)
    numbers += [source.getrandbits(8 * size) for _ in range(20_000)]
    whole = [float(n) for n in range(-300, 300)] + [10.0**n for n in range(-30, 31)]
    whole += [round(source.uniform(-1e9, 1e9), digits) for digits in range(7) for _ in range(500)]
    whole += [source.uniform(-1e17, 1e17) for _ in range(2_000)]
    made = [number.to_bytes(size, "little") for number in numbers]
    return made + [struct.pack(code, number) for number in whole]


@pytest.mark.parametrize(("kind", "code"), [(table_map.DOUBLE, "<d"), (table_map.FLOAT, "<f")])
def test_floats(kind: int, code: str) -> None:
    """The compiled loop finds the same digits as Python and NumPy do."""
    numbers = floats(code)
    data, size = b"".join(numbers), struct.calcsize(code)
    layout = Layout([0], ["c"], [reader(column(kind))])
    starts = np.arange(0, len(data), size)[:, None]
    cells = Cells(starts, np.full(starts.shape, size))
    assert compiled.texts(data, cells, layout).equals(images.texts(data, cells, layout))


@given(
    st.lists(
        st.tuples(
            st.lists(st.text(max_size=9), min_size=3, max_size=3),
            st.integers(0, 9),
            st.tuples(st.integers(0, 1 << 30), st.integers(0, 99)),
        ),
        min_size=1,
        max_size=6,
    )
)
@settings(deadline=None, max_examples=examples(50))
def test_positions(events: list[tuple[list[str], int, tuple[int, int]]]) -> None:
    firsts = np.array([first for _, _, first in events], np.int64)
    firsts[:, 0] = firsts[0, 0] + np.arange(len(events))  # the plain loop makes all in between
    counts = np.array([count for _, count, _ in events], np.int64)
    texts = [text for event, _, _ in events for text in event]
    plain = position_texts(texts, counts, firsts)
    assert compiled.position_texts(texts, counts, firsts).equals(plain)


@given(tables(), st.data())
@settings(deadline=None, max_examples=examples(50))
def test_damaged_rows(table: tuple[list[Layout], list[bytes]], data: st.DataObject) -> None:
    """Rows that are cut short, or changed, are refused or read alike; nothing else happens."""
    layouts, events = table
    whole = bytearray(b"".join(events))
    if whole:
        whole[data.draw(st.integers(0, len(whole) - 1))] ^= data.draw(st.integers(1, 255))
    damaged = bytes(whole[: data.draw(st.integers(0, len(whole)))])
    ends = np.array([len(damaged)], np.int64)
    outcomes = []
    for walk in (lambda: images.walk(damaged, ends.tolist(), layouts),
                 lambda: compiled.walk(damaged, ends, layouts)):  # fmt: skip
        try:
            outcomes.append(walk().counts)
        except BinlogError:
            outcomes.append(None)
    assert outcomes[0] == outcomes[1]
