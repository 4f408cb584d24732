"""Global transaction ids: sets of MySQL's, and the latest per domain of MariaDB's.

Both are immutable texts at the edges: a set is what an offset holds.
"""

from __future__ import annotations

import struct
from uuid import UUID

Interval = tuple[int, int]
"""The first and the last number."""


class GtidSet:
    """The transactions of MySQL that were read: intervals of numbers by server (and tag).

    >>> done = GtidSet("3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5:8")
    >>> done.add("3e11fa47-71ca-11e1-9e33-c80aa9429562:6")
    >>> str(done)
    '3e11fa47-71ca-11e1-9e33-c80aa9429562:1-6:8'
    """

    def __init__(self, text: str = "") -> None:
        self._intervals: dict[str, list[Interval]] = {}
        for part in "".join(text.split()).lower().split(","):
            server, *ranges = part.split(":")
            for each in ranges:
                if not each[:1].isdigit():  # MySQL 8.3: what follows has this tag
                    server = f"{server.partition(':')[0]}:{each}"
                    continue
                first, _, last = each.partition("-")
                self._insert(server, int(first), int(last or first))

    def add(self, gtid: str) -> None:
        """Note a transaction."""
        server, _, number = gtid.rpartition(":")
        known = self._intervals.get(server)
        at = int(number)
        if known and known[-1][1] == at - 1:
            known[-1] = (known[-1][0], at)
        else:
            self._insert(server, at, at)

    def _insert(self, server: str, first: int, last: int) -> None:
        merged: list[Interval] = []
        for low, high in sorted([*self._intervals.get(server, []), (first, last)]):
            if merged and low <= merged[-1][1] + 1:
                merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
            else:
                merged.append((low, high))
        self._intervals[server] = merged

    def __contains__(self, gtid: str) -> bool:
        server, _, number = gtid.rpartition(":")
        return any(a <= int(number) <= b for a, b in self._intervals.get(server, ()))

    def covers(self, other: GtidSet) -> bool:
        """Whether all transactions of another set are in this one.

        >>> server = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
        >>> GtidSet(f"{server}:1-5").covers(GtidSet(f"{server}:2-4"))
        True
        """
        return all(
            any(a <= first and last <= b for a, b in self._intervals.get(server, ()))
            for server, intervals in other._intervals.items()
            for first, last in intervals
        )

    def __str__(self) -> str:
        return ",".join(
            ":".join([server, *(f"{a}-{b}" if a < b else f"{a}" for a, b in intervals)])
            for server, intervals in sorted(self._intervals.items())
        )

    def packed(self) -> bytes:
        """As COM_BINLOG_DUMP_GTID has it; servers of before 8.3, which know no tags."""
        parts = [struct.pack("<Q", len(self._intervals))]
        for server, intervals in sorted(self._intervals.items()):
            parts += [UUID(server).bytes, struct.pack("<Q", len(intervals))]
            parts += [struct.pack("<QQ", a, b + 1) for a, b in intervals]
        return b"".join(parts)


class GtidPosition:
    """Where MariaDB's replication stands: the latest transaction of each domain.

    >>> at = GtidPosition("0-1-5,2-7-9")
    >>> at.add("0-1-6")
    >>> str(at)
    '0-1-6,2-7-9'
    """

    def __init__(self, text: str = "") -> None:
        self._latest: dict[int, str] = {}
        for gtid in filter(None, "".join(text.split()).split(",")):
            self.add(gtid)

    def add(self, gtid: str) -> None:
        """Note a transaction."""
        self._latest[int(gtid.partition("-")[0])] = gtid

    def covers(self, other: GtidPosition) -> bool:
        """Whether no domain of another position is further.

        >>> GtidPosition("0-1-5").covers(GtidPosition("0-2-4"))
        True
        """
        return all(
            domain in self._latest and _number(self._latest[domain]) >= _number(gtid)
            for domain, gtid in other._latest.items()
        )

    def __str__(self) -> str:
        return ",".join(self._latest[domain] for domain in sorted(self._latest))


def _number(gtid: str) -> int:
    """The number of a transaction of MariaDB in its domain."""
    return int(gtid.rpartition("-")[2])


Gtids = GtidSet | GtidPosition


def gtids_of(text: str, is_mariadb: bool) -> Gtids:
    """The transactions that a text stands for."""
    return GtidPosition(text) if is_mariadb else GtidSet(text)
