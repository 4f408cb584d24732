"""Jobs that read RocketMQ."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from deltalake import DeltaTable
from job_runs import once
from messages import canal
from paths import FEED
from pyspark.sql import SparkSession
from rocketmq_server import Sent, Server

from headgate.cli.main import cli
from headgate.codec.decoder import decode_message, decoder
from headgate.config.reader import job_of
from headgate.core.event import Event
from headgate.pipeline.check import checked
from headgate.pipeline.engine import Engine
from headgate.pipeline.run import lag_of
from headgate.pipeline.status import read as read_status
from headgate.sources.message_files import expand, read, splits

SENT_BY_OMS = (
    "oms-default:default",
    "oms-default:extend-column-type",
    "canal-json:oms",
    "dataworks:v2.0",
    "shareplex:oms",
    "debezium:oms",
    "debezium:oms-flatten",
    "debezium-smt:oms",
)
"""What OMS writes to RocketMQ: all of its formats but Maxwell."""
TYPED = {"debezium:oms": "&schemas-enable=true"}
"""What a format must be told so that its messages say their types, as those of the feed do."""


def events_in(dialect: str, path: Path) -> list[Event]:
    decode = decoder(dialect)
    batches = (b for f in expand([str(path)]) for s in splits(f) for b in read(s))
    return [
        event
        for batch in batches
        for row in batch.to_pylist()
        for event in decode_message(decode, row.get("key"), row["value"], None, 1 << 24)
    ]


def changes(events: list[Event]) -> dict[Any, list[Any]]:
    """What happened to each row and to the schema, in order; between topics there is none."""
    found: dict[Any, list[Any]] = {}
    for e in events:
        if e.kind in ("row", "ddl"):
            row = (e.database, e.table, (e.after or e.before or {}).get("id"))
            said = (e.kind, e.op, e.key, e.before, e.after, e.types, e.ddl)
            found.setdefault(row, []).append(said)
    return found


@pytest.mark.parametrize("dialect", SENT_BY_OMS)
def test_every_format_of_oms_goes_through_rocketmq_and_back(
    dialect: str, rocketmq: Server, spark: SparkSession, tmp_path: Path
) -> None:
    (feed,) = FEED.glob(f"{dialect.replace(':', '.')}.*")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / feed.name).write_bytes(feed.read_bytes())
    topic = f"round-{dialect.replace(':', '-').replace('.', '-')}"
    more = TYPED.get(dialect, "")
    for name in ("there", "back"):
        (tmp_path / name).mkdir()

    there = once(
        spark, tmp_path / "there", f"file://{tmp_path}/in?protocol={dialect}",
        f"{rocketmq.uri(topic)}protocol={dialect}&partition-num=1{more}",
    )  # fmt: skip
    back = once(
        spark, tmp_path / "back", f"{rocketmq.uri(topic)}protocol={dialect}",
        f"file://{tmp_path}/out?protocol={dialect}{more}",
    )  # fmt: skip

    wanted = changes(events_in(dialect, tmp_path / "in"))
    assert wanted
    assert wanted == changes(events_in(dialect, tmp_path / "out"))
    assert 0 == back.totals.dead_letters
    assert there.totals.messages > 0


def test_rocketmq_to_delta_tables_that_equal_the_feed(
    rocketmq: Server, spark: SparkSession, tmp_path: Path
) -> None:
    (feed,) = FEED.glob("canal-json.canal.*")
    for folder in ("in", "there", "landed", "direct"):
        (tmp_path / folder).mkdir()
    (tmp_path / "in" / feed.name).write_bytes(feed.read_bytes())
    direct, queued = f"{tmp_path}/direct/lake", f"{tmp_path}/landed/lake"
    files = f"file://{tmp_path}/in?protocol=canal-json:canal"
    topic = f"{rocketmq.uri('to-delta')}protocol=canal-json:canal"

    once(spark, tmp_path / "direct", files, f"delta://{direct}")
    once(spark, tmp_path / "there", files, f"{topic}&partition-num=4")
    landed = once(spark, tmp_path / "landed", topic, f"delta://{queued}")

    tables = sorted(
        str(path.parent.relative_to(direct)) for path in Path(direct).glob("shop/*/_delta_log")
    )
    assert tables
    assert 0 == landed.totals.dead_letters
    for table in tables:
        wanted, got = (rows_of(f"{lake}/{table}") for lake in (direct, queued))
        assert wanted
        assert wanted == got


def rows_of(path: str) -> list[dict[str, Any]]:
    """A table's rows without what Headgate adds to them, by their key."""
    rows = DeltaTable(path).to_pyarrow_table().to_pylist()
    own = [{name: value for name, value in row.items() if name[:1] != "_"} for row in rows]
    return sorted(own, key=lambda row: str(row["id"]))


