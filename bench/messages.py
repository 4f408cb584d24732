"""Change streams of one table in every format, written fast, for the benchmark.

Independent of Headgate: nothing here imports it, so a codec's mistake cannot hide in its input.

The stream is of `shop.orders` (seven columns). Each order is inserted, updated (status and amount)
and deleted, in three consecutive messages: the three kinds in equal thirds. The text of `note` is
as long as it takes to make the messages of a format about 650 bytes on average; some notes are
null, some hold quotes or letters outside ASCII. The same seed gives the same bytes.

    python bench/messages.py canal-json /tmp/canal.jsonl 20000
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from struct import pack
from typing import NamedTuple

SEED = 7
ORDERS_PER_CHUNK = 10_000
FIRST_ID = 5_000_000_000
FIRST_SECOND = 1_709_294_400
"""2024-03-01 12:00:00 UTC, when the stream begins."""


class Order(NamedTuple):
    """One order's life. Every value is the JSON text of the value, so templates only paste."""

    number: int
    id: int
    customer_id: int
    before: str
    """Its amount when it is inserted; status is `new` then."""
    after: str
    status: str
    note: str
    created_at: str
    weight: str


Life = Callable[[Order], tuple[str, str, str]]
"""The three messages of one order: inserted, updated, deleted."""


def notes(length: int) -> list[str]:
    """A thousand notes of about that length as JSON text; one in sixteen is null."""
    rng = random.Random(SEED)
    words = ["deliver", "call", "before noon", "ring", "leave", "at", "door", "gift wrap", "floor"]
    rare = ['say "hello"', "Zürich", "北京市", "c:\\temp", "tab\there"]
    made = []
    for i in range(1024):
        if i % 16 == 15:
            made.append("null")
            continue
        text = rng.choice(rare) if i % 8 == 0 else ""
        target = length + rng.randrange(-6, 7)
        while len(text) < target:
            text += " " + rng.choice(words)
        made.append(json.dumps(text.strip()[:target], ensure_ascii=False))
    return made


def orders(note_length: int) -> Iterator[Order]:
    rng = random.Random(SEED)
    texts = notes(note_length)
    times = [
        f'"2024-03-{d:02} {h:02}:{m:02}:07"'
        for d in range(1, 29)
        for h, m in zip(range(24), rng.sample(range(60), 24))
    ]
    weights = [repr(round(rng.uniform(0.1, 40), 3)) for _ in range(4096)]
    for first in count(0, ORDERS_PER_CHUNK):
        many = ORDERS_PER_CHUNK
        customers = rng.choices(range(1, 1_000_000), k=many)
        cents = rng.choices(range(100, 10_000_000), k=many)
        yield from (
            Order(
                first + i,
                FIRST_ID + first + i,
                customer,
                f"{cent // 100}.{cent % 100:02}",
                f"{cent // 90}.{cent % 100:02}",
                status,
                note,
                created,
                weight,
            )
            for i, customer, cent, status, note, created, weight in zip(
                range(many),
                customers,
                cents,
                rng.choices(("paid", "packed", "sent", "cancelled"), k=many),
                rng.choices(texts, k=many),
                rng.choices(times, k=many),
                rng.choices(weights, k=many),
            )
        )


def seconds(order: Order) -> int:
    return FIRST_SECOND + order.number // 50


def bare(order: Order, status: str, amount: str) -> str:
    """A row image with numbers bare, as Maxwell and OMS write them."""
    return (
        f'{{"id":{order.id},"customer_id":{order.customer_id},"status":"{status}",'
        f'"amount":{amount},"note":{order.note},"created_at":{order.created_at},'
        f'"weight":{order.weight}}}'
    )


def canal_json(order: Order) -> tuple[str, str, str]:
    """Canal 1.1.8: all fourteen members in alphabetical order, every value as text."""
    ms = seconds(order) * 1000

    def message(kind: str, n: int, status: str, amount: str, old: str) -> str:
        return (
            f'{{"data":[{{"id":"{order.id}","customer_id":"{order.customer_id}",'
            f'"status":"{status}","amount":"{amount}","note":{order.note},'
            f'"created_at":{order.created_at},"weight":"{order.weight}"}}],'
            f'"database":"shop","es":{ms},"gtid":"","id":{order.number * 3 + n},"isDdl":false,'
            '"mysqlType":{"id":"bigint(20)","customer_id":"int(11)","status":"varchar(16)",'
            '"amount":"decimal(12,2)","note":"varchar(512)","created_at":"datetime",'
            f'"weight":"double"}},"old":{old},"pkNames":["id"],"sql":"",'
            '"sqlType":{"id":-5,"customer_id":4,"status":12,"amount":3,"note":12,"created_at":93,'
            f'"weight":8}},"table":"orders","ts":{ms + 417},"type":"{kind}"}}'
        )

    return (
        message("INSERT", 1, "new", order.before, "null"),
        message(
            "UPDATE",
            2,
            order.status,
            order.after,
            f'[{{"status":"new","amount":"{order.before}"}}]',
        ),
        message("DELETE", 3, order.status, order.after, "null"),
    )


