"""The five-minute pages, followed word for word: each command as a process of its own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from doc_examples import blocks, commands
from doc_reader import Reader
from kafka_broker import Broker
from paths import DOCS

ADDRESS = "127.0.0.1:9092"


@pytest.mark.spark
def test_the_first_five_minutes(tmp_path: Path) -> None:
    printed = followed(tmp_path, "start.md")

    assert "canal-json:canal, 3 messages" in printed["headgate detect"]
    assert "malformed-json" in printed["headgate dead-letters"]
    assert 2 == len(printed["cat out/*/*/*.txt"].splitlines())


@pytest.mark.spark
def test_a_topic_becomes_lake_tables(broker: Broker, tmp_path: Path) -> None:
    printed = followed(tmp_path, "quickstart-lake.md", broker)

    assert "table shop.orders, key id: " in printed["headgate check"]
    assert "customer_id" in printed["python -c"]
    assert "shape: (14, " in printed["python -c"]
    assert "shop.orders" in printed["headgate verify"]
    assert "shop.orders" in printed["headgate tables"]


def followed(folder: Path, page: str, broker: Broker | None = None) -> dict[str, str]:
    """What the commands of a page print, by their first two words."""
    reader = Reader(folder)
    printed: dict[str, str] = {}
    for block in blocks(DOCS / page):
        text = block.text.replace(ADDRESS, broker.bootstrap) if broker else block.text
        if block.title is not None:
            reader.save(block.title, text)
        for command in commands(text) if block.language == "console" else ():
            if not re.match("pip |docker ", command.line):
                name = " ".join(command.words[:2])
                printed[name] = printed.get(name, "") + reader.run(command)
    return printed
