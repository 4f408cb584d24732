"""A number for changes that have a place in a binlog, where TiCDC's formats have that of a commit.

It grows with the log, and is the same whenever the log is read. It is no TSO: it holds no time.
"""

from __future__ import annotations

from headgate.core.event import Event

FILE_BITS, POS_BITS, ROW_BITS = 20, 30, 13
BLOCK = 16
"""Events in a binlog have more bytes than this, so that no two begin in one block."""
MOST_ROWS = (1 << ROW_BITS) - 1


def binlog_number(event: Event) -> int | None:
    """A change's place in the binlog as a number; None where it has none, or one too large.

    Rows of an event from the 8,192nd on share a number.

    >>> place = {"file": "binlog.000002", "pos": "160", "row": "3"}
    >>> binlog_number(Event("row", "insert", position=place)) == (2 << 43) + (10 << 13) + 3
    True
    >>> binlog_number(Event("row", "insert", position={"id": "7"}))
    """
    position = event.position
    if position is None:
        return None
    file, pos = position.get("file", "").rpartition(".")[2], position.get("pos", "")
    if not (_is_number(file) and _is_number(pos)):
        return None
    block = int(pos) // BLOCK
    if int(file) >> FILE_BITS or block >> POS_BITS:
        return None
    row = position.get("row") or position.get("xoffset") or "0"
    number = min(int(row), MOST_ROWS) if _is_number(row) else 0
    return (int(file) << POS_BITS | block) << ROW_BITS | number


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 20