TICDC_TYPES = [
    '"id":"bigint"',
    '"customer_id":"int"',
    '"status":"varchar"',
    '"amount":"decimal"',
    '"note":"varchar"',
    '"created_at":"datetime"',
    '"weight":"double"',
]


def canal_json_ticdc(order: Order) -> tuple[str, str, str]:
    """TiCDC with its extension: `mysqlType` is a map of Go, whose order differs by the message."""
    rng = random.Random(order.number)
    commit_ts = ((seconds(order) * 1000 + order.number % 50 * 20) << 18) + 1

    def row(status: str, amount: str) -> str:
        return (
            f'[{{"id":"{order.id}","customer_id":"{order.customer_id}","status":"{status}",'
            f'"amount":"{amount}","note":{order.note},"created_at":{order.created_at},'
            f'"weight":"{order.weight}"}}]'
        )

    def message(kind: str, n: int, old: str, data: str) -> str:
        types = ",".join(rng.sample(TICDC_TYPES, len(TICDC_TYPES)))
        es = commit_ts + n >> 18
        return (
            f'{{"id":0,"database":"shop","table":"orders","pkNames":["id"],"isDdl":false,'
            f'"type":"{kind}","es":{es},"ts":{es + 417},"sql":"","sqlType":{{"id":-5,'
            '"customer_id":4,"status":12,"amount":3,"note":12,"created_at":93,"weight":8},'
            f'"mysqlType":{{{types}}},"old":{old},"data":{data},'
            f'"_tidb":{{"commitTs":{commit_ts + n}}}}}'
        )

    old, new = row("new", order.before), row(order.status, order.after)
    return (
        message("INSERT", 0, "null", old),
        message("UPDATE", 1, old, new),
        message("DELETE", 2, "null", new),
    )


def maxwell(order: Order) -> tuple[str, str, str]:
    """Maxwell as it writes by default; numbers bare."""
    ts = seconds(order)

    def message(kind: str, n: int, status: str, amount: str, old: str) -> str:
        return (
            f'{{"database":"shop","table":"orders","type":"{kind}","ts":{ts},'
            f'"xid":{88_000_000 + order.number * 3 + n},"commit":true,'
            f'"data":{bare(order, status, amount)}{old}}}'
        )

    return (
        message("insert", 1, "new", order.before, ""),
        message(
            "update",
            2,
            order.status,
            order.after,
            f',"old":{{"status":"new","amount":{order.before}}}',
        ),
        message("delete", 3, order.status, order.after, ""),
    )


def debezium(order: Order) -> tuple[str, str, str]:
    """Debezium 2.7, schemas.enable=false, decimal.handling.mode=string, created_at as text."""
    ms = seconds(order) * 1000

    def row(status: str, amount: str) -> str:
        return (
            f'{{"id":{order.id},"customer_id":{order.customer_id},"status":"{status}",'
            f'"amount":"{amount}","note":{order.note},"created_at":{order.created_at},'
            f'"weight":{order.weight}}}'
        )

    def message(op: str, n: int, before: str, after: str) -> str:
        return (
            f'{{"before":{before},"after":{after},"source":{{"version":"2.7.3.Final",'
            f'"connector":"mysql","name":"shop","ts_ms":{ms},"snapshot":"false","db":"shop",'
            f'"sequence":null,"ts_us":{ms}000,"ts_ns":{ms}000000,"table":"orders",'
            f'"server_id":223344,"gtid":null,"file":"mysql-bin.000042",'
            f'"pos":{order.number * 1200 + n * 400},"row":0,"thread":5123,"query":null}},'
            f'"transaction":null,"op":"{op}","ts_ms":{ms + 417},"ts_us":{ms + 417}031,'
            f'"ts_ns":{ms + 417}031252}}'
        )

    old, new = row("new", order.before), row(order.status, order.after)
    return message("c", 1, "null", old), message("u", 2, old, new), message("d", 3, new, "null")


def debezium_smt(order: Order) -> tuple[str, str, str]:
    """ExtractNewRecordState, rewrite, add.fields=op,db,table,source.ts_ms,file,pos."""
    ms = seconds(order) * 1000

    def message(op: str, n: int, status: str, amount: str) -> str:
        return (
            f'{{"id":{order.id},"customer_id":{order.customer_id},"status":"{status}",'
            f'"amount":"{amount}","note":{order.note},"created_at":{order.created_at},'
            f'"weight":{order.weight},"__deleted":"{"true" if op == "d" else "false"}",'
            f'"__op":"{op}","__db":"shop","__table":"orders","__source_ts_ms":{ms},'
            f'"__file":"mysql-bin.000042","__pos":{order.number * 1200 + n * 400}}}'
        )

    return (
        message("c", 1, "new", order.before),
        message("u", 2, order.status, order.after),
        message("d", 3, order.status, order.after),
    )


