"""What happens to messages on their way: repeats, replays, disorder, and cuts into batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from random import Random

from emission import Unit
from written_dialects import Dialect

from headgate.core.event import Message

TOPIC = "in"


def disturbed(units: Sequence[Unit], dialect: Dialect, seed: int) -> list[Unit]:
    """The units as they may arrive, by what the dialect's messages tell of their order."""
    random = Random(seed)
    arriving = list(units)
    if dialect.is_ordered and random.random() < 0.6:
        arriving = shuffled(arriving, random)
    for _ in range(random.choice((0, 1, 1, 3))):
        arriving = replayed(arriving, dialect, random)
    return arriving


def shuffled(units: Sequence[Unit], random: Random) -> list[Unit]:
    """Units moved by a few places, but not past DDL.

    TiCDC writes DDL when all before it is written. Tables without a key have no order of their own:
    what is gone and what is new are the same rows. A snapshot does not begin before the changes
    that it contains are there.
    """
    places: list[tuple[int, float]] = []
    by_place: dict[tuple[str, ...], float] = {}
    last: dict[str, float] = {}
    for number, unit in enumerate(units):
        place = by_place.setdefault(unit.place, number + random.uniform(0, 4))
        if not unit.has_key or unit.is_snapshot:
            place = max(place, last.get(unit.table, 0.0))
        last[unit.table] = max(place, last.get(unit.table, 0.0))
        places.append((unit.segment, place))
    order = sorted(range(len(units)), key=lambda number: (*places[number], number))
    return [units[number] for number in order]


def replayed(units: Sequence[Unit], dialect: Dialect, random: Random) -> list[Unit]:
    """A range of units once more: right behind it, or later where their order is known.

    A repeated row without a key, and DDL, are recognised by their place only.
    """
    if not units:
        return list(units)
    start = random.randrange(len(units))
    end = min(len(units), start + random.choice((1, 1, 2, 5, 20)))
    later = end
    if dialect.is_ordered:
        later = random.randrange(end, len(units) + 1)
    if not dialect.recognises_repeats:
        end, later = within_segment(units, start, end, later)
    again = [unit for unit in units[start:end] if is_repeatable(unit, dialect)]
    return [*units[:later], *again, *units[later:]]


def within_segment(units: Sequence[Unit], start: int, end: int, later: int) -> tuple[int, int]:
    """The ends of a range and of where it comes again, before the next DDL."""
    segment = units[start].segment
    same = start
    while same < len(units) and units[same].segment == segment:
        same += 1
    return min(end, same), min(later, same)


def is_repeatable(unit: Unit, dialect: Dialect) -> bool:
    if unit.is_ddl:
        return dialect.recognises_ddl
    return unit.has_key or dialect.recognises_rows


def delivered(units: Sequence[Unit]) -> list[Message]:
    """The messages with their places in the topic."""
    offsets: Counter[int] = Counter()
    messages = []
    for unit in units:
        for record in unit.records:
            partition = record.partition or 0
            messages.append(
                Message(record.value, record.key, TOPIC, partition, offsets[partition], None)
            )
            offsets[partition] += 1
    return messages


def cut(messages: Sequence[Message], seed: int) -> list[list[Message]]:
    """Messages in batches, cut at random places."""
    random = Random(seed)
    count = random.choice((0, 1, 2, 5, len(messages)))
    places = sorted({0, len(messages), *(random.randint(0, len(messages)) for _ in range(count))})
    return [list(messages[start:end]) for start, end in pairwise(places)]
