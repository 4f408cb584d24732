"""The wheel, in an empty environment: what works without extras, and what a type checker sees."""

from __future__ import annotations

import re
import site
import subprocess
import sys
import zipfile
from pathlib import Path

from installed import EXTRAS, ONLY_INSTALLED, empty_environment, install
from packaging.requirements import Requirement
from paths import FEED

import headgate

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


def test_the_wheel_has_what_belongs_to_it(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
        metadata = packed.read(next(n for n in names if n.endswith("/METADATA"))).decode()

    assert f"headgate-{headgate.__version__}-py3-none-any.whl" == wheel.name
    assert {"headgate/py.typed", "headgate/spark/jars.sha256"} <= set(names)
    assert any(name.endswith("/licenses/LICENSE") for name in names)
    extras = re.findall(r"^Provides-Extra: (.+)$", metadata, re.MULTILINE)
    assert {*EXTRAS, "dev", "docs"} == {*extras}
    needed = [Requirement(r) for r in re.findall(r"^Requires-Dist: (.+)$", metadata, re.MULTILINE)]
    of_users = [each for each in needed if not applies(each, "dev") and not applies(each, "docs")]
    assert [] == [each.name for each in of_users if each.name == "pyspark" and applies(each, "")]
    # A new major version of a dependency does not break what is installed today.
    assert [] == [str(each) for each in of_users if "<" not in {s.operator for s in each.specifier}]


def applies(requirement: Requirement, extra: str) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": extra})


def test_codecs_work_without_spark(wheel: Path, tmp_path: Path) -> None:
    commands = empty_environment(tmp_path / "venv")
    install(commands, wheel)

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
    commands = empty_environment(tmp_path / "venv")
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
