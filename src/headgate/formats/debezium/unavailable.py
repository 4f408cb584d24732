"""Debezium's placeholder for a value that the source's log did not hold.

PostgreSQL leaves out large values that an update did not change, MySQL BLOB and TEXT with
`binlog_row_image=NOBLOB` (its connector says so from 3.7 on; before, text that is the same as the
placeholder is just text). Such a column is not in the event's image; `extra["unavailable"]` has its
name and the placeholder as it was sent, so that Debezium's formats can write it again.
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

Take = Callable[[bytes, "dict[str, Any] | None", "dict[str, Any] | None"], "str | None"]


@lru_cache(maxsize=100)
def may_lack(connector: str | None, version: str | None) -> bool:
    """Whether a connector writes placeholders.

    >>> may_lack("postgresql", "2.5.0.Final"), may_lack("mysql", "3.5.0.Final")
    (True, False)
    """
    told = _VERSION.match(version or "")
    return connector not in MYSQL or told is None or tuple(map(int, told.groups())) >= MYSQL_SINCE


def forms_of(placeholder: str) -> tuple[str, str, str]:
    """A placeholder as text, and as binary columns are written."""
    raw = placeholder.encode()
    return placeholder, b64encode(raw).decode(), raw.hex()


FORMS = forms_of(PLACEHOLDER)


def make_take(placeholder: str | None) -> Take:
    """A function from a message's bytes and its rows to the columns taken out of them, as JSON.

    >>> row = {"id": 1, "body": "__debezium_unavailable_value"}
    >>> make_take(None)(_json(row), None, row), row
    ('{"body":"__debezium_unavailable_value"}', {'id': 1})
    """
    text = placeholder or PLACEHOLDER
    raw = text.encode()
    forms = forms_of(text)
    arrays = ([text], [forms[1]], [*raw])
    # Cut short, because the search for them is faster when their last letter is rare.
    first, *others = (_json(form)[1:-1][:at] for form, at in zip(forms, (24, 37, 52)))
    numbers = _json([*raw])[1:-1]

    def is_one(value: Any) -> bool:
        if value.__class__ is str:
            return value in forms
        if value.__class__ is list:
            return value in arrays
        return value.__class__ is dict and value == {text: text}

    def take(message: bytes, *rows: dict[str, Any] | None) -> str | None:
        # `find`, because `in` first takes the marks for a number and makes an error of that.
        if (
            message.find(first) < 0
            and message.find(others[0]) < 0
            and message.find(others[1]) < 0
            and message.find(numbers) < 0
        ):
            return None
        taken = {
            name: row.pop(name)
            for row in rows
            if row
            for name in [name for name, value in row.items() if is_one(value)]
        }
        return _json(taken).decode() if taken else None

    return take
