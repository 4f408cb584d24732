"""Large transactions and large rows."""

from __future__ import annotations

import pymysql
from binlog_capture import Capture

from headgate.mysql.connection import Start


def fill(capture: Capture, rows: int) -> Start:
    """Insert rows in one transaction; gives where it begins."""
    digits = (
        "(SELECT 0 d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4"
    )
    digits += " UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8"
    digits += " UNION ALL SELECT 9)"
    powers = [f"{digits} t{n}" for n in range(6)]
    number = " + ".join(f"t{n}.d * {10**n}" for n in range(6))
    capture.run(
        "DROP TABLE IF EXISTS t",
        "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(40), price DECIMAL(10,2), at DATETIME)",
    )
    start = capture.position()
    capture.run(
        f"INSERT INTO t SELECT n, CONCAT('name of ', n), n / 7, '2024-05-01 08:00:00' FROM "
        f"(SELECT {number} n FROM {', '.join(powers)}) numbers WHERE n < {rows}"
    )
    return start


def large_row(capture: Capture, mebibytes: int) -> Start:
    """Insert a row with so much in a column, and change it; gives where that begins."""
    capture.run(
        "SET GLOBAL max_allowed_packet = 1073741824", "DROP TABLE IF EXISTS large",
        "CREATE TABLE large (id INT PRIMARY KEY, data LONGTEXT, n INT)",
    )  # fmt: skip
    start = capture.position()
    # A session's limit is that of when it began.
    with pymysql.connect(**capture.options, autocommit=True) as sql, sql.cursor() as cursor:
        table = f"{capture.database}.large"
        cursor.execute(f"INSERT INTO {table} VALUES (1, REPEAT('x', {mebibytes << 20}), 1)")
        cursor.execute(f"UPDATE {table} SET n = 2")
    return start
