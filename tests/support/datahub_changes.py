"""Changes of some rows for jobs to DataHub, and what of them arrived there."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

from datahub_server import DataHubServer, Record
from ticdc_messages import ticdc

from headgate.arrow.headers import ID_HEADER

ROWS, CHANGES = 20, 200


def changes(count: int = CHANGES) -> list[bytes]:
    """Changes of some rows in the order of their commits."""
    chance = random.Random(4)
    return [
        ticdc(n if n < ROWS else chance.randrange(ROWS), n + 1, "INSERT" if n < ROWS else "UPDATE")
        for n in range(count)
    ]


def amounts(records: list[Record]) -> dict[str, list[float]]:
    """The commits of each row, as its amounts tell them, without copies behind the first."""
    seen: dict[str, Record] = {}
    for record in records:
        seen.setdefault(record.attributes[ID_HEADER], record)
    amounts: dict[str, list[float]] = {}
    for record in seen.values():
        row = json.loads(record.value)["payload"]["after"]
        amounts.setdefault(str(row["id"]), []).append(float(row["amount"]))
    return amounts


def expected(messages: list[bytes]) -> dict[str, list[float]]:
    amounts: dict[str, list[float]] = {}
    for message in messages:
        (row,) = json.loads(message)["data"]
        amounts.setdefault(row["id"], []).append(float(row["amount"]))
    return amounts


def sink_uri(server: DataHubServer, topic: str, protocol: str = "debezium") -> str:
    more = "&decimal-handling-mode=string" if protocol == "debezium" else ""
    return f"{server.uri(topic)}protocol={protocol}{more}"


def put_files(folder: Path, messages: list[bytes], files: int) -> None:
    """Messages as files, each a second younger than the one before: a batch takes the oldest."""
    share = len(messages) // files
    for n in range(files):
        file = folder / f"{n:02d}.jsonl"
        file.write_bytes(b"".join(m + b"\n" for m in messages[n * share : (n + 1) * share]))
        os.utime(file, (1_700_000_000 + n, 1_700_000_000 + n))
