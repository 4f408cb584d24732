"""Sample events that have every member: they show what a conversion loses."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from headgate.codec.decoder import decoder
from headgate.codec.encoder import Encoder, target
from headgate.codec.schemas import Schemas
from headgate.core.event import Event, Image
from headgate.core.losses import SENTENCES, Loss, strongest
from headgate.core.options import names
from headgate.formats import encoding_of, load, traits_of

DATABASE, TABLE = "shop", "specimen"
TOPIC = f"prefix.{DATABASE}.{TABLE}"
"""Where some formats' messages name their table."""

SCHEMA = f"""
CREATE TABLE {TABLE} (
  id BIGINT NOT NULL PRIMARY KEY,
  c_tiny TINYINT, c_utiny TINYINT UNSIGNED, c_small SMALLINT, c_usmall SMALLINT UNSIGNED,
  c_medium MEDIUMINT, c_umedium MEDIUMINT UNSIGNED, c_int INT, c_uint INT UNSIGNED,
  c_big BIGINT, c_ubig BIGINT UNSIGNED, c_bool TINYINT(1),
  c_decimal DECIMAL(20,6), c_wide DECIMAL(65,30), c_float FLOAT, c_double DOUBLE,
  c_bit1 BIT(1), c_bit12 BIT(12), c_bit64 BIT(64), c_year YEAR,
  c_date DATE, c_time TIME, c_time6 TIME(6), c_datetime DATETIME, c_datetime3 DATETIME(3),
  c_datetime6 DATETIME(6), c_timestamp TIMESTAMP NULL, c_timestamp6 TIMESTAMP(6) NULL,
  c_char CHAR(10), c_varchar VARCHAR(200), c_text TEXT, c_longtext LONGTEXT,
  c_binary BINARY(8), c_varbinary VARBINARY(40), c_blob BLOB, c_longblob LONGBLOB,
  c_enum ENUM('small','it''s','x,y'), c_set SET('a','b','c'), c_json JSON
)
"""
ROW: Image = {
    "id": "7", "c_tiny": "-128", "c_utiny": "255", "c_small": "-32768", "c_usmall": "65535",
    "c_medium": "-8388608", "c_umedium": "16777215", "c_int": "2147483647", "c_uint": "4294967295",
    "c_big": "-9223372036854775808", "c_ubig": "1", "c_bool": "1",
    "c_decimal": "12345678901234.567890", "c_wide": "9" * 35 + "." + "9" * 30,
    "c_float": "1.5", "c_double": "-2.25", "c_bit1": "1", "c_bit12": "4095",
    "c_bit64": "18446744073709551615", "c_year": "2024", "c_date": "2024-02-29",
    "c_time": "-838:59:59", "c_time6": "23:59:59.000001", "c_datetime": "2024-02-29 23:59:59",
    "c_datetime3": "2024-02-29 23:59:59.123", "c_datetime6": "2024-02-29 23:59:59.123000",
    "c_timestamp": "2024-02-29 23:59:59", "c_timestamp6": "2024-02-29 23:59:59.000001",
    "c_char": "a", "c_varchar": "日本語 🦊", "c_text": "it's \"quoted\"", "c_longtext": "<&>",
    "c_binary": "iVBORw0KGgo=", "c_varbinary": "AP8=", "c_blob": "YWJj", "c_longblob": "",
    "c_enum": "it's", "c_set": "a,c", "c_json": '{"a": 1.10}',
}  # fmt: skip
OTHER: Image = dict.fromkeys(ROW) | {"id": "7", "c_int": "1", "c_enum": "small"}
UNUSUAL: Image = {
    "c_ubig": "18446744073709551615",
    "c_double": "-0",
    "c_float": "1e-7",
    "c_datetime6": "2024-02-29 23:59:59.000001",
    "c_json": "null",
}
ZERO: Image = {"c_date": "0000-00-00", "c_datetime": "0000-00-00 00:00:00"}
POSITION = {
    "file": "binlog.000007", "pos": "154", "gtid": "3e11fa47-71ca-11e1-9e33-c80aa9429562:23",
    "server_id": "1", "xid": "77", "thread_id": "5",
}  # fmt: skip
COMMIT_TS = (1_714_550_482_436 << 18) + 7
EVENT_TIME = (COMMIT_TS >> 18) * 1_000
EMIT_TIME = EVENT_TIME + 5_123_456


