"""Kafka's own JSON converter reads every message that is written with a schema block, unchanged."""

from __future__ import annotations

import shutil
import subprocess
from base64 import b64encode
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from connect_messages import SETTINGS, Written, golden, recorded
from paths import VECTORS

from headgate.core.errors import UsageError
from headgate.spark.jars import resolve

CONVERTER = "org.apache.kafka:connect-json:3.9.1"
NUMERIC = "'decimal_format': 'numeric'"
PROGRAM = Path(__file__).parent / "ReadWithConverter.java"


@pytest.fixture(scope="session")
def classpath(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The converter's jars, and the program that reads with it."""
    javac = shutil.which("javac")
    if javac is None:
        pytest.skip("there is no javac; this test needs a JDK")
    try:
        jars = resolve([CONVERTER])
    except UsageError as error:
        pytest.skip(f"no JSON converter: {error}")
    classes = tmp_path_factory.mktemp("classes")
    found = ":".join([str(classes), *map(str, jars)])
    subprocess.run([javac, "-cp", found, "-d", str(classes), str(PROGRAM)], check=True, timeout=120)
    return found


def refused(classpath: str, messages: Iterable[Written]) -> list[str]:
    """What the converter does not read as it was written."""
    held = list(messages)
    lines = (
        f"{'key' if each.is_key else 'value'} "
        f"{str(NUMERIC in each.origin).lower()} {b64encode(each.content).decode()}\n"
        for each in held
    )
    done = subprocess.run(
        ["java", "-cp", classpath, "ReadWithConverter"],
        input="".join(lines), capture_output=True, text=True, check=True, timeout=1200,
    )  # fmt: skip
    told = [line.partition(" ") for line in done.stdout.splitlines()]
    assert held
    return [f"{held[int(number)].origin}: {what}" for number, _, what in told]


def test_the_converter_is_asked(classpath: str) -> None:
    schema = '{"type":"struct","fields":[{"type":"int32","optional":false,"field":"id"}]}'
    wrong = [f'{{"schema":{schema},"payload":{{"id":{value}}}}}' for value in ("null", '"five"')]
    found = refused(classpath, [Written("wrong", False, each.encode()) for each in wrong])

    assert ["refused", "changed"] == [line.split()[1].split(".")[0].rstrip(":") for line in found]


def test_golden_messages(classpath: str) -> None:
    assert [] == refused(classpath, golden())[:20]


RECORDINGS = sorted(path for path in VECTORS.glob("*/*.jsonl.xz") if "truth" not in path.name)


def test_recorded_messages(classpath: str) -> None:
    def messages() -> Iterator[Written]:
        for number, path in enumerate(RECORDINGS):
            yield from recorded(path, [SETTINGS[number % len(SETTINGS)]])

    assert [] == refused(classpath, messages())[:20]
