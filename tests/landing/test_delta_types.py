"""Every lake type in a Delta table, written and read by delta-rs."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pytest

from headgate.landing.shape import landed_names
from headgate.landing.types import arrow_type, lake_type, lake_type_of, typed

DELTA_TYPES = {
    "tinyint": "byte", "smallint": "short", "int": "integer", "bigint": "long",
}  # fmt: skip
"""Names in Delta's log, where they are not those of Spark SQL."""
COLUMNS = {
    "tinyint(1)": ["-128", "127", "0"],
    "smallint": ["-32768", "32767", "0"],
    "int": ["-2147483648", "2147483647", "0"],
    "bigint": ["-9223372036854775808", "9223372036854775807", "0"],
    "bigint unsigned": ["0", "18446744073709551615", "1"],
    "decimal(10,2)": ["-99999999.99", "99999999.99", "0.00"],
    "decimal(38,30)": ["-99999999." + "9" * 30, "0." + "0" * 29 + "1", "1." + "0" * 30],
    "float": ["-3.4028235e38", "1e-45", "0.1"],
    "double": ["-1.7976931348623157e308", "5e-324", "0.1"],
    "bit(1)": ["0", "1", "0"],
    "date": ["0001-01-01", "9999-12-31", "1969-12-31"],
    "datetime(6)": [
        "0001-01-01 00:00:00.000000", "9999-12-31 23:59:59.999999", "1969-12-31 23:59:59.999999",
    ],
    "timestamp(6)": [
        "1970-01-01 00:00:01.000000", "2038-01-19 03:14:07.999999", "2024-05-01 08:00:00.000001",
    ],
    "text": ["", "\0价格😀", "x" * 100_000],
    "blob": ["", "/w==", "AAAA"],
}  # fmt: skip


@pytest.mark.parametrize("mysql", COLUMNS)
def test_delta_rs_writes_and_reads_every_type(
    mysql: str, tmp_path: Path, deltalake: ModuleType
) -> None:
    lake = lake_type(mysql)
    column, misfits = typed(pa.array([*COLUMNS[mysql], None]), mysql, lake)
    assert {} == misfits

    deltalake.write_deltalake(tmp_path, pa.table({"c": column}))

    table = deltalake.DeltaTable(tmp_path)
    [field] = json.loads(table.schema().to_json())["fields"]
    assert DELTA_TYPES.get(lake, lake) == field["type"]
    landed = table.to_pyarrow_table().column("c")
    assert lake == lake_type_of(landed.type)
    assert column.to_pylist() == landed.cast(arrow_type(lake)).to_pylist()


def test_a_datetime_needs_a_reader_that_knows_timestamp_ntz(
    tmp_path: Path, deltalake: ModuleType
) -> None:
    for mysql, needed in [("timestamp", None), ("datetime", ["timestampNtz"])]:
        path = tmp_path / mysql
        column = pa.nulls(1, arrow_type(lake_type(mysql)))
        deltalake.write_deltalake(path, pa.table({"c": column}))

        assert needed == deltalake.DeltaTable(path).protocol().reader_features


def test_why_json_is_not_landed_as_a_variant(tmp_path: Path, deltalake: ModuleType) -> None:
    """A table that is written anew has a STRUCT instead; without that, `json: variant` could be."""
    from deltalake.schema import Field, PrimitiveType, VariantType

    parts = [pa.field(name, pa.binary(), nullable=False) for name in ("metadata", "value")]
    five = {"metadata": b"\x01\x00\x00", "value": b"\x0c\x05"}
    columns = {"id": pa.array([1]), "doc": pa.array([five], pa.struct(parts))}
    fields = [Field("id", PrimitiveType("long")), Field("doc", VariantType())]
    deltalake.DeltaTable.create(tmp_path, deltalake.Schema(fields))
    deltalake.write_deltalake(tmp_path, pa.table(columns), mode="append")

    def type_of_doc() -> str:
        return type(deltalake.DeltaTable(tmp_path).schema().fields[1].type).__name__

    assert "VariantType" == type_of_doc()
    wider = pa.table({**columns, "n": pa.array([7])})
    deltalake.write_deltalake(tmp_path, wider, mode="overwrite", schema_mode="overwrite")
    assert "StructType" == type_of_doc()


def test_delta_takes_the_landed_name_of_every_column(tmp_path: Path, deltalake: ModuleType) -> None:
    names = ["id", "", "_position", "a b", "a.b", "`", "a,;{}()\n\t=", "价格(元)", '"']
    table = pa.table({name: [1] for name in landed_names(names).values()})

    deltalake.write_deltalake(tmp_path, table)

    assert table == deltalake.DeltaTable(tmp_path).to_pyarrow_table()
