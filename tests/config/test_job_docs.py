"""docs/jobs.md tells the keys as they are declared."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from pathlib import Path

from headgate.config.docs import with_tables
from headgate.config.job import Pipeline, sections
from headgate.core.keys import Key, keys
from headgate.sources.topics import MOST_MESSAGES

PAGE = Path(__file__).parents[2] / "docs" / "jobs.md"


def test_the_tables_of_keys_are_up_to_date() -> None:
    text = PAGE.read_text()

    assert with_tables(text) == text, "run `make docs`"


def test_every_section_with_declared_keys_has_a_table() -> None:
    named = set(re.findall(r"<!-- keys of ([a-z.]+) -->", PAGE.read_text()))

    assert {"job", *paths(sections())} == named


def paths(declared: Mapping[str, Key], prefix: str = "") -> Iterator[str]:
    for key in declared.values():
        for name, read in key.names.items():
            if is_dataclass(read) and not key.open:
                yield f"{prefix}{name}"
                yield from paths(keys(read), f"{prefix}{name}.")


def test_the_limit_of_a_micro_batch_is_the_one_that_kafka_sources_have() -> None:
    assert f"{MOST_MESSAGES:,} from Kafka" in keys(Pipeline)["max_messages"].default
