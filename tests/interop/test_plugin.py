"""A package of somebody else's adds a format and a sink, by entry points alone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from paths import ROOT

import headgate

pytestmark = pytest.mark.slow  # it installs a package, and each test starts processes

PLUGIN = ROOT / "examples" / "plugin"
SOURCE = Path(headgate.__file__).parents[1]
CANAL = {
    "type": "UPDATE", "isDdl": False, "id": 1, "database": "shop", "table": "t", "es": 1, "ts": 2,
    "pkNames": ["id"], "mysqlType": {"id": "int"}, "data": [{"id": "2"}], "old": [{"id": "1"}],
}  # fmt: skip
ACME = {"do": "update", "db": "shop", "table": "t", "row": {"id": "2"}, "old": {"id": "1"}}


def pip_install(target: Path, sources: Path) -> bool:
    """Install the package into a directory; False where its builder is missing."""
    shutil.copytree(PLUGIN, sources)
    offline = ("--no-deps", "--no-build-isolation", "--no-index", "--target", str(target))
    command = [sys.executable, "-m", "pip", "install", "-q", *offline, str(sources)]
    return subprocess.run(command, capture_output=True, timeout=120).returncode == 0


def lay_down(target: Path, **changed: str) -> Path:
    """The files of an installed package, with other entry points if need be."""
    project = tomllib.loads((PLUGIN / "pyproject.toml").read_text())["project"]
    info = target / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    points = {group: dict(each) for group, each in project["entry-points"].items()}
    points["headgate.formats"] |= changed
    sections = (
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in each.items())
        for group, each in points.items()
    )
    (info / "entry_points.txt").write_text("\n".join(sections))
    shutil.copy(PLUGIN / "headgate_acme.py", target)
    return target


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("site")
    done = pip_install(target, tmp_path_factory.mktemp("build") / "plugin")
    return target if done else lay_down(target)


def run(site: Path, *command: str, sent: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command],
        env={**os.environ, "PYTHONPATH": f"{SOURCE}:{site}"},
        input=sent,
        capture_output=True,
        text=True,
        timeout=120,
    )


def cli(site: Path, *arguments: str, sent: str = "") -> str:
    done = run(site, "-m", "headgate", *arguments, sent=sent)
    assert 0 == done.returncode, done.stderr
    return done.stdout


def test_the_example_is_short() -> None:
    files = (PLUGIN / name for name in ("pyproject.toml", "headgate_acme.py"))
    assert 100 > sum(len(path.read_text().splitlines()) for path in files)


def test_its_format_is_listed_detected_and_decoded(site: Path) -> None:
    listed = {each["format"]: each for each in json.loads(cli(site, "formats", "--json"))}
    assert listed["acme-json"]["writable"]
    for spec in ("acme-json", "auto"):
        event = json.loads(cli(site, "decode", "-", "--format", spec, sent=json.dumps(ACME)))
        assert ("acme-json", {"id": "2"}) == (event["origin"]["format"], event["after"])


def test_messages_are_converted_to_and_from_it(site: Path, tmp_path: Path) -> None:
    there, back = tmp_path / "there.jsonl", tmp_path / "back.jsonl"
    canal = tmp_path / "canal.jsonl"
    canal.write_text(json.dumps(CANAL) + "\n")
    cli(site, "convert", str(canal), str(there), "--to", "acme-json")
    assert ACME == json.loads(there.read_text())
    cli(site, "convert", str(there), str(back), "--from", "acme-json", "--to", "canal-json:tencent")
    assert [{"id": "2"}] == json.loads(back.read_text())["data"]


def test_its_sink_is_registered(site: Path) -> None:
    code = (
        "from headgate.config.uris import parse_sink\n"
        "print(parse_sink('append:/tmp/out.jsonl?protocol=acme-json'))"
    )
    done = run(site, "-c", code)
    assert "headgate_acme.AppendSink" in done.stdout or "AppendSink" in done.stdout, done.stderr
    assert "append" in cli(site, "connectors")


@pytest.mark.spark
def test_a_job_writes_to_its_sink(site: Path, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_text(json.dumps(CANAL) + "\n")
    source, out = f"file://{tmp_path}/in?protocol=canal-json", tmp_path / "out.jsonl"
    sink, state = f"append:{out}?protocol=acme-json", f"pipeline.checkpoint={tmp_path}/state"

    cli(site, "run", "--once", "--from", source, "--to", sink, "--set", state)

    assert [ACME] == [json.loads(line) for line in out.read_text().splitlines()]


@pytest.mark.spark
def test_its_sink_keeps_the_contract_of_sinks(site: Path) -> None:
    suites = (ROOT / "tests" / "sinks" / "test_sink_contract.py",
              ROOT / "tests" / "config" / "test_connector_uris.py")  # fmt: skip
    options = ("-k", "append", "-p", "no:cacheprovider", "-p", "no:xdist", f"--rootdir={ROOT}")

    done = run(site, "-m", "pytest", *map(str, suites), *options, "-c", f"{ROOT}/pyproject.toml")

    assert 0 == done.returncode, done.stdout + done.stderr
    assert " deselected" in done.stdout
    assert "passed" in done.stdout


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"maxwell": "headgate_acme:FORMAT"}, "registers the format maxwell, which is one of"),
        ({"auto": "headgate_acme:FORMAT"}, "registers the format auto, which is one of"),
        ({"acme-json": "headgate_acme:MISSING"}, "cannot be loaded: AttributeError"),
        ({"acme-json": "nowhere"}, "cannot be loaded: ModuleNotFoundError"),
        ({"acme-json": "headgate_acme:Message"}, "is not a headgate.formats.base.Format"),
        ({"other": "headgate_acme:FORMAT"}, "is not a headgate.formats.base.Format of that name"),
    ],
)
def test_a_package_that_is_wrong_is_named(
    changed: dict[str, str], words: str, tmp_path: Path
) -> None:
    done = run(lay_down(tmp_path, **changed), "-m", "headgate", "formats")
    assert 2 == done.returncode
    assert words in done.stderr
    assert "the package headgate-acme 1.0" in done.stderr


READ_ONLY = """
import dataclasses
import headgate_acme
headgate_acme.FORMAT = dataclasses.replace(headgate_acme.FORMAT, encoding=None)
from headgate.cli.main import main
main()
"""


def test_a_format_may_be_read_only(site: Path, tmp_path: Path) -> None:
    acme = tmp_path / "acme.jsonl"
    acme.write_text(json.dumps(ACME) + "\n")
    out = tmp_path / "out.jsonl"

    done = run(site, "-c", READ_ONLY, "convert", str(acme), str(out), "--to", "acme-json")
    assert 2 == done.returncode
    assert "format acme-json can be read but not written; choose one of: canal-json," in done.stderr
    done = run(site, "-c", READ_ONLY, "convert", str(acme), str(out), "--to", "maxwell")
    assert 0 == done.returncode, done.stderr
    assert "Acme's rows (read only)" in run(site, "-c", READ_ONLY, "formats").stdout
