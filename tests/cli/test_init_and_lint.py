"""`headgate init` writes job files that `lint` and `check` accept; `lint` connects to nothing."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import run
from messages import canal
from pyspark.sql import SparkSession
from terminal import Terminal


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_bytes(canal() + b"\n" + canal(table="b") + b"\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_init_writes_what_it_saw_and_check_accepts_it(here: Path, spark: SparkSession) -> None:
    made = run("init", "--from", "in", "--to", "file:out", "--format", "maxwell", "--out", "a.yaml")

    assert 0 == made.returncode, made.stderr.decode()
    assert b"wrote a.yaml; next: headgate check a.yaml, then headgate run a.yaml\n" == made.stdout
    assert [
        "headgate: looking at in",
        "  reads files: 1",
        "  2 messages: canal-json:canal (2 events)",
        "  tables: shop.orders (1 events), shop.b (1 events)",
    ] == made.stderr.decode().splitlines()
    text = (here / "a.yaml").read_text()
    assert "  format: canal-json  # or auto, which looks at each message\n" in text
    assert "  # seen: tables: shop.orders (1 events), shop.b (1 events)\n" in text

    linted = run("lint", "a.yaml")
    assert (0, b"a.yaml: no errors; job in-to-out reads file:in, writes file:out\n") == (
        linted.returncode,
        linted.stdout,
    )
    checked = run("check", "a.yaml")
    assert 0 == checked.returncode, checked.stderr.decode()
    assert b"  writes 2 messages to file:out as maxwell\n" in checked.stdout
    assert [
        "in-to-out: looking for file:in, file:out",
        "in-to-out: starting Spark (on this machine)",
        "in-to-out: connecting to file:in",
    ] == checked.stderr.decode().splitlines()


def test_all_that_the_file_shows_as_a_comment_is_right_too(here: Path) -> None:
    run("init", "--from", "in", "--to", "file:out", "--format", "maxwell", "--out", "a.yaml")
    lines = (here / "a.yaml").read_text().splitlines()
    key = re.compile(r"^( *)# ?((?:  )*(?:- )?[a-z_]+:.*)$")
    opened = [key.sub(r"\1\2", line) if "seen:" not in line else "" for line in lines]
    (here / "b.yaml").write_text("\n".join(opened[3:]))

    done = run("lint", "b.yaml")

    assert 0 == done.returncode, done.stderr.decode()
    assert 5 < sum(new != old for new, old in zip(opened, lines))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "--from is missing; give it as --from kafka://HOST:PORT/TOPIC"),
        (["--from", "in"], "--to is missing; give it as --to kafka://HOST:PORT/TOPIC"),
        (["--from", "in", "--to", "out"], "--format is missing; give it as one of: canal-json, "),
        (["--from", "in", "--to", "out", "--format", "ogg"], "unknown format 'ogg': JSON of Orac"),
        (["--from", "in", "--to", "delta:x", "--format", "canal"], "delta lands tables, which hav"),
        (["--from", "no", "--to", "delta:x"], "no: there is no directory "),
        (["--from", "kafka://127.0.0.1:1", "--to", "delta:x"], "kafka://127.0.0.1:1/*: 127.0.0.1"),
    ],
)
def test_without_a_terminal_nothing_is_asked(here: Path, given: list[str], said: str) -> None:
    done = run("init", *given)

    assert (1 if "127.0.0.1" in said else 2) == done.returncode
    assert done.stderr.decode().splitlines()[-1].startswith(f"headgate: {said}")
    assert not (here / "job.yaml").exists()


def test_in_a_terminal_it_asks_for_what_is_missing(here: Path) -> None:
    shown = Terminal("init", cwd=here)
    shown.until(r"Read from \(such as kafka://HOST:PORT/TOPIC\): ")
    shown.type("in")
    shown.until(r"2 messages: canal-json:canal \(2 events\)")
    shown.until("Write to .*: ")
    shown.type("file:out")
    shown.until(r"Format to write \(canal-json, .*\): ")
    shown.type("maxwell_json")
    shown.until(r"Job file \[job.yaml\]: ")
    shown.type("")

    assert 0 == shown.end()
    assert "wrote job.yaml; next: headgate check job.yaml" in shown.raw
    assert 0 == run("lint", "job.yaml").returncode


def test_a_file_that_is_there_stays_and_no_password_is_written(here: Path) -> None:
    words = ("init", "--from", "kafka://me:canary@h/t", "--to", "delta:lake", "--no-look")

    first, again = run(*words), run(*words)

    assert 0 == first.returncode, first.stderr.decode()
    assert b"the password is not in the file; set SOURCE_PASSWORD to it" in first.stderr
    assert "kafka://me:${SOURCE_PASSWORD}@h/t" in (here / "job.yaml").read_text()
    assert b"canary" not in first.stderr + again.stderr
    said = b"headgate: job.yaml is there; choose another --out, or replace it with --force\n"
    assert (2, said) == (
        again.returncode,
        again.stderr,
    )


@pytest.mark.parametrize(
    ("source", "variables"),
    [
        ("kafka://h/t?sasl-user=me&sasl-password=canary", ["SOURCE_SASL_PASSWORD"]),
        ("kafka://me:pa$swcanary@h/t", ["SOURCE_PASSWORD"]),
        ("kafka://h/t?kafka.sasl.jaas.config=x%20password=canary;", [
            "SOURCE_KAFKA_SASL_JAAS_CONFIG"
        ]),
        ("kafka://me:canary@h/t?kafka.ssl.key.password=canary&protocol=maxwell", [
            "SOURCE_PASSWORD", "SOURCE_KAFKA_SSL_KEY_PASSWORD"
        ]),
        ("rocketmq://h/t?access-key=canary&secret_key=canary", [
            "SOURCE_ACCESS_KEY", "SOURCE_SECRET_KEY"
        ]),
        ("mysql://me:${SHOP}@h/d.*", []),
        ("kafka://h/t?sasl-user=me&sasl-password=${SHOP}", []),
    ],
)  # fmt: skip
def test_no_secret_is_written_wherever_it_stands_in_a_uri(
    here: Path, monkeypatch: pytest.MonkeyPatch, source: str, variables: list[str]
) -> None:
    monkeypatch.setenv("SHOP", "x")
    done = run("init", "--from", source, "--to", "delta:lake", "--no-look")

    assert 0 == done.returncode, done.stderr.decode()
    text = (here / "job.yaml").read_text()
    assert "canary" not in text + done.stderr.decode()
    for name in variables:
        assert f"${{{name}}}" in text
        assert f" is not in the file; set {name} to it\n" in done.stderr.decode()
    assert len(variables) == done.stderr.count(b"; set ")
    if "SHOP" in source:
        assert source in text


@pytest.mark.parametrize("source", ["mysql://me:x@h/shop.*", "kafka://h/t?protocol=maxwell"])
def test_a_source_that_has_no_format_or_names_it_is_written_without_a_look(
    here: Path, source: str
) -> None:
    done = run("init", "--from", source, "--to", "delta:lake", "--no-look")

    assert 0 == done.returncode, done.stderr.decode()
    assert "format:" not in (here / "job.yaml").read_text()


def test_lint_names_the_line_and_goes_on_with_the_next_file(here: Path) -> None:
    good = "source: {uri: 'kafka://nowhere:9092/t'}\nsink: {uri: 'file:out', format: canal}\n"
    (here / "good.yaml").write_text(good)
    (here / "typo.yaml").write_text(good.replace("canal", "maxwel"))
    (here / "heap.yaml").write_text(f"{good}pipeline:\n  spark: {{spark.driver.memory: lots}}\n")

    done = run("lint", "typo.yaml", "heap.yaml", "good.yaml")

    assert 2 == done.returncode
    typo, heap = done.stderr.decode().splitlines()
    assert typo.startswith(
        "headgate: typo.yaml:2: unknown format 'maxwel'; did you mean 'maxwell'?"
    )
    assert heap == (
        "headgate: heap.yaml: spark.driver.memory is 'lots'; it must be a size, such as 512m or 2g"
    )
    assert done.stdout.startswith(b"good.yaml: no errors; job good reads kafka://nowhere:9092/t")


@pytest.mark.parametrize("command", ["run", "check"])
def test_a_server_that_does_not_answer_is_no_wrong_usage(here: Path, command: str) -> None:
    """So that a supervisor starts the job again; after a 2 it does not."""
    done = run(command, "--from", "kafka://127.0.0.1:1/t", "--to", "delta:lake")

    assert 1 == done.returncode
    assert b"127.0.0.1:1 cannot be reached: Connection refused" in done.stderr.splitlines()[-1]
    wrong = run(command, "--from", "kafka://127.0.0.1:1/t", "--to", "delta:lake", "--set", "x=1")
    assert 2 == wrong.returncode


def test_lint_starts_no_spark(here: Path) -> None:
    (here / "a.yaml").write_text("source: in\nsink: {uri: 'file:out', format: canal}\n")
    code = (
        "import sys; from headgate.cli.main import cli; "
        "cli(['lint', 'a.yaml'], standalone_mode=False); print('pyspark' in sys.modules)"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True)

    assert b"False" == done.stdout.splitlines()[-1], done.stderr
