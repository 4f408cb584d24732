"""One test for each bug that a review found; what each would have done to a user is in its name."""

from __future__ import annotations

import json
import os
import threading
import time
from base64 import b64encode
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from messages import canal, maxwell

from headgate.arrow.events import cuts, decode_batches
from headgate.arrow.typed_rows import TIME, cast
from headgate.cli.event_lines import line
from headgate.cli.split_work import printed
from headgate.codec.decoder import decode_message, decoder
from headgate.core import values
from headgate.core.cache import Memo
from headgate.core.errors import UsageError
from headgate.core.event import Event
from headgate.core.limits import CACHED_BYTES, CACHED_KEY_BYTES, MAX_MESSAGE_BYTES
from headgate.formats._connect.columns import decimal_digits
from headgate.formats.debezium.auxiliary import statement_op
from headgate.sources.message_files import Split, read, splits


def events(spec: str, value: bytes | None, key: bytes | None = None, **options: Any) -> list[Event]:
    found = decode_message(decoder(spec, **options), key, value, None, MAX_MESSAGE_BYTES)
    for event in found:
        line(event)  # what cannot be printed is as bad as what cannot be decoded
    return found


def code(event: Event) -> str | None:
    return event.error[0] if event.error else None


# Exceptions that were no DecodeError


@pytest.mark.parametrize(
    ("value", "options"),
    [
        (canal(id=None, mysqlType={"id": "bit(8)"}, data=[{"id": "%s"}]), {}),
        (maxwell(data={"id": "%s"}), {"columns": "id BIT(8)"}),
    ],
    ids=["canal-json:oms", "maxwell"],
)
def test_a_bit_of_thousands_of_bytes_is_invalid(value: bytes, options: dict[str, str]) -> None:
    spec = "maxwell" if options else "canal-json:oms"
    long = value.replace(b"%s", b64encode(b"\xff" * 3_000))

    assert "invalid-value" == code(events(spec, long, **options)[0])


def test_a_sequence_with_a_fraction_keeps_its_text() -> None:
    message = b'{"op":"c","source":{"sequence":[1.50, "x"]},"after":{"a":1}}'

    assert {"sequence": '[1.50, "x"]'} == events("debezium", message)[0].position


def test_a_heartbeat_whose_key_is_not_utf8_is_invalid() -> None:
    (event,) = events("debezium", b'{"ts_ms":1}', b'{"serverName":["\xff"]}')

    assert "invalid-utf8" == code(event)


def test_a_push_time_before_year_one_is_kept_as_text() -> None:
    (event,) = events("maxwell", maxwell(push_ts=-99_999_999_999))

    assert event.emit_time is None
    assert event.extra
    assert "-99999999999" == event.extra["push_ts"]


@pytest.mark.parametrize("text", ["--5", "²", "", "9" * 5_000])
def test_an_option_that_is_no_number_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError, match="max-message-bytes"):
        decoder("maxwell", max_message_bytes=text)


def test_an_option_of_none_is_as_if_not_given() -> None:
    assert "row" == events("auto", canal(), timezone=None, max_message_bytes=None)[0].kind


# Values and words that changed in silence


def test_text_without_digits_is_no_number() -> None:
    assert ["E5", ".e5", "+e1"] == [values.plain(t) for t in ("E5", ".e5", "+e1")]


def test_renaming_a_column_is_no_rename_of_the_table() -> None:
    assert "alter" == statement_op("ALTER TABLE t RENAME   COLUMN a TO b")
    assert "rename" == statement_op("ALTER TABLE t RENAME   TO b")


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


@pytest.mark.parametrize("spec", ["canal-json", "auto"])
@pytest.mark.parametrize("length", range(115, 132))
def test_a_snappy_message_of_any_length_is_unpacked(spec: str, length: int) -> None:
    message = b'{"type":"QUERY","isDdl":true,"id":1,"database":"%s","sql":"x"}'
    message = message.replace(b"%s", b"d" * (length - len(message) + 2))
    assert length == len(message)
    packed = pa.compress(message, "snappy", asbytes=True)

    assert ["ddl"] == [e.kind for e in events(spec, packed, compression="snappy")]


