"""Debezium's placeholder for a value that is missing from the source's log.

PostgreSQL omits large values that an update did not change, MySQL omits BLOB and TEXT with
`binlog_row_image=NOBLOB` (its connector writes the placeholder from 3.7 on; before, text equal to
the placeholder is just text). Such a column is not in the event's image; `extra["unavailable"]` has
its name and the placeholder as sent, so that Debezium's formats can write it again.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import msgspec

PLACEHOLDER = "__debezium_unavailable_value"
MYSQL = ("mysql", "mariadb")
MYSQL_SINCE = (3, 7)
_VERSION = re.compile(r"(\d{1,4})\.(\d{1,4})")
_json = msgspec.json.encode

Remove = Callable[[bytes, "dict[str, Any] | None", "dict[str, Any] | None"], "str | None"]


@lru_cache(maxsize=100)
def may_lack(connector: str | None, version: str | None) -> bool:
    """Whether a connector writes placeholders.

    >>> may_lack("postgresql", "2.5.0.Final"), may_lack("mysql", "3.5.0.Final")
    (True, False)
    """
    match = _VERSION.match(version or "")
    return connector not in MYSQL or match is None or tuple(map(int, match.groups())) >= MYSQL_SINCE


def forms_of(placeholder: str) -> tuple[str, str, str]:
    """A placeholder as text, and as binary columns are written."""
    raw = placeholder.encode()
    return placeholder, b64encode(raw).decode(), raw.hex()


FORMS = forms_of(PLACEHOLDER)


def make_remover(placeholder: str | None) -> Remove:
    """A function that removes placeholders from a message's rows and returns them as JSON.

    >>> row = {"id": 1, "body": "__debezium_unavailable_value"}
    >>> make_remover(None)(_json(row), None, row), row
    ('{"body":"__debezium_unavailable_value"}', {'id': 1})
    """
    text = placeholder or PLACEHOLDER
    raw = text.encode()
    forms = forms_of(text)
    arrays = ([text], [forms[1]], [*raw])
    # Truncated, because the search is faster if the last character is rare.
    first, *others = (_json(form)[1:-1][:at] for form, at in zip(forms, (24, 37, 52)))
    numbers = _json([*raw])[1:-1]

    def is_placeholder(value: Any) -> bool:
        if value.__class__ is str:
            return value in forms
        if value.__class__ is list:
            return value in arrays
        return value.__class__ is dict and value == {text: text}

    def remove(message: bytes, *rows: dict[str, Any] | None) -> str | None:
        # `find`, because `in` first tries to read the bytes as an integer, which is slow.
        if (
            message.find(first) < 0
            and message.find(others[0]) < 0
            and message.find(others[1]) < 0
            and message.find(numbers) < 0
        ):
            return None
        removed = {
            name: row.pop(name)
            for row in rows
            if row
            for name in [name for name, value in row.items() if is_placeholder(value)]
        }
        return _json(removed).decode() if removed else None

    return remove
