"""How much memory reading a binlog takes: a process of its own reads it and says its peak.

python reading_memory.py PORT USER FILE POS   (the password in PASSWORD)
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from headgate.mysql.compilation import ROW_LOOPS
from headgate.mysql.connection import Connection, Start
from headgate.mysql.reader import read_binlog


def peak() -> float:
    """The largest memory of this process so far, in MiB.

    Not getrusage's: a new process begins with the peak of the one that started it.
    """
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def measured(server: Any, start: Start) -> dict[str, float]:
    """Rows, MiB before and MiB at most, of a process that reads on from a position."""
    done = subprocess.run(
        [sys.executable, str(Path(__file__)), str(server.port), server.user, start.file,
         str(start.pos)],
        env={**os.environ, "PASSWORD": server.password}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return dict(json.loads(done.stdout))


def main() -> None:
    port, user, file, pos = sys.argv[1:]
    connection = Connection(
        host="127.0.0.1", port=int(port), user=user, password=os.environ["PASSWORD"]
    )
    ROW_LOOPS.prepare()  # the compiler's memory is not that of rows
    before, rows = peak(), 0
    for batch in read_binlog(connection, Start(file, int(pos)), 4_000_077):
        rows += sum(events.num_rows for events in batch.events)
    print(json.dumps({"rows": rows, "before": before, "peak": peak()}))


if __name__ == "__main__":
    main()
