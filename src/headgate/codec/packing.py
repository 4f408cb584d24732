"""The messages of many events: rows are joined where the format does that."""

from __future__ import annotations

from collections.abc import Iterable

from headgate.codec.encoder import Encoded, Encoder
from headgate.core.event import Event, Record
from headgate.formats.base import Packer


def packed(
    encoder: Encoder, events: Iterable[Event], outcomes: Iterable[Encoded]
) -> tuple[list[Record], list[list[str] | None]]:
    """The messages of encoded events, and what each lost; rows are joined where formats do that."""
    records: list[Record] = []
    losses: list[list[str] | None] = []
    if encoder.packer is not None:
        return joined(encoder.packer, events, outcomes)
    for outcome in outcomes:
        event_records = outcome.records
        records += event_records
        if len(event_records) == 1:
            losses.append(outcome.lost or None)
        else:
            losses += spread(event_records, outcome.lost)
    return records, losses


def joined(
    packer: Packer, events: Iterable[Event], outcomes: Iterable[Encoded]
) -> tuple[list[Record], list[list[str] | None]]:
    """The same where a message holds several rows of a table."""
    records: list[Record] = []
    losses: list[list[str]] = []
    pending: list[Record] = []
    group: object = None
    size = 0
    for event, outcome in zip(events, outcomes):
        row = event.kind == "row"
        for record, codes in zip(outcome.records, spread(outcome.records, outcome.lost)):
            names = (event.database, event.schema, event.table)
            record_group = (*names, record.topic, record.partition) if row else None
            added = packer.size(record)
            if row and record_group == group and packer.fits(len(pending) + 1, size + added):
                pending.append(record)
                size += added
                losses[-1] += codes or ()
                continue
            if pending:
                records.append(packer.join(pending))
            pending, group, size = [record], record_group, added
            losses.append([*(codes or ())])
    if pending:
        records.append(packer.join(pending))
    return records, [codes or None for codes in losses]


def spread(records: list[Record], lost: list[str]) -> list[list[str] | None]:
    """An event's losses, reported with the first of its messages.

    >>> spread([Record(b"d"), Record(None)], ["key"])
    [['key'], None]
    """
    return [lost or None if i == 0 else None for i in range(len(records))]
