"""Recorded messages of real producers, and what the database contained: the judge of the decoders.

One workload ran on MySQL 8.0 while Canal, Maxwell and Debezium read its binlog; another ran in TiDB
and went through TiCDC's own encoders. `tests/vectors/` holds what they wrote, packed, and as truth
the rows that the server itself showed before and after each statement.
"""

from __future__ import annotations

import json
import lzma
import struct
from base64 import b64decode
from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from paths import VECTORS

from headgate.codec.decoder import decode_message, decoder
from headgate.codec.encoder import Encoder

MYSQL = VECTORS / "mysql80"
ABSENT = "(absent)"
Row = dict[str, Any]
Message = tuple["bytes | None", "bytes | None", Any]
"""Key, value and topic."""


@dataclass
class Change:
    """One row change, as the server saw it."""

    statement: int
    database: str
    table: str
    key: list[str]
    types: dict[str, str]
    before: Row | None
    after: Row | None


@dataclass(frozen=True)
class Difference:
    """A value that was decoded, and is not the server's."""

    table: str
    column: str
    type: str
    truth: Any
    decoded: Any


@dataclass
class Comparison:
    """What came of holding a recording against the truth."""

    values: int = 0
    differences: list[Difference] = field(default_factory=list)
    unmatched: list[str] = field(default_factory=list)
    missing: list[tuple[str, str]] = field(default_factory=list)
    """Tables of which changes never came."""


def lines(path: Path) -> Iterator[Any]:
    """The JSON lines of a packed file."""
    with lzma.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def unpacked(text: str | None) -> bytes | None:
    """Bytes of a recording, which has them in base64."""
    return None if text is None else b64decode(text)


@cache
def truth() -> tuple[Any, ...]:
    """The statements of the workload on MySQL, in order."""
    return tuple(lines(MYSQL / "truth.jsonl.xz"))


UNIQUE_KEYS = {"t_uniq": ["a"]}
"""The key of a table that has no primary key: Debezium takes the first unique one without nulls."""


def changes(split_key_changes: bool, deletes: bool) -> dict[tuple[str, str], deque[list[Change]]]:
    """The row changes of each table, statement by statement; `deletes` says whether they count.

    Debezium writes an update of a key as a delete and an insert: `split_key_changes`.
    """
    by_table: dict[tuple[str, str], deque[list[Change]]] = defaultdict(deque)
    for each in truth():
        if each["kind"] not in ("stmt", "ctas"):
            continue
        table, key = (each["db"], each["table"]), each["key"]
        own = UNIQUE_KEYS.get(table[1], key)
        rows: list[tuple[Row | None, Row | None]] = []
        for before, after in paired(each):
            if before and after and split_key_changes and keys(own, before) != keys(own, after):
                rows += [(before, None), (None, after)]
            else:
                rows.append((before, after))
        statement = (each["n"], *table, key, each["types"])
        rows = [(before, after) for before, after in rows if deletes or after]
        if rows:
            by_table[table].append([Change(*statement, before, after) for before, after in rows])
    return by_table


def paired(statement: Any) -> Iterator[tuple[Row | None, Row | None]]:
    """What a statement did to each row; rows of one key are one row, before and after."""
    if statement.get("pairs"):
        yield from map(tuple, statement["pairs"])
        return
    added = list(statement["added"])
    # The binlog of a REPLACE holds a delete and an insert.
    key = [] if statement.get("sql", "").startswith("replace") else statement["key"]
    for before in statement.get("removed", []):
        after = next((row for row in added if key and keys(key, row) == keys(key, before)), None)
        if after is not None:
            added.remove(after)
        yield before, after
    for after in added:
        yield None, after


def keys(key: list[str], row: Row) -> list[Any]:
    return [row[name] for name in key]


def final() -> dict[tuple[str, str], list[Change]]:
    """The rows at the end, as a snapshot reads them."""
    with lzma.open(MYSQL / "final.json.xz", "rt", encoding="utf-8") as file:
        tables = json.load(file)
    by_table = {}
    for name, table in tables.items():
        where = tuple(name.split("\t"))
        by_table[where] = [
            Change(-1, *where, table["key"], table["types"], None, row) for row in table["rows"]
        ]
    return by_table


