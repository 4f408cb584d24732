"""For every ordered pair of formats: there and back gives the same events, but for the losses.

What is lost is exactly what `headgate.losses` lists: nothing else differs, and each thing it lists is
met by a corpus that has everything.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headgate.codec import decode_message
from headgate.encoding import Encoder, packed, target
from headgate.event import Event, Image
from headgate.encoding import losses
from headgate.formats import MODULES, decoder, load
from headgate.limits import MAX_MESSAGE_BYTES
from headgate.loss import HINTS, PLACE
from headgate.mysql_types import parse_type
from headgate.options import build
from headgate.schemas import Schemas

SCHEMA = """
CREATE TABLE shop.everything (
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
SPECS = [f"{name}:{dialect}" for name in MODULES for dialect in load(name).dialects]
OPTIONS: dict[str, dict[str, Any]] = {
    "canal-json:ticdc": {"enable_tidb_extension": True},
}
"""How each is written here: everything that the dialect can be told to write."""
ALL = Schemas(SCHEMA).table("shop", "everything")
assert ALL is not None
COLUMNS = {name: parse_type(told.mysql) for name, told in ALL.types.items()}


def integers(bits: int, unsigned: bool) -> list[str]:
    low, high = (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return [str(n) for n in (low, high, 0, 1, high // 2, low // 3)]


BITS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
TEXTS = [
    "", "a", "null", "NULL", " padded ", "it's \"quoted\" \\ /", "<b>&amp;</b>", "日本語", "🦊",
    "\x00\x01\x1f\x7f\x80\xa0", "line\nbreak\ttab\r\b\f", "\u2028\u2029\ufeff", "1", "1.10", "true",
    "0000-00-00", "AxY=", "e\u0301", "-0", "[]", "{}",
]  # fmt: skip
BYTES = [b"", b"\x00", b"\xff" * 8, b"abc", bytes(range(40)), b"\x89PNG\r\n\x1a\n", "日本".encode()]
DATES = ["2024-02-29", "1970-01-01", "1000-01-01", "9999-12-31", "1969-12-31"]
CLOCKS = ["00:00:00", "23:59:59", "08:30:01"]
SPANS = ["00:00:00", "-838:59:59", "838:59:59", "23:59:59", "-00:00:01", "24:00:00", "100:00:00"]
STAMPS = ["1970-01-01 00:00:01", "2038-01-19 03:14:07", "2024-02-29 23:59:59"]
FRACTIONS = ["000000", "000001", "999999", "500000", "120000"]


def pool(name: str) -> list[str]:
    """Values of a column: the ends of its range, and what usually goes wrong."""
    type_ = COLUMNS[name]
    digits = type_.length or 0

    def fractions(moments: list[str]) -> list[str]:
        if not digits:
            return moments
        return [f"{m}.{f[:digits]}" for m in moments for f in FRACTIONS]

    family = type_.family
    if name == "c_bool":
        return ["0", "1"]
    if family == "integer":
        return integers(BITS[type_.base], type_.unsigned)
    if name == "c_decimal":
        return ["0.000000", "-0.000001", "12345678901234.567890", "99999999999999.999999", "1.100000"]
    if name == "c_wide":
        return ["9" * 35 + "." + "9" * 30, "-" + "9" * 35 + "." + "0" * 30, "0." + "0" * 29 + "1"]
    if family in ("float", "double"):
        return ["0", "1.5", "-2.25", "0.1", "100000000000000000000", "3.4028235e38", "1e-7", "-0"]
    if family == "bit":
        return [str(n) for n in (0, 1, 2**digits - 1)]
    if family == "year":
        return ["1901", "2024", "2155"]
    if family == "date":
        return DATES
    if family == "time":
        return [s for s in fractions(SPANS) if not s.startswith("838:59:59.9")
                and not s.startswith("-838:59:59.9")]  # fmt: skip
    if family == "datetime":
        return fractions([f"{d} {c}" for d in DATES for c in CLOCKS])
    if family == "timestamp":
        return fractions(STAMPS)
    if family == "binary":
        if type_.base == "binary":
            return [b64encode(b[:8].ljust(8, b"\0")).decode() for b in BYTES]
        return [b64encode(b).decode() for b in BYTES]
    if family == "enum":
        return ["small", "it's", "x,y", ""]
    if family == "set":
        return ["", "a", "a,c", "a,b,c", "b"]
    if family == "json":
        return ['{"a": 1.10, "b": [1, null, "x"]}', "[]", "null", '"text"', "1.10", "{}", "true"]
    if name == "c_char":
        return [t[:10].rstrip() for t in TEXTS]
    return TEXTS


POOLS = {name: pool(name) for name in COLUMNS}
ROWS = st.fixed_dictionaries(
    {
        name: st.sampled_from(values) if name == "id" else st.sampled_from([None, *values])
        for name, values in POOLS.items()
    }
)
TSO = st.integers(1_700_000_000_000, 1_800_000_000_000).map(lambda ms: (ms << 18) + 5)


@st.composite
def changes(draw: Any) -> Event:
    """A row change with everything that an event can tell."""
    op = draw(st.sampled_from(["insert", "update", "delete", "snapshot"]))
    after = draw(ROWS) if op != "delete" else None
    before = draw(ROWS) if op in ("update", "delete") else None
    if before and after:
        before["id"] = after["id"]  # a changed key is another test's
    return whole_event(op, before, after, draw(TSO))


def whole_event(op: str, before: Image | None, after: Image | None, commit_ts: int) -> Event:
    assert ALL is not None
    time = (commit_ts >> 18) * 1_000
    return Event(
        "row", op, "shop", "everything", ("id",), before, after, ALL.types, None, commit_ts,
        time, time + 5_123_456,
        {"file": "binlog.000007", "pos": "154", "gtid": "a-b-c:1", "server_id": "1", "xid": "77"},
    )  # fmt: skip


@cache
def codec(spec: str) -> tuple[Encoder, Callable[..., Any]]:
    options = OPTIONS.get(spec, {})
    return Encoder(spec, schema=SCHEMA, **options), decoder(spec, schema=SCHEMA)


def written(spec: str, events: list[Event]) -> list[Any]:
    encoder = codec(spec)[0]
    found = [(i, e, encoder(e)) for i, e in enumerate(events)]
    assert [] == [e.error for _, _, e in found if e.error]
    return [p.record for p in packed(encoder, found)]


def read(spec: str, records: list[Any]) -> list[Event]:
    decode = codec(spec)[1]
    topic = "shop.shop.everything"
    found = [
        e for r in records for e in decode_message(decode, r.key, r.value, topic, MAX_MESSAGE_BYTES)
    ]
    assert [] == [e.error for e in found if e.error]
    return found


def through(spec: str, events: list[Event]) -> list[Event]:
    return read(spec, written(spec, events))


def carried(spec: str) -> frozenset[str]:
    _, dialect, encoding = target(spec)
    return encoding.carries(dialect, build(encoding.options, OPTIONS.get(spec, {})))


def listed(there: str, back: str) -> set[str]:
    """What the report lists for going from `there` to `back`, written as here."""
    return {loss.code for loss in losses(there, back, schema=True, **OPTIONS.get(back, {}))}


def erased(event: Event, lost: set[str], places: set[str]) -> Event:
    """An event without what is lost."""
    e = msgspec.structs.replace(event)
    e.format = e.dialect = None
    if "snapshot" in lost and e.op == "snapshot":
        e.op = "insert"
    if "insert" in lost and e.op in ("insert", "snapshot", "update"):
        e.op, e.before = "update", None
    if lost & {"before", "before-unknown"} and e.op == "update":
        e.before = None
    for code in ("database", "table", "commit-ts", "event-time", "emit-time", "extra"):
        if code in lost:
            setattr(e, code.replace("-", "_"), None)
    for code, unit in (("-millis", 1_000_000), ("-micros", 1_000)):
        for name in ("event", "emit"):
            time = getattr(e, f"{name}_time")
            if f"{name}-time{code}" in lost and time is not None:
                setattr(e, f"{name}_time", time // unit * unit)
    # With types known, how a value came in JSON says nothing more.
    e.extra = {n: v for n, v in (e.extra or {}).items() if n not in HINTS} or None
    told = {n: v for n, v in (e.position or {}).items() if n in places}
    e.position = told or None
    for image_name in ("before", "after"):
        image = getattr(e, image_name)
        if image is not None:
            setattr(e, image_name, {n: value(n, v, lost) for n, v in sorted(image.items())})
    e.types = None if e.types is None else dict(sorted(e.types.items()))
    return e


def value(name: str, text: str | None, lost: set[str]) -> str | None:
    """A value without what is lost."""
    family = COLUMNS[name].family
    if text is None:
        return None
    if "datetime-micros" in lost and family == "datetime" and len(text) > 23:
        return text[:23] + "0" * (len(text) - 23)
    if "float-digits" in lost and text == "-0":
        return "-0.0"
    if "zero-dates" in lost and "0000-00-00" in text and family in ("date", "datetime"):
        return None
    return text


@pytest.mark.parametrize("back", SPECS)
@pytest.mark.parametrize("there", SPECS)
def test_there_and_back(there: str, back: str) -> None:
    lost = listed(there, back)
    places = {
        c.removeprefix(PLACE)
        for c in carried(there) & carried(back)
        if c.startswith(PLACE)
    }

    @settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(st.lists(changes(), min_size=1, max_size=2))
    def check(drawn: list[Event]) -> None:
        events = through(there, drawn)
        again = through(there, through(back, events))
        expected = [erased(e, lost, places) for e in events if e.kind != "tombstone"]
        found = [erased(e, lost, places) for e in again if e.kind != "tombstone"]

        for one, other in zip(expected, found):
            assert {} == different(fields(one), fields(other))
        assert len(expected) == len(found)

    check()


def different(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """What differs, name by name, and in maps column by column."""
    found = {}
    for name in one.keys() | other.keys():
        a, b = one.get(name), other.get(name)
        if a != b and isinstance(a, dict) and isinstance(b, dict):
            found[name] = different(a, b)
        elif a != b:
            found[name] = (a, b)
    return found


def fields(event: Event) -> dict[str, Any]:
    return msgspec.structs.asdict(event)


def corpus(spec: str) -> list[Event]:
    """Every kind of event, with everything that any format can carry of it."""
    assert ALL is not None
    commit_ts = (1_714_550_482_436 << 18) + 7
    row: Image = {name: values[-1] for name, values in POOLS.items()}
    other: Image = {name: values[0] for name, values in POOLS.items()} | {"id": row["id"]}
    extreme = row | {"c_ubig": str(2**64 - 1), "c_double": "-0", "c_datetime6": "2024-02-29 00:00:00.000001"}
    zero = row | {"c_date": "0000-00-00", "c_datetime": "0000-00-00 00:00:00"}
    rows = [
        whole_event("insert", None, row, commit_ts),
        whole_event("snapshot", None, row, commit_ts),
        whole_event("update", other, row, commit_ts),
        whole_event("update", row | {"id": "1"}, row | {"id": "2"}, commit_ts),
        whole_event("delete", row, None, commit_ts),
        whole_event("insert", None, extreme, commit_ts),
        whole_event("insert", None, zero, commit_ts),
        whole_event("truncate", None, None, commit_ts),
    ]
    name, dialect = spec.split(":")
    own = msgspec.structs.replace(rows[0], format=name, dialect=dialect)
    own.extra = {"onlyHandleKey": "true"}
    first = rows[0]
    others = [
        Event("ddl", "alter", "shop", "everything", ddl="ALTER TABLE everything COMMENT 'x'"),
        Event("statement", "query", "shop", "everything", ddl="DELETE FROM everything"),
        Event("watermark"),
        Event("heartbeat"),
        Event("marker", "begin", extra={"id": "a-b-c:1"}),
        Event("marker", "snapshot_begin", "shop", "everything"),
        Event("tombstone", format=name, dialect=dialect),
    ]
    for event in others:
        event.commit_ts, event.event_time = first.commit_ts, first.event_time
        event.emit_time, event.position = first.emit_time, first.position
    for event in (*rows, *others):
        event.event_time = (event.event_time or 0) + 0
    return [*rows, own, *others]


@pytest.mark.parametrize("back", SPECS)
@pytest.mark.parametrize("there", SPECS)
def test_every_loss_that_is_listed_is_met_and_no_other(there: str, back: str) -> None:
    encoder = codec(back)[0]
    events = [e for event in corpus(there) for e in read(there, written_or_not(there, event))]
    met = {code for event in events for code in encoder(event).lost}

    assert listed(there, back) == met


def written_or_not(spec: str, event: Event) -> list[Any]:
    encoder = codec(spec)[0]
    return encoder(event).records
