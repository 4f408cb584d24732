"""A change's place in the source's order: as numbers, and as text that compares as they do."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b

from headgate.core.cache import BoundedCache
from headgate.core.event import Event
from headgate.formats import traits_of

Order = tuple[str, tuple[int, ...]]
"""A kind of order and a place in it; only places of one kind compare."""
KIND = 8
"""How many characters of a sequence tell the kind of its order."""
SNAPSHOT = "snapshot"
"""The kind of a snapshot row whose place does not compare with those of changes. It has as many
characters as any other."""
FIRST_KIND = "0" * KIND
"""What stands for that kind where sequences of all kinds are sorted as text."""
DIGITS = 20
"""How many digits a number has in a sequence."""
FIRST_ROW = "0" * 10
"""The number of a message's first row in a place of arrival."""


def order(event: Event) -> Order | None:
    """A change's place in the source's order; numbers compare as numbers.

    >>> event = Event("row", "insert", "d", "t", position={"file": "bin.000009", "pos": "4"})
    >>> order(event)
    ('binlog  bin', (9, 4, 0))
    """
    if event.commit_ts is not None:
        return ("commit", (event.commit_ts,))
    place = _binlog_place(event)
    if place is None:
        return None
    # Another server counts its files anew.
    server, file, *numbers = place
    return (f"binlog {server} {file}", tuple(map(int, numbers)))


def sequence(event: Event) -> str | None:
    """A change's place in the source's order as text; None where its format has none.

    Texts whose first 8 characters are equal are of one order, and compare as the source's log does.

    >>> sequence(Event("row", "insert", commit_ts=449_000_000_000_000_000))
    '13a991bf00449000000000000000'
    >>> event = Event("row", "insert", position={"file": "bin.000009", "pos": "4", "row": "1"})
    >>> sequence(event)[8:]
    '000000000000000000090000000000000000000400000000000000000001'
    """
    if event.commit_ts is not None:
        return COMMIT + str(event.commit_ts).zfill(DIGITS)
    position = event.position
    if position is None or not (pos := position.get("pos")):
        return None
    server = position.get("log") or position.get("server_id", "")
    start = _start[server, position.get("file", "")]
    row = position.get("row") or _row_of_transaction(event)
    place = pos.zfill(DIGITS) + row.zfill(DIGITS)
    if start is None or len(place) > 2 * DIGITS or not (place.isdigit() and place.isascii()):
        return None
    if event.op == "snapshot" and server == traits_of(event.format, event.dialect).snapshot_server:
        start = SNAPSHOT + start[KIND:]
    return start + place


def arrival_sequence(partition: str, arrival: str, is_snapshot: bool) -> str:
    """The sequence of a change whose format has none: its place in the partition it came in.

    A snapshot row replaces no change of a format that has places.

    >>> arrival_sequence("orders-0", arrival_text(7, 0), False)
    'c06dc5e4000000000000000000070000000000'
    """
    return f"{SNAPSHOT if is_snapshot else kind_of(f'arrival {partition}')}{arrival}"


def arrival_text(offset: int, row: int) -> str:
    """The place of a change in its partition: its message, and its number in that message.

    >>> arrival_text(7, 1)
    '000000000000000000070000000001'
    """
    return str(offset).zfill(DIGITS) + (f"{row:010d}" if row else FIRST_ROW)


def ordered_text(sequence: str) -> str:
    """A sequence as text that sorts a snapshot's rows before all changes.

    >>> ordered_text("snapshot0001") < ordered_text("13a991bf0000")
    True
    """
    return FIRST_KIND + sequence[KIND:] if sequence.startswith(SNAPSHOT) else sequence


def supersedes(new: str, landed: str) -> bool:
    """Whether a change replaces what is known of its row, from the sequences of both.

    Where they do not compare, the source began anew or is another server: what arrives later is
    newer. Only a snapshot row is no news then: the change that is there came after the snapshot.

    >>> early, late = (sequence(Event("row", "update", commit_ts=n)) for n in (9, 10))
    >>> supersedes(late, early), supersedes(early, late), supersedes(early, early)
    (True, False, True)
    >>> supersedes("snapshot", late), supersedes(early, "snapshot")
    (False, True)
    """
    if new.startswith(SNAPSHOT):
        return len(new) == len(landed) and new[KIND:] >= landed[KIND:]
    return new[:KIND] != landed[:KIND] or new >= landed


def _kind_of(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=KIND // 2).hexdigest()


kind_of: Callable[[str], str] = BoundedCache(_kind_of).__getitem__
"""Eight characters that stand for a kind of order."""
COMMIT = kind_of("commit")
"""The kind of commit numbers. Changes of one commit share a number, and may come in several
partitions: of a delete and an upsert of one row the upsert is the last (an update in two parts)."""


def _binlog_place(event: Event) -> tuple[str, str, str, str, str] | None:
    """Server, name of the files, number of the file, position in it, and row."""
    position = event.position
    if position is None:
        return None
    pos, row = position.get("pos", ""), position.get("row") or _row_of_transaction(event)
    file = _file(position.get("file", ""))
    if file is None or not (_is_number(pos) and _is_number(row)):
        return None
    # A replica numbers its files itself, also of changes that were made on another server.
    return position.get("log") or position.get("server_id", ""), *file, pos, row


def _row_of_transaction(event: Event) -> str:
    """The number of a row in its transaction, where rows of a statement share a position.

    >>> _row_of_transaction(Event("row", position={"xoffset": "5"}))
    '5'
    """
    # The last row has none, but says that it is the last.
    is_last = event.extra is not None and event.extra.get("commit") == "true"
    return (event.position or {}).get("xoffset") or ("9" * (DIGITS - 1) if is_last else "0")


def _is_number(text: str) -> bool:
    return text.isdigit() and text.isascii() and len(text) <= DIGITS


def _split_file(name: str) -> tuple[str, str] | None:
    stem, _, number = name.rpartition(".")
    return (stem, number) if _is_number(number) else None


_file: Callable[[str], tuple[str, str] | None] = BoundedCache(_split_file).__getitem__
"""The name of a server's binlog files, and the number of one."""


def _start_of(server_and_file: tuple[str, str]) -> str | None:
    server, name = server_and_file
    file = _file(name)
    if file is None:
        return None
    return f"{kind_of(f'binlog {server} {file[0]}')}{file[1]:0>20}"


_start: BoundedCache[tuple[str, str], str | None] = BoundedCache(_start_of)
"""What the sequences of changes in one binlog file begin with, by server and file."""
