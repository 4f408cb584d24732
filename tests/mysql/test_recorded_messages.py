"""Captured changes in the formats of real producers: member for member what these wrote for them.

Canal, Maxwell and Debezium read the same statements from a server of their own, so times, numbers
of transactions and positions differ; the rest of the differences is in `captured_losses`.
"""

from __future__ import annotations

from typing import Any

import pytest
import recorded_workload
from binlog_capture import Capture
from captured_losses import RULES
from captured_messages import compared, schema_changes

from headgate.core.event import Event

pytestmark = pytest.mark.slow


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
    ("producer", "messages", "values", "differing"),
    [("canal", 261, 2_760, 147), ("maxwell", 261, 2_758, 173), ("debezium", 291, 3_726, 144)],
)
def test_messages_are_those_of_the_producer(
    events: list[Event], producer: str, messages: int, values: int, differing: int
) -> None:
    result = compared(producer, events)

    assert messages == result.messages
    assert values == result.values
    rules = RULES[producer]
    assert [] == [each for each in result.differences if not any(r.covers(each) for r in rules)]
    unused = [rule for rule in rules if not any(map(rule.covers, result.differences))]
    assert [] == unused
    assert differing == sum(":" not in each.place for each in result.differences)


OURS_ALONE = [
    "CREATE ALGORITHM=", "CREATE TABLE `d5` (", "DROP TABLE IF EXISTS `nope` /*",
    "DROP TABLE `d6`,`d7`", "DROP TABLE `dd` /*", "create table live.dd (k int) /*", "drop view",
    "truncate table",
]  # fmt: skip
"""Views, TRUNCATE; and statements that Debezium writes in words of its own, or by table."""
THEIRS_ALONE = [
    "CREATE TABLE `d5` (", "DROP TABLE IF EXISTS `live`.`nope`", "DROP TABLE `live`.`d6`",
    "DROP TABLE `live`.`d7`", "DROP TABLE `live`.`dd`", "create table live.dd (k int)",
]  # fmt: skip


def are(texts: list[str], starts: list[str]) -> bool:
    """Whether texts begin with these words, in any order."""
    pairs = zip(sorted(texts), starts, strict=True)
    return all(text.startswith(start) for text, start in pairs)


def test_schema_changes_are_debeziums(events: list[Event]) -> None:
    """Of DDL only these differ: `tableChanges` is empty, an index names its table, a renamed table
    has its old name, and Debezium's row is that of the event before."""
    result, ours, theirs = schema_changes(events)

    assert 43 == result.messages
    assert are(ours, OURS_ALONE)
    assert are(theirs, THEIRS_ALONE)
    found = {(each.place.rpartition(": ")[2], each.ours, each.theirs)
             for each in result.differences if not each.place.endswith("tableChanges")}  # fmt: skip
    tables = {each[1:] for each in found if each[0] == "source.table"}
    assert {("d1", ""), ("d1", "d2"), ("d2", "d3")} == tables
    assert {("source.row", 0)} == {each[:2] for each in found if each[0] != "source.table"}
