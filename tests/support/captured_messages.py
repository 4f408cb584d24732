"""Messages of captured changes, compared member for member with those of a real producer."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import recorded
from captured_losses import Difference

from headgate.codec.encoder import Encoder
from headgate.core.event import Event

ABSENT = recorded.ABSENT
RECORDINGS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "canal": ("canal17", "canal-json:canal", {"timezone": "Asia/Shanghai"}),
    "maxwell": ("maxwell145", "maxwell", {"output_primary_keys": True}),
    "debezium": ("dbz35-default", "debezium", {"topic_prefix": "dbz"}),
}
"""By producer: what it wrote, and how Headgate writes the same."""
OF_A_RUN = {
    "canal": {"id", "es", "ts", "gtid"},
    "maxwell": {"ts", "gtid", "position", "xid", "server_id", "thread_id"},
    "debezium": {
        "ts_ms", "ts_us", "ts_ns", "version", "gtid", "file", "pos", "server_id", "thread",
    },
}  # fmt: skip
"""Times, places in a binlog, and the version of the connector."""
NOT_WRITTEN = {"schema_id", "push_ts", "query"}
"""Maxwell: its own numbers; statements, where the server notes them."""
TOGETHER = {"t_par", "t_chi"}
"""Tables of a transaction whose statements are transactions of their own here."""
LEFT_OUT = "live_odd"
"""The database whose rows Debezium was kept away from."""
Messages = dict[tuple[str, ...], list[Any]]
"""By table, and kind of change where a producer joins rows."""


@dataclass
class Comparison:
    """What came of comparing messages."""

    messages: int = 0
    values: int = 0
    members: int = 0
    """Members other than values."""
    differences: list[Difference] = field(default_factory=list)

    def value(self, place: str, ours: Any, theirs: Any) -> None:
        self.values += 1
        self._compare(place, ours, theirs)

    def member(self, place: str, ours: Any, theirs: Any) -> None:
        self.members += 1
        self._compare(place, ours, theirs)

    def _compare(self, place: str, ours: Any, theirs: Any) -> None:
        if not same(ours, theirs):
            self.differences.append(Difference(place, ours, theirs))


def same(ours: Any, theirs: Any) -> bool:
    """Whether two members are the same; the spaces of JSON in a text do not count."""
    if isinstance(ours, bool) or isinstance(theirs, bool):
        return ours is theirs
    if ours == theirs:
        return True
    if not (isinstance(ours, str) and isinstance(theirs, str) and ours[:1] in ("{", "[")):
        return False
    try:
        return bool(json.loads(ours) == json.loads(theirs))
    except ValueError:
        return False


def compared(producer: str, events: Iterable[Event]) -> Comparison:
    """The messages of captured changes beside those of a producer."""
    name, format, options = RECORDINGS[producer]
    encode, ours = Encoder(format, **options), []
    for event in events:
        if event.kind == "row" and not (producer == "debezium" and event.database == LEFT_OUT):
            topic = re.sub(r"[^\w.-]", "_", f"dbz.{event.database}.{event.table}", flags=re.ASCII)
            ours += [(topic, each.key, each.value) for each in encode(event).records]
        elif event.kind == "ddl":
            encode(event)
    theirs = [
        (line["topic"], recorded.unpacked(line["key"]), recorded.unpacked(line["value"]))
        for line in recorded.lines(recorded.MYSQL / f"{name}.jsonl.xz")
    ]
    result = Comparison()
    if producer == "debezium":
        # A delete of a table without a key is followed by a message without key and value.
        theirs = [each for each in theirs if each[0] != "dbz" and each[1:] != (None, None)]
        hold_together(result, by_topic(ours), by_topic(theirs), connect_message)
    else:
        compare = canal_message if producer == "canal" else maxwell_message
        hold_together(result, by_table(producer, ours), by_table(producer, theirs), compare)
    return result


def hold_together(result: Comparison, ours: Messages, theirs: Messages, compare: Any) -> None:
    """Compare the messages of each table, in order."""
    result.member("tables", sorted(ours), sorted(theirs))
    for where, messages in theirs.items():
        result.member(f"{where[-1]}: messages", len(ours[where]), len(messages))
        for mine, other in zip(ours[where], messages):
            result.messages += 1
            compare(result, mine, other)


def by_topic(messages: list[Any]) -> Messages:
    """Debezium's messages: key and value."""
    topics: Messages = defaultdict(list)
    for topic, *parts in messages:
        parsed = [None if part is None else json.loads(part) for part in parts]
        topics[(topic.partition(".")[2],)].append(parsed)
    return topics


def by_table(producer: str, messages: list[Any]) -> Messages:
    """Messages of Canal and Maxwell, each of one row."""
    tables: Messages = defaultdict(list)
    for _, _, text in messages:
        message = json.loads(text) if text is not None else {}
        kind = message.get("type", "").lower()
        if kind not in ("insert", "update", "delete"):
            continue
        rows = tables[message["database"], message["table"], kind]
        rows += split(message) if producer == "canal" else [message]
    return tables


