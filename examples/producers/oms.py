"""OceanBase Migration Service 4.2: all methods but those of Debezium and Maxwell."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from examples.producers import Message, base, plain
from examples.shop import ALTER, DATABASE, KEY, Row, Shop, Step, type_of

TENANT = "shop_tenant"
IDENTITY = "OB_MYSQL_CE_shop_1_6n1r4-1-0"
NAMES = {"bigint": "int64", "bigint unsigned": "bigint", "varbinary": "blob"}
JDBC = {"int64": -5, "bigint": -5, "varchar": 12, "decimal": 3, "blob": 2004}
JDBC |= {"datetime": 93, "timestamp": 93}


def type_name(table: str, column: str) -> str:
    """OMS's own word for a column's type, without parameters."""
    mysql = base(type_of(table, column))
    return NAMES.get(mysql, mysql)


def non_zero(fraction: int) -> str:
    """All digits of a fraction of a second but trailing zeros, or nothing."""
    digits = f"{fraction:06d}".rstrip("0")
    return f".{digits}" if digits else ""


def values(table: str, row: Row) -> dict[str, Any]:
    """Numbers bare, bytes as base64, DATETIME as text, TIMESTAMP as seconds since the epoch."""

    def value(name: str, sent: Any) -> Any:
        if isinstance(sent, bytes):
            return b64encode(sent).decode()
        if isinstance(sent, datetime):
            fraction = non_zero(sent.microsecond)
            if type_name(table, name) == "timestamp":
                seconds = (sent.replace(microsecond=0) - datetime(1970, 1, 1)).total_seconds()
                return f"{seconds:.0f}{fraction}"
            return f"{sent:%Y-%m-%d %H:%M:%S}{fraction}"
        return sent

    return {name: value(name, sent) for name, sent in row.items()}


def changes(shop: Shop) -> Iterator[tuple[Step, Row | None, Row | None]]:
    """One row at a time, which is how OMS sends them."""
    for step in shop.steps:
        for before, after in step.rows or [(None, None)]:
            yield step, before, after


def default(shop: Shop) -> Iterator[Message]:
    """Method Default: images without types."""
    return default_messages(shop, values)


def extend_column_type(shop: Shop) -> Iterator[Message]:
    """Method DefaultExtendColumnType: each image tells its columns' types."""

    def image(table: str, row: Row) -> dict[str, Any]:
        light = {n: {"schemaType": type_name(table, n).upper()} for n in row}
        return values(table, row) | {"__light_type": light}

    return default_messages(shop, image)


def default_messages(shop: Shop, image: Any) -> Iterator[Message]:
    """The message of both methods; DDL is an image with the one column `ddl`."""
    for step, before, after in changes(shop):
        row = after or before
        prev = image(step.table, before) if before else None
        post = image(step.table, after) if after else None
        if step.kind == "ddl":
            post = {"ddl": ALTER}
            if "__light_type" in image("customers", {KEY: 1}):
                post["__light_type"] = {"ddl": {"schemaType": "VAR_STRING"}}
        kind = {"row": step.op.upper(), "ddl": "DDL", "beat": "HEARTBEAT"}[step.kind]
        yield plain({
            "prevStruct": prev,
            "postStruct": post,
            "allMetaData": {
                "checkpoint": str(step.seconds),
                "dbType": "OB_MYSQL",
                "storeDataSequence": step.seconds * 10**8 + step.number * 1000,
                "db": {"row": f"{TENANT}.{DATABASE}", "ddl": DATABASE}.get(step.kind),
                "timestamp": str(step.seconds),
                "uniqueId": None,
                "transId": f"1002_{336000 + step.number}" if row else None,
                "clusterId": "1",
                "ddlType": "ALTER_TABLE" if step.kind == "ddl" else None,
                "record_primary_key": KEY if row else None,
                "source_identity": IDENTITY,
                "record_primary_value": str(row[KEY]) if row else None,
                "table_name": step.table or None,
            },
            "recordType": kind,
        })  # fmt: skip


def canal(shop: Shop) -> Iterator[Message]:
    """Method Canal: typed values, bare type names, no `id`, heartbeats."""
    for step, before, after in changes(shop):
        row = after or before
        old = None
        if before and after:
            was, now = values(step.table, before), values(step.table, after)
            old = [{n: v for n, v in was.items() if v != now[n]}]
        names = {n: type_name(step.table, n) for n in row} if row else None
        message = {
            "database": DATABASE,
            "sqlType": {n: JDBC[t] for n, t in names.items()} if names else None,
            "data": [values(step.table, row)] if row else None,
            "pkNames": [KEY] if row else None,
            "old": old,
            "mysqlType": names,
            "type": step.op.upper(),
            "table": step.table,
            "es": step.seconds * 1000,
            "isDdl": step.kind == "ddl",
            "ts": step.millis + 318,
            "sql": ALTER if step.kind == "ddl" else "",
        }
        if step.kind == "beat":
            order = "table database type ts es isDdl sql data old pkNames mysqlType sqlType"
            message |= {"table": None, "database": None, "type": "MHEARTBEAT"}
            message = {name: message[name] for name in order.split()}
        yield plain(message)


def dataworks(shop: Shop) -> Iterator[Message]:
    """Method DataWorks: the table's columns in every message."""
    for step, before, after in changes(shop):
        row = after or before
        beat = step.kind == "beat"
        columns = [{"name": n, "type": type_name(step.table, n).upper()} for n in row or ()]
        yield plain({
            "version": "2.0",
            "schema": {
                "source": {
                    "dbType": "ob_mysql",
                    "dbVersion": None,
                    "dbName": None if beat else DATABASE,
                    "schema": None,
                    "table": step.table or None,
                },
                "column": columns or None,
                "pk": [KEY] if row else None,
            },
            "payload": {
                "before": {"data": values(step.table, before)} if before else None,
                "after": {"data": values(step.table, after)} if after else None,
                "op": "HEARTBEAT" if beat else step.op.upper(),
                "timestamp": {
                    "eventTime": step.seconds * 1000,
                    "systemTime": step.millis + 318,
                    "checkpointTime": step.seconds,
                },
                "ddl": {"text": ALTER} if step.kind == "ddl" else None,
                "scn": str(step.seconds * 10**8) if beat else "null",
            },
            "extend": {},
        })  # fmt: skip


def shareplex(shop: Shop) -> Iterator[Message]:
    """Method SharePlex: an update's `data` has only what changed, its `key` the row before."""
    for step, before, after in changes(shop):
        row = after or before
        data = values(step.table, row) if row else {}
        if before and after:
            old = values(step.table, before)
            data = {n: v for n, v in data.items() if v != old.get(n)}
        name = f"{DATABASE}.{step.table}" if step.table else None
        op = {"row": step.op[:3], "ddl": "ddl", "beat": "heartbeat"}[step.kind]
        message = {
            "data": data,
            "meta": {
                "posttime": f"{step.at:%Y-%m-%dT%H:%M:%S}",
                "op": op,
                "size": 0,
                "time": f"{step.at:%Y-%m-%dT%H:%M:%S}",
                "idx": "0/0",
                "seq": 0,
                "table": name,
                "rowid": f"{name}-{row[KEY] if row else ''}" if name else None,
                "trans": f"1002_{336000 + step.number}" if row else None,
                "scn": str(step.seconds * 10**8 + step.number * 1000),
            },
        }
        if before and after:
            message["key"] = values(step.table, before)
        if step.kind == "ddl":
            message["sql"] = {"ddl": ALTER}
        yield plain(message)
