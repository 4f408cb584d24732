"""The commands of docs/quickstart-lake.md, run as they stand there."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from kafka_broker import Broker
from paths import DOCS, ROOT

PAGE = (DOCS / "quickstart-lake.md").read_text()
COMMANDS = re.findall(r"^\$ (.*)$", PAGE, re.MULTILINE)
[JOB] = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.spark
def test_the_commands_of_the_page_work(broker: Broker, tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "lake.yaml").write_text(JOB.replace("127.0.0.1:9092", broker.bootstrap))
    python = shlex.quote(sys.executable)
    said: dict[str, str] = {}
    for command in COMMANDS:
        if command.startswith(("pip ", "docker ")):
            continue
        name = " ".join(command.split()[:2])
        line = command.replace("127.0.0.1:9092", broker.bootstrap)
        line = re.sub(r"^headgate ", f"{python} -m headgate ", line)
        line = re.sub(r"^python ", f"{python} ", line)
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
        done = subprocess.run(
            ["bash", "-c", line], cwd=tmp_path, env=environment, capture_output=True, text=True,
            timeout=600,
        )  # fmt: skip
        assert 0 == done.returncode, f"{command}\n{done.stdout}\n{done.stderr}"
        said[name] = said.get(name, "") + done.stdout

    assert "table shop.orders, key id: " in said["headgate check"]
    assert "customer_id" in said["python -c"]
    assert "shape: (14, " in said["python -c"]
    assert "shop.orders" in said["headgate verify"]
    assert "shop.orders" in said["headgate tables"]
