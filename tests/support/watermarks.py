"""Watermarks among the messages of a history, as TiCDC sends them: each partition has its own."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from emission import Unit, events_of
from histories import History
from written_dialects import Dialect

from headgate.core.event import Event, Record


def commits_of(history: History, dialect: Dialect) -> dict[int, int]:
    """The last commit number of each transaction, in order, with the transaction's number.

    A transaction that changes nothing in the end is in no message and has none.
    """
    last: dict[int, int] = {}
    for placed in events_of(history, dialect):
        number = int((placed.event.position or {})["xid"]) - 1_000
        last[number] = max(last.get(number, 0), placed.event.commit_ts or 0)
    return {commit: number for number, commit in sorted(last.items())}


def with_watermarks(
    units: Sequence[Unit],
    commits: Sequence[int],
    dialect: Dialect,
    partitions: int,
    seed: int,
) -> list[Unit]:
    """Units with watermarks between them; at the end every partition has passed all commits."""
    random = Random(seed)
    encoder = dialect.encoder(partition_num=partitions) if partitions > 1 else dialect.encoder()
    result: list[Unit] = []
    for number, unit in enumerate(units):
        result.append(unit)
        for partition in range(partitions):
            if random.random() < 0.3:
                commit = complete(units, number + 1, commits, partition)
                result += [mark(encoder, commit, partition)] if commit else []
    return [*result, *(mark(encoder, commits[-1], partition) for partition in range(partitions))]


def complete(units: Sequence[Unit], start: int, commits: Sequence[int], partition: int) -> int:
    """Up to which commit a partition has everything, before a unit; 0 where there is none."""
    seen = {id(unit.records) for unit in units[:start]}
    pending = [
        unit.commit
        for unit in units[start:]
        if id(unit.records) not in seen
        and any((r.partition or 0) == partition for r in unit.records)
    ]
    return max((commit for commit in commits if commit < min(pending, default=2**63)), default=0)


def mark(encoder: object, commit: int, partition: int) -> Unit:
    assert callable(encoder)
    records: list[Record] = encoder(Event("watermark", commit_ts=commit, event_time=0)).records
    [record] = [each for each in records if (each.partition or 0) == partition]
    return Unit((record,), 0, "", False, False, True, ())
