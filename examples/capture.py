"""The demo's database: a shop in MariaDB, captured into Delta tables while it is in use."""

from __future__ import annotations

import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from headgate.config.reader import job_of
from headgate.core.errors import HeadgateError
from headgate.pipeline.run import run
from headgate.verification.api import verify_job
from headgate.verification.report import Verification
from headgate.verification.run import Wanted

SERVERS = Path(__file__).parents[1] / "tests" / "support"
TABLES = (
    "CREATE DATABASE shop",
    "CREATE TABLE shop.customers (id INT PRIMARY KEY, name VARCHAR(40), points INT UNSIGNED)",
    "CREATE TABLE shop.orders (id BIGINT PRIMARY KEY AUTO_INCREMENT, customer INT, "
    "total DECIMAL(12,2), placed_at TIMESTAMP(3) DEFAULT CURRENT_TIMESTAMP(3))",
)
ROWS, CHANGES = 500, 60
ALTER = "ALTER TABLE shop.orders ADD note VARCHAR(40) DEFAULT 'none' AFTER total"
PAUSE = 0.05


@dataclass
class Captured:
    """What was captured, or why nothing was."""

    verification: Verification | None = None
    left_out: str = ""

    @property
    def agrees(self) -> bool:
        """Whether the lake is the database; nothing to compare is no difference."""
        return self.verification is None or self.verification.equal


def capture(spark: SparkSession, place: Path) -> Captured:
    """Capture a shop while it is changed, and compare the lake with the database."""
    try:
        server = started()
    except (HeadgateError, OSError, ImportError) as error:
        return Captured(left_out=str(error))
    with server:
        server.run(*TABLES, *map(customer, range(1, ROWS + 1)), *map(order, range(1, ROWS + 1)))
        source = f"mysql://{server.user}:{server.password}@{server.address}/shop.*"
        settings = {"pipeline.checkpoint": str(place / "state"), "pipeline.name": "capture"}
        job = job_of(source, [f"delta://{place}/lake"], settings)
        shoppers = threading.Thread(target=shop, args=(server,))
        shoppers.start()
        run(job, once=True, spark=spark)  # all rows, and what has changed meanwhile
        shoppers.join()
        run(job, once=True, spark=spark)  # the rest
        return Captured(verify_job(job, Wanted()))


def started() -> Any:
    """A MariaDB of the demo's own, on loopback and a free port."""
    sys.path.append(str(SERVERS))
    try:
        from mariadb_server import MariaDB  # type: ignore[import-not-found]
    finally:
        sys.path.remove(str(SERVERS))
    return MariaDB().start()


def customer(number: int) -> str:
    """A row of a customer."""
    return f"INSERT INTO shop.customers VALUES ({number}, 'Customer {number}', {number * 3})"


def order(number: int) -> str:
    """A row of an order."""
    total = f"{number}.{number % 100:02d}"
    return f"INSERT INTO shop.orders (customer, total) VALUES ({number}, {total})"


def shop(server: Any) -> None:
    """What goes on in the shop while it is captured."""
    for number in range(1, CHANGES + 1):
        server.run(
            order(number),
            f"UPDATE shop.orders SET total = total + 0.01 WHERE id % 20 = {number % 20}",
            f"DELETE FROM shop.customers WHERE id = {number * 7}",
            f"UPDATE shop.customers SET points = points + 1 WHERE id = {number * 5}",
        )
        if number == CHANGES // 2:
            server.run(ALTER)
        time.sleep(PAUSE)