def test_auto_obeys_a_raised_message_limit() -> None:
    message = canal(data=[{"id": "x" * MAX_MESSAGE_BYTES}])
    packed = pa.BufferOutputStream()
    with pa.CompressedOutputStream(packed, "lz4") as stream:
        stream.write(message)
    found = events("auto", packed.getvalue().to_pybytes(), max_message_bytes=10 * MAX_MESSAGE_BYTES)

    assert ["row"] == [e.kind for e in found]


# Work or memory out of proportion


def nameless_columns(count: int) -> tuple[bytes, bytes]:
    new = ",".join(f'"c{i}":{{"t":3,"f":{i},"v":null}}' for i in range(count))
    old = ",".join(f'"t":3,"f":{i},"v":1' for i in range(count))
    key = b'{"ts":1,"scm":"a","tbl":"b","t":1}'
    body = f'{{"u":{{{new}}},"p":{{{old}}}}}'.encode()
    version = (1).to_bytes(8, "big")
    return version + len(key).to_bytes(8, "big") + key, len(body).to_bytes(8, "big") + body


def test_hostile_texts_cost_linear_time() -> None:
    started = time.process_time()
    values.labels("enum('" + "\\'" * 1_000_000)
    values.plain("1" * 1_000_000 + "Ex")
    with pytest.raises(Exception, match="neither base64 nor digits"):
        decimal_digits("1" * 1_000_000 + "x")
    key, value = nameless_columns(20_000)
    assert "update" == events("open-protocol", value, key)[0].op
    row = {f"c{i}": 1 for i in range(20_000)} | {f"n{i}": [] for i in range(20_000)}
    events("maxwell", maxwell(data=row), json.dumps({f"pk.x{i}": 1 for i in row}).encode())

    assert time.process_time() - started < 5


def test_a_message_of_many_rows_is_not_copied_for_each() -> None:
    rows = [{"id": str(i), "note": "n" * 60} for i in range(60_000)]
    batch = pa.RecordBatch.from_pydict({"value": [canal(data=rows)], "topic": ["t"]})
    assert len(rows) * batch.nbytes > 2**31  # beyond what an Arrow column holds
    found = pa.Table.from_batches(decode_batches([batch], decoder("auto"), MAX_MESSAGE_BYTES))

    assert len(rows) == found.num_rows
    assert {"t"} == {origin["topic"] for origin in found.column("origin").to_pylist()}


def test_rows_that_share_a_long_statement_are_cut_into_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headgate.arrow.events.EXPANDED_BYTES", 10_000_000)
    message = canal(sql="s" * 10_000, data=[{"id": str(i)} for i in range(1_000)])
    batch = pa.RecordBatch.from_pydict({"value": [message]})
    sizes = [b.num_rows for b in decode_batches([batch], decoder("auto"), MAX_MESSAGE_BYTES)]

    assert 1_000 == sum(sizes)
    assert max(sizes) < 1_000
    path = tmp_path / "m.json"
    path.write_bytes(message)
    assert len(sizes) == sum(1 for _ in printed(Split(str(path)), "auto", {}))
    assert [(0, 0)] == list(cuts(batch, []))


def test_rows_that_share_more_than_any_producer_writes_are_refused() -> None:
    message = canal(sql="s" * 1_000_000, data=[{"id": "1"}] * 2_000)

    assert "too-large" == code(events("canal-json", message)[0])


def test_a_cache_is_bounded_in_bytes() -> None:
    sizes = Memo(len)
    for i in range(200):
        assert CACHED_KEY_BYTES // 2 == sizes[f"{i}".ljust(CACHED_KEY_BYTES // 2)]
    assert sum(map(len, sizes)) <= CACHED_BYTES
    assert CACHED_KEY_BYTES == sizes["x" * CACHED_KEY_BYTES]
    assert "x" * CACHED_KEY_BYTES not in sizes


# Files


def lines_of(path: Path) -> list[bytes]:
    return [v for batch in read(Split(str(path))) for v in batch.column("value").to_pylist()]