def oms_default(order: Order) -> tuple[str, str, str]:
    ts = seconds(order)

    def message(kind: str, n: int, before: str, after: str) -> str:
        sequence = order.number * 3 % 90_000 + n
        return (
            f'{{"prevStruct":{before},"postStruct":{after},"allMetaData":{{"checkpoint":"{ts}",'
            f'"dbType":"OB_MYSQL","storeDataSequence":{ts}48{sequence:06},"db":"shop",'
            f'"timestamp":"{ts}","uniqueId":"{ts}_{n}","transId":"1002_{336_000 + order.number}",'
            f'"clusterId":"1","ddlType":null,"record_primary_key":"id","source_identity":'
            f'"OB_MYSQL_CE_ten_1_6n1r4-1-0","record_primary_value":"{order.id}",'
            f'"table_name":"orders"}},"recordType":"{kind}"}}'
        )

    old, new = bare(order, "new", order.before), bare(order, order.status, order.after)
    return (
        message("INSERT", 1, "null", old),
        message("UPDATE", 2, old, new),
        message("DELETE", 3, new, "null"),
    )


def dataworks(order: Order) -> tuple[str, str, str]:
    ts = seconds(order)

    def message(op: str, n: int, before: str, after: str) -> str:
        return (
            '{"version":"2.0","schema":{"source":{"dbType":"ob_mysql","dbVersion":null,'
            '"dbName":"shop","schema":null,"table":"orders"},"column":['
            '{"name":"id","type":"BIGINT"},{"name":"customer_id","type":"INT"},'
            '{"name":"status","type":"VARCHAR"},{"name":"amount","type":"DECIMAL"},'
            '{"name":"note","type":"VARCHAR"},{"name":"created_at","type":"DATETIME"},'
            '{"name":"weight","type":"DOUBLE"}],"pk":["id"]},'
            f'"payload":{{"before":{before},"after":{after},"op":"{op}","timestamp":{{'
            f'"eventTime":{ts}000,"systemTime":{ts}417,"checkpointTime":{ts}}},"ddl":null,'
            f'"scn":"{ts}{order.number * 3 % 90_000 + n:05}"}},"extend":{{}}}}'
        )

    old = f'{{"data":{bare(order, "new", order.before)}}}'
    new = f'{{"data":{bare(order, order.status, order.after)}}}'
    return (
        message("INSERT", 1, "null", old),
        message("UPDATE", 2, old, new),
        message("DELETE", 3, new, "null"),
    )


def shareplex(order: Order) -> tuple[str, str, str]:
    """An update has the changed columns in `data` and the complete old row in `key`."""
    ts = seconds(order)
    of_day = order.number // 50 % 43_200
    time = f"2024-03-01T{12 + of_day // 3600:02}:{of_day // 60 % 60:02}:{of_day % 60:02}"

    def message(op: str, n: int, data: str, key: str) -> str:
        return (
            f'{{"data":{data},"meta":{{"posttime":"{time}","op":"{op}","size":0,"time":"{time}",'
            f'"idx":"0/0","seq":{order.number * 3 + n},"table":"shop.orders",'
            f'"rowid":"shop.orders-{order.id}","trans":"1002_{336_000 + order.number}",'
            f'"scn":"{ts}{order.number * 3 % 90_000 + n:08}"}}{key}}}'
        )

    old, new = bare(order, "new", order.before), bare(order, order.status, order.after)
    changed = f'{{"status":"{order.status}","amount":{order.after}}}'
    return (
        message("ins", 1, old, ""),
        message("upd", 2, changed, f',"key":{old}'),
        message("del", 3, new, ""),
    )


def open_protocol(order: Order) -> list[tuple[bytes, bytes]]:
    """TiCDC's classic encoder, one row per message: columns by name, both parts framed."""
    commit_ts = ((seconds(order) * 1000 + order.number % 50 * 20) << 18) + 1

    def row(status: str, amount: str) -> str:
        return (
            f'{{"amount":{{"t":246,"f":65,"v":"{amount}"}},'
            f'"created_at":{{"t":12,"f":65,"v":{order.created_at}}},'
            f'"customer_id":{{"t":3,"f":65,"v":{order.customer_id}}},'
            f'"id":{{"t":8,"h":true,"f":11,"v":{order.id}}},'
            f'"note":{{"t":15,"f":64,"v":{order.note}}},'
            f'"status":{{"t":15,"f":64,"v":"{status}"}},'
            f'"weight":{{"t":5,"f":65,"v":{order.weight}}}}}'
        )

    def message(n: int, value: str) -> tuple[bytes, bytes]:
        k = f'{{"ts":{commit_ts + n},"scm":"shop","tbl":"orders","rid":{order.id},"t":1}}'.encode()
        v = value.encode()
        return pack(">QQ", 1, len(k)) + k, pack(">Q", len(v)) + v

    old, new = row("new", order.before), row(order.status, order.after)
    return [
        message(0, f'{{"u":{old}}}'),
        message(1, f'{{"u":{new},"p":{old}}}'),
        message(2, f'{{"d":{new}}}'),
    ]


