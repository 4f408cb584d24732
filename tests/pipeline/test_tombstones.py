"""A tombstone has the key, the topic and the partition of its row's other messages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from in_process import Sent, job_of, run_job
from paths import REPRO
from producers import debezium

from headgate.arrow.events import decode_columns, to_batch
from headgate.arrow.records import encode_events, events_of
from headgate.cli.split_work import converted
from headgate.codec.decoder import decoder
from headgate.codec.encoder import Encoder
from headgate.core.event import Event
from headgate.fastpath.convert import converter
from headgate.pipeline.plan import PartitionReport, PartitionState
from headgate.pipeline.state import State
from headgate.pipeline.tombstones import Deleted
from headgate.sinks.kafka import KafkaSink
from headgate.sources.message_files import splits

NO_TOPIC = "kafka://127.0.0.1:9?partition-num=3&protocol=debezium"
TO = "kafka://127.0.0.1:9/out?partition-num=3&protocol=debezium"
ROUTE = [{"table": "live.(.*)", "to": "lake.$1", "topic": "cdc.$1"}]


def sent(name: str) -> list[Sent]:
    table = pq.read_table(REPRO / f"{name}.parquet")
    return [Sent(row["value"], row["key"]) for row in table.to_pylist()]


@pytest.mark.parametrize("name", ["tomb-s", "tomb-ns"])
@pytest.mark.parametrize(
    ("sink", "told"),
    [
        (f"{TO}&schemas-enable=true", {}),
        (f"{TO}&schemas-enable=false", {}),
        (f"{TO}&topic-prefix=other", {}),
        (NO_TOPIC, {"route": ROUTE}),
    ],
)
@pytest.mark.parametrize("cut", [False, True])
def test_a_job_writes_a_tombstone_to_its_row(
    tmp_path: Path, name: str, sink: str, told: dict[str, Any], cut: bool
) -> None:
    job = job_of(tmp_path, "debezium", sink, **told)
    delete, tombstone = sent(name)

    out = run_job(job, tmp_path, [[delete], [tombstone]] if cut else [[delete, tombstone]])

    (key, value, topic, _), (last_key, last_value, last_topic, _) = out.written[0]
    assert (key, topic, None) == (last_key, last_topic, last_value)
    assert None not in (key, value, topic)
    assert {"live.t_gen": {"delete": 1}, "": {"tombstone": 1}} == out.state.totals.rows or told


def test_a_batch_may_end_with_the_delete_of_a_row_that_has_a_fraction(tmp_path: Path) -> None:
    job = job_of(tmp_path, "debezium", TO)
    delete = debezium("delete", 1, 5)
    value = (delete.value or b"").replace(b'"n": "5"', b'"n": 1.5')

    out = run_job(job, tmp_path, [[Sent(value, delete.key)], [debezium("tombstone", 1, 5)]])

    (_, value, _, _), (_, last, _, _) = out.written[0]
    assert b"1.5" in value
    assert last is None


@pytest.mark.parametrize("name", ["tomb-s", "tomb-ns"])
@pytest.mark.parametrize("schemas", [True, False])
def test_convert_writes_a_tombstone_to_its_row(name: str, schemas: bool) -> None:
    (split,) = splits(str(REPRO / f"{name}.parquet"))
    options = {"schemas_enable": schemas, "topic_prefix": "other"}

    own = converter("debezium", {}, "debezium", options)

    first, last = [row for part in converted(split, own, False) for row in part.records.to_pylist()]
    assert (first["key"], None) == (last["key"], last["value"])
    assert (b"other.live" in first["key"]) == schemas


@pytest.mark.parametrize("schemas", [True, False])
def test_encode_writes_a_tombstone_to_its_row(schemas: bool) -> None:
    batch = pq.read_table(REPRO / "tomb-s.parquet").to_batches()[0]
    events = events_of(to_batch(decode_columns(batch, decoder("debezium"), 10**6)[0]))

    keys = encode_events(Encoder("debezium", schemas_enable=schemas), events).column("key")

    assert keys[0] == keys[1]


def test_what_has_no_topic_is_counted(tmp_path: Path) -> None:
    job = job_of(tmp_path, "debezium", NO_TOPIC, route=ROUTE)

    out = run_job(job, tmp_path, [sent("tomb-s")[1:]])

    assert [[]] == out.written
    assert {"tombstone": 1} == out.state.totals.losses


@pytest.mark.parametrize("cut", [False, True])
def test_a_sink_that_takes_no_tombstones_gets_the_delete_and_the_tombstone_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: bool
) -> None:
    monkeypatch.setattr(KafkaSink, "takes_tombstones", False)
    job = job_of(tmp_path, "debezium", TO)
    delete, tombstone = sent("tomb-s")

    out = run_job(job, tmp_path, [[delete], [tombstone]] if cut else [[delete, tombstone]])

    ((_, value, *_),) = out.written[0]
    assert value is not None
    assert out.state.totals.losses["tombstone"] == 1


def test_a_delete_that_is_a_tombstone_and_nothing_else_is_a_dead_letter_of_such_a_sink(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(KafkaSink, "takes_tombstones", False)
    to = "kafka://127.0.0.1:9/out?protocol=debezium-smt"
    job = job_of(tmp_path, "debezium", f"{to}&delete-tombstone-handling-mode=delete-to-tombstone")

    out = run_job(job, tmp_path, [sent("tomb-s")[:1]])

    assert ([[]], [(0, "no-message")]) == (out.written, out.letters)


def test_a_replay_leaves_the_last_delete_of_a_partition_as_it_is() -> None:
    def report(delete: Deleted | None = None) -> PartitionReport:
        return PartitionReport(PartitionState(("cdc", 0), last_delete=delete))

    delete = Deleted(b"k", Event("row", "delete", "d", "t", before={"id": "1"}), "drop")
    state = State().after(0, [report(delete)], [])

    assert state.after(0, [report()], [], replayed=True).partitions[0].last_delete == delete
    assert state.after(1, [report()], []).partitions[0].last_delete is None