def create_table(change: Change) -> str:
    """The table of a change as it was then."""
    # MySQL's SHOW COLUMNS shows a label outside of the basic plane as a question mark.
    types = {name: type_.replace("'?'", "'😀'") for name, type_ in change.types.items()}
    unique = UNIQUE_KEYS.get(change.table, [])
    columns = [
        f"{quoted(name)} {type_}{' NOT NULL' * (name in (*change.key, *unique))}"
        for name, type_ in types.items()
    ]
    for kind, key in (("PRIMARY", change.key), ("UNIQUE", unique)):
        if key:
            columns.append(f"{kind} KEY ({', '.join(map(quoted, key))})")
    return f"CREATE TABLE {quoted(change.database)}.{quoted(change.table)} ({', '.join(columns)})"


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def same(type_: str, truth: Any, decoded: Any, exact: bool) -> bool:
    """Whether a decoded text is the server's value.

    FLOAT and DOUBLE are compared as numbers, and so is a ZEROFILL, whose padding is display only.
    Not `exact`: where no schema tells the declared digits, trailing zeros do not count either.
    """
    if truth is None or decoded is None:
        return truth is decoded
    if truth == decoded:
        return True
    base = type_.split("(")[0].split()[0].lower()
    try:
        if base in ("float", "double"):
            number, digits = float(decoded), declared_digits(type_)
            number = number if digits is None else round(number, digits)
            return number == float(truth) or (base == "float" and single(number) == single(truth))
        if "zerofill" in type_ or (not exact and base == "decimal"):
            return Decimal(truth) == Decimal(decoded)
        if base == "json":
            return parsed(truth) == parsed(decoded)
    except (InvalidOperation, ValueError, OverflowError):
        return False
    if not exact and base in ("time", "datetime", "timestamp"):
        return trimmed(truth) == trimmed(decoded)
    return False


def parsed(text: str) -> Any:
    return json.loads(text)


def declared_digits(type_: str) -> int | None:
    """The digits behind the point that DOUBLE(10,5) shows."""
    return int(type_.partition(",")[2].partition(")")[0]) if "," in type_ else None


def single(number: float | str) -> bytes:
    return struct.pack("f", float(number))


