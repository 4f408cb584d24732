"""Messages of producers: from what happens to which row, at which place of the log."""

from __future__ import annotations

import json
from typing import Any

from in_process import Sent
from messages import canal, maxwell

TIME = 1_700_000_000_000
TSO = 449_000_000_000_000_000


def debezium_key(row: int, schema: bool) -> bytes:
    if not schema:
        return json.dumps({"id": row}).encode()
    fields = [{"type": "int32", "optional": False, "field": "id"}]
    struct = {"type": "struct", "fields": fields, "optional": False, "name": "s.shop.t.Key"}
    return json.dumps({"schema": struct, "payload": {"id": row}}).encode()


def debezium(what: str, row: int, at: int, place: bool = True, schema: bool = False) -> Sent:
    """What Debezium writes; without a place as its connector of PostgreSQL."""
    source: dict[str, Any] = {"version": "3.0", "connector": "mysql", "name": "s"}
    source |= {"ts_ms": TIME + at, "db": "shop", "table": "t", "server_id": 1}
    source |= {"file": "bin.000001", "pos": at, "row": 0} if place else {"lsn": at}
    if what == "heartbeat":
        return Sent(json.dumps({"ts_ms": TIME + at}).encode(), b'{"serverName":"s"}')
    if what == "ddl":
        sql = f"ALTER TABLE t ADD COLUMN c{at} INT"
        change = {"source": source, "ts_ms": TIME + at, "databaseName": "shop", "ddl": sql}
        return Sent(json.dumps({**change, "tableChanges": []}).encode(), b'{"databaseName":"shop"}')
    key = debezium_key(row, schema)
    if what == "tombstone":
        return Sent(None, key)
    image = {"id": row, "n": str(at)}
    images = {"before": None if what == "insert" else image, "after": image}
    if what == "delete":
        images["after"] = None
    envelope = {**images, "source": source, "op": what[0].replace("i", "c"), "ts_ms": TIME + at}
    return Sent(json.dumps(envelope).encode(), key)


def postgres(what: str, row: int, at: int) -> Sent:
    return debezium(what, row, at, place=False)


def wrapped(what: str, row: int, at: int) -> Sent:
    return debezium(what, row, at, schema=True)


def smt(what: str, row: int, at: int) -> Sent:
    """What Debezium's transform leaves of rows."""
    key = debezium_key(row, False)
    if what == "tombstone":
        return Sent(None, key)
    gone = "true" if what == "delete" else "false"
    record = {"id": row, "n": str(at), "__deleted": gone, "__op": what[0].replace("i", "c")}
    return Sent(json.dumps({**record, "__db": "shop", "__table": "t"}).encode(), key)


def ticdc(what: str, row: int, at: int) -> Sent:
    members: dict[str, Any] = {"table": "t", "es": TIME + at, "_tidb": {"commitTs": TSO + at}}
    none = {"data": None, "pkNames": None, "mysqlType": None, "sqlType": None}
    if what == "heartbeat":
        mark = {"type": "TIDB_WATERMARK", "database": "", "_tidb": {"watermarkTs": TSO + at}}
        return Sent(canal(**members | none | mark))
    if what == "ddl":
        sql = f"ALTER TABLE t ADD COLUMN c{at} INT"
        return Sent(canal(**members | none, isDdl=True, type="ALTER", sql=sql))
    image = {"id": str(row), "amount": "1.10", "note": str(at)}
    old = [image] if what == "update" else None
    return Sent(canal(**members, data=[image], old=old, type=what.upper()))


def maxwells(what: str, row: int, at: int) -> Sent:
    if what == "ddl":
        sql = f"ALTER TABLE t ADD COLUMN c{at} INT"
        statement = {"type": "table-alter", "database": "shop", "table": "t", "sql": sql}
        return Sent(json.dumps({**statement, "ts": TIME + at}).encode())
    members = {"type": what, "table": "t", "xid": at, "ts": TIME // 1000 + at}
    return Sent(maxwell(**members, data={"id": row, "note": str(at)}))