TEXT: dict[str, tuple[Life, int]] = {
    "canal-json": (canal_json, 64),
    "canal-json:ticdc": (canal_json_ticdc, 22),
    "oms-default": (oms_default, 56),
    "dataworks": (dataworks, 26),
    "shareplex": (shareplex, 296),
    "debezium": (debezium, 26),
    "debezium-smt": (debezium_smt, 404),
    "maxwell": (maxwell, 437),
}
"""Formats of one JSON object per message: the templates, and how long their notes are."""

FORMATS = ("canal-json", "open-protocol", *list(TEXT)[1:])
OPEN_PROTOCOL_NOTE = 130


def texts(format: str, messages: int) -> Iterator[list[str]]:
    """The messages in chunks."""
    life, note_length = TEXT[format]
    source = orders(note_length)
    while messages > 0:
        wanted = min(messages, ORDERS_PER_CHUNK * 3)
        chunk = [m for _, order in zip(range(-(-wanted // 3)), source) for m in life(order)]
        yield chunk[:wanted]
        messages -= wanted


def expected_rows(format: str, messages: int) -> Iterator[tuple[str | None, ...]]:
    """The rows those messages stand for, as text: Flink's row kind, then the seven values.

    A message of debezium-smt has no image from before an update.
    """
    note_length = OPEN_PROTOCOL_NOTE if format == "open-protocol" else TEXT[format][1]
    source = orders(note_length)
    for n, order in zip(range(-(-messages // 3)), source):
        rest = (json.loads(order.note), json.loads(order.created_at), order.weight)
        head = (str(order.id), str(order.customer_id))
        old = (*head, "new", order.before, *rest)
        new = (*head, order.status, order.after, *rest)
        yield "+I", *old
        if n * 3 + 1 < messages:
            if format != "debezium-smt":
                yield "-U", *old
            yield "+U", *new
        if n * 3 + 2 < messages:
            yield "-D", *new


def write_text(format: str, path: Path, messages: int) -> None:
    """JSON Lines."""
    with path.open("wb") as file:
        for chunk in texts(format, messages):
            file.write(("\n".join(chunk) + "\n").encode())


def write_open_protocol(path: Path, messages: int) -> None:
    """Parquet with the columns of Spark's Kafka source, uncompressed."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema(
        [
            ("key", pa.binary()),
            ("value", pa.binary()),
            ("topic", pa.string()),
            ("partition", pa.int32()),
            ("offset", pa.int64()),
            ("timestamp", pa.timestamp("us", tz="UTC")),
        ]
    )
    source = orders(OPEN_PROTOCOL_NOTE)
    chunk = 2_000  # small row groups, so that a small file still feeds two tasks
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=["topic"]) as writer:
        for first in range(0, messages, chunk * 3):
            pairs = [p for _, order in zip(range(chunk), source) for p in open_protocol(order)]
            pairs = pairs[: messages - first]
            offsets = range(first, first + len(pairs))
            columns = [
                pa.array([key for key, _ in pairs], pa.binary()),
                pa.array([value for _, value in pairs], pa.binary()),
                pa.array(["shop"] * len(pairs), pa.string()),
                pa.array([0] * len(pairs), pa.int32()),
                pa.array(offsets, pa.int64()),
                pa.array([(FIRST_SECOND * 1000 + n) * 1000 for n in offsets], schema.field(5).type),
            ]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema))


def message_bytes(format: str, path: Path, messages: int) -> int:
    """Bytes of the messages of a file, keys included; line ends and Parquet's own are not."""
    if format != "open-protocol":
        return path.stat().st_size - messages
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path)
    return sum(
        pc.sum(pc.binary_length(batch.column(name))).as_py()
        for batch in file.iter_batches(columns=["key", "value"])
        for name in ("key", "value")
    )


def write(format: str, path: Path, messages: int) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(path.name + ".part")
    if format == "open-protocol":
        write_open_protocol(unfinished, messages)
    else:
        write_text(format, unfinished, messages)
    unfinished.replace(path)


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[1] not in FORMATS:
        sys.exit(f"usage: messages.py FORMAT PATH MESSAGES; formats: {', '.join(FORMATS)}")
    write(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
