"""No batch waits for the compiler, also on a machine that has never compiled the loop."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("numba")

CONVERT = """
import json, time
import pyarrow as pa
from headgate.fastpath import convert, kernel
from headgate.fastpath.compilation import SPLICING

def batch(first, rows=2_500):
    texts = [json.dumps({"database": "d", "table": "t", "type": "insert", "ts": 1, "xid": n,
             "data": {"id": n, "note": "n%d" % n}}).encode() for n in range(first, first + rows)]
    return pa.record_batch({"value": texts})

made = convert.converter("maxwell", {}, "canal-json", {})
def timed(first):
    start = time.monotonic()
    rows = sum(part.records.num_rows for part in made.convert(batch(first)))
    assert rows == 2_500
    return time.monotonic() - start

cold = SPLICING.is_cached()
while_compiling = [timed(n * 2_500) for n in range(3)]
compiling = SPLICING.preparing.is_alive()
SPLICING.preparing.join()
functions = [each for each in vars(kernel).values() if hasattr(each, "signatures")]
before = sum(len(each.signatures) for each in functions)
timed(10_000), timed(12_500)
print(json.dumps({
    "cold": cold, "seconds": while_compiling, "compiling": compiling,
    "spliced": made.splicer is not None and len(made.splicer.program.templates) > 0,
    "cached": SPLICING.is_cached(),
    "compiled since": sum(len(each.signatures) for each in functions) - before,
}))
"""


@pytest.mark.slow
def test_with_an_empty_cache_no_batch_waits_and_later_ones_are_spliced(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}

    ran = subprocess.run(
        [sys.executable, "-c", CONVERT], env=environment, capture_output=True, timeout=300
    )

    assert 0 == ran.returncode, ran.stderr.decode()
    told = json.loads(ran.stdout)
    assert told["cold"] is False
    assert told["compiling"]
    assert max(told["seconds"]) < 5.0
    assert told["spliced"]
    assert told["cached"]
    assert 0 == told["compiled since"]


READ_ROWS = """
import numpy as np
from headgate.mysql import compiled, kernel
from headgate.mysql.compilation import ROW_LOOPS
from headgate.mysql.images import Layout
from headgate.mysql.values import SIGNED, Reader

ROW_LOOPS.preparing.join()
functions = [each for each in vars(kernel).values() if hasattr(each, "signatures")]
before = sum(len(each.signatures) for each in functions)
layout = Layout([0], ["id"], [Reader(4, None, SIGNED, 4)])
row = b"\\0" + (7).to_bytes(4, "little")
for layouts in ([layout], [layout, layout]):
    data = row * len(layouts) * 3
    walked = compiled.walk(data, np.array([len(data)]), layouts)
    for cells in walked.images:
        assert compiled.texts(data, cells, layout).to_pylist() == ["7"] * 3
assert ROW_LOOPS.is_ready() and ROW_LOOPS.is_cached()
print(sum(len(each.signatures) for each in functions) - before)
"""


def test_loops_that_read_rows_are_compiled_for_rows_of_one_image_and_of_two() -> None:
    ran = subprocess.run([sys.executable, "-c", READ_ROWS], capture_output=True, timeout=300)

    assert b"0\n" == ran.stdout, ran.stderr.decode()