@pytest.mark.parametrize("message", [b'{"a":1}', b'{\n  "a": 1,\n  "b": 2\n}'])
def test_a_byte_order_mark_is_no_part_of_the_first_message(tmp_path: Path, message: bytes) -> None:
    path = tmp_path / "m.json"
    path.write_bytes(b"\xef\xbb\xbf" + message)

    assert [message] == lines_of(path)
    first = next(read(Split(str(path), 0, path.stat().st_size)))
    assert message.split(b"\n")[0] == first.column("value")[0].as_py()
    assert [Split(str(path))] == splits(str(path))


def test_a_pipe_is_read_like_a_file(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(b'{"a":1}\n{"a":2}\n',))
    writer.start()

    assert [b'{"a":1}', b'{"a":2}'] == lines_of(path)
    writer.join()


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("timestamp", pa.array([1_700_000_000_123])),  # of which unit?
        ("timestamp", pa.array(["2024-01-01"])),
        ("timestamp", pa.array([1_700_000_000_123_456_789], pa.timestamp("ns"))),
        ("timestamp", pa.array([-(2**62)], pa.timestamp("us"))),
        ("partition", pa.array([2**40])),
        ("topic", pa.array([b"\xff"])),
        ("key", pa.array([{"id": 1}])),
    ],
    ids=lambda v: v if isinstance(v, str) else str(v.type),
)
def test_a_parquet_column_that_does_not_fit_is_named(
    tmp_path: Path, name: str, column: pa.Array
) -> None:
    path = tmp_path / "m.parquet"
    pq.write_table(pa.table({"value": [b"{}"], name: column}), path)

    with pytest.raises(UsageError, match=f"column '{name}'"):
        list(read(Split(str(path))))


# The cluster's answers, without a cluster


def test_spark_rows_keep_their_time_in_any_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    from headgate.cli.on_spark import batches_of

    monkeypatch.setenv("TZ", "Asia/Shanghai")
    time.tzset()
    try:
        row = {"t": datetime.fromtimestamp(1_700_000_000)}  # as Spark hands it over
        (batch,) = batches_of([row], pa.schema([("t", TIME)]))
    finally:
        monkeypatch.undo()
        time.tzset()

    assert [1_700_000_000_000_000] == batch.column("t").cast(pa.int64()).to_pylist()


def test_a_file_without_messages_is_not_left_out() -> None:
    from headgate.cli.on_spark import by_file

    files = ["empty", "a", "a", "none"]
    parts = [(i, Split(file)) for i, file in enumerate(files)]
    rows = [{"split": 1, "n": 5}, {"split": 2, "n": 6}, {"split": 2, "n": 7}]
    found = [
        (file, [n for batch in batches for n in batch.column("n").to_pylist()])
        for file, batches in by_file(files, parts, rows, pa.schema([("n", pa.int64())]))
    ]

    assert [("empty", []), ("a", [5]), ("a", [6, 7]), ("none", [])] == found


def test_a_worker_that_stops_midway_is_a_usage_error() -> None:
    from pyspark.errors import PythonException

    from headgate.cli.on_spark import by_file, local_rows

    class Broken:
        def toLocalIterator(self, prefetchPartitions: bool) -> Any:
            yield {"split": 0, "n": 1}
            raise PythonException("…\nheadgate.core.errors.UsageError: x.gz is not whole gzip")

    files, schema = ["x.gz"], pa.schema([("n", pa.int64())])
    rows = local_rows(Broken())  # type: ignore[arg-type]
    _, batches = next(by_file(files, [(0, Split("x.gz"))], rows, schema))
    with pytest.raises(UsageError, match=r"^x.gz is not whole gzip$"):
        list(batches)


# The command line


def command(*arguments: str) -> tuple[int, str]:
    """Exit code and standard error; small files, so no Spark."""
    import subprocess
    import sys

    code = "from headgate.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, timeout=60, check=False
    )
    return done.returncode, done.stderr.decode()


def test_out_and_errors_are_two_directories(tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(canal() + b"\n{")
    out = str(tmp_path / "out")
    status, said = command("decode", str(tmp_path / "m"), "--out", out, "--errors", out + "/")

    assert 2 == status
    assert "same directory" in said


def test_a_directory_that_cannot_be_made_is_no_stack_trace(tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(canal())
    status, said = command("decode", str(tmp_path / "m"), "--out", str(tmp_path / "m" / "out"))

    assert 2 == status
    assert said.startswith("headgate: ")
    assert "Traceback" not in said
