"""What a merge did to a table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Merged:
    """Rows by what became of them."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    ignored_old: int = 0
    """Changes that were older than what is landed, or there already."""
    version: int = -1
    """The version of the table after it."""
