"""The five-minute pages, followed word for word from `pip install` on, in an environment that had
nothing: each command as a process of its own. Then every extra is installed there."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from doc_examples import blocks, commands
from doc_reader import Reader
from installed import EXTRAS, ONLY_INSTALLED, empty_environment
from kafka_broker import Broker
from paths import DOCS, FEED

import headgate

ADDRESS = "127.0.0.1:9092"


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An empty one, in which pip takes the wheel where others take the release."""
    folder = tmp_path_factory.mktemp("installed")
    constraints = folder / "constraints.txt"
    constraints.write_text(f"headgate=={headgate.__version__}\n")
    return {
        **ONLY_INSTALLED,
        "PATH": f"{empty_environment(folder / 'venv')}:{os.environ['PATH']}",
        "PIP_FIND_LINKS": f"{os.environ.get('PIP_FIND_LINKS', '')} {wheel.parent}",
        "PIP_CONSTRAINT": str(constraints),
    }


@pytest.mark.spark
def test_the_first_five_minutes(environment: dict[str, str], tmp_path: Path) -> None:
    printed = followed(tmp_path, environment, "start.md")

    assert "canal-json:canal, 3 messages" in printed["headgate detect"]
    assert "malformed-json" in printed["headgate dead-letters"]
    assert 2 == len(printed["cat out/*/*/*.txt"].splitlines())


@pytest.mark.spark
def test_a_topic_becomes_lake_tables(
    environment: dict[str, str], broker: Broker, tmp_path: Path
) -> None:
    printed = followed(tmp_path, environment, "quickstart-lake.md", broker)

    assert "table shop.orders, key id: " in printed["headgate check"]
    assert "customer_id" in printed["python -c"]
    assert "shape: (14, " in printed["python -c"]
    assert "shop.orders" in printed["headgate verify"]
    assert "shop.orders" in printed["headgate tables"]


@pytest.mark.spark
def test_every_extra_is_installed_beside_the_others(
    environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    shutil.copy(FEED / "canal-json.ticdc.jsonl", tmp_path / "in")
    for line in (
        f"pip install --quiet 'headgate[{','.join(EXTRAS)}]'",
        f"python -c 'import headgate, {', '.join(EXTRAS.values())}'",
        "headgate run --from in --to delta:lake --once",
    ):
        subprocess.run(["bash", "-c", line], cwd=tmp_path, env=environment, check=True)

    assert (tmp_path / "lake" / "shop" / "orders" / "_delta_log").is_dir()


def followed(
    folder: Path, environment: dict[str, str], page: str, broker: Broker | None = None
) -> dict[str, str]:
    """What the commands of a page print, by their first two words."""
    reader = Reader(folder, environment)
    printed: dict[str, str] = {}
    for block in blocks(DOCS / page):
        text = block.text.replace(ADDRESS, broker.bootstrap) if broker else block.text
        if block.title is not None:
            reader.save(block.title, text)
        for command in commands(text) if block.language == "console" else ():
            if command.words[0] != "docker":  # the test's broker stands in for it
                name = " ".join(command.words[:2])
                printed[name] = printed.get(name, "") + reader.run(command)
    return printed
