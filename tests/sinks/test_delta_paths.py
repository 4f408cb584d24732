"""Names of tables are hostile: each has a path of its own below the root."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from delta_lake import LandedLake
from hypothesis import given
from hypothesis import strategies as st
from packed_changes import orders, upsert

from headgate.core.errors import UsageError
from headgate.schema.changes import TableId
from headgate.sinks.delta.paths import check_template, escaped, table_path
from headgate.sinks.delta.storage import delta_uri, storage_options

HOSTILE = [
    "..", ".", "", "/", "a/b", "a\\b", "_headgate", "_delta_log", "x\0y", "orders", "Orders",
    "ORDERS", "a b", "a%2fb", "%2e%2e", "a=b", "~", "表", "_x2f_", "a_x2f_b",
    "n" * 300, "n" * 301, "*", "#?",
]  # fmt: skip


def test_hostile_names_have_paths_of_their_own(tmp_path: Path) -> None:
    lake = LandedLake(tmp_path)
    for number, name in enumerate(HOSTILE):
        lake.land([upsert(1, number)], shape=orders(table=TableId("d", name)), batch=number)
    for number, name in enumerate(HOSTILE):
        assert [number] == [each["id"] for each in lake.values(TableId("d", name))]
    assert {"d"} == {each.name for each in tmp_path.iterdir()}
    assert len(HOSTILE) == len(list((tmp_path / "d").iterdir()))


@given(st.text(max_size=400))
def test_part_of_a_path_is_safe(name: str) -> None:
    part = escaped(name)
    assert part.isascii()
    assert 0 < len(os.fsencode(part)) <= 200
    assert not part.startswith(".")
    assert not set(part) & set("/\\\0%:*?#~ ")
    assert not part.startswith("_") or part.startswith("_x")


@given(st.lists(st.text(alphabet="_x2f/.", max_size=6), unique=True, max_size=8))
def test_two_names_never_have_one_path(names: list[str]) -> None:
    assert len(names) == len({escaped(name) for name in names})


def test_paths_of_a_template() -> None:
    assert table_path("lake-{database}/{table}", TableId("a.b", "t")) == "lake-a.b/t"
    assert table_path("{database}/{table}", TableId(None, "t")) == "_x_/t"


@pytest.mark.parametrize(
    "template",
    ["{database}", "{table}/", "/{table}", "../{table}", "{x}/{table}", "{table", "_a/{table}"],
)
def test_wrong_templates_are_refused(template: str) -> None:
    with pytest.raises(UsageError):
        check_template(template)


def test_settings_of_spark_for_object_stores() -> None:
    settings = {
        "spark.hadoop.fs.s3a.access.key": "id",
        "spark.hadoop.fs.s3a.bucket.b.secret.key": "secret",
        "spark.hadoop.fs.s3a.endpoint": "minio:9000",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.azure.account.key.acc.dfs.core.windows.net": "k",
        "spark.hadoop.fs.azure.account.oauth2.client.endpoint": "https://login/tenant/oauth2/token",
    }
    assert {
        "aws_conditional_put": "etag",
        "aws_access_key_id": "id",
        "aws_secret_access_key": "secret",
        "aws_endpoint_url": "http://minio:9000",
        "aws_allow_http": "true",
        "aws_virtual_hosted_style_request": "false",
    } == storage_options("s3a://b/lake", settings)
    assert {
        "azure_storage_account_name": "acc",
        "azure_storage_account_key": "k",
        "azure_tenant_id": "tenant",
    } == storage_options("abfss://c@acc.dfs.core.windows.net/lake", settings)
    assert {} == storage_options("/lake", settings)
    assert delta_uri("abfss://c@acc.dfs.core.windows.net/x").startswith("abfss://c@acc")
