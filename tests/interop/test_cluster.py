"""A job on a cluster of Spark's own: a master and two workers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
from job_runs import files_to_files, lines_in
from messages import canal
from paths import ROOT


@contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """A standalone master with two workers on loopback, which keep what they run in a folder."""
    from server_process import free_ports

    home = Path(pyspark.__file__).parent
    port, *ui = free_ports(4)
    spark_class = [str(home / "bin" / "spark-class"), "org.apache.spark.deploy"]
    environment = {**os.environ, "SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable}
    address = f"spark://127.0.0.1:{port}"
    master = [
        "master.Master",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--webui-port",
        str(ui[0]),
    ]
    worker = ["worker.Worker", "--host", "127.0.0.1", "--cores", "1", "--memory", "1g", address]
    worker += ["--work-dir", str(folder)]
    started = []
    try:
        for words in (
            master,
            [*worker, "--webui-port", str(ui[1])],
            [*worker, "--webui-port", str(ui[2])],
        ):
            command = [spark_class[0], f"{spark_class[1]}.{words[0]}", *words[1:]]
            started.append(
                subprocess.Popen(
                    command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
            )  # fmt: skip
        yield address
    finally:
        for process in started:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def test_a_cluster_with_two_workers_by_master_and_by_spark_submit(tmp_path: Path) -> None:
    job = files_to_files(tmp_path)
    folder = job.parent / "in"
    (folder / "a.jsonl").write_bytes(b"\n".join(canal(table=f"t{n}") for n in range(50)))
    ran_on_cluster = job.parent / "ran"
    sockets = set(Path("/tmp").glob(".*.sock"))
    with cluster(ran_on_cluster) as master:
        by_master = [
            sys.executable,
            "-m",
            "headgate",
            "run",
            str(job),
            "--once",
            "--master",
            master,
        ]
        ran = subprocess.run(by_master, capture_output=True, text=True, timeout=200)
        assert 0 == ran.returncode, ran.stderr[-3000:]
        (folder / "b.jsonl").write_bytes(canal(table="last") + b"\n")
        submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
        main = ROOT / "src" / "headgate" / "__main__.py"
        submitted = [str(submit), "--master", master, str(main), "run", str(job), "--once"]
        environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
        ran = subprocess.run(
            submitted, capture_output=True, text=True, timeout=200, env=environment
        )
        assert 0 == ran.returncode, ran.stderr[-3000:]

    assert [*(f"t{n}" for n in range(50)), "last"] == [
        m["table"] for m in lines_in(job.parent / "out")
    ]
    assert 2 == len(list(ran_on_cluster.glob("app-*"))), "one of them ran elsewhere"
    assert sockets == set(Path("/tmp").glob(".*.sock"))
