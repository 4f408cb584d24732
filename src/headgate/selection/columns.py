"""Which columns of a row are kept."""

from __future__ import annotations

import re
from dataclasses import dataclass

import msgspec

from headgate.core.cache import BoundedCache, PerTypeMap
from headgate.core.column_flags import HANDLE
from headgate.core.errors import shown
from headgate.core.event import Event, Image, Types
from headgate.core.keys import key, not_empty
from headgate.core.losses import HINTS
from headgate.formats import extra_members
from headgate.selection.errors import SelectionError
from headgate.selection.globs import glob_regex


@dataclass(frozen=True)
class Columns:
    """Which columns of a table are kept: names with `*` and `?`, in any case."""

    include: tuple[str, ...] | None = key(
        "columns that are kept",
        None,
        read=not_empty,
        default_text="all",
        empty="no column would be left",
    )
    exclude: tuple[str, ...] = key("columns that are removed", (), read=not_empty)

    @property
    def keeps_all(self) -> bool:
        """Whether no column is removed."""
        return self.include is None and not self.exclude


class Projection:
    """Removes columns from the rows of a table. Names are compared in any case, as MySQL does."""

    def __init__(self, columns: Columns, table: str) -> None:
        self.table = table
        self._include = None if columns.include is None else _any_of(columns.include)
        self._exclude = _any_of(columns.exclude)
        self.keeps: BoundedCache[str, bool] = BoundedCache(self._keeps)
        self._types = PerTypeMap(self._project_types)
        self._keys: BoundedCache[tuple[str, ...], str | None] = BoundedCache(self.first_removed)
        self._lists: BoundedCache[str, str | None] = BoundedCache(self._project_list)

    def first_removed(self, names: tuple[str, ...]) -> str | None:
        """The first of these columns that is removed.

        >>> Projection(Columns(exclude=("ID",)), "shop.orders").first_removed(("id", "name"))
        'id'
        """
        return next((name for name in names if not self.keeps[name]), None)

    def _keeps(self, name: str) -> bool:
        if self._include is not None and not self._include.fullmatch(name):
            return False
        return not self._exclude.fullmatch(name)

    def _project_types(self, types: Types | None) -> tuple[Types | None, str | None]:
        """The types that are kept, and the first handle key column that is removed."""
        if types is None:
            return None, None
        selected = {name: type for name, type in types.items() if self.keeps[name]}
        handles = tuple(name for name, type in types.items() if (type.flags or 0) & HANDLE)
        return selected, self.first_removed(handles)

    def apply(self, event: Event) -> Event:
        """The event without the columns that are not kept."""
        types, removed = self._types(event.types)
        removed = self._keys[event.key] if event.key else removed
        if removed is not None:
            raise SelectionError(
                "key-column",
                f"the filter of {self.table} removes {shown(removed)}, a primary key column",
                "keep the primary key: rows cannot be identified without it",
            )
        return msgspec.structs.replace(
            event,
            before=self._image(event.before),
            after=self._image(event.after),
            types=types,
            extra=event.extra and self._extra(event.extra),
        )

    def _image(self, image: Image | None) -> Image | None:
        keeps = self.keeps
        return image and {name: value for name, value in image.items() if keeps[name]}

    def _extra(self, extra: dict[str, str]) -> dict[str, str] | None:
        members = extra_members()
        selected: dict[str, str] = {}
        for name, text in extra.items():
            if name in members.values:
                continue
            projected = self._lists[text] if name in HINTS or name in members.columns else text
            if projected is not None:
                selected[name] = projected
        return selected or None

    def _project_list(self, text: str) -> str | None:
        """A list of columns, or a mapping by column, without those that are not kept."""
        try:
            columns = msgspec.json.decode(text)
        except (msgspec.MsgspecError, RecursionError):
            return None
        if isinstance(columns, list):
            columns = [name for name in columns if isinstance(name, str) and self.keeps[name]]
        elif isinstance(columns, dict):
            columns = {name: value for name, value in columns.items() if self.keeps[name]}
        else:
            return None
        return msgspec.json.encode(columns).decode() if columns else None


def _any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """An expression for names that match one of the globs."""
    choices = "|".join(map(glob_regex, patterns)) or r"(?!)"
    return re.compile(choices, re.IGNORECASE | re.DOTALL)
