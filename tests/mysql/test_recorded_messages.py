"""Captured changes in the formats of real producers: member for member what these wrote for them.

Canal and Maxwell read the same statements from a server of their own, so times, numbers of
transactions and positions differ; and some values they lose or change (docs/mysql.md).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
import recorded
import recorded_workload
from binlog_capture import Capture

from headgate.codec.encoder import Encoder
from headgate.core.event import Event

pytestmark = pytest.mark.slow

OF_A_RUN = {
    "canal": {"id", "es", "ts", "gtid"},
    "maxwell": {"ts", "gtid", "position", "xid", "server_id", "thread_id"},
}
"""Times, and places in a binlog."""
NOT_WRITTEN = {"canal": set(), "maxwell": {"schema_id", "push_ts", "query"}}
"""Numbers of Maxwell's own; statements, where the server notes them."""
LOST = {
    "canal": {
        "text of character sets as broken UTF-8": {"vl", "vg", "vu", "c10l", "c10g", "txl", "txg"},
        "BINARY without its zeros": {"b16", "b1", "cb", "k"},
        "DECIMAL without its digits": {"d10", "d10u", "d30", "d65", "dz"},
        "digits of Java's": {"fu", "d", "j", "jn"},
        "labels": {"e"},
        "the time of the statement": {"s6"},
    },
    "maxwell": {
        "BINARY without its zeros": {"b16", "b1", "cb", "k"},
        "TIME outside of a day": {"t0", "t1", "t3", "t6"},
        "geometry as text": {"g", "pn", "p", "ls", "pg", "mp", "ml", "mpg", "gc"},
        "BIT over 32": {"b33", "b63", "b64"},
        "dates": {"dt", "d0", "d6", "y"},
        "digits of Java's": {"fu", "j", "jn"},
        "labels": {"e", "ed"},
        "the time of the statement": {"s6"},
    },
}
"""What the producers lose or change: columns of these names are not compared, in any table."""
TYPES = {"e", "gc"}
"""Types that Canal writes with a character lost, or by another name."""

TOGETHER = {"t_par", "t_chi"}
"""Tables of a transaction whose statements are transactions of their own here."""


def rows_of(producer: str, messages: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The messages of rows, each of one row."""
    for message in messages:
        kind = message["type"].lower()
        if kind not in ("insert", "update", "delete"):
            continue
        if producer == "maxwell":
            yield message
            continue
        olds = message["old"] or [None] * len(message["data"])
        if len(olds) > 1:  # codes of unsigned columns depend on the values, here of the first row
            del message["sqlType"]
        for data, old in zip(message["data"], olds):
            yield {**message, "data": data, "old": old}


def differences(producer: str, ours: dict[str, Any], theirs: dict[str, Any]) -> Iterator[str]:
    lost = set().union(*LOST[producer].values())
    for name in {*ours, *theirs} - OF_A_RUN[producer] - NOT_WRITTEN[producer]:
        one, other = ours.get(name, "absent"), theirs.get(name, "absent")
        if name == "sqlType" and name not in theirs:
            continue
        if name in ("commit", "xoffset") and theirs["table"] in TOGETHER:
            continue
        if name == "primary_key" and theirs["table"] == "t_bkey":  # as its column k
            continue
        if name in ("data", "old") and isinstance(one, dict) and isinstance(other, dict):
            for column in {*one, *other} - lost:
                if name == "old" and column not in one and other[column] == theirs["data"][column]:
                    continue  # Canal notes what changed in any row of the message
                if one.get(column, "absent") != other.get(column, "absent"):
                    yield f"{name}.{column}: {one.get(column)!r}, not {other.get(column)!r}"
        elif name == "mysqlType":
            for column in {*one, *other} - TYPES:
                if one.get(column) != other.get(column):
                    yield f"{name}.{column}: {one.get(column)!r}, not {other.get(column)!r}"
        elif one != other:
            yield f"{name}: {one!r}, not {other!r}"


@pytest.fixture(scope="module")
def events(mysql: Any) -> list[Event]:
    capture = Capture(mysql, "headgate_messages")
    for database in ("live", "live_odd", "live_x"):
        capture.run(f"DROP DATABASE IF EXISTS {database}")
    capture.start = capture.position()
    with capture.sql.cursor() as cursor:
        assert recorded_workload.run(cursor) == {}
    return capture.events()


@pytest.mark.parametrize(
    ("producer", "format", "options", "recording", "least"),
    [
        ("canal", "canal-json:canal", {"timezone": "Asia/Shanghai"}, "canal17", 260),
        ("maxwell", "maxwell", {"output_primary_keys": True}, "maxwell145", 260),
    ],
)
def test_messages_are_those_of_the_producer(
    events: list[Event], producer: str, format: str, options: dict[str, Any], recording: str,
    least: int,
) -> None:  # fmt: skip
    encode = Encoder(format, **options)
    written = [r.value for e in events if e.kind == "row" for r in encode(e).records if r.value]
    ours, theirs = defaultdict(list), defaultdict(list)
    lines = recorded.lines(recorded.MYSQL / f"{recording}.jsonl.xz")
    sent = [recorded.unpacked(line["value"]) for line in lines if line["value"] is not None]
    for side, texts in ((ours, written), (theirs, sent)):
        for row in rows_of(producer, [msgspec.json.decode(text) for text in texts]):
            side[row["database"], row["table"], row["type"].lower()].append(row)

    compared, wrong = 0, Counter[str]()
    for key, rows in theirs.items():
        assert len(ours[key]) == len(rows), key
        for mine, other in zip(ours[key], rows):
            compared += 1
            wrong.update(f"{key[1]}: {each}" for each in differences(producer, mine, other))

    assert compared >= least
    assert not wrong
