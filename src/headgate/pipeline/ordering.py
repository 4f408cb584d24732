"""The order and the times of a partition's changes: watermarks, late changes, disorder."""

from __future__ import annotations

import time

from headgate.core.event import Event
from headgate.pipeline.change import Change
from headgate.pipeline.dedup import commit_time

AN_HOUR = 3_600_000_000


class OrderCheck:
    """Notices changes that come after later ones, or behind the watermark.

    By commit only: what has a place in a binlog comes in its order, and where the numbers go back,
    the source is another server or began anew.

    >>> order = OrderCheck(watermark=5)
    >>> [order.is_late(Event("row", "insert", "d", "t", commit_ts=commit)) for commit in (4, 7, 6)]
    [True, False, False]
    >>> order.disordered
    True
    """

    def __init__(self, watermark: int | None) -> None:
        self.watermark = watermark
        self.disordered = False
        """Whether a change came after a later one of its table."""
        self._last: dict[tuple[str | None, ...], int] = {}
        self._last_ddl = 0

    def see_watermark(self, event: Event) -> None:
        """Take in a watermark."""
        if event.commit_ts is not None:
            self.watermark = max(self.watermark or 0, event.commit_ts)

    def see_ddl(self, event: Event) -> None:
        """Take in DDL, which no earlier change may follow."""
        self._last_ddl = max(self._last_ddl, event.commit_ts or 0)

    def is_late(self, event: Event) -> bool:
        """Take in a change, and say whether it is behind the watermark."""
        commit = event.commit_ts
        if commit is None:
            return False
        table = (event.database, event.schema, event.table)
        if commit < max(self._last.get(table, 0), self._last_ddl):
            self.disordered = True
        else:
            self._last[table] = commit
        return self.watermark is not None and commit <= self.watermark


class SourceClock:
    """The newest time of a change, as the source's clock has it; a time in the future is ignored.

    >>> clock = SourceClock(None)
    >>> clock.see(Event("row", event_time=1_000))
    >>> clock.see(Event("row", event_time=10**18))
    >>> clock.newest
    1000
    """

    def __init__(self, newest: int | None) -> None:
        self.newest = newest or 0
        self.limit = int(time.time() * 1_000_000) + AN_HOUR

    def see(self, event: Event) -> None:
        """Take in the time of a change."""
        at = event.event_time
        if at is not None and self.newest < at <= self.limit:
            self.newest = at

    def time_of(self, event: Event) -> int | None:
        """When a change happened, in microseconds: by its commit number, where it has one."""
        if event.commit_ts is not None:
            return commit_time(event.commit_ts)
        return None if (event.event_time or 0) > self.limit else event.event_time


def by_commit(changes: list[Change]) -> list[Change]:
    """Changes sorted by their commits; one that has none stays with the one before it."""
    keyed: list[tuple[int, Change]] = []
    last = 0
    for change in changes:
        last = last if change.event.commit_ts is None else change.event.commit_ts
        keyed.append((last, change))
    return [change for _, change in sorted(keyed, key=lambda pair: pair[0])]
