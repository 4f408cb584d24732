"""What the command line and the library import when they start."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "code",
    [
        "import headgate",
        "import sys; sys.argv = ['headgate', '--help']; "
        "from headgate.cli.main import cli; cli(standalone_mode=False)",
    ],
)
def test_neither_spark_nor_the_compiler_is_imported_at_start(code: str) -> None:
    check = "import sys; print(sorted({'pyspark', 'numba'} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", f"{code}; {check}"], capture_output=True)

    assert b"[]" == done.stdout.splitlines()[-1], done.stderr
