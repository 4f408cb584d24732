"""Messages that TiCDC's own encoders wrote, and what TiDB's SELECT showed: see `recorded`."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from paths import VECTORS
from recorded import ABSENT, Difference, decoded, lines, same, unpacked

from headgate.codec.decoder import decoder
from headgate.core.mysql_types import parse_type

TICDC = VECTORS / "ticdc"
SCHEMA = (TICDC / "schema.sql").read_text(encoding="utf-8")
FORMATS = {
    "canal": "canal-json:ticdc",
    "open": "open-protocol",
    "debezium": "debezium",
    "maxwell": "maxwell",
}

WITHOUT_EXTENSION = ("plain", "compatplain", "updated")
"""Variants of Canal-JSON that were written without `enable-tidb-extension`."""


@dataclass(frozen=True)
class Recording:
    """What one of TiCDC's encoders wrote: `architecture.protocol-variant`."""

    name: str

    @property
    def architecture(self) -> str:
        """`classic` or `new`: TiCDC's two code bases."""
        return self.name.partition(".")[0]

    @property
    def protocol(self) -> str:
        return self.name.partition(".")[2].partition("-")[0]

    @property
    def variant(self) -> str:
        return self.name.partition("-")[2]

    @property
    def options(self) -> dict[str, Any]:
        """The options that a decoder needs."""
        return {"compression": "snappy"} if self.variant == "snappy" else {}

    def messages(self) -> Iterator[tuple[Any, bytes | None, bytes | None]]:
        """Each line, with the key and value of its message."""
        for line in lines(TICDC / f"{self.name}.jsonl.xz"):
            yield line, unpacked(line["key"]), unpacked(line["value"])


RECORDINGS = [
    recording
    for path in sorted(TICDC.glob("*.jsonl.xz"))
    if (recording := Recording(path.name.removesuffix(".jsonl.xz"))).protocol in FORMATS
]


@dataclass
class Comparison:
    """What came of holding a recording against TiDB's rows."""

    values: int = 0
    differences: list[Difference] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    """What is wrong beside values: kinds, tables, operations, commit numbers."""


@cache
def truth(architecture: str) -> dict[int, Any]:
    """What happened in TiDB, by number."""
    return {each["i"]: each for each in lines(TICDC / f"{architecture}.truth.jsonl.xz")}


def image(columns: list[Any] | None) -> dict[str, tuple[str, str | None]] | None:
    """A row: types and canonical text."""
    return None if columns is None else {c["n"]: (c["t"], canonical(c)) for c in columns}


def canonical(column: Any) -> str | None:
    """A value of TiDB's as canonical text."""
    if column["v"] is None:
        return None
    raw = bytes.fromhex(column["v"])
    if parse_type(column["t"]).family == "binary":
        return b64encode(raw).decode()
    return raw.decode()


def compared(recording: Recording, schema: bool) -> Comparison:
    """Hold a recording against what happened."""
    result = Comparison()
    options = {"schema": SCHEMA} if schema else {}
    decode = decoder(FORMATS[recording.protocol], **recording.options, **options)
    for line, key, value in recording.messages():
        events = decoded(decode, (key, value, "cdc"))
        happened = [line]
        if line["kind"] != "watermark":
            happened = [truth(recording.architecture)[number] for number in line["events"]]
        if [e.kind for e in events] != [each["kind"] for each in happened]:
            result.others.append(f"{line['kind']}: {[(e.kind, e.error) for e in events]}")
            continue
        for event, each in zip(events, happened):
            hold(result, event, each, recording, schema)
    return result


def hold(result: Comparison, event: Any, happened: Any, recording: Recording, exact: bool) -> None:
    """Compare an event with what happened."""
    # Maxwell's rows have whole seconds only, and Canal's no commit number without the extension.
    numbered = recording.protocol != "maxwell" and (
        recording.protocol != "canal" or recording.variant not in WITHOUT_EXTENSION
    )
    if event.kind != "watermark" and numbered and event.commit_ts != happened["commitTs"]:
        result.others.append(f"commit {event.commit_ts} for {happened['commitTs']}")
    if event.kind != "row":
        return
    where = (event.database, event.table, event.op)
    expected = (happened["db"], happened["table"], happened["op"])
    if where != expected and (recording.variant, event.op) != ("noold", "insert"):
        result.others.append(f"{where} for {expected}")
    table = f"{happened['db']}.{happened['table']}"
    for mine, its in (
        (event.before, image(happened["before"])), (event.after, image(happened["after"]))
    ):  # fmt: skip
        if mine is None or its is None:
            if (mine is None) != (its is None):
                result.differences.append(Difference(table, "(row)", "image", its, mine))
            continue
        for name in {**its, **mine}:
            result.values += 1
            type_, text = its.get(name, ("", ABSENT))
            got = mine.get(name, ABSENT)
            if ABSENT in (text, got) or not same(type_, text, got, exact):
                result.differences.append(Difference(table, name, type_, text, got))