def split(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Canal's message of several rows as one per row."""
    olds = message["old"] or [None] * len(message["data"])
    if len(olds) > 1:  # codes of unsigned columns depend on the values, here of the first row
        del message["sqlType"]
    for data, old in zip(message["data"], olds):
        yield {**message, "data": data, "old": old}


def image(result: Comparison, table: str, ours: Any, theirs: Any) -> None:
    """The columns of an image."""
    if not (isinstance(ours, dict) and isinstance(theirs, dict)):
        result.member(f"{table}: image", ours, theirs)
        return
    result.member(f"{table}: order", [n for n in ours if n in theirs],
                  [n for n in theirs if n in ours])  # fmt: skip
    for column in {**theirs, **ours}:
        place = f"{table}.{column}"
        result.value(place, ours.get(column, ABSENT), theirs.get(column, ABSENT))


def canal_message(result: Comparison, ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    table = theirs["table"]
    for name in {**theirs, **ours}.keys() - OF_A_RUN["canal"]:
        one, other = ours.get(name, ABSENT), theirs.get(name, ABSENT)
        if name == "data":
            image(result, table, one, other)
        elif name == "old" and one and other:
            # Canal notes what changed in any row of the message.
            image(result, table, {n: theirs["data"][n] for n in other} | one, other)
        elif name in ("mysqlType", "sqlType") and name in theirs:
            for column in {**one, **other}:
                result.member(f"{table}.{column}: {name}", one.get(column), other.get(column))
        elif name != "sqlType":
            result.member(f"{table}: {name}", one, other)


def maxwell_message(result: Comparison, ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    table = theirs["table"]
    for name in {**theirs, **ours}.keys() - OF_A_RUN["maxwell"] - NOT_WRITTEN:
        one, other = ours.get(name, ABSENT), theirs.get(name, ABSENT)
        if name in ("data", "old") and ABSENT not in (one, other):
            image(result, table, one, other)
        elif name not in ("commit", "xoffset") or table not in TOGETHER:
            result.member(f"{table}: {name}", one, other)


def connect_message(result: Comparison, ours: Any, theirs: Any) -> None:
    """A key and a value of Debezium's, each with its schema block."""
    (key, value), (other_key, other) = ours, theirs
    table = "tombstone" if other is None else other["payload"]["source"]["table"]
    for mine, its, part in ((key, other_key, "key"), (value, other, "value")):
        if mine is None or its is None:
            result.member(f"{table}: {part}", mine, its)
            continue
        schema(result, table, mine["schema"], its["schema"])
        payload(result, table, mine["payload"], its["payload"])


def payload(result: Comparison, table: str, ours: Any, theirs: Any) -> None:
    if "source" not in theirs:
        image(result, table, ours, theirs)
        return
    result.member(f"{table}: members", list(ours), list(theirs))
    for name in {**theirs, **ours}.keys() - OF_A_RUN["debezium"]:
        one, other = ours.get(name, ABSENT), theirs.get(name, ABSENT)
        if name in ("before", "after") and one and other:
            image(result, table, one, other)
        elif name == "source":
            result.member(f"{table}: source", list(one), list(other))
            for member in {**other, **one}.keys() - OF_A_RUN["debezium"]:
                result.member(f"{table}: source.{member}", one.get(member), other.get(member))
        else:
            result.member(f"{table}: {name}", one, other)


def schema(result: Comparison, table: str, ours: Any, theirs: Any) -> None:
    """Schema blocks, down to the attributes of each field."""
    for name in {**theirs, **ours}:
        one, other = ours.get(name, ABSENT), theirs.get(name, ABSENT)
        if name != "fields" or ABSENT in (one, other):
            place = theirs.get("field") or theirs.get("name")
            result.member(f"{table}.{place}: schema {name}", one, other)
            continue
        result.member(f"{table}: schema fields", *([f["field"] for f in fields] for fields in
                                                   (one, other)))  # fmt: skip
        for mine, its in zip(one, other):
            schema(result, table, mine, its)


def schema_changes(events: Iterable[Event]) -> tuple[Comparison, list[str], list[str]]:
    """DDL in Debezium's schema change topic: the same statements compared, and the others of each
    side."""
    name, format, options = RECORDINGS["debezium"]
    encode = Encoder(format, **options)
    ours: dict[str, Any] = {}
    for event in events:
        for record in encode(event).records if event.kind == "ddl" else ():
            ours[str(event.ddl)] = [json.loads(record.key), json.loads(record.value)]  # type: ignore[arg-type]
    result, unknown = Comparison(), []
    for line in recorded.lines(recorded.MYSQL / f"{name}.jsonl.xz"):
        if line["topic"] != "dbz":
            continue
        key, value = (json.loads(recorded.unpacked(line[part])) for part in ("key", "value"))  # type: ignore[arg-type]
        ddl = value["payload"]["ddl"]
        if ddl not in ours:
            unknown.append(ddl)
            continue
        result.messages += 1
        connect_message(result, ours.pop(ddl), [key, value])
    return result, list(ours), unknown
