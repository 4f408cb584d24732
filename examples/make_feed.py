"""Write the shop's story in every dialect: `python -m examples.make_feed [DIR]`.

An independent witness: nothing here or in what it imports knows Headgate. Writes
`<format>.<dialect>.jsonl` (or `.parquet`, with Kafka's columns, where a message has a key or where
its topic says something), `truth.json` (the tables in the end) and `broken.json` (the messages that
were damaged on purpose, and where they are).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from examples.producers import Message, canal, debezium, maxwell, oms, ticdc
from examples.shop import Shop, tell, truth

FEED = Path(__file__).parent / "feed"
START = 1_714_550_400_000
SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("ms", "UTC")),
    ]
)
PRODUCERS: dict[str, Callable[[Shop], Iterable[Message]]] = {
    "canal-json.canal.jsonl": canal.canal,
    "canal-json.ticdc.jsonl": ticdc.canal_json,
    "canal-json.oms.jsonl": oms.canal,
    "canal-json.tencent.jsonl": canal.tencent,
    "open-protocol.classic.parquet": ticdc.classic,
    "open-protocol.new.parquet": ticdc.new,
    "oms-default.default.jsonl": oms.default,
    "oms-default.extend-column-type.jsonl": oms.extend_column_type,
    "dataworks.v2.0.jsonl": oms.dataworks,
    "shareplex.oms.jsonl": oms.shareplex,
    "debezium.debezium.parquet": debezium.debezium,
    "debezium.oms.parquet": debezium.oms,
    "debezium.oms-flatten.jsonl": debezium.oms_flatten,
    "debezium-smt.debezium.parquet": debezium.smt,
    "debezium-smt.oms.parquet": debezium.oms_smt,
    "maxwell.maxwell.jsonl": maxwell.maxwell,
    "maxwell.oms.jsonl": maxwell.oms,
}


class Broken(NamedTuple):
    """A message to add, and the code of the dead letter that it should become."""

    file: str
    line: int
    code: str
    what: str
    damage: Callable[[Message], Message]


def truncated(message: Message) -> Message:
    """A producer was killed in the middle of a message."""
    value = message.value or b""
    return message._replace(value=value[: len(value) * 2 // 3])


def replaced(old: bytes, new: bytes) -> Callable[[Message], Message]:
    """Damage that swaps some bytes of the value."""

    def damage(message: Message) -> Message:
        value = message.value or b""
        assert old in value
        return message._replace(value=value.replace(old, new, 1))

    return damage


def lying_frame(message: Message) -> Message:
    """A frame that claims a terabyte."""
    return message._replace(value=(1 << 40).to_bytes(8, "big") + (message.value or b"")[8:])


def stranger(message: Message) -> Message:
    """A message that somebody else sent to the topic."""
    return message._replace(value=b'{"level":"INFO","service":"checkout","took_ms":12}')


BROKEN = [
    Broken("canal-json.canal.jsonl", 9, "unrecognised", "an application's log line", stranger),
    Broken("canal-json.ticdc.jsonl", 17, "malformed-json", "cut off in the middle", truncated),
    Broken(
        "maxwell.maxwell.jsonl", 12, "unknown-type", "a type that Maxwell does not have",
        replaced(b'"type":"insert"', b'"type":"upsert"'),
    ),
    Broken(
        "oms-default.default.jsonl", 5, "invalid-utf8", "a name in Latin-1",
        replaced("Zoë".encode(), "Zoë".encode("latin-1")),
    ),
    Broken("open-protocol.classic.parquet", 21, "malformed-frame", "a lying length", lying_frame),
]  # fmt: skip


def with_broken(file: str, messages: list[Message]) -> list[Message]:
    """The messages of a file, the damaged copies among them."""
    for broken in (b for b in BROKEN if b.file == file):
        messages.insert(broken.line - 1, broken.damage(messages[broken.line - 1]))
    return messages


def write_lines(path: Path, messages: list[Message]) -> None:
    """One message per line."""
    path.write_bytes(b"".join((message.value or b"") + b"\n" for message in messages))


def write_parquet(path: Path, messages: list[Message]) -> None:
    """Kafka's columns."""
    rows = [
        {**m._asdict(), "partition": 0, "offset": i, "timestamp": START + i * 1000}
        for i, m in enumerate(messages)
    ]
    pq.write_table(pa.Table.from_pylist(rows, SCHEMA), path, compression="zstd")


def write_json(path: Path, value: Any) -> None:
    """Readable JSON."""
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def main(folder: Path = FEED) -> None:
    """Write everything."""
    folder.mkdir(parents=True, exist_ok=True)
    shop = tell()
    for file, producer in PRODUCERS.items():
        messages = with_broken(file, list(producer(shop)))
        write = write_parquet if file.endswith(".parquet") else write_lines
        write(folder / file, messages)
    write_json(folder / "truth.json", truth(shop))
    names = ("file", "line", "code", "what")
    write_json(folder / "broken.json", [{n: getattr(b, n) for n in names} for b in BROKEN])


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
