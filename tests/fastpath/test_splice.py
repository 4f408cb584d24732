"""What is spliced is what the codecs write, to the byte; what cannot be is left to them."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from effort import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headgate.arrow.conversion import CodecConverter, Converted
from headgate.cli.main import main
from headgate.codec.encoder import Encoder
from headgate.core.errors import SpliceError
from headgate.core.event import ColumnType, Event
from headgate.fastpath import compilation, convert, kernel, splicer, values
from headgate.fastpath.convert import FastConverter, converter
from headgate.fastpath.learner import Learner
from headgate.fastpath.leaves import leaves_of, pairs_of

TOPIC = "prefix.shop.orders"
Message = tuple["bytes | None", "bytes | None"]


@pytest.fixture(autouse=True)
def eager(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Learn of few rows, and at once."""
    compilation.SPLICING.preparing.join()
    monkeypatch.setattr(convert, "WARM", 0)
    monkeypatch.setattr(splicer, "ENOUGH", 3)
    monkeypatch.setattr(splicer, "WORTH", 0.0)
    monkeypatch.setattr(splicer, "PATIENCE", 60.0)
    convert._splicers.clear()
    convert._seen.clear()
    yield
    convert._splicers.clear()
    convert._seen.clear()


# Messages

TYPES = {
    "id": ColumnType("bigint(20)", -5),
    "customer": ColumnType("int(11)", 4),
    "status": ColumnType("varchar(16)", 12),
    "amount": ColumnType("decimal(12,2)", 3),
    "note": ColumnType("varchar(512)", 12),
    "created": ColumnType("datetime", 93),
    "weight": ColumnType("double", 8),
}
WORDS = [
    "leave",
    "gift",
    "wrap",
    "before noon",
    "ring",
    "Zürich",
    "北京",
    "it's",
    '"there"',
    "c:\\temp",
]


