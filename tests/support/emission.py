"""A history as messages of a dialect, on partitions of a topic."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from histories import History
from mysql_model import DATABASE, Change, Ddl, Row, Transaction
from written_dialects import Dialect

from headgate.codec.packing import packed
from headgate.core.event import ColumnType, Event, Record

FIRST_MILLISECOND = 1_700_000_000_000
FIRST_FILE, FILE_SIZE = 999_998, 2_000
"""Files have more digits in time, and positions too: as text they would not compare."""


class Placed(NamedTuple):
    """An event, and what is known of it beside: its table's key and the DDL before it."""

    event: Event
    segment: int
    """How many DDL statements came before it; DDL has a segment of its own."""


class Unit(NamedTuple):
    """Messages that arrive together, and in this order."""

    records: tuple[Record, ...]
    segment: int
    table: str
    is_ddl: bool
    is_snapshot: bool
    has_key: bool
    place: tuple[str, ...]
    """Where the source's log has it, as far as the dialect tells; units of one place are in order
    only as they arrive."""
    commit: int = 0
    """The first commit number of its changes."""


def events_of(history: History, dialect: Dialect) -> Iterator[Placed]:
    """The changes of a history with all that a producer knows of them."""
    clock, segment, file, position = FIRST_MILLISECOND, 0, FIRST_FILE, 98
    sequence = 0
    for number, transaction in enumerate(history.server.log):
        clock += transaction.pause
        commit = (clock << 18) + sequence + 1
        if transaction.ddl is not None:
            segment += 1
        place = {"server_id": "1", "file": f"binlog.{file:06d}", "xid": str(1_000 + number)}
        statement, row = -1, 0
        for offset, change in enumerate(changes_of(transaction, dialect)):
            if isinstance(change, Change) and change.statement == statement:
                row += 1
            else:
                position, row = position + 37, 0
                statement = change.statement if isinstance(change, Change) else -1
            sequence += 1
            event = event_of(change)
            # OceanBase's sequence counts changes, TiDB's commits. But equal rows of one commit that
            # come in different batches would look like repeats, if they have no key.
            shared = dialect.is_netted and (event.key or event.kind == "ddl")
            event.commit_ts = commit if shared else (clock << 18) + sequence
            event.event_time = event.emit_time = clock * 1_000
            event.position = {**place, "pos": str(position), "xoffset": str(offset)}
            if event.kind == "row":
                event.position["row"] = str(row)
            if event.op == "snapshot":
                event.position["server_id"] = "0"  # as Debezium has it
            yield Placed(event, segment)
        if transaction.ddl is not None:
            segment += 1
        if position > FILE_SIZE:
            file, position = file + 1, 4


def changes_of(transaction: Transaction, dialect: Dialect) -> list[Change] | list[Ddl]:
    if transaction.ddl is not None:
        return [transaction.ddl]
    several = len(transaction.changes) > 1
    return netted(transaction.changes) if dialect.is_netted and several else transaction.changes


def event_of(change: Change | Ddl) -> Event:
    if isinstance(change, Ddl):
        return Event("ddl", change.op, DATABASE, change.table, ddl=change.sql)
    return Event(
        "row",
        change.op,
        DATABASE,
        change.table,
        change.key,
        before=change.before and dict(change.before),
        after=change.after and dict(change.after),
        types={name: ColumnType(type_) for name, type_ in change.types.items()},
    )


def netted(changes: list[Change]) -> list[Change]:
    """What a transaction did to each key, all in all; rows without a key stay as they are."""
    images: dict[Any, tuple[Row | None, Row | None, Change]] = {}
    for number, change in enumerate(changes):
        if not change.key:
            images[number] = (change.before, change.after, change)
            continue
        for is_new, row in enumerate((change.before, change.after)):
            if row is not None:
                key = (change.table, *(row[name] for name in change.key))
                first = images[key][0] if key in images else (None if is_new else row)
                images[key] = (first, row if is_new else None, change)
    return [
        Change(op_of(before, after), each.table, before, after, each.types, each.key)
        for before, after, each in images.values()
        if before != after
    ]


def op_of(before: Row | None, after: Row | None) -> str:
    if before is None:
        return "insert"
    return "update" if after is not None else "delete"


def units_of(
    history: History, dialect: Dialect, partitions: int = 1, rule: str | None = None
) -> list[Unit]:
    """The messages of a history, in the order in which the producer writes them.

    `rule` is how it chooses among partitions.
    """
    options: dict[str, Any] = {}
    if partitions > 1:
        options = {"partition_num": partitions} | ({"partition": rule} if rule else {})
    encoder = dialect.encoder(schema_of(history), **options)
    units = []
    for group in groups(events_of(history, dialect), together=encoder.packer is not None):
        events = [placed.event for placed in group]
        outcomes = list(map(encoder, events))
        assert [] == [outcome.error for outcome in outcomes if outcome.error]
        records, _ = packed(encoder, events, outcomes)
        event = events[0]
        assert records, f"{dialect.name} has no message for {event.op} {event.ddl}"
        units.append(
            Unit(
                tuple(records),
                group[0].segment,
                event.table or "",
                event.kind == "ddl",
                event.op == "snapshot",
                bool(event.key),
                place_of(event, dialect),
                min(each.commit_ts or 0 for each in events),
            )
        )
    return joined(units) if dialect.joins_rows else units


def joined(units: list[Unit]) -> list[Unit]:
    """Canal's messages with several rows: those of a statement that are alike but for the row."""
    result: list[Unit] = []
    last: dict[str, Any] = {}
    for unit in units:
        message = json.loads(unit.records[0].value or b"null")
        alike = {name: message[name] for name in message if name not in ("data", "old")}
        if result and not unit.is_ddl and unit.place == result[-1].place and alike == last:
            pair = json.loads(result[-1].records[0].value or b"null"), message
            for name in ("data", "old"):
                pair[0][name] = (pair[0][name] or []) + (message[name] or []) or None
            text = json.dumps(pair[0], ensure_ascii=False).encode()
            result[-1] = result[-1]._replace(records=(Record(text),))
        else:
            result.append(unit)
        last = alike
    return result


def place_of(event: Event, dialect: Dialect) -> tuple[str, ...]:
    position = event.position or {}
    names = ("file", "pos", "row", "xoffset") if dialect.has_row_numbers else ("file", "pos")
    return tuple(position.get(name, "") for name in names)


def schema_of(history: History) -> str | None:
    """The tables as a schema file has them; None if the history itself creates them."""
    log = history.server.log
    has_ddl = bool(log) and log[0].ddl is not None
    return None if has_ddl else f"USE {DATABASE}; {history.schema}"


def groups(events: Iterator[Placed], together: bool) -> Iterator[list[Placed]]:
    """Each event, or rows of a table in threes where the format joins rows."""
    pending: list[Placed] = []
    for placed in events:
        event = placed.event
        joins = together and event.kind == "row" and bool(pending)
        joins = joins and pending[0].event.kind == "row" and len(pending) < 3
        if joins and event.table == pending[0].event.table:
            pending.append(placed)
            continue
        if pending:
            yield pending
        pending = [placed]
    if pending:
        yield pending
