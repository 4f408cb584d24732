"""What is compared: a side has tables, each a DataFrame of typed columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KeyText = tuple["str | None", ...]
"""The values of a key as text."""


class LogMessage(msgspec.Struct):
    """A message that changed a row."""

    op: str
    topic: str | None
    partition: int | None
    offset: int | None
    place: str | None = None
    """The file and line, where there are no coordinates."""


@dataclass(frozen=True)
class SideTable:
    """A table of a side."""

    rows: DataFrame
    key: tuple[str, ...] | None = None
    """The columns of its key; none where it has no key; None where the side does not know."""
    json: frozenset[str] = frozenset()
    """Columns of JSON whose text the side writes itself, with other blanks and in another order
    than the source was given it."""
    notes: tuple[str, ...] = ()
    """What a reader of the report should know."""


class Side(Protocol):
    """The source or the target of a comparison."""

    name: str
    """The URI without its secrets."""
    live: bool = False
    """Whether rows may change while they are compared."""

    def tables(self) -> list[str]:
        """The names of its tables, `database.table`."""

    def table(self, name: str) -> SideTable | None:
        """One of them; None if there is no such table."""

    def messages(
        self, table: str, keys: Sequence[KeyText], most: int
    ) -> dict[KeyText, list[LogMessage]]:
        """The last messages of some keys, newest first; nothing where the side has no messages."""
        return {}

    def refresh(self) -> None:
        """See what there is now, where the side is live."""
        return None

    def close(self) -> None:
        """Let go of what is open, and remove what was written for the comparison."""
        return None
