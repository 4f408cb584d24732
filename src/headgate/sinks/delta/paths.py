"""Where a table lands below the root: the one rule by which names of tables become paths.

In each part of the path ASCII letters, digits, `_`, `-` and `.` stay as they are; any other
character becomes `_xHEX_` with its code point. `_` and `.` are escaped so too at the start (names
with them are hidden from readers, and `_headgate` is Headgate's own), and `_` before an `x`, so
that two names never have one path. An empty name is `_x_`. A name that would be longer than 160
characters is cut, and ends with a hash of the whole: `_xhHASH_`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import blake2b
from string import Formatter

from headgate.core.errors import UsageError, shown
from headgate.schema.changes import TableId

RESERVED = "_headgate"
"""The folder of Headgate's own files, which are not tables."""
LONGEST = 160
_ESCAPED = re.compile(r"[^A-Za-z0-9_.\-]|^[_.]|_(?=x)")
_FIELDS = ("database", "table")


def escaped(name: str) -> str:
    """A name as a part of a path.

    >>> escaped("orders"), escaped("a/b"), escaped(".."), escaped("_headgate"), escaped("")
    ('orders', 'a_x2f_b', '_x2e_.', '_x5f_headgate', '_x_')
    """
    if not name:
        return "_x_"
    text = _ESCAPED.sub(lambda match: f"_x{ord(match[0]):x}_", name)
    if len(text) <= LONGEST:
        return text
    digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
    return f"{text[: LONGEST - len(digest) - 4]}_xh{digest}_"


def check_template(template: str) -> str:
    """Refuse a template of paths that does not tell tables apart, or leaves the root.

    >>> check_template("{database}/{table}")
    '{database}/{table}'
    """
    try:
        fields = [field for _, field, _, _ in Formatter().parse(template) if field is not None]
    except ValueError:
        fields = [""]
    for field in fields:
        if field not in _FIELDS:
            raise UsageError(
                f"{shown(template)} is not a path; use {{database}} and {{table}} in it"
            )
    if "table" not in fields:
        raise UsageError(f"{shown(template)} has no {{table}}: all tables would be one")
    for part in template.split("/"):
        if part in ("", ".", "..") or part.startswith("_") or "\0" in part:
            raise UsageError(
                f"{shown(template)}: {shown(part)} cannot be a part of the path of a table; write "
                "it without a slash at the ends, and with parts that do not start with '_'"
            )
    return template


def table_path(template: str, table: TableId) -> str:
    """The path of a table below the root.

    >>> table_path("{database}/{table}", TableId("shop", "orders"))
    'shop/orders'
    """
    return "/".join(_parts(template, table))


def _parts(template: str, table: TableId) -> Iterator[str]:
    names = {"database": escaped(table.database or ""), "table": escaped(table.table)}
    for part in template.split("/"):
        yield part.format_map(names)
