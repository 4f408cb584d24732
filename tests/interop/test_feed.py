"""The examples' feed, converted from every dialect that tells whole rows, as Flink reads it.

What is expected comes from the story that the feed was written from (examples/shop.py).
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from paths import FEED

from bench.flink import Flink
from examples.shop import ADDED, SCHEMA, TABLES, canonical, tell
from headgate.cli.split_work import messages
from headgate.codec.decoder import decode_message, decoder
from headgate.core.event import Event
from headgate.core.limits import MAX_MESSAGE_BYTES
from headgate.sources.message_files import Split
from headgate.sources.message_files import read as batches
from tests.interop.gadgets import Reading, expected
from tests.interop.test_flink import TARGETS, Target, differences, read, write

# A bare row (debezium-smt) does not tell the row before an update.
FILES = sorted(
    path.name
    for path in FEED.iterdir()
    if path.suffix in (".jsonl", ".parquet") and not path.name.startswith("debezium-smt")
)
COLUMNS = TABLES | {"customers": TABLES["customers"] | dict([ADDED])}
LIKE = {
    "bigint": "id",
    "varchar(16)": "name",
    "varchar(80)": "name",
    "varchar(120)": "name",
    "varchar(200)": "name",
    "bigint unsigned": "ubig",
    "varbinary(16)": "bin",
    "datetime": "at",
    "datetime(3)": "at3",
    "timestamp(3)": "stamp3",
    "decimal(20,4)": "price",
}
"""The column of `gadgets` that a type is read like."""


@cache
def decoded(file: str) -> list[Event]:
    decode = decoder("auto", schema=SCHEMA)
    found = []
    for batch in batches(Split(str(FEED / file))):
        for message in messages(batch):
            found += decode_message(
                decode, message.key, message.value, message.topic, MAX_MESSAGE_BYTES
            )
    return [event for event in found if event.kind == "row"]


def story(table: str) -> list[Event]:
    """The table's changes as they were told."""
    names = dict.fromkeys(COLUMNS[table])
    return [
        Event(
            "row",
            step.op,
            before=before and names | canonical(table, before),
            after=after and names | canonical(table, after),
        )
        for step in tell().steps
        if step.kind == "row" and step.table == table
        for before, after in step.rows
    ]


def readings(target: Target, table: str) -> dict[str, Reading]:
    return {name: target.readings[LIKE[type_]] for name, type_ in COLUMNS[table].items()}


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("name", ["canal-json:canal", "canal-json:ticdc", "debezium", "maxwell"])
def test_converted_feed_reads_as_the_story(
    flink: Flink, tmp_path: Path, name: str, table: str
) -> None:
    target = TARGETS[name].told(schema=SCHEMA)
    for file in FILES:
        write(tmp_path / file, target, [e for e in decoded(file) if e.table == table])
    columns = readings(target, table)
    path = {"from": Reading("STRING NOT NULL METADATA FROM 'file.path'", str)}
    found = read(flink, tmp_path, target, columns | path)
    wanted = expected(story(table), columns)
    by_file = {
        file: [row[:-1] for row in found if str(row[-1]).endswith("/" + file)] for file in FILES
    }
    wrong = {file: differences(wanted, rows, columns)[:3] for file, rows in by_file.items()}

    assert [] == [(file, *found) for file, found in wrong.items() if found]
    assert dict.fromkeys(FILES, len(wanted)) == {file: len(rows) for file, rows in by_file.items()}
