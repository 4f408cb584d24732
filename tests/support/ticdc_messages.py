"""TiCDC's Canal-JSON messages with its extension: changes, watermarks, DDL."""

from __future__ import annotations

from typing import Any

from messages import canal

TSO = 449_000_000_000_000_000


def ticdc(n: int, ts: int, op: str = "INSERT", **changes: Any) -> bytes:
    """A change of row `n` by TiCDC, committed at `ts`."""
    row = {"id": str(n), "amount": f"{ts}.10", "note": None}
    old = [{**row, "amount": "0.10"}] if op == "UPDATE" else None
    members = {"data": [row], "type": op, "old": old, "es": 1_700_000_000_000 + ts}
    return canal(**(members | {"_tidb": {"commitTs": TSO + ts}} | changes))


def watermark(ts: int) -> bytes:
    return canal(
        data=None, type="TIDB_WATERMARK", database="", table="", pkNames=None, mysqlType=None,
        sqlType=None, _tidb={"watermarkTs": TSO + ts},
    )  # fmt: skip


def ddl(ts: int, sql: str, kind: str = "ALTER", **changes: Any) -> bytes:
    return canal(
        data=None, type=kind, isDdl=True, sql=sql, pkNames=None, mysqlType=None, sqlType=None,
        es=1_700_000_000_000 + ts, _tidb={"commitTs": TSO + ts}, **changes,
    )  # fmt: skip
