"""Partitions as the producers choose them. The vectors were taken from the producers' own code."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.codec.partitioning import partitioner
from headgate.core.errors import UsageError
from headgate.core.event import ColumnType, Event
from headgate.formats import MODULES, load
from headgate.formats.partitioning import DispatchError, PartitionRules, java_hash

PRODUCERS: dict[str, PartitionRules | None] = {"kafka": None} | {
    rules.producer: rules
    for name in MODULES
    for rules in load(name).encoding.partition_rules.values()
}
PAIRS = [(producer, rule) for producer, own in PRODUCERS.items() if own for rule in own.rules]
DOCS = Path(__file__).parents[2] / "docs"


def row(table: str = "test.t1", op: str = "insert", **members: Any) -> Event:
    database, _, name = table.partition(".")
    return Event("row", op, database, name, **members)


def chosen(
    event: Event,
    producer: str,
    rule: str | None,
    count: int | None,
    columns: str | None = None,
    broadcast_ddl: bool = False,
) -> tuple[int | None, ...]:
    return partitioner(rule, count, columns, PRODUCERS[producer], broadcast_ddl)(event)


def refusal(rule: Any, count: Any, columns: Any, producer: str, broadcast_ddl: bool) -> str:
    with pytest.raises(UsageError) as caught:
        partitioner(rule, count, columns, PRODUCERS[producer], broadcast_ddl)
    return str(caught.value)


# TiCDC


@pytest.mark.parametrize(
    ("table", "total", "at"),
    [("test.t1", 1079797119, 15), ("test.t2", 3646239941, 5), ("test.t3", 2924610643, 3)],
)
def test_ticdc_table(table: str, total: int, at: int) -> None:
    assert (total % 10_007,) == chosen(row(table), "ticdc", "table", 10_007)
    for rule in (None, "table", "default", "Table"):
        assert (at,) == chosen(row(table), "ticdc", rule, 16)


@pytest.mark.parametrize(("count", "at"), [(3, 0), (6, 3), (1, 0)])
def test_ticdc_table_with_other_counts(count: int, at: int) -> None:
    assert (at,) == chosen(row("test.t1"), "ticdc", "table", count)


@pytest.mark.parametrize(
    ("table", "image", "at"),
    [
        ("test.t1", {"a": "11"}, 2),
        ("test.t1", {"a": "22"}, 11),
        ("test.t2", {"a": "11", "b": "22"}, 5),
        ("test.t2", {"a": "11", "b": "0"}, 14),
        ("test.t2", {"a": "11", "b": "33"}, 2),
    ],
)
def test_ticdc_index_value(table: str, image: dict[str, str | None], at: int) -> None:
    key = tuple(image)
    others = image | {"other": "x"}
    changed = dict.fromkeys(others, "old")
    for rule in ("index-value", "index_value", "rowid"):
        assert (at,) == chosen(row(table, key=key, after=others), "ticdc", rule, 16)
    update = row(table, "update", key=key[::-1], before=changed, after=others)
    assert (at,) == chosen(update, "ticdc", "index-value", 16)
    delete = row(table, "delete", key=key, before=others)
    assert (at,) == chosen(delete, "ticdc", "index-value", 16)


@pytest.mark.parametrize(
    ("image", "at"), [({"col2": "11", "col1": "22"}, 15), ({"COL2": "11", "Col1": "22"}, 5)]
)
def test_ticdc_columns_are_hashed_by_their_declared_name(
    image: dict[str, str | None], at: int
) -> None:
    event = row(after=image | {"id": "1"}, key=("id",))
    for columns in ("col2,col1", " Col1 , COL2 "):
        assert (at,) == chosen(event, "ticdc", "columns", 16, columns)


def test_ticdc_without_a_key_goes_by_table() -> None:
    for key in (None, ()):
        assert (15,) == chosen(row(key=key, after={"a": "11"}), "ticdc", "index-value", 16)


def test_ticdc_takes_the_handle_key_where_there_is_no_primary_key() -> None:
    types = {"a": ColumnType("int", None, 1 + 2 + 16), "b": ColumnType("int", None, 65)}
    event = row(key=(), after={"a": "11", "b": "5"}, types=types)
    assert (2,) == chosen(event, "ticdc", "index-value", 16)


def test_ticdc_hashes_null_as_the_word() -> None:
    expected = (crc32(b"testt1") ^ crc32(b"anull")) % 1000
    assert (expected,) == chosen(row(after={"a": None}), "ticdc", "columns", 1000, "a")


def test_the_new_ticdc_skips_null() -> None:
    event = row(after={"a": None, "b": "11"})
    expected = (crc32(b"testt1") ^ crc32(b"b11")) % 1000
    assert (expected,) == chosen(event, "ticdc-new", "columns", 1000, "a,b")


def test_timestamps_are_hashed_as_the_producers_local_text() -> None:
    types = {"at": ColumnType("timestamp")}
    event = row(key=("at",), after={"at": "2024-05-01 00:00:00"}, types=types)
    crc = crc32(b"testt1") ^ crc32(b"at2024-05-01 08:00:00")
    java = abs(java_hash("test") ^ java_hash("2024-05-01 08:00:00"))
    zone = "Asia/Shanghai"
    for producer, rule, expected in (
        ("ticdc", "index-value", crc),
        ("ticdc-new", "index-value", crc),
        ("canal", "primary-key", java),
    ):
        choose = partitioner(rule, 1000, None, PRODUCERS[producer], False, zone)
        assert (expected % 1000,) == choose(event)
    choose = partitioner("primary-key", 1000, None, PRODUCERS["maxwell"], False, zone)
    assert (abs(java_hash("2024-05-01 00:00:00")) % 1000,) == choose(event), "Maxwell has UTC"


def test_a_time_that_comes_twice_has_a_partition() -> None:
    types = {"at": ColumnType("timestamp")}
    event = row(key=("at",), after={"at": "2023-10-29 00:30:00"}, types=types)
    expected = (crc32(b"testt1") ^ crc32(b"at2023-10-29 02:30:00")) % 1000
    choose = partitioner("index-value", 1000, None, PRODUCERS["ticdc"], False, "Europe/Berlin")
    assert (expected,) == choose(event)


@pytest.mark.parametrize(
    ("mysql", "text", "hashed"),
    [
        (None, "Bf8=", b"Bf8="),
        ("varchar(9)", "Bf8=", b"Bf8="),
        ("varchar(9)", "naïve 🐬", "naïve 🐬".encode()),
        ("varbinary(9)", "Bf8=", b"\x05\xff"),
        ("BINARY(2)", "Bf8=", b"\x05\xff"),
        ("longblob", "", b""),
        ("blob", "not base64", b"not base64"),
        ("enum('blob','b')", "b", b"2"),
        ("enum('2','1')", "2", b"1"),
        ("enum('a')", "", b"0"),
        ("enum('a')", "unheard", b"unheard"),
        ("enum", "a", b"a"),
        ("set('a','b','c')", "a,c", b"5"),
        ("set('a','b','c')", "", b"0"),
        ("set('a','b','c')", "a,z", b"a,z"),
        ("set", "3", b"3"),
        ("double", "1e-7", b"0.0000001"),
        ("double", "5.0", b"5"),
        ("year", "0000", b"0"),
        ("timestamp", "2024-05-01 08:00:00", b"2024-05-01 08:00:00"),
        ("float", "1.5", b"1.5"),
        ("decimal(4,2)", "1.50", b"1.50"),
        ("bigint unsigned", "18446744073709551615", b"18446744073709551615"),
    ],
)
def test_ticdc_value_text(mysql: str | None, text: str, hashed: bytes) -> None:
    types = {"v": ColumnType(mysql)} if mysql else None
    expected = (crc32(b"testt1") ^ crc32(b"v" + hashed)) % 10_007
    event = row(after={"v": text}, types=types)
    assert (expected,) == chosen(event, "ticdc", "columns", 10_007, "v")


def test_ticdc_commit_number() -> None:
    assert (4,) == chosen(row(commit_ts=433305438660591620), "ticdc", "ts", 8)
    assert (0,) == chosen(row(event_time=1655812326000001), "ticdc", "ts", 8)


@pytest.mark.parametrize(
    ("rule", "columns", "event"),
    [
        ("columns", "nope", row(after={"a": "1"})),
        ("columns", "a", row(op="delete")),
        ("index-value", None, row(key=("id",), after={"a": "1"})),
    ],
)
def test_ticdc_refuses_a_row_without_its_column(
    rule: str, columns: str | None, event: Event
) -> None:
    with pytest.raises(DispatchError, match=r"the row has no column '(nope|a|id)'") as caught:
        chosen(event, "ticdc", rule, 16, columns)
    assert "dispatch" == caught.value.code


# Java


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("a", 97),
        ("Aa", 2112),
        ("BB", 2112),
        ("hello world", 1794106052),
        ("polygenelubricants", -(2**31)),
        ("é", 0xE9),
        ("中", 0x4E2D),
        ("🐬", 0xD83D * 31 + 0xDC2C),
        ("x🐬", ord("x") * 961 + 0xD83D * 31 + 0xDC2C),
    ],
)
def test_java_hash(text: str, expected: int) -> None:
    assert expected == java_hash(text)


@given(st.text())
def test_java_hash_is_a_polynomial_over_code_units(text: str) -> None:
    wide = text.encode("utf-16-be")
    units = [wide[at] << 8 | wide[at + 1] for at in range(0, len(wide), 2)]
    total = sum(unit * 31**power for power, unit in enumerate(reversed(units)))
    assert total % 2**32 == java_hash(text) % 2**32
    assert -(2**31) <= java_hash(text) < 2**31


# Canal


@pytest.mark.parametrize(
    ("database", "value", "at", "without_database"),
    [
        ("mytest", "1", 0, 1),
        ("mytest", "101", 0, 2),
        ("inventory", "106", 2, 1),
        ("test", "abc", 1, 0),
    ],
)
def test_canal_primary_key(database: str, value: str, at: int, without_database: int) -> None:
    image = {"id": value, "name": "x"}
    event = row(f"{database}.t", key=("id",), after=image)
    for rule in ("primary-key", "primary_key", "pk-hash", "$pk$", "index-value"):
        assert (at,) == chosen(event, "canal", rule, 3)
    assert (at,) == chosen(event, "canal", "columns", 3, "id")
    delete = row(f"{database}.t", "delete", key=("id",), before=image)
    assert (at,) == chosen(delete, "canal", "primary-key", 3)
    nameless = Event("row", "insert", key=("id",), after=image)
    assert (without_database,) == chosen(nameless, "canal", "primary-key", 3)


@pytest.mark.parametrize(("table", "at"), [("products2", 2), ("user", 0)])
def test_canal_table(table: str, at: int) -> None:
    assert (at,) == chosen(row(f"any.{table}"), "canal", "table", 3)


def test_canal_without_a_rule_writes_to_the_first_partition() -> None:
    for event in (row(after={"a": "1"}), Event("ddl"), Event("watermark", commit_ts=1)):
        assert (0,) == chosen(event, "canal", None, 3)


def test_canal_joins_columns_and_takes_null_for_nothing() -> None:
    event = row(key=("a", "b", "c"), after={"a": "1", "b": None, "c": "x"})
    expected = abs(java_hash("test") ^ java_hash("1") ^ java_hash("x")) % 97
    assert (expected,) == chosen(event, "canal", "primary-key", 97)
    assert (expected,) == chosen(event, "canal", "columns", 97, "a,c,absent")


@pytest.mark.parametrize(
    ("mysql", "text", "hashed"),
    [
        ("varbinary(2)", "Bf8=", "\x05ÿ"),
        ("enum('x','y')", "y", "2"),
        ("double", "10000000", "1.0E7"),
        ("year", "0", "0000"),
    ],
)
def test_canal_hashes_what_it_writes(mysql: str, text: str, hashed: str) -> None:
    event = row(key=("v",), after={"v": text}, types={"v": ColumnType(mysql)})
    expected = abs(java_hash("test") ^ java_hash(hashed)) % 97
    assert (expected,) == chosen(event, "canal", "primary-key", 97)


def test_canal_at_the_smallest_integer() -> None:
    event = row("polygenelubricants.polygenelubricants", key=(), after={"a": "1"})
    # Java: abs(-2147483648) is itself, its remainder by 3 is -2, and abs of that 2.
    assert (2,) == chosen(event, "canal", "primary-key", 3)
    assert (2,) == chosen(event, "canal", "table", 3)
    assert (2,) == chosen(event, "maxwell", "database", 3)


def test_canal_without_a_row_writes_to_the_first_partition() -> None:
    for event in (row("inventory.t", "delete", key=("id",)), Event("statement", "insert", "test")):
        assert (0,) == chosen(event, "canal", "primary-key", 5)


# Maxwell


@pytest.mark.parametrize(("name", "at"), [("test", 3), ("inventory", 0), ("shard_1", 0)])
def test_maxwell_database_and_table(name: str, at: int) -> None:
    for rule in (None, "database"):
        assert (at,) == chosen(row(f"{name}.any"), "maxwell", rule, 5)
    assert (at,) == chosen(row(f"any.{name}"), "maxwell", "table", 5)


@pytest.mark.parametrize(
    ("image", "text", "at"),
    [
        ({"id": "1"}, "1", 4),
        ({"id": "12"}, "12", 4),
        ({"id": "1", "part": "2"}, "12", 4),
        ({"id": None, "part": "12"}, "12", 4),
        ({"id": None}, "None", None),
        ({"id": ""}, "None", None),
    ],
)
def test_maxwell_primary_key(image: dict[str, str | None], text: str, at: int | None) -> None:
    expected = abs(java_hash(text)) % 5
    assert expected == (expected if at is None else at)
    event = row(key=tuple(image), after=image | {"name": "x"})
    for rule in ("primary-key", "primary_key"):
        assert (expected,) == chosen(event, "maxwell", rule, 5)


def test_maxwell_without_a_primary_key_goes_by_database_and_table() -> None:
    expected = abs(java_hash("testt1")) % 97
    assert (expected,) == chosen(row(key=(), after={"a": "1"}), "maxwell", "primary-key", 97)


@pytest.mark.parametrize(("rule", "part"), [("transaction_id", "xid"), ("thread-id", "thread_id")])
def test_maxwell_place(rule: str, part: str) -> None:
    assert (4,) == chosen(row(position={part: "12"}), "maxwell", rule, 5)
    unknown = abs(java_hash("null")) % 97
    assert (unknown,) == chosen(row(), "maxwell", rule, 97)


def test_maxwell_columns() -> None:
    event = row(after={"a": "1", "b": None, "c": "2"})
    for rule in ("columns", "column"):
        assert (4,) == chosen(event, "maxwell", rule, 5, "a,b,c")
    assert (3,) == chosen(event, "maxwell", "columns", 5, "b,absent")


@pytest.mark.parametrize(
    ("rule", "table", "name"),
    [
        ("table", "t1", "t1"),
        ("table", None, "test"),
        ("database", "t1", "test"),
        ("primary-key", "t1", "test"),
        ("thread-id", "t1", "test"),
    ],
)
def test_maxwell_ddl(rule: str, table: str | None, name: str) -> None:
    expected = abs(java_hash(name)) % 97
    event = Event("ddl", "create", "test", table, key=("id",))
    assert (expected,) == chosen(event, "maxwell", rule, 97)


def test_maxwell_places_the_ends_of_a_bootstrap_with_its_rows() -> None:
    for op in ("snapshot_begin", "snapshot_end"):
        assert (3,) == chosen(Event("marker", op, "test", "t1"), "maxwell", None, 5)


# Kinds of event


@pytest.mark.parametrize(("producer", "rule"), [("ticdc", "ts"), ("canal", "table")])
def test_ddl_goes_to_the_first_partition_or_to_all(producer: str, rule: str) -> None:
    for event in (Event("ddl", "create", "test", "t1", commit_ts=5), row("a.b", "truncate")):
        assert (0,) == chosen(event, producer, rule, 3)
        assert (0, 1, 2) == chosen(event, producer, rule, 3, broadcast_ddl=True)


@pytest.mark.parametrize(("producer", "rule"), PAIRS)
def test_watermarks_go_everywhere_and_the_rest_to_the_first(producer: str, rule: str) -> None:
    columns = "a" if rule == "columns" else None
    choose = partitioner(rule, 3, columns, PRODUCERS[producer], True)
    assert (0, 1, 2) == choose(Event("watermark", commit_ts=5))
    for kind in ("heartbeat", "marker", "tombstone", "invalid"):
        assert (0,) == choose(Event(kind, commit_ts=5))


def test_kafka_chooses_for_itself() -> None:
    for kind in ("row", "ddl", "watermark", "tombstone"):
        event = Event(kind, database="d", table="t", after={"a": "1"})
        assert (None,) == chosen(event, "kafka", None, 5)
        for producer in PRODUCERS:
            assert (None,) == chosen(event, producer, None, None)


# What is refused


def test_every_rule_is_described() -> None:
    described = (DOCS / "dispatch.md").read_text()
    assert [] == [rule for _, rule in PAIRS if f"`{rule}`" not in described]


@pytest.mark.parametrize(
    ("producer", "rule", "words"),
    [
        ("ticdc", "primary-key", "ticdc has no partition rule 'primary-key'; did you mean"),
        ("ticdc", "primary_key", "'index-value'? known: columns, index-value, table, ts"),
        ("ticdc", "index-valu", "did you mean 'index-value'? known: columns, index-value, table"),
        ("canal", "database", "did you mean 'table'? known: columns, primary-key, table"),
        ("maxwell", "index-value", "did you mean 'primary-key'? known: columns, database"),
        ("maxwell", "random", "unknown partition rule of maxwell 'random'; known: columns"),
        ("kafka", "table", "placed by Kafka, by their key: leave partition out"),
    ],
)
def test_a_rule_that_the_producer_does_not_have(producer: str, rule: str, words: str) -> None:
    assert words in refusal(rule, 3, None, producer, False)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("table", None, None, "ticdc", False), "the partition rule table needs partition-num"),
        (("table", 0, None, "ticdc", False), "partition-num cannot be 0"),
        ((None, -1, None, "kafka", False), "partition-num cannot be -1"),
        ((None, 2**31, None, "maxwell", False), "partition-num cannot be 2147483648"),
        (("columns", 3, None, "ticdc", False), "the partition rule columns needs"),
        (("columns", 3, " , ", "ticdc", False), "the partition rule columns needs"),
        (("columns", 3, "a,b,A", "ticdc", False), "names a column twice"),
        (("table", 3, "a", "ticdc", False), "partition-columns is for the partition rule columns"),
        ((None, None, "a", "canal", False), "partition-columns is for the partition rule columns"),
    ],
)
def test_wrong_calls(arguments: tuple[Any, ...], words: str) -> None:
    assert words in refusal(*arguments)


# Properties

VALUES = (
    st.none() | st.text(max_size=12) | st.binary(max_size=6).map(lambda b: b64encode(b).decode())
)
TYPES = st.sampled_from(["int", "varchar(9)", "varbinary(9)", "enum('a','b')", "set('a','b')"])
IMAGES = st.fixed_dictionaries({"id": VALUES, "part": VALUES, "note": VALUES})


@given(
    pair=st.sampled_from(PAIRS),
    count=st.integers(1, 2**31 - 1),
    names=st.tuples(st.none() | st.text(), st.none() | st.text()),
    image=IMAGES,
    mysql=TYPES,
    op=st.sampled_from(["insert", "update", "delete", "snapshot"]),
    commit_ts=st.none() | st.integers(0, 2**63 - 1),
)
def test_a_row_goes_to_one_partition_that_exists(
    pair: tuple[str, str],
    count: int,
    names: tuple[str | None, str | None],
    image: dict[str, str | None],
    mysql: str,
    op: str,
    commit_ts: int | None,
) -> None:
    types = {name: ColumnType(mysql) for name in image}
    event = Event("row", op, *names, ("id", "part"), types=types, commit_ts=commit_ts)
    event.before, event.after = (image, None) if op == "delete" else (None, image)
    producer, rule = pair
    [at] = chosen(event, producer, rule, count, "id,note" if rule == "columns" else None)
    assert at in range(count)


@given(
    producer=st.sampled_from(
        [("ticdc", "index-value"), ("canal", "primary-key"), ("maxwell", "primary-key")]
    ),
    count=st.integers(1, 64),
    image=IMAGES,
    note=VALUES,
)
def test_a_row_stays_where_it_is_while_its_key_does(
    producer: tuple[str, str], count: int, image: dict[str, str | None], note: str | None
) -> None:
    name, rule = producer
    choose = partitioner(rule, count, None, PRODUCERS[name], False)
    changed = image | {"note": note}
    key = ("id", "part")
    life = [
        row(key=key, after=image),
        row(op="update", key=key, before=image, after=changed),
        row(op="delete", key=key, before=changed),
    ]
    assert 1 == len({choose(event) for event in life})
