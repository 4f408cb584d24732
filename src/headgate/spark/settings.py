"""Spark's settings that are wrong by themselves, found before a JVM is started with them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from headgate.core.errors import UsageError, reason_of, shown

_SIZE = (re.compile(r"\d+(\.\d+)?([kmgtp]b?|b)?", re.IGNORECASE), "a size, such as 512m or 2g")
_COUNT = (re.compile(r"[1-9]\d*"), "a whole number from 1 on")
_TRUTH = (re.compile("true|false", re.IGNORECASE), "true or false")
_KINDS = {
    ".memory": _SIZE,
    ".memoryOverhead": _SIZE,
    ".maxResultSize": _SIZE,
    ".cores": _COUNT,
    ".instances": _COUNT,
    ".partitions": _COUNT,
    ".parallelism": _COUNT,
    ".enabled": _TRUTH,
}
"""What Spark takes, by how the names of settings end."""
_MASTER = re.compile(
    r"local(\[(\*|\d+)(,\s*\d+)?\])?|yarn|spark://\S+|k8s://\S+|local-cluster\[.+\]"
)


def check_settings(settings: Mapping[str, str]) -> None:
    """Refuse values that Spark would refuse, with a trace of its stack.

    >>> check_settings({"spark.driver.memory": "lots"})
    Traceback (most recent call last):
    headgate.core.errors.UsageError: spark.driver.memory is 'lots'; it must be a size, such as \
512m or 2g
    """
    for name, value in settings.items():
        for ending, (pattern, must_be) in _KINDS.items():
            if name.endswith(ending) and not pattern.fullmatch(value.strip()):
                raise UsageError(f"{name} is {shown(value)}; it must be {must_be}")


def check_sql_settings(jvm: Any, settings: Mapping[str, str]) -> None:
    """Refuse values of `spark.sql.…` that Spark would refuse, by the JVM, before it has a session.

    A session with such a value cannot even raise: PySpark asks it how to show the error.
    """
    checked = jvm.org.apache.spark.sql.internal.SQLConf()
    for name, value in settings.items():
        if name.startswith("spark.sql."):
            try:
                checked.setConfString(name, value)
            except Exception as error:  # whichever class it is in this version of Spark
                raise UsageError(
                    f"{name} is {shown(value)}; Spark says: {reason_of(error)}"
                ) from None


def check_master(master: str | None) -> None:
    """Refuse a master that Spark does not know.

    >>> check_master("local[two]")
    Traceback (most recent call last):
    headgate.core.errors.UsageError: the master is 'local[two]'; it must be local[2], local[*], \
spark://HOST:PORT, k8s://HOST:PORT or yarn
    """
    if master is not None and not _MASTER.fullmatch(master.strip()):
        raise UsageError(
            f"the master is {shown(master)}; it must be local[2], local[*], spark://HOST:PORT, "
            "k8s://HOST:PORT or yarn"
        )