def test_lag_is_told_by_status_and_once_reads_all_in_batches(
    rocketmq: Server, spark: SparkSession, tmp_path: Path
) -> None:
    rocketmq.create_topic("lag", 2)
    rows = [Sent(canal(data=[{"id": str(n)}]), n % 2) for n in range(60)]
    rocketmq.produce("lag", rows)
    source = rocketmq.uri("lag").rstrip("?")
    sink = f"file://{tmp_path}/out?protocol=debezium"

    first = once(spark, tmp_path, source, sink, **{"pipeline.max_messages": "20"})

    assert (60, 0) == (first.totals.messages, first.lag_offsets)
    assert first.batch >= 2
    assert first == read_status(str(tmp_path / "state"))
    rocketmq.produce("lag", rows[:10])
    told = {"pipeline.checkpoint": str(tmp_path / "state"), "pipeline.name": "t"}
    engine = Engine(spark, job_of(source, (sink,), told))
    assert 10 == lag_of(engine)
    engine.close()
    again = once(spark, tmp_path, source, sink)
    assert (70, 0) == (again.totals.messages, again.lag_offsets)
    shown = CliRunner().invoke(cli, ["status", str(tmp_path / "state")])
    assert "lag" in shown.output


def test_a_bad_message_is_a_dead_letter_with_its_key_and_headers(
    rocketmq: Server, spark: SparkSession, tmp_path: Path
) -> None:
    rocketmq.create_topic("bad", 1)
    rocketmq.produce("bad", [Sent(b"{", tags="t", keys="k"), Sent(canal())])

    status = once(
        spark, tmp_path, rocketmq.uri("bad").rstrip("?"),
        f"file://{tmp_path}/out?protocol=debezium",
        **{"pipeline.dead_letters": f"{tmp_path}/dead"},
    )  # fmt: skip

    assert (2, 1) == (status.totals.messages, status.totals.dead_letters)
    batches = (b for f in expand([f"{tmp_path}/dead"]) for s in splits(f) for b in read(s))
    ((letter),) = [row for batch in batches for row in batch.to_pylist()]
    assert (b"k", b"{", "bad", 0, 0) == (
        letter["key"], letter["value"], letter["topic"], letter["partition"], letter["offset"],
    )  # fmt: skip


def test_headgate_check_says_what_would_be_read(
    rocketmq: Server, spark: SparkSession, tmp_path: Path
) -> None:
    rocketmq.create_topic("looked-at", 3)
    rocketmq.produce("looked-at", [Sent(canal(), n) for n in range(3)])
    told = {"pipeline.checkpoint": str(tmp_path / "state"), "pipeline.name": "t"}
    job = job_of(
        rocketmq.uri("looked-*").rstrip("?"), (f"file://{tmp_path}/out?protocol=debezium",), told
    )

    report = checked(job, None, 10)

    assert {"topics": {"looked-at": 3}} == report["reads"]
    assert (3, {"canal-json:canal": 3}) == (report["sampled"], report["formats"])