def orders(count: int, placed: bool = True) -> Iterator[Event]:
    """The life of orders: each is created, changed some times, and some are deleted.

    `placed` says that they tell their place in the binlog, and when they were sent.
    """
    rng = Random(1)
    time = 1_709_294_400_000_000
    made = 0
    while True:
        row: dict[str, str | None] = {
            "id": str(5_000_000_000 + rng.randrange(10**6)),
            "customer": str(rng.randrange(1, 10**6)),
            "status": "new",
            "amount": f"{rng.randrange(10**5)}.{rng.randrange(100):02}",
            "note": " ".join(rng.choices(WORDS, k=rng.randrange(1, 9))),
            "created": f"2024-0{rng.randrange(1, 10)}-11 0{rng.randrange(10)}:20:07",
            "weight": f"{rng.randrange(1, 900)}.{rng.randrange(10)}5",
        }
        if rng.random() < 0.2:
            row["note"] = None
        changes: list[tuple[str, Any, Any]] = [("insert", None, row)]
        for status in ("packed", "sent"):
            later = row | {"status": status}
            if rng.random() < 0.5:
                later["amount"] = f"{rng.randrange(10**5)}.75"
            changes.append(("update", row, later))
            row = later
        if rng.random() < 0.3:
            changes.append(("delete", row, None))
        for op, before, after in changes:
            time += rng.randrange(1, 2_000) * 1_000
            position = {"file": "bin.000042", "pos": str(400 + made * 311), "server_id": "1"}
            yield Event(
                "row", op, "shop", "orders", ("id",), before, after, TYPES, None,
                (time // 1_000 << 18) + 5, time, time + 417_000 if placed else None,
                position if placed else {"xid": str(100 + made)},
            )  # fmt: skip
            made += 1
            if made == count:
                return


def written(events: Iterable[Event], spec: str, **options: Any) -> list[Message]:
    """Events as messages of a format."""
    encoder = Encoder(spec, **options)
    return [(r.key, r.value) for event in events for r in encoder(event).records]


def canal(**changes: Any) -> bytes:
    """A Canal INSERT; `row` has what is to be in its row, `types` their types."""
    row = {"id": "5", "note": "some"} | changes.pop("row", {})
    types = {"id": "bigint(20)", "note": "varchar(20)"} | changes.pop("types", {})
    message = {
        "data": [row], "database": "shop", "es": 1709294400000, "id": 7, "isDdl": False,
        "mysqlType": types, "old": None, "pkNames": ["id"], "sql": "",
        "sqlType": dict.fromkeys(types, 12), "table": "orders", "ts": 1709294400417,
        "type": "INSERT",
    }  # fmt: skip
    return dumped(message | changes)


def maxwell(row: dict[str, Any], **changes: Any) -> bytes:
    """A Maxwell insert."""
    message = {"database": "shop", "table": "orders", "type": "insert", "ts": 1709294400}
    return dumped(message | {"data": row} | changes)


def debezium(before: Any, after: Any, **changes: Any) -> bytes:
    """A Debezium update."""
    source = {"version": "2.7.3.Final", "connector": "mysql", "name": "x", "ts_ms": 1709294400000}
    message = {
        "before": before, "after": after, "source": source | {"db": "shop", "table": "orders"},
        "op": "u", "ts_ms": 1709294400417,
    }  # fmt: skip
    return dumped(message | changes)


def dumped(message: Any) -> bytes:
    return json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode()


def keyless(values_: Iterable[bytes | None]) -> list[Message]:
    return [(None, value) for value in values_]


# Both ways

Done = tuple[list[Any], Counter[str]]


def batch_of(messages: list[Message]) -> pa.RecordBatch:
    keys, values_ = zip(*messages)
    topics = pa.array([TOPIC] * len(messages))
    return pa.record_batch(
        {
            "key": pa.array(keys, pa.binary()),
            "value": pa.array(values_, pa.binary()),
            "topic": topics,
        }
    )


def done(converter: Any, batch: pa.RecordBatch) -> Done:
    """The records and losses of a batch, which is one part."""
    (converted,) = converter.convert(batch)
    return converted.records.to_pylist(), +converted.losses


class Both:
    """A conversion by splicing and by the codecs alone, batch after batch."""

    def __init__(self, source: str, target: str, reading: Any = None, **options: Any) -> None:
        reading = reading or {}
        self.converter: Any = converter(source, reading, target, options)
        if isinstance(self.converter, FastConverter):
            merged = self.converter.merged
            self.converter.merged = partial(self.watched, merged)  # type: ignore[method-assign]
        self.codecs = CodecConverter(source, reading, target, options)
        self.rows = self.taken = 0
        self.left: list[int] = []
        """The rows of the last batch that were left to the codecs."""

    def spliced(self, batch: pa.RecordBatch) -> Done:
        if not batch.num_rows:
            return [], Counter()
        self.left = list(range(batch.num_rows))
        found = done(self.converter, batch)
        self.rows += batch.num_rows
        self.taken += batch.num_rows - len(self.left)
        return found

    def watched(
        self, merged: Any, spliced: Any, converted: Converted, rows: Any, *rest: Any
    ) -> Converted:
        self.left = rows.tolist()
        result: Converted = merged(spliced, converted, rows, *rest)
        return result

    def coded(self, batch: pa.RecordBatch) -> Done:
        return done(self.codecs, batch) if batch.num_rows else ([], Counter())

    def check(self, batch: pa.RecordBatch | list[Message]) -> float:
        """Compare the two; the share that was spliced so far."""
        if isinstance(batch, list):
            batch = batch_of(batch)
        assert self.coded(batch) == self.spliced(batch)
        return self.taken / self.rows


def parts(messages: list[Message], size: int = 300) -> Iterator[list[Message]]:
    for start in range(0, len(messages), size):
        yield messages[start : start + size]


# Streams

CANAL = ("canal-json", {})
TICDC = ("canal-json:ticdc", {"enable_tidb_extension": True, "content_compatible": True})
BARE = {"schemas_enable": False}
TEXT = BARE | {"decimal_handling_mode": "string"}
STREAMS = [
    (CANAL, [("debezium", {}), ("debezium", TEXT), ("maxwell", {}), ("debezium:oms", {}),
             ("oms-default", {}), ("dataworks", {}), ("canal-json", {}), ("canal-json:ticdc", {})]),
    (TICDC, [("debezium", {}), ("maxwell", {}), ("canal-json", {})]),
    (("canal-json:oms", {}), [("debezium", BARE), ("canal-json", {})]),
    (("canal-json:tencent", {}), [("maxwell", {}), ("canal-json", {})]),
    (("debezium", TEXT), [("canal-json", {}), ("maxwell", {}), ("debezium", TEXT)]),
    (("debezium", {"decimal_handling_mode": "string"}), [("debezium", {})]),
    (("debezium:oms", {}), [("canal-json", {}), ("maxwell", {})]),
    (("debezium:oms-flatten", {}), [("canal-json", {})]),
    (("maxwell", {}), [("debezium", BARE), ("canal-json", {}), ("maxwell", {})]),
]  # fmt: skip
PAIRS = [
    pytest.param(source, target, marks=[pytest.mark.slow] if m % 3 or n else [])
    for m, (source, targets) in enumerate(STREAMS)
    for n, target in enumerate(targets)
]


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_a_stream_comes_out_as_the_codecs_write_it(source: Any, target: Any) -> None:
    both = Both(source[0], target[0], **target[1])
    events = orders(600, placed=not source[0].startswith("maxwell"))
    for part in parts(written(events, source[0], **source[1])):
        share = both.check(part)

    assert share > 0.9


@pytest.mark.parametrize("source", ["canal-json:ticdc", "auto"])
def test_type_maps_in_another_order_each_time(source: str) -> None:
    rng = Random(3)

    def shuffled(message: Message) -> Message:
        key, value = message
        told = json.loads(value or b"")
        types = list(told["mysqlType"].items())
        told["mysqlType"] = dict(rng.sample(types, len(types)))
        return key, json.dumps(told, separators=(",", ":"), ensure_ascii=False).encode()

    both = Both(source, "debezium", **BARE)
    events = orders(600, placed=True)
    for part in parts([*map(shuffled, written(events, "canal-json:ticdc"))]):
        share = both.check(part)

    assert share > 0.9


@pytest.mark.slow
def test_a_format_is_found_out_as_ever() -> None:
    both = Both("auto", "debezium")
    events = [*orders(400)]
    mixed = [m for two in zip(written(events, "canal-json"), written(events, "debezium", **TEXT))
             for m in two]  # fmt: skip
    for part in parts(mixed):
        share = both.check(part)

    assert share > 0.9


@pytest.mark.parametrize(
    "options",
    [
        {"partition": "primary-key", "partition_num": 2},
        *(
            pytest.param(each, marks=pytest.mark.slow)
            for each in (
                {"partition": "columns", "partition_num": 2, "partition_columns": "status"},
                {"partition": "table", "partition_num": 7, "topic": "cdc.{database}.{table}"},
            )
        ),
    ],
)
def test_partitions_and_topics_are_the_codecs(options: Any) -> None:
    both = Both("canal-json", "canal-json", **options)
    for part in parts(written(orders(600), "canal-json")):
        share = both.check(part)

    # A row whose partition its key decides is not spliced; one whose status does, by its status.
    assert (share > 0.9) == (options["partition"] != "primary-key")


# Values that are not as the others


def usual(count: int = 12, **types: tuple[str, list[str]]) -> list[bytes]:
    """Canal messages with columns of some types, and values that these usually have."""
    told = {name: type_ for name, (type_, _) in types.items()}
    return [
        canal(
            id=7 + n, ts=1709294400417 + 1013 * n, types=told,
            row={"id": str(5 + n), "note": f"some {n}"}
            | {name: pool[n % len(pool)] for name, (_, pool) in types.items()},
        )
        for n in range(count)
    ]  # fmt: skip


COLUMNS = {
    "created": ("datetime", ["2024-03-01 00:20:07", "2024-07-01 12:00:00"]),
    "exact": ("datetime(6)", ["2024-03-01 00:20:07.123456", "2024-07-01 12:00:00.5"]),
    "day": ("date", ["2024-03-01", "2023-07-15"]),
    "amount": ("decimal(12,2)", ["31090.43", "-7.90"]),
    "weight": ("double", ["2.137", "10.5"]),
    "size": ("int(11)", ["17", "-4000"]),
}
ODD = {
    "created": ["0000-00-00 00:00:00", "2024-02-30 00:00:00", "2024-03-01 24:00:00", "2024-3-1",
                "2024-03-01 00:20:07.5", "x", ""],
    "day": ["0000-00-00", "2023-02-29", "2024-00-01", "2024-3-01", "x"],
    "amount": ["-0.00", "1.1", "7", "1.10e3", "00.10", "9" * 18 + ".00", "x", "+1.00", ".50"],
    "weight": ["-0", "1e5", "1E400", "NaN", "x", "5.", ".5", "01.5", "9" * 20],
    "size": ["007", "-0", "+5", "1e5", "9" * 19, "18446744073709551616", "x", " 5", "1.5"],
    "note": ["\b", "\x01", "\x1f"],
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_a_value_of_another_form_goes_to_the_codecs(name: str) -> None:
    told = {name: COLUMNS[name]} if name in COLUMNS else {}
    both = Both("canal-json", "debezium", **BARE)
    both.check(keyless(usual(**told)))
    odd = [canal(types={n: t for n, (t, _) in told.items()}, row={name: v}) for v in ODD[name]]
    both.check(keyless([*usual(**told), *odd]))

    assert [*range(12, 12 + len(odd))] == both.left


FINE = {
    "created": ["1969-12-31 23:59:59", "0001-01-01 00:00:00", "9999-12-31 23:59:59"],
    "day": ["1969-12-31", "0001-01-01", "9999-12-31", "2024-02-29"],
    "amount": ["0.00", "-0.01", "1.28", "-1.28", "327.67", "-327.69", "9999999999.99"],
    "weight": ["1.0", "0.5", "9999999.5", "0.25"],
    "size": ["0", "-1", "2147483647", "-2147483648"],
    "note": ["", "Zürich", "北京", "😀", '"', "\\", "\n", "\t", "\x7f", "\u2028", "<&>"],
}  # fmt: skip


@pytest.mark.parametrize("name", FINE)
def test_the_ends_of_a_form_are_spliced_right(name: str) -> None:
    told = {name: COLUMNS[name]} if name in COLUMNS else {}
    both = Both("canal-json", "debezium", **BARE)
    rows = [canal(types={n: t for n, (t, _) in told.items()}, row={name: v}) for v in FINE[name]]
    for _ in range(2):
        both.check(keyless([*usual(**told), *rows]))

    empty = [12 + n for n, value in enumerate(FINE[name]) if value == ""]  # another template
    assert empty == both.left


LIKE = canal(row={"id": "77", "note": "some 9"})
STRANGE = [
    LIKE.replace(b"some", b"so\\u006de"),
    LIKE.replace(b"some", b"so\\/me"),
    LIKE.replace(b"some", b"so\\bme"),
    LIKE.replace(b"some", b"so\xffme"),
    LIKE.replace(b"some", b"so\xed\xa0\x80me"),
    LIKE.replace(b"some", b"so\xc0\xafme"),
    LIKE.replace(b"some", b"so\nme"),
    LIKE.replace(b"some", b'so"me'),
    LIKE.replace(b"some", b"some\\"),
    LIKE.replace(b'"77"', b"77"),
    LIKE.replace(b'"77"', b"077"),
    LIKE.replace(b'"77"', b"null"),
    LIKE.replace(b'"77"', b'"77" '),
    LIKE.replace(b'"id":7', b'"id":07'),
    LIKE.replace(b'"id":7', b'"id":+7'),
    LIKE.replace(b'"id":7', b'"id":7.'),
    LIKE.replace(b'"id":7', b'"id":7e0'),
    LIKE.replace(b'"id":7', b'"id":-0'),
    LIKE.replace(b'"id":7', b'"id":0'),
    LIKE.replace(b'"id":7', b'"id":9223372036854775808'),
    LIKE.replace(b"1709294400417", b"0"),
    LIKE.replace(b"1709294400417", b"1709294400"),
    LIKE.replace(b"1709294400417", b"1709294400417031"),
    LIKE.replace(b"1709294400000", b"253402300800000"),
    LIKE.replace(b"1709294400000", b"-1709294400000"),
    LIKE.replace(b'"table":"orders"', b'"table":"order"'),
    LIKE[:-1] + b',"table":"other"}',
    LIKE + b" ",
    LIKE + b"x",
    LIKE + b"\0",
    LIKE + LIKE,
    LIKE[:-1],
    b" " + LIKE,
    b"",
    b"null",
    b"{}",
    b"\xef\xbb\xbf" + LIKE,
]


@pytest.mark.parametrize("target", ["debezium", "maxwell", "canal-json:ticdc"])
def test_strange_messages_among_others(target: str) -> None:
    both = Both("canal-json", target)
    both.check(keyless(usual()))
    messages = [m for strange in STRANGE for m in (strange, *usual(2))]
    both.check(keyless(messages))
    both.check(keyless([m for strange in STRANGE for m in [strange] * 4]))

    assert both.taken > 2 * len(STRANGE)


# Batches


DDL = canal(
    type="ALTER", isDdl=True, data=None, sql="ALTER TABLE orders ADD x INT", es=1709294401000
)


def test_the_order_is_that_of_the_batch() -> None:
    both = Both("canal-json", "debezium", **BARE)
    both.check(keyless(usual()))
    batch = []
    for n, message in enumerate(usual(40)):
        batch += [
            message,
            *([canal(row={"id": "007"})] if n % 3 else []),
            *([None] if n % 5 else []),
        ]
    both.check(keyless(batch))

    assert 40 == len(batch) - len(both.left)


def test_what_follows_ddl_in_a_batch_is_encoded_after_it() -> None:
    both = Both("canal-json", "maxwell")
    assert both.check(keyless(usual(40))) == 1
    both.check(keyless([*usual(), DDL, *usual()]))
    assert [*range(25)] == both.left  # all of them

    both.check(keyless(usual(40)))
    assert [] == both.left  # learnt anew


def test_dead_letters_in_the_middle_of_a_batch() -> None:
    both = Both("canal-json", "debezium", **BARE)
    both.check(keyless(usual()))
    both.check(keyless([*usual(5), b'{"oops', *usual(5), b"", *usual(5)]))

    assert [5, 11] == both.left


def test_input_of_every_layout_of_arrow() -> None:
    messages = [*usual(20), None, canal(row={"id": "007"}), *usual(20)]
    both = Both("canal-json", "debezium", **BARE)
    both.check(keyless(usual()))
    for type_ in (pa.binary(), pa.large_binary(), pa.string(), pa.large_string()):
        texts = [m if m is None or "binary" in str(type_) else m.decode() for m in messages]
        whole = pa.record_batch({"value": pa.array(texts, type_)})
        for at, size in ((0, 42), (5, 37), (3, 30), (0, 0), (20, 1)):
            both.check(whole.slice(at, size))

    assert both.taken > 4 * 90


def test_messages_with_keys_and_without_in_one_batch() -> None:
    messages = written(orders(300), "debezium", **TEXT)
    rng = Random(2)
    batch = [(key if rng.random() < 0.5 else None, value) for key, value in messages]
    both = Both("debezium", "debezium", **TEXT)
    for part in (batch[:150], batch[150:], [*keyless(v for _, v in batch[:50]), *batch[:50]]):
        share = both.check(part)

    assert share > 0.8


def test_output_that_is_longer_than_the_room_for_it() -> None:
    both = Both("canal-json", "debezium")  # a schema block for each
    batch = batch_of(keyless(usual(12)))
    both.check(batch)
    many = pa.Table.from_batches([batch] * 400).combine_chunks().to_batches()[0]

    assert both.check(many) > 0.9


def test_several_rows_in_a_message() -> None:
    both = Both("canal-json", "debezium", **BARE)
    two = [
        canal(data=[{"id": str(n), "note": f"a{n}"}, {"id": str(n + 1), "note": f"b{n}"}])
        for n in range(40)
    ]
    both.check(keyless(two))

    assert [] == both.left


# Any values at all

TEXTS = st.text(max_size=12) | st.sampled_from(values.TEXTS) | st.sampled_from(values.NUMBERS)
MOMENTS = st.datetimes().map(lambda at: f"{at:%Y-%m-%d %H:%M:%S}".rjust(19, "0"))
ANY: dict[str, st.SearchStrategy[str]] = {
    "note": TEXTS,
    "created": MOMENTS | TEXTS,
    "day": st.dates().map(str) | TEXTS,
    "amount": st.decimals(allow_nan=False, allow_infinity=False, places=2).map(str) | TEXTS,
    "weight": st.floats().map(repr) | st.decimals(0, 9999, places=2).map(str) | TEXTS,
    "size": st.integers().map(str) | TEXTS,
}
ROWS = st.fixed_dictionaries({}, optional=ANY)


@pytest.mark.parametrize(
    ("target", "options"),
    [
        ("debezium", {}),
        ("maxwell", {}),
        *(
            pytest.param(*each, marks=pytest.mark.slow)
            for each in (
                ("debezium", {"time_precision_mode": "isostring"}),
                ("canal-json:ticdc", {"content_compatible": True}),
                ("oms-default", {}),
            )
        ),
    ],
)
def test_any_values(target: str, options: Any) -> None:
    told = {name: COLUMNS[name] for name in ANY if name in COLUMNS}
    types = {name: type_ for name, (type_, _) in told.items()}
    plain = {name: pool[0] for name, (_, pool) in told.items()}
    both = Both("canal-json", target, **options)
    both.check(keyless(usual(30, **told)))

    @settings(
        max_examples=examples(60),
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    @given(st.lists(ROWS, min_size=5, max_size=20), st.booleans())
    def check(rows: list[Any], changed: bool) -> None:
        told_old = {"old": [{"note": "before", "size": "3"}], "type": "UPDATE"} if changed else {}
        both.check(keyless(canal(row=plain | row, types=types, **told_old) for row in rows))

    check()
    assert both.taken > both.rows / 10


# What has gone wrong once


@pytest.mark.parametrize(
    "options", [BARE, pytest.param({"decimal_handling_mode": "string"}, marks=pytest.mark.slow)]
)
def test_a_placeholder_for_no_value_is_not_spliced(options: Any) -> None:
    both = Both("debezium", "maxwell")
    messages = written(orders(400), "debezium", **options)
    both.check(messages)
    texts = [b"__debezium_unavailable_value", b"X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="]
    texts.append(texts[0].hex().encode())
    odd = [(key, (value or b"").replace(b"packed", t)) for key, value in messages for t in texts]
    both.check(odd)

    assert both.taken > 0
    assert all(any(text in value for _, value in odd) for text in texts)


def test_disagreement_ends_the_work() -> None:
    both = Both("canal-json", "debezium", **BARE)
    assert both.check(keyless(usual())) == 1
    assert both.converter.splicer is not None
    program = both.converter.splicer.program
    program.literals = program.literals.replace(b'"op":"c"', b'"op":"r"')
    program.build()
    for _ in range(2):  # for good
        with pytest.raises(SpliceError, match=r"splice-mismatch: .* splice=false"):
            both.check(keyless(usual()))


def test_the_command_line_tells_of_a_disagreement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def wrong(self: FastConverter, batch: object) -> None:
        raise SpliceError

    monkeypatch.setattr(FastConverter, "splice", wrong)
    (tmp_path / "in.jsonl").write_bytes(canal())
    told = [str(tmp_path / "in.jsonl"), str(tmp_path / "out.jsonl"), "--to", "maxwell"]
    monkeypatch.setattr(sys, "argv", ["headgate", "convert", *told])

    with pytest.raises(SystemExit) as ended:
        main()

    assert 1 == ended.value.code
    assert "headgate: splice-mismatch: " in capfd.readouterr().err


def test_an_operation_gets_values_of_its_form_only() -> None:
    """Milliseconds lose three digits on the way to seconds: of "0" there are none to lose."""
    both = Both("canal-json", "maxwell")
    messages = [canal(es=1709294400000 + n, ts=1709294400417 + n) for n in range(30)]
    both.check(keyless(messages))
    both.check(keyless([*messages, canal(es=0), canal(es=1), canal(ts=12), canal(ts=123)]))

    assert both.taken > 50


def test_a_zero_byte_parts_key_and_value_of_messages_with_keys_only() -> None:
    for source, message in (("maxwell", maxwell({"id": 1})), ("canal-json", canal())):
        both = Both(source, "debezium", **BARE)
        joined = keyless([b'{"id":1}\0' + message] * 10)
        both.check(joined)
        both.check([(b'{"pk.id":1}', message)] * 10 + joined + keyless([message] * 10))
        assert [*range(10, 20)] == both.left


def test_a_schema_of_the_encoder_tells_columns_apart_that_look_alike() -> None:
    schema = "CREATE TABLE shop.orders (id BIGINT PRIMARY KEY, a VARCHAR(30), b DATETIME)"
    both = Both("maxwell", "debezium", schema=schema, **BARE)
    at = "2024-03-01 10:20:30"
    both.check(keyless(maxwell({"id": n, "a": at, "b": at}) for n in range(20)))
    odd = maxwell({"id": 7, "a": at, "b": "0000-00-00 00:00:00"})
    both.check(keyless([odd, maxwell({"id": 7, "a": "0000-00-00 00:00:00", "b": at}), odd]))

    assert [0, 2] == both.left


@pytest.mark.parametrize("labels", ["'1','2','x'", "'1','2','3','5'", "'a','b','c','d'"])
@pytest.mark.parametrize("kind", ["enum", "set"])
def test_labels_that_look_like_their_numbers(kind: str, labels: str) -> None:
    types = {"flag": f"{kind}({labels})"}
    both = Both("canal-json", "maxwell")
    for _ in range(2):
        both.check(keyless(canal(types=types, row={"flag": "1"}) for _ in range(10)))
        both.check(keyless(canal(types=types, row={"flag": str(n % 8)}) for n in range(24)))

    assert both.taken > 24


@pytest.mark.slow
@pytest.mark.parametrize("zone", ["Europe/London", "America/New_York", "Africa/Abidjan"])
@pytest.mark.parametrize("digits", [0, 3, 6])
def test_summer_time_of_a_zone_that_has_none_in_winter(zone: str, digits: int) -> None:
    types = {"at": f"timestamp({digits})" if digits else "timestamp"}
    fraction = ".123456"[: digits + 1] if digits else ""
    both = Both("canal-json", "maxwell", {"timezone": zone})
    for months in ([1, 2, 3], [*range(1, 13)]):
        rows = [{"at": f"2024-{month:02}-05 10:00:00{fraction}"} for month in months * 4]
        both.check(keyless(canal(types=types, row=row) for row in rows))

    assert both.taken > 0


@pytest.mark.parametrize("mode", ["nanoseconds", "microseconds", "connect", "isostring"])
@pytest.mark.parametrize("digits", [0, 3, 6])
def test_times_of_all_years(mode: str, digits: int) -> None:
    types = {"at": f"datetime({digits})"}
    both = Both("canal-json", "debezium", time_precision_mode=mode, **BARE)
    years = [2024, 2023, 2300, 1960, 1, 9999, 1500, 2262, 1677]
    for count in (2, 9):
        rows = [
            {"at": f"{year:04}-03-01 10:00:00" + (f".{n:06}"[: digits + 1] if digits else "")}
            for n in (0, 1, 999_999, 123_000)
            for year in years[:count]
        ]
        both.check(keyless(canal(types=types, row=row) for row in rows))

    assert both.taken > 0


def test_columns_that_are_called_as_images_are() -> None:
    both = Both("debezium", "canal-json")
    for part in (range(10), range(10, 40)):
        both.check(
            keyless(
                debezium(
                    {"id": n, "before": f"p{n}", "after": f"q{n}"},
                    {"id": n, "before": f"p{n}", "after": f"q{n}" if n % 2 else f"r{n}"},
                )
                for n in part
            )
        )

    assert both.taken == both.rows


def test_a_message_that_needs_its_topic_is_left_to_the_codecs() -> None:
    """debezium-smt has the table's name in the topic; the learner asks without one."""
    both = Both("auto", "canal-json")
    rows = [(b'{"id":%d}' % n, b'{"id":1,"__deleted":"false","__op":"c"}') for n in range(20)]
    both.check(rows)

    assert [*range(20)] == both.left


def test_a_tombstone_after_a_delete_of_a_transform_and_another_row() -> None:
    """The codecs take it for the delete's own only where no row came between the two."""
    both = Both("auto", "debezium", **BARE)
    both.check(keyless(usual(30)))
    deleted = (b'{"id":1}', b'{"id":1,"__deleted":"true","__op":"d"}')
    both.check([deleted, (None, usual(1)[0]), (b'{"id":1}', None)])


def test_a_partition_by_a_column_like_others() -> None:
    """What was found out of a column that decides nothing is not so of one that does."""
    for extra in range(8):
        told = {"partition": "columns", "partition_num": 2, "partition_columns": "b"}
        both = Both("maxwell", "maxwell", **told)
        name = "a" * (extra + 1)
        both.check(keyless(maxwell({"id": n, name: f"q{n}", "b": "w"}) for n in range(9)))
        both.check(keyless(maxwell({"id": n, name: f"q{n}", "b": f"w{n}"}) for n in range(20)))


def test_updates_that_change_different_columns_are_different_templates() -> None:
    both = Both("debezium", "maxwell")
    before = {"id": 1, "a": "x", "b": "y", "c": "z"}
    changes = [{"a": "1"}, {"b": "2"}, {"a": "3", "c": "4"}, {}]
    for _ in range(2):
        both.check(keyless(debezium(before, before | changes[n % 4]) for n in range(40)))

    assert both.taken == both.rows


def test_a_template_is_learnt_of_a_usual_message() -> None:
    """TiCDC escapes these signs; what was learnt of a value that has them would help nobody."""
    both = Both("canal-json", "canal-json:ticdc")
    odd = ["<b>", "a&b", "\u2028"]
    notes = [*odd, *(f"some {n}" for n in range(20))]
    both.check(keyless(canal(row={"note": note}) for note in notes))

    assert [0, 1, 2] == both.left


def test_a_time_without_a_fraction_and_with_zeros_is_the_same() -> None:
    schema = "CREATE TABLE shop.orders (id BIGINT PRIMARY KEY, at DATETIME(3))"
    both = Both("debezium", "canal-json", {"schema": schema})
    for second in (8, 7):
        both.check(
            keyless(
                debezium(
                    {"id": n, "at": f"2024-03-01 10:{n}:0{second}"},
                    {"id": n, "at": f"2024-03-01 10:{n}:07.000"},
                )
                for n in range(10, 20)
            )
        )

    assert both.taken in (0, 10)


# Parts


def test_learning_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    learnt: list[bytes] = []
    monkeypatch.setattr(Learner, "learn", lambda _, text, roles=None: learnt.append(text))
    monkeypatch.setattr(splicer, "PATIENCE", -1.0)
    both = Both("canal-json", "debezium")
    both.check(keyless(usual()))
    monkeypatch.setattr(splicer, "PATIENCE", 5.0)
    monkeypatch.setattr(splicer, "MOST_BYTES", 0)
    both.check(keyless(usual()))

    assert ([], 0) == (learnt, both.taken)


@pytest.mark.parametrize(
    ("text", "form", "fits"),
    [
        ("5", (kernel.INTEGER, 18, 0), True),
        ("-0", (kernel.INTEGER, 18, 0), False),
        ("05", (kernel.INTEGER, 18, 0), False),
        ("0", (kernel.INTEGER, 18, 1), False),
        ("-", (kernel.INTEGER, 18, 0), False),
        ("9" * 19, (kernel.INTEGER, 18, 0), False),
        ("1.50", (kernel.NUMBER, 2, 18), True),
        ("1.5", (kernel.NUMBER, 2, 18), False),
        ("1.", (kernel.NUMBER, -1, 18), False),
        ("-0.00", (kernel.NUMBER, 2, 18), False),
        ("1e5", (kernel.NUMBER, -1, 18), False),
        ("1.0", (kernel.FLOAT, 0, 0), True),
        ("1.10", (kernel.FLOAT, 0, 0), False),
        ("12345678.5", (kernel.FLOAT, 0, 0), False),
        ("0.05", (kernel.FLOAT, 0, 0), True),
        ("0.005", (kernel.FLOAT, 0, 0), False),
        ("1.0", (kernel.FLOAT, 0, 1), False),
        ("1.5", (kernel.FLOAT, 0, 1), True),
        ("2024-02-29", (kernel.DATE, 0, 0), True),
        ("2023-02-29", (kernel.DATE, 0, 0), False),
        ("0000-01-01", (kernel.DATE, 0, 0), False),
        ("2024-03-01 23:59:59", (kernel.DATETIME, 0, 0), True),
        ("2024-03-01 24:00:00", (kernel.DATETIME, 0, 0), False),
        ("2024-03-01 23:59:59.5", (kernel.DATETIME, 0, 0), False),
        ("a_b", (kernel.SINGLE, 0, 0), True),
        ("a__b", (kernel.SINGLE, 0, 0), False),
        ("a<b", (kernel.PLAIN, 0, 0), False),
        ("a<b", (kernel.PLAIN, 1, 0), False),
        ("北京", (kernel.PLAIN, 0, 0), False),
        ("北京", (kernel.PLAIN, 1, 0), True),
        ("\u2028", (kernel.PLAIN, 1, 0), False),
    ],
)
def test_forms(text: str, form: tuple[int, int, int], fits: bool) -> None:
    data = np.frombuffer(text.encode(), np.uint8)

    assert fits == bool(kernel.fits(data, 0, len(data), *form))


def test_pairs_are_columns_of_both_images() -> None:
    text = debezium({"id": 1, "after": "x", "before": "y"}, {"id": 1, "after": "y", "before": "y"})
    leaves = leaves_of(text, *(np.zeros(100, np.int64) for _ in range(2)))
    assert leaves is not None
    found = [(leaves[i].path, leaves[j].path, same) for i, j, same in pairs_of(leaves, text)]

    assert [
        (("before", "id"), ("after", "id"), 1),
        (("before", "after"), ("after", "after"), 0),
        (("before", "before"), ("after", "before"), 1),
    ] == found
