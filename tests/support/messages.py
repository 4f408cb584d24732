"""Small messages that tests share."""

from __future__ import annotations

import json
from typing import Any


def canal(**changes: Any) -> bytes:
    """A Canal INSERT of one row, with some members changed."""
    message = {
        "data": [{"id": "1", "amount": "1.10", "note": None}],
        "database": "shop",
        "es": 1589373515000,
        "id": 7,
        "isDdl": False,
        "mysqlType": {"id": "bigint(20)", "amount": "decimal(12,2)", "note": "varchar(20)"},
        "old": None,
        "pkNames": ["id"],
        "sql": "",
        "sqlType": {"id": -5, "amount": 3, "note": 12},
        "table": "orders",
        "ts": 1589373515477,
        "type": "INSERT",
    }
    return json.dumps(message | changes, separators=(",", ":")).encode()


def maxwell(**changes: Any) -> bytes:
    """A Maxwell insert of one row, with some members changed."""
    message = {
        "database": "shop",
        "table": "orders",
        "type": "insert",
        "ts": 1589373515,
        "xid": 1,
        "commit": True,
        "data": {"id": 1, "note": None},
    }
    return json.dumps(message | changes, separators=(",", ":")).encode()
