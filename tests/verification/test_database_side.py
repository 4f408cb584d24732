"""A database as tables, through JDBC."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mariadb_server import MariaDB
from pyspark.sql import SparkSession

from headgate.core.errors import HeadgateError, UsageError
from headgate.verification.database import DatabaseSide, parse_database

SECRET = "s3cret-9f"
EVERY_TYPE = """
    CREATE TABLE shop.types (
        id INT UNSIGNED PRIMARY KEY, big BIGINT UNSIGNED, price DECIMAL(12,2), f FLOAT, d DOUBLE,
        day DATE, at DATETIME(6), stamp TIMESTAMP(3) NULL, span TIME, y YEAR, flag BIT(1),
        mask BIT(12), raw VARBINARY(100), note TEXT CHARACTER SET utf8mb4, size ENUM('S','M'),
        tags SET('a','b'), doc JSON
    )
"""


def test_a_database_is_written_as_a_uri_and_its_password_is_not_shown() -> None:
    found = parse_database("mysql://me:${PW}@db:3307/shop?sslMode=trust", {"PW": SECRET})

    assert ("db:3307", "shop", "me", SECRET) == (
        found.host, found.name, found.user, found.password
    )  # fmt: skip
    assert SECRET not in repr(found) + found.uri + found.spark_options()["url"]
    assert "trust" == found.spark_options()["sslMode"]


@pytest.mark.parametrize(
    "uri", ["mysql:db", "mysql://db/shop", "mysql://me@db:x/shop", "mysql://me@db/a/b"]
)
def test_a_wrong_uri_is_refused(uri: str) -> None:
    with pytest.raises(UsageError, match="USER:PASSWORD@HOST"):
        parse_database(uri, {})


def test_a_variable_that_is_not_set_is_named() -> None:
    with pytest.raises(UsageError, match="PW is not set"):
        parse_database("mysql://me:${PW}@db/shop", {})


def rows(side: DatabaseSide, table: str) -> list[dict[str, Any]]:
    found = side.table(table)
    assert found is not None
    return sorted((row.asDict() for row in found.rows.collect()), key=str)


def test_every_type_is_read_exactly(mariadb: MariaDB, spark: SparkSession) -> None:
    mariadb.run("CREATE DATABASE shop", EVERY_TYPE)
    mariadb.run("SET time_zone = '+05:00'", "INSERT INTO shop.types VALUES (4000000000, "
        "18446744073709551615, 1.10, 0.1, 0.1, '2024-02-29', '2024-02-29 23:59:59.123456', "
        "'2024-03-01 04:59:59.5', '-120:00:01', 2024, b'1', b'101', x'00ff', 'é😀', 'M', 'a,b', "
        "'{\"b\": 1}')")  # fmt: skip
    side = DatabaseSide(spark, parse_database(mariadb.uri("shop")))

    assert ["shop.types"] == side.tables()
    [row] = rows(side, "shop.types")
    assert (4000000000, "18446744073709551615", "1.10") == (
        row["id"], str(row["big"]), str(row["price"])
    )  # fmt: skip
    assert ("0.1", 0.1) == (f"{row['f']:.6g}", row["d"])
    assert ("2024-02-29", "2024-02-29 23:59:59.123456") == (str(row["day"]), str(row["at"]))
    assert "2024-02-29 23:59:59.500000" == str(row["stamp"])
    assert ("-120:00:01", 2024, True, 5) == (row["span"], row["y"], row["flag"], row["mask"])
    assert (b"\x00\xff", "é😀", "M", "a,b") == (
        bytes(row["raw"]), row["note"], row["size"], row["tags"]
    )  # fmt: skip


def test_keys_of_several_columns_and_names_that_need_quotes(
    mariadb: MariaDB, spark: SparkSession
) -> None:
    mariadb.run(
        "CREATE DATABASE `odd``name`",
        "CREATE TABLE `odd``name`.`a b` "
        "(x INT, `in``y` VARCHAR(9), z INT, PRIMARY KEY (`in``y`, x))",
        "CREATE TABLE `odd``name`.keyless (v INT)",
        "CREATE VIEW `odd``name`.looks AS SELECT 1",
        "INSERT INTO `odd``name`.`a b` VALUES (1, 'k', NULL)",
    )
    side = DatabaseSide(spark, parse_database(mariadb.uri("odd%60name")))

    assert ["odd`name.a b", "odd`name.keyless"] == side.tables()
    found = side.table("odd`name.a b")
    assert found is not None
    assert ("in_x0060_y", "x") == found.key
    assert [(1, "k", None)] == [tuple(row) for row in found.rows.collect()]
    keyless = side.table("odd`name.keyless")
    assert keyless is not None
    assert () == keyless.key


def test_large_tables_are_read_in_ranges_of_their_keys(
    mariadb: MariaDB, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headgate.verification.database.ROWS_PER_PARTITION", 100)
    mariadb.run(
        "CREATE DATABASE parts", "CREATE TABLE parts.t (id BIGINT UNSIGNED PRIMARY KEY, v INT)",
        "USE parts", "INSERT INTO t SELECT seq, seq % 7 FROM seq_1_to_1000",
    )  # fmt: skip
    side = DatabaseSide(spark, parse_database(mariadb.uri("parts")))

    found = side.table("parts.t")

    assert found is not None
    assert 11 == found.rows.rdd.getNumPartitions()
    assert (1000, 3003) == tuple(
        found.rows.selectExpr("count(distinct id)", "sum(v)").first() or ()
    )


def test_a_server_that_does_not_answer_is_named_without_the_password(spark: SparkSession) -> None:
    side = DatabaseSide(spark, parse_database(f"mysql://me:{SECRET}@127.0.0.1:9/shop"))

    with pytest.raises(HeadgateError, match=r"mysql://127\.0\.0\.1:9/shop") as caught:
        side.tables()

    assert SECRET not in str(caught.value)


def test_a_password_that_is_refused_is_not_shown(mariadb: MariaDB, spark: SparkSession) -> None:
    uri = f"mysql://nobody:{SECRET}@{mariadb.address}/shop"

    with pytest.raises(HeadgateError) as caught:
        DatabaseSide(spark, parse_database(uri)).tables()

    assert SECRET not in str(caught.value)
    assert "nobody" in str(caught.value)


def test_plans_do_not_show_the_password(
    mariadb: MariaDB, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    mariadb.run("CREATE DATABASE plans", "CREATE TABLE plans.t (id INT PRIMARY KEY)")
    found = DatabaseSide(spark, parse_database(mariadb.uri("plans"))).table("plans.t")
    assert found is not None

    found.rows.explain(True)

    assert mariadb.password not in capsys.readouterr().out


def test_a_lake_is_compared_with_its_database(
    mariadb: MariaDB, spark: SparkSession, tmp_path: Path
) -> None:
    import pyarrow as pa
    from deltalake import write_deltalake

    import headgate

    mariadb.run(
        "CREATE DATABASE compared",
        "CREATE TABLE compared.t (id INT PRIMARY KEY, v VARCHAR(9), j JSON)",
        "INSERT INTO compared.t VALUES (1, 'a', '{\"x\":  1}'), (2, 'b', NULL)",
    )  # fmt: skip
    folder = tmp_path / "compared" / "t"
    folder.mkdir(parents=True)
    landed = {"id": pa.array([1, 2], pa.int32()), "v": ["a", "b"], "j": ['{"x":  1}', None]}
    write_deltalake(str(folder), pa.table(landed))

    assert headgate.verify(mariadb.uri("compared"), f"delta://{tmp_path}", spark=spark, wait=0)

    mariadb.run(
        "UPDATE compared.t SET v = 'c' WHERE id = 2", "INSERT INTO compared.t VALUES (3, 'd', NULL)"
    )
    found = headgate.verify(mariadb.uri("compared"), f"delta://{tmp_path}", spark=spark, wait=0)
    assert {"different": 1, "missing": 1} == found.tables[0].counts
