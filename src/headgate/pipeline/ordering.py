"""The order of changes in the source, and their times: watermarks, late changes, disorder."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Protocol, TypeVar

from headgate.codec.sequence import order
from headgate.core.event import Event


class _HasEvent(Protocol):
    event: Event


T = TypeVar("T", bound=_HasEvent)

AN_HOUR = 3_600_000_000


def comes_before(earlier: Event, later: Event) -> bool | None:
    """Whether one change came before another in the source; None where that is not known.

    >>> comes_before(Event("ddl", commit_ts=9), Event("row", commit_ts=10))
    True
    """
    one, other = order(earlier), order(later)
    if one is not None and other is not None and one[0] == other[0]:
        return one[1] < other[1]
    if earlier.event_time is None or later.event_time is None:
        return None
    return None if earlier.event_time == later.event_time else earlier.event_time < later.event_time


def commit_time(commit_ts: int) -> int:
    """The time of a commit number of TiDB, in microseconds since the epoch.

    >>> commit_time(449_000_000_000_000_000)
    1712799072265000
    """
    return (commit_ts >> 18) * 1_000


class OrderCheck:
    """Notices changes that come after later ones, or behind the watermark.

    By commit only: what has a place in a binlog comes in its order, and where the numbers go back,
    the source is another server or began anew.

    >>> order = OrderCheck(watermark=5)
    >>> [order.is_late("d.t", commit) for commit in (4, 7, 6)]
    [True, False, False]
    >>> order.disordered
    True
    """

    def __init__(self, watermark: int | None) -> None:
        self.watermark = watermark
        self.disordered = False
        """Whether a change came after a later one of its table."""
        self._last: dict[str, int] = {}
        self._last_ddl = 0

    def see_watermark(self, event: Event) -> None:
        """Take in a watermark."""
        if event.commit_ts is not None:
            self.watermark = max(self.watermark or 0, event.commit_ts)

    def see_ddl(self, event: Event) -> None:
        """Take in DDL, which no earlier change may follow."""
        self._last_ddl = max(self._last_ddl, event.commit_ts or 0)

    def is_late(self, table: str, commit: int | None) -> bool:
        """Take in the commit of a change of a table; whether it is behind the watermark."""
        if commit is None:
            return False
        if commit < max(self._last.get(table, 0), self._last_ddl):
            self.disordered = True
        else:
            self._last[table] = commit
        return self.watermark is not None and commit <= self.watermark


class SourceClock:
    """The newest time of a change, as the source's clock has it; a time in the future is ignored.

    >>> clock = SourceClock(None)
    >>> clock.see(Event("row", event_time=1_000))
    1000
    >>> clock.see(Event("row", event_time=10**18))
    >>> clock.newest
    1000
    """

    def __init__(self, newest: int | None) -> None:
        self.newest = newest or 0
        self.limit = int(time.time() * 1_000_000) + AN_HOUR

    def see(self, event: Event) -> int | None:
        """Take in the time of a change; returns it by its commit number, where it has one."""
        at, commit = event.event_time, event.commit_ts
        if at is not None:
            if at > self.limit:
                at = None
            elif at > self.newest:
                self.newest = at
        return at if commit is None else commit_time(commit)


def by_commit(items: Iterable[T]) -> list[T]:
    """Changes or DDL sorted by their commits; one that has none stays with the one before it."""
    keyed: list[tuple[int, T]] = []
    last = 0
    for item in items:
        last = last if item.event.commit_ts is None else item.event.commit_ts
        keyed.append((last, item))
    return [item for _, item in sorted(keyed, key=lambda pair: pair[0])]