def carried_at_most(format: str, dialect: str) -> frozenset[str]:
    """What a format carries with the options by which its producer writes most."""
    encoding = encoding_of(load(format))
    return encoding.carries(dialect, encoding.options(**encoding.fullest.get(dialect, {})))


@lru_cache(maxsize=64)
def specimens(format: str, dialect: str) -> tuple[Event, ...]:
    """Every kind of event, with everything that any format can carry of it.

    The format matters to the few things that only events of one's own format can have.
    """
    traits = traits_of(format, dialect)
    table = Schemas(SCHEMA).table(DATABASE, TABLE)
    types = None if table is None else table.types
    rows = [
        Event("row", "insert", after=ROW),
        Event("row", "insert", after=ROW | UNUSUAL),
        Event("row", "insert", after=ROW | ZERO),
        Event("row", "snapshot", after=ROW),
        Event("row", "update", before=OTHER, after=ROW),
        Event("row", "update", after=ROW),
        Event("row", "update", before=ROW, after=ROW),
        Event("row", "update", before=ROW | {"id": "8"}, after=ROW),
        Event("row", "delete", before=ROW),
    ]
    if traits.sample_extra:
        sample = Event("row", "insert", after=ROW, format=format, dialect=dialect)
        sample.extra = dict(traits.sample_extra)
        rows.append(sample)
    others = [
        Event("row", "truncate"),
        Event("ddl", "alter", ddl=f"ALTER TABLE {TABLE} COMMENT 'x'"),
        Event("ddl", "create_index", ddl=f"CREATE INDEX i ON {TABLE} (c_int)"),
        Event("statement", "delete", ddl=f"DELETE FROM {TABLE}"),
        Event("watermark"),
        Event("heartbeat"),
        Event("marker", "begin"),
        Event("marker", "snapshot_begin"),
    ]
    if traits.tombstones:
        others.append(Event("tombstone", format=format, dialect=dialect))
    for event in rows:
        event.key, event.types = ("id",), types
    for event in (*rows, *others):
        event.database, event.table, event.position = DATABASE, TABLE, POSITION
        event.commit_ts, event.event_time, event.emit_time = COMMIT_TS, EVENT_TIME, EMIT_TIME
    precise = msgspec.structs.replace(rows[0], event_time=EVENT_TIME + 1)
    if "schema-name" in carried_at_most(format, dialect):
        others.append(msgspec.structs.replace(rows[0], schema="public"))
    return (*rows, precise, *others)


def losses(from_: str, to: str, schema: bool = False, **options: Any) -> list[Loss]:
    """What converting from one format to another cannot carry.

    `from_` and `to` are `name` or `name:dialect`; `schema` says that a table schema will be given;
    the options are those of the target. The answer is not a table kept by hand: specimens of every
    kind and type are written in the one format, read, and written in the other.

    >>> [loss.code for loss in losses("canal-json", "canal-json:tencent")]
    ['statement', 'key', 'types', 'position', 'extra']
    """
    name, dialect, source = target(from_)
    known = {"schema": SCHEMA} if schema else {}
    unnamed = {"database": DATABASE, "table": TABLE}  # where no message names them
    source_options = {n: v for n, v in unnamed.items() if n in names(load(name).options)}
    read = decoder(f"{name}:{dialect}", **known, **source_options)
    encoder = Encoder(to, None, **options, **known)
    met = {
        code
        for written in ({}, source.fullest.get(dialect, {}))
        for specimen in specimens(name, dialect)
        for record in Encoder(from_, None, **written)(specimen).records
        for event in read(record.key, record.value, TOPIC)
        for code in encoder(event).lost
    }
    return [
        Loss(code, SENTENCES[code]) for code in strongest(code for code in SENTENCES if code in met)
    ]
