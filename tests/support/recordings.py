"""What real producers wrote of the workload on MySQL 8.0, and how each recording is to be read."""

from __future__ import annotations

import re

from recorded import MYSQL, Recording


def debezium(name: str, **options: str) -> Recording:
    """A recording of Debezium: its name tells how the connector was set up."""
    format = "debezium-smt" if "-smt" in name else "debezium"
    typed = not re.search(r"-ns$|-noschema$|-d2t$", name)
    with_deletes = not re.search(r"-(d2t|drop|tomb)$", name)
    return Recording(name, format, options, typed, with_deletes)


MODES = {
    "dec-string": {"decimal_handling_mode": "string"},
    "big-precise": {"bigint_unsigned_handling_mode": "precise"},
    "bin-hex": {"binary_handling_mode": "hex"},
    "bin-url": {"binary_handling_mode": "base64-url-safe"},
    "bin-base64": {"binary_handling_mode": "base64"},
    "time-connect": {"time_precision_mode": "connect"},
    "time-iso": {"time_precision_mode": "isostring"},
    "time-ns": {"time_precision_mode": "nanoseconds"},
    "time-us": {"time_precision_mode": "microseconds"},
    "smt-rwt": {"add_fields_prefix": "_m_"},
}
"""The connector's settings that only its messages' reader can tell."""

RECORDINGS = [
    Recording("canal15", "canal-json"),
    Recording("canal17", "canal-json", {"timezone": "Asia/Shanghai"}),
    Recording("maxwell122", "maxwell", typed=False),
    Recording("maxwell145", "maxwell", typed=False),
    *(
        debezium(name, **next((MODES[mode] for mode in MODES if mode in name), {}))
        for name in sorted(path.name.split(".")[0] for path in MYSQL.glob("dbz*.jsonl.xz"))
    ),
]
