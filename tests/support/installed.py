"""Headgate as somebody installs it: the wheel, in an environment that had nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from paths import ROOT

ONLY_INSTALLED = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

EXTRAS = {
    "spark": "pyspark.sql",
    "fast": "numba",
    "metrics": "prometheus_client",
    "mysql": "pymysql",
    "rocketmq": "jpype",
    "datahub": "datahub",
    "delta": "deltalake",
}
"""The extras, and what is imported with each."""


def build_wheel(folder: Path) -> Path:
    """Build the wheel of this tree."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    return next(folder.glob("headgate-*.whl"))


def empty_environment(folder: Path) -> Path:
    """The programs of a new virtual environment."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    return folder / "bin"


def install(commands: Path, *packages: object) -> None:
    """Install packages with all that they depend on."""
    words = [commands / "pip", "install", "--quiet", *map(str, packages)]
    subprocess.run(words, check=True, env=ONLY_INSTALLED)
