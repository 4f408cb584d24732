"""A table that waits for somebody: parked by a statement, its changes kept, put right, resumed."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner
from deltalake import DeltaTable
from messages import canal
from pyspark.sql import SparkSession

import headgate
from headgate.cli.main import cli

TYPES = {"mysqlType": {"id": "bigint"}, "sqlType": {"id": -5}}
NO_ROW = dict.fromkeys(("data", "old", "mysqlType", "sqlType", "pkNames"))
CREATE = "CREATE TABLE orders (id BIGINT PRIMARY KEY) PARTITION BY HASH (id)"
TRUNCATE = "ALTER TABLE orders TRUNCATE PARTITION p0"


def insert(id: int) -> bytes:
    return canal(data=[{"id": str(id)}], **TYPES)


def statement(type_: str, sql: str) -> bytes:
    return canal(**NO_ROW, type=type_, isDdl=True, sql=sql)


def test_a_parked_table_goes_on_with_all_its_changes(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    job = tmp_path / "job.yaml"
    job.write_text(
        json.dumps(
            {
                "source": {"uri": f"file://{tmp_path}/in", "format": "canal-json"},
                "sink": {"uri": f"delta://{tmp_path}/lake"},
                "pipeline": {"name": "shop", "checkpoint": f"{tmp_path}/state"},
            }
        )
    )

    def arrive(name: str, *messages: bytes) -> None:
        (tmp_path / "in" / name).write_bytes(b"".join(each + b"\n" for each in messages))
        headgate.run(job, once=True, spark=spark)

    def tables(*words: str) -> str:
        return CliRunner().invoke(cli, ["tables", *words], catch_exceptions=False).output

    def landed() -> list[int]:
        table = DeltaTable(tmp_path / "lake/shop/orders").to_pyarrow_table()
        return sorted(table.column("id").to_pylist())

    arrive("1.jsonl", statement("CREATE", CREATE), insert(1), insert(2))
    arrive("2.jsonl", statement("ALTER", TRUNCATE), insert(3))
    arrive("3.jsonl", insert(4))
    assert [1, 2] == landed()
    assert "shop.orders: parked since " in tables(str(job))
    assert TRUNCATE in tables(str(job))

    DeltaTable(tmp_path / "lake/shop/orders").delete("id = 2")  # what the source's table lost
    tables("resume", str(job), "shop.orders")
    arrive("4.jsonl", insert(5))

    assert [1, 3, 4, 5] == landed()
    assert "shop.orders: landed\n" == tables(str(job))
