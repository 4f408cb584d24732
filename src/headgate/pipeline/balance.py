"""Every batch balances: each event read is written, repeated, filtered, rejected or a watermark."""

from __future__ import annotations

from headgate.core.errors import HeadgateError
from headgate.pipeline.counts import Counts


class Unbalanced(HeadgateError):
    """A batch of which some event is in no counter, or in two: nothing of it is written."""


def check_balance(batch: int, before: Counts, after: Counts) -> None:
    """Refuse a batch whose counts do not add up, given the totals before and after it.

    >>> check_balance(7, Counts(), Counts(messages=1, events=1, rows={"d.t": {"insert": 1}}))
    >>> check_balance(7, Counts(), Counts(messages=1, events=1))
    Traceback (most recent call last):
    headgate.pipeline.balance.Unbalanced: batch 7 does not balance: of 1 events in 1 messages 0 ...
    """
    counts = {name: n - before.accounted[name] for name, n in after.accounted.items()}
    messages, events = after.messages - before.messages, after.events - before.events
    if events == sum(counts.values()) and messages <= events:
        return
    detail = ", ".join(f"{n} {name}" for name, n in counts.items())
    raise Unbalanced(
        f"batch {batch} does not balance: of {events} events in {messages} messages "
        f"{sum(counts.values())} are accounted for ({detail}). Nothing of the batch was written: "
        "this is a defect of Headgate; please report it with these numbers"
    )