def trimmed(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def differences(change: Change, event: Any, exact: bool) -> tuple[int, list[Difference]]:
    """How many values of a change were compared, and which are wrong."""
    compared, wrong = 0, []
    table = f"{change.database}.{change.table}"
    for image, decoded in ((change.before, event.before), (change.after, event.after)):
        if image is None and decoded is None:
            continue
        if image is None or decoded is None:
            if event.format != "debezium-smt" or event.op == "delete":  # it has no before image
                wrong.append(Difference(table, "(row)", "image", image, decoded))
            continue
        for name in {**image, **decoded}:
            compared += 1
            type_ = change.types.get(name, "")
            pair = image.get(name, ABSENT), decoded.get(name, ABSENT)
            if ABSENT in pair or not same(type_, *pair, exact):
                wrong.append(Difference(table, name, type_, *pair))
    return compared, wrong


def distance(change: Change, event: Any, exact: bool) -> tuple[int, int]:
    """How far an event is from a change: differences in the key, then all."""
    wrong = differences(change, event, exact)[1]
    return sum(d.column in change.key for d in wrong), len(wrong)


@dataclass(frozen=True)
class Recording:
    """What a producer wrote, and how it is to be read."""

    name: str
    format: str
    options: dict[str, Any] = field(default_factory=dict)
    typed: bool = True
    """Whether its messages tell types: without, only a schema makes values of them."""
    deletes: bool = True
    """Whether a delete has a row: some settings of Debezium's transform leave none."""

    def compared(self, reading: str) -> Comparison:
        """Hold it against the truth: `reading` is one of READINGS.

        Each row event is taken for the change of its table's next statement that it is nearest to.
        """
        result = Comparison()
        waiting = changes(self.format.startswith("debezium"), self.deletes)
        snapshot = final()
        reader = READINGS[reading](self)
        plain = decoder(self.format, **self.options, **reader.knows)
        snapshots = 0
        for line in lines(MYSQL / f"{self.name}.jsonl.xz"):
            message = (unpacked(line["key"]), unpacked(line["value"]), line["topic"])
            for number, event in enumerate(decoded(plain, message)):
                reader.see(event)
                if event.kind == "invalid":
                    result.unmatched.append(f"invalid: {event.error}")
                if not is_ours(event):
                    continue
                table = (event.database, event.table)
                is_snapshot = event.op == "snapshot"
                snapshots += is_snapshot
                rows = snapshot[table] if is_snapshot else (waiting[table] or [[]])[0]
                near = [change for change in rows if fits(change, event)]
                if not near:
                    result.unmatched.append(f"{event.op} of {table} without a statement")
                    continue
                reread = reader.read(event, message, number, near[0])
                if reread.kind == "invalid":
                    result.unmatched.append(f"invalid: {reread.error}")
                    reread = event
                change = min(near, key=lambda c: distance(c, reread, reader.exact))
                values, wrong = differences(change, reread, reader.exact)
                result.values += values
                result.differences += wrong
                rows.remove(change)
                if not rows and not is_snapshot:
                    waiting[table].popleft()
        left = snapshot if snapshots else waiting
        result.missing = sorted({table for table, rows in left.items() if rows})
        return result


class Alone:
    """A message by itself: where it does not tell the declared digits, trailing zeros are free."""

    exact = False
    knows: ClassVar[dict[str, str]] = {}
    """Options that tell the tables' names: a topic's may be ambiguous."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording

    def see(self, event: Any) -> None:
        """Take in every event of the stream, in order."""

    def read(self, event: Any, message: Message, number: int, change: Change) -> Any:
        """A row event as this way of reading gives it."""
        return event


class WithSchema(Alone):
    """Decoded with a schema: the table as it was at that statement."""

    exact = True
    knows: ClassVar[dict[str, str]] = {"schema": (MYSQL / "schema.sql").read_text("utf-8")}

    def __init__(self, recording: Recording) -> None:
        super().__init__(recording)
        self.decoders: dict[str, Any] = {}

    def read(self, event: Any, message: Message, number: int, change: Change) -> Any:
        sql = create_table(change)
        if sql not in self.decoders:
            options = self.recording.options
            self.decoders[sql] = decoder(self.recording.format, schema=sql, **options)
        return decoded(self.decoders[sql], message)[number]


class Converted(Alone):
    """Converted to a format that tells types, with no schema but the DDL in the stream."""

    exact = True

    def __init__(self, recording: Recording) -> None:
        super().__init__(recording)
        self.encoder = Encoder("canal-json", source=recording.options)
        self.decode = decoder("canal-json")
        self.outcome: Any = None

    def see(self, event: Any) -> None:
        self.outcome = self.encoder(event)

    def read(self, event: Any, message: Message, number: int, change: Change) -> Any:
        (record,) = self.outcome.records
        (reread,) = decoded(self.decode, (record.key, record.value, None))
        return reread


READINGS = {"alone": Alone, "schema": WithSchema, "converted": Converted}


def fits(change: Change, event: Any) -> bool:
    """Whether an event can be that of a change, by its operation."""
    if event.op == "delete" or change.after is None:
        return event.op == "delete" and change.after is None
    if event.op == "snapshot" or event.format == "debezium-smt":
        return True
    return bool((event.op == "insert") == (change.before is None))


def decoded(decode: Any, message: Message) -> list[Any]:
    return decode_message(decode, *message, 1 << 24)


def is_ours(event: Any) -> bool:
    """Whether an event is a row of the workload, and not of the producers' own tables."""
    if event.kind != "row" or event.op == "truncate":
        return False
    return (event.database or "").startswith("live") and event.table != "t_bulk"
