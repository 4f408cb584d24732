"""The wheel, in an empty environment: what works without extras, and what a type checker sees."""

from __future__ import annotations

import os
import site
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from paths import FEED, ROOT

import headgate

ONLY_INSTALLED = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
MESSAGES = FEED / "canal-json.ticdc.jsonl"
CODECS = """
import headgate
from headgate.codec.decoder import decoder
from headgate.codec.encoder import Encoder
message = b'{"database":"d","table":"t","type":"insert","ts":1,"data":{"id":1.10}}'
(event,) = decoder("maxwell")(None, message, None)
print(event.after, Encoder("debezium")(event).records[0].value[:17])
print(sorted(headgate.losses("canal-json", "maxwell"))[:1] != [], headgate.__version__)
"""
USER = """
import headgate
from pyspark.sql import DataFrame, SparkSession


def orders(spark: SparkSession) -> DataFrame:
    events = headgate.decode(spark.read.text("in"), "maxwell", timezone="UTC", columns="tags SET")
    reveal_type(events)
    reveal_type(headgate.run("job.yaml", once=True).totals.messages)
    headgate.decode(events, timezone=3)
    headgate.rows(events, "shop.orders", schema=["id"])
    headgate.encode(events, "debezium", strict="yes")
    headgate.run("job.yaml", one=True)
    return headgate.rows(events, "shop.orders")
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    return next(folder.glob("headgate-*.whl"))


def environment(folder: Path) -> Path:
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    return folder / "bin"


def test_the_wheel_has_what_belongs_to_it(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
        metadata = packed.read(next(n for n in names if n.endswith("/METADATA"))).decode()

    assert f"headgate-{headgate.__version__}-py3-none-any.whl" == wheel.name
    assert {"headgate/py.typed", "headgate/spark/jars.sha256"} <= set(names)
    assert any(name.endswith("/licenses/LICENSE") for name in names)
    needed = [line for line in metadata.splitlines() if line.startswith("Requires-Dist: ")]
    assert not [line for line in needed if "pyspark" in line and "extra == " not in line]
    for extra in ("spark", "fast", "metrics", "mysql", "rocketmq", "datahub", "delta"):
        assert f"Provides-Extra: {extra}" in metadata


def test_codecs_work_without_spark(wheel: Path, tmp_path: Path) -> None:
    commands = environment(tmp_path / "venv")
    subprocess.run([commands / "pip", "install", "--quiet", wheel], check=True)

    def ran(*words: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [commands / words[0], *map(str, words[1:])],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=ONLY_INSTALLED,
        )

    listed = ran("pip", "list", "--format=freeze").stdout
    assert "pyspark" not in listed
    assert "numba" not in listed
    codecs = ran("python", "-c", CODECS)
    assert codecs.stdout.splitlines() == [
        "{'id': '1.10'} b'{\"schema\":{\"type\"'",
        f"True {headgate.__version__}",
    ], codecs.stderr
    assert (
        f"{MESSAGES}: canal-json:ticdc, 70 messages" in ran("headgate", "detect", MESSAGES).stdout
    )
    assert 3 == ran("headgate", "decode", MESSAGES).returncode
    converted = ran(
        "headgate", "convert", "--from", "auto", "--to", "debezium", MESSAGES, "o.jsonl"
    )
    assert 3 == converted.returncode, converted.stderr
    assert 66 == len((tmp_path / "o.jsonl").read_text().splitlines())
    assert "canal-json" in ran("headgate", "formats").stdout

    refused = ran("headgate", "run", "--from", FEED, "--to", "file:o?protocol=maxwell")
    assert (2, "") == (refused.returncode, refused.stdout)
    assert refused.stderr.splitlines()[-1] == (
        "headgate: this command needs PySpark, which is not installed; "
        "type: pip install 'headgate[spark]'"
    )


def test_a_type_checker_sees_the_types(wheel: Path, tmp_path: Path) -> None:
    """Dependencies are those of this environment; Headgate is the wheel."""
    commands = environment(tmp_path / "venv")
    packages = next((tmp_path / "venv" / "lib").glob("python*/site-packages"))
    (packages / "dependencies.pth").write_text("\n".join(site.getsitepackages()))
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(packages)
    script = tmp_path / "orders.py"
    script.write_text(USER)
    mypy = [sys.executable, "-m", "mypy", "--python-executable", str(commands / "python")]
    done = subprocess.run(
        [*mypy, "--strict", str(script)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=ONLY_INSTALLED,
    )

    found = [line.removeprefix("orders.py:") for line in done.stdout.splitlines()]
    assert '8: note: Revealed type is "pyspark.sql.dataframe.DataFrame"' in found, done.stdout
    assert '9: note: Revealed type is "int"' in found
    errors = [line.split(":")[0] for line in found if ": error: " in line]
    assert ["10", "11", "12", "13"] == errors
