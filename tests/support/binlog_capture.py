"""Statements on a real server, and the events that its binlog holds of them."""

from __future__ import annotations

from typing import Any

import pymysql

from headgate.arrow.records import events_of
from headgate.core.event import Event
from headgate.mysql.connection import Connection, Start
from headgate.mysql.reader import read_binlog

REPLICA = 4_000_001


class Capture:
    """A database of its own on a server, and where its binlog was when it was made."""

    def __init__(self, server: Any, database: str) -> None:
        self.options = {"host": "127.0.0.1", "port": server.port, "user": server.user,
                        "password": server.password}  # fmt: skip
        self.database = database
        self.sql = pymysql.connect(autocommit=True, charset="utf8mb4", **self.options)
        self.run(
            "SET time_zone = '+00:00'",
            f"DROP DATABASE IF EXISTS `{database}`",
            f"CREATE DATABASE `{database}` CHARACTER SET utf8mb4",
            f"USE `{database}`",
        )
        self.start = self.position()

    def connect(self) -> Connection:
        return Connection(**self.options)

    def position(self) -> Start:
        connection = self.connect()
        try:
            return connection.current_position()
        finally:
            connection.close()

    def run(self, *statements: str) -> None:
        with self.sql.cursor() as cursor:
            for sql in statements:
                cursor.execute(sql)

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        with self.sql.cursor() as cursor:
            cursor.execute(sql)
            return list(cursor.fetchall())

    def events(self, start: Start | None = None, **options: Any) -> list[Event]:
        """The events since `start`, or since the beginning."""
        connection = self.connect()
        try:
            batches = read_binlog(connection, start or self.start, REPLICA, **options)
            return [e for batch in batches for part in batch.events for e in events_of(part)]
        finally:
            connection.close()

    def rows(self, **options: Any) -> list[Event]:
        return [event for event in self.events(**options) if event.kind == "row"]
