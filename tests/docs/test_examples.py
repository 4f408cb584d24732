"""Every example of README and docs works: job files, commands and their output, Python."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from doc_examples import PAGES, REASONS, Block, blocks, check_command, commands
from doc_reader import Reader
from packaging.requirements import Requirement
from paths import ROOT

import headgate
from headgate.config.reader import load_job

SCHEMA = "CREATE TABLE shop.orders (id BIGINT PRIMARY KEY, amount DECIMAL(12,2));"
SOURCE = '\nsource: {uri: "kafka://broker:9092/cdc"}\n'
SINK = '\nsink: {uri: "file:elsewhere?protocol=debezium"}\n'
PRELUDE = "import headgate\nfrom pyspark.sql import SparkSession\n\nspark: SparkSession\n"
ALL = [block for page in PAGES for block in blocks(page)]


def needs_spark(page: Path) -> bool:
    """Whether an example of a page uses Spark."""
    runnable = [block for block in blocks(page) if block.runs]
    shown = (c for b in runnable if b.language == "console" for c in commands(b.text))
    return any(b.language == "python" for b in runnable) or any(c.starts_spark for c in shown)


def page_parameters() -> list[Any]:
    """The pages with examples; those that use Spark are marked."""
    return [
        pytest.param(
            page,
            marks=[pytest.mark.spark] if needs_spark(page) else [],
            id=str(page.relative_to(ROOT)),
        )
        for page in PAGES
        if blocks(page)
    ]


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Reader:
    monkeypatch.chdir(tmp_path)
    reader = Reader(tmp_path)
    reader.save("schema.sql", SCHEMA)
    return reader


@pytest.mark.parametrize("page", page_parameters())
def test_the_examples_of_a_page_work(
    page: Path, reader: Reader, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    for name in re.findall(r"\$\{([A-Z0-9_]+)\}", page.read_text()):
        monkeypatch.setenv(name, "secret")
        reader.environment[name] = "secret"
    names: dict[str, Any] = {}
    if needs_spark(page):
        names["spark"] = spark = request.getfixturevalue("spark")
        # The session that tests share has no connectors, and these programs need none of theirs.
        monkeypatch.setattr(headgate, "session", lambda: spark)
    for block in blocks(page):
        at = f"{page.relative_to(ROOT)}:{block.line}"
        try:
            follow(block, reader, names)
        except Exception as error:
            raise AssertionError(f"{at}: {type(error).__name__}: {error}") from error


def follow(block: Block, reader: Reader, names: dict[str, Any]) -> None:
    """Do what a reader does with a block."""
    if block.title is not None:
        reader.save(block.title, block.text)
    steps: dict[str, Callable[[], None]] = {
        "console": lambda: follow_console(block, reader),
        "python": lambda: follow_python(block, reader.folder, names),
        "yaml": lambda: read_yaml(block.text, reader),
        "ini": lambda: check_unit(block.text),
        "": lambda: check_lines(block.text),
    }
    if block.language in steps:
        steps[block.language]()


def follow_console(block: Block, reader: Reader) -> None:
    """Run the commands of a block, or check them where they cannot run."""
    for command in commands(block.text):
        first = command.words[0]
        if first == "pip":
            check_requirements(command.words)
        elif first == "make":
            assert re.search(f"^{command.words[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
        elif first == "headgate" and not block.runs:
            check_command(command.words)
        elif block.runs and command.starts_spark:
            reader.run_here(command)
        elif block.runs and first != "docker":
            reader.run(command)


def follow_python(block: Block, folder: Path, names: dict[str, Any]) -> None:
    """Run a program; paths in /data are in the folder."""
    if block.runs:
        text = block.text.replace("/data/", f"{folder}/data/")
        exec(compile(text, f"{block.page}:{block.line}", "exec"), names)


def read_yaml(text: str, reader: Reader) -> None:
    """Read a job file, or the part of one; in a manifest of Kubernetes, the job in it."""
    for document in yaml.safe_load_all(text):
        if "apiVersion" in document:
            for job in document.get("data", {}).values():
                read_yaml(job, reader)
            if document["kind"] == "Deployment":
                check_arguments(document)
        elif "groups" not in document:
            job = text + SOURCE * ("source" not in document) + SINK * ("sink" not in document)
            load_job(reader.save("example-job.yaml", job))


def check_arguments(deployment: dict[str, Any]) -> None:
    """Parse what the containers of a deployment run in an image of the Dockerfile."""
    [entry] = re.findall(r"^ENTRYPOINT (.*)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    for container in deployment["spec"]["template"]["spec"]["containers"]:
        check_command([*json.loads(entry), *container["args"]])


def check_unit(text: str) -> None:
    """Parse the command of a systemd unit."""
    [command] = re.findall(r"^ExecStart=\S+/(headgate .*)$", text, re.MULTILINE)
    check_command(command.split())


def check_lines(text: str) -> None:
    """Parse the commands of a block without a language."""
    for command in commands(re.sub(r"^(?=headgate )", "$ ", text, flags=re.MULTILINE)):
        if command.words and command.words[0] == "headgate":
            check_command(command.words)


def check_requirements(words: list[str]) -> None:
    """What `pip install` names exists: Headgate's extras, or another package."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for word in words[2:]:
        wanted = re.sub(r"^\.", "headgate", word)
        if wanted.startswith("headgate"):
            assert Requirement(wanted).extras <= set(project["optional-dependencies"]), word


def test_blocks_that_do_not_run_say_why() -> None:
    marked = [block for block in ALL if block.reason is not None]
    comments = sum(len(re.findall(r"<!-- not run: ", page.read_text())) for page in PAGES)

    assert {block.reason for block in marked} <= REASONS
    assert comments == len(marked), "a comment is not above a block"


@pytest.mark.slow
def test_programs_that_do_not_run_are_typed(tmp_path: Path) -> None:
    programs = [b for b in ALL if b.language == "python" and not b.runs]
    assert programs
    for number, block in enumerate(programs):
        own = "" if "spark = " in block.text else PRELUDE
        (tmp_path / f"program_{number}.py").write_text(own + block.text)

    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file=", "--ignore-missing-imports",
         "--follow-imports=silent", "--cache-dir", str(ROOT / ".mypy_cache" / "examples"), "."],
        cwd=tmp_path, env={**os.environ, "MYPYPATH": str(ROOT / "src")}, capture_output=True,
        text=True,
    )  # fmt: skip

    assert 0 == checked.returncode, checked.stdout


def test_the_metrics_of_the_page_are_those_of_a_job() -> None:
    from headgate.pipeline.status import Status, metrics

    page = (ROOT / "docs" / "operations.md").read_text()
    status = Status("job", lag_offsets=1, lag_seconds=1.0)
    served = {
        family.name + ("_total" if family.type == "counter" else "") for family in metrics(status)
    }

    assert served == set(re.findall(r"headgate_[a-z_]+", page))
