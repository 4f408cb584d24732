"""A job whose source, sink, checkpoint and dead letters are in S3, as a person runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from messages import canal
from s3_server import KEY, SECRET, S3Server

from headgate.spark.storage import Storage

LAKE = "s3a://lake/shop"


class Bench:
    """A job file, and what its job left in S3."""

    def __init__(self, s3: S3Server, folder: Path) -> None:
        self.s3, self.path = s3, folder / "job.yaml"
        self.storage = Storage(LAKE, s3.settings)
        told = {name: value for name, value in s3.settings.items() if "key" not in name}
        told["spark.hadoop.fs.s3a.access.key"] = "${S3_KEY}"
        told["spark.hadoop.fs.s3a.secret.key"] = "${S3_SECRET}"
        settings = "\n".join(f"    {name}: '{value}'" for name, value in told.items())
        self.path.write_text(
            f"source: {{uri: '{LAKE}/in?protocol=canal-json'}}\n"
            f"sink: {{uri: '{LAKE}/out?protocol=maxwell'}}\n"
            f"pipeline:\n  name: shop\n  checkpoint: {LAKE}/state\n  spark:\n{settings}\n"
        )

    def headgate(self, *words: str) -> str:
        """What a command prints; it must succeed, and print no secret."""
        done = subprocess.run(
            [sys.executable, "-m", "headgate", *words],
            capture_output=True,
            text=True,
            env={**os.environ, "S3_KEY": KEY, "S3_SECRET": SECRET},
        )
        assert done.returncode == 0, done.stderr
        assert SECRET not in done.stdout + done.stderr
        return done.stdout

    def run(self) -> None:
        self.headgate("run", str(self.path), "--once", "--master", "local[2]")

    def written(self) -> list[str]:
        """The tables of the messages in the sink, in order."""
        files = [f for f in self.s3.files(f"{LAKE}/out") if f.endswith(".parquet")]
        assert all(f.startswith("batch=") for f in files)
        paths = [self.storage.path(f"out/{f}") for f in sorted(files)]
        rows = ds.dataset(paths, filesystem=self.storage.fs, format="parquet").to_table()
        return [json.loads(value)["table"] for value in rows.column("value").to_pylist()]

    def status(self) -> Any:
        return json.loads(self.headgate("status", str(self.path), "--json"))


@pytest.fixture(scope="module")
def bench(s3: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(s3, tmp_path_factory.mktemp("s3"))


def test_a_job_lives_in_s3(bench: Bench) -> None:
    bench.storage.write("in/a.jsonl", canal(table="a") + b"\n[1]\n" + canal(table="b") + b"\n")
    bench.run()
    assert bench.written() == ["a", "b"]
    assert (bench.status()["state"], bench.status()["totals"]["messages"]) == ("stopped", 3)
    assert "wrong-type" in bench.headgate("dead-letters", "list", str(bench.path))
    assert "1 dead letters" in bench.headgate("dead-letters", "replay", str(bench.path))
    assert bench.headgate("dead-letters", "list", str(bench.path)) == "no dead letters\n"

    bench.storage.write("in/b.jsonl", canal(table="c") + b"\n")
    bench.run()
    assert bench.written() == ["a", "b", "c"]
    assert "wrong-type" in bench.headgate("dead-letters", "list", str(bench.path))
    left = bench.s3.files(LAKE)
    assert not [name for name in left if "_staged" in name or name.endswith(".tmp")]
    kept = [name for name in left if SECRET.encode() in (bench.storage.read(name) or b"")]
    assert kept == []


def test_a_batch_that_was_cut_off_is_written_again(bench: Bench) -> None:
    last = bench.storage.names("out")[-1]
    number = int(last.partition("=")[2])
    for name in (
        f"out/{last}/_batch.json",
        f"state/headgate/batches/{number}.json",
        f"state/query/commits/{number}",
    ):
        bench.storage.delete(name)
    bench.run()
    assert bench.written() == ["a", "b", "c"]
    assert bench.storage.exists(f"out/{last}/_batch.json")
