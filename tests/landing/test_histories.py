"""The judge of landing, judged: what a history's messages say is what happened on the server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from disturbances import cut, delivered, disturbed
from effort import examples, one_in
from emission import events_of, schema_of, units_of
from histories import History, histories, written
from history_author import ROW_STEPS
from history_ddl import DDL_STEPS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mysql_model import Row
from written_dialects import Dialect, limits_of, written_dialects

from headgate.codec.decoder import decode_message, decoder
from headgate.codec.schemas import Schemas
from headgate.core.event import Event, Message, Record
from headgate.core.limits import MAX_MESSAGE_BYTES

DIALECTS = {dialect.name: dialect for dialect in written_dialects()}
every_dialect = pytest.mark.parametrize("name", one_in(3, DIALECTS))


def read(messages: list[Message], dialect: Dialect, history: History) -> Iterator[Event]:
    """The events of messages, completed by the DDL before them."""
    decode = decoder(dialect.spec, **dialect.source)
    schemas = Schemas(schema_of(history), dialect.source)
    for message in messages:
        found = decode_message(decode, message.key, message.value, "in", MAX_MESSAGE_BYTES)
        for event in found:
            assert event.error is None
            if event.kind == "ddl":
                schemas.learn(event)
            elif event.kind == "row":
                assert schemas.complete(event) == []
            if event.kind in ("ddl", "row"):
                yield event


def comparable(types: dict[str, Any], image: Row | None) -> dict[str, Any] | None:
    """A row, its numbers without the notation that is free."""
    if image is None:
        return None
    real = {name for name, type_ in types.items() if type_.mysql in ("float", "double")}
    return {n: float(v) if n in real and v is not None else v for n, v in image.items()}


def expected(history: History, dialect: Dialect, splits: bool) -> Iterator[tuple[Any, ...]]:
    """What each event should say; `splits` tells whether a new key is a delete and an insert."""
    for event, _ in events_of(history, dialect):
        if event.kind == "ddl":
            yield ("ddl", event.ddl)
            continue
        types = event.types or {}
        before, after = comparable(types, event.before), comparable(types, event.after)
        moves = before and after and any(before[n] != after[n] for n in event.key or ())
        if moves and splits:
            yield ("row", event.table, before, None)
            yield ("row", event.table, None, after)
        else:
            yield ("row", event.table, before, after)


def said(event: Event, dialect: Dialect, whole: tuple[Any, ...]) -> tuple[Any, ...]:
    """What an event says; of what its dialect does not write, what it should."""
    if event.kind == "ddl":
        return ("ddl", event.ddl)
    types = event.types or {}
    before, after = comparable(types, event.before), comparable(types, event.after)
    if whole[0] == "row" and whole[2] is not None:
        if after is not None and before is None and "before" not in dialect.carried:
            before = whole[2]
        if after is None and before is not None and not dialect.whole_deletes:
            assert {n: whole[2][n] for n in event.key or ()} == before
            before = whole[2]
    return ("row", event.table, before, after)


@every_dialect
def test_messages_of_a_history_say_what_happened(name: str) -> None:
    dialect = DIALECTS[name]

    @settings(max_examples=examples(8), deadline=None, suppress_health_check=list(HealthCheck))
    @given(histories(limits_of(name)))
    def check(history: History) -> None:
        events = list(read(delivered(units_of(history, dialect)), dialect, history))
        for splits in (False, True):
            wanted = list(expected(history, dialect, splits))
            if len(wanted) == len(events):
                break
        assert wanted == [said(*pair[:1], dialect, pair[1]) for pair in zip(events, wanted)]

    check()


@pytest.mark.slow
@every_dialect
def test_a_repeated_or_shuffled_history_has_the_same_messages(name: str) -> None:
    dialect = DIALECTS[name]
    history = written([1, 2], [("insert", n) for n in range(30)], limits_of(name))
    units = units_of(history, dialect, 3 if dialect.is_ordered else 1)
    for seed in range(20):
        other = disturbed(units, dialect, seed)
        messages = delivered(other)
        batches = cut(messages, seed)
        assert [message for batch in batches for message in batch] == messages
        before, after = (
            {tuple(map(content, unit.records)): 0 for unit in each} for each in (units, other)
        )
        assert before.keys() == after.keys()
        if not dialect.is_ordered:
            assert list(before) == list(after)


def content(record: Record) -> tuple[Any, ...]:
    return record.key, record.value, record.partition


def test_histories_hold_every_kind_of_change() -> None:
    """A generator that never draws something judges nothing."""
    random = Random(7)
    limits = limits_of("debezium:debezium")
    met: Counter[str] = Counter()
    for _ in range(300):
        names = random.choices([*ROW_STEPS, *DDL_STEPS], k=20)
        steps = [("insert", random.getrandbits(32)) for _ in range(5)]
        steps += [(name, random.getrandbits(32)) for name in names]
        log = written([random.getrandbits(32) for _ in range(3)], steps, limits).server.log
        for transaction in log:
            if transaction.ddl is not None:
                met[transaction.ddl.op] += 1
            met["several changes"] += len(transaction.changes) > 1
            for change in transaction.changes:
                met[change.op] += 1
                met["without key"] += not change.key
                met["key change"] += bool(
                    change.before
                    and change.after
                    and any(change.before[n] != change.after[n] for n in change.key)
                )
                met.update(set(change.types.values()))
    wanted = {"insert", "update", "delete", "create", "alter", "drop", "rename", "truncate"}
    wanted |= {"several changes", "without key", "key change"}
    wanted |= {kind.type for kind in limits.kinds}

    assert {name: met[name] for name in wanted if met[name] < 5} == {}


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
@settings(max_examples=examples(50), deadline=None)
def test_rows_of_the_server_fit_their_table(one: int, other: int) -> None:
    random = Random(one)
    names = [*ROW_STEPS, *DDL_STEPS]
    steps = [(random.choice(names), random.getrandbits(32)) for _ in range(40)]
    server = written([one, other], steps, limits_of("debezium:debezium")).server
    for table in server.tables.values():
        for row in table.rows:
            assert set(row) == set(table.names)
            assert all(
                row[column.name] is not None for column in table.columns if not column.nullable
            )
        if table.key:
            assert len(set(table.key_values())) == len(table.rows)
