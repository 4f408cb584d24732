"""The definitions of a table that come with Maxwell's DDL messages, under another name."""

from __future__ import annotations

import msgspec

from headgate.formats.base import TableName

MEMBERS = ("def", "old")


def renamed_definitions(extra: dict[str, str], old: TableName, new: TableName) -> dict[str, str]:
    """The definitions under the table's new name; those that cannot be renamed are removed.

    >>> extra = {"def": '{"database":"d","table":"t"}', "old": "?"}
    >>> renamed_definitions(extra, ("d", "t"), ("d", "u"))
    {'def': '{"database":"d","table":"u"}'}
    """
    renamed = dict(extra)
    for name in MEMBERS:
        if name in renamed:
            text = _renamed(renamed.pop(name), old, new)
            if text is not None:
                renamed[name] = text
    return renamed


def _renamed(text: str, old: TableName, new: TableName) -> str | None:
    try:
        table = msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        return None
    if not isinstance(table, dict) or (table.get("database"), table.get("table")) != old:
        return None
    return msgspec.json.encode({**table, "database": new[0], "table": new[1]}).decode()
