"""For every ordered pair of formats: there and back gives the same events, but for the losses.

What is lost is exactly what `headgate.losses` lists: nothing else differs, and what a run reports
of an event does not come out of its messages again.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping, Set
from functools import cache
from random import Random
from typing import Any

import msgspec
import pytest
from dialects import SPECS
from effort import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headgate.codec.decoder import decode_message, decoder
from headgate.codec.encoder import Encoder, target
from headgate.codec.loss_samples import DATABASE, POSITION, SCHEMA, TABLE, TOPIC, losses, specimens
from headgate.codec.packing import packed
from headgate.codec.schemas import Schemas
from headgate.core.event import Event, Image
from headgate.core.limits import MAX_MESSAGE_BYTES
from headgate.core.losses import HINTS, IMPLIED, KINDS, PLACE, kind_of
from headgate.core.mysql_types import parse_type
from headgate.core.options import build
from headgate.formats import MODULES, load

OPTIONS: dict[str, Mapping[str, Any]] = {
    f"{name}:{dialect}": options
    for name in MODULES
    for dialect, options in load(name).encoding.fullest.items()
}
"""Each is written with everything that it can be told to write."""
TOLD = {"debezium-smt:oms": {"database": DATABASE, "table": TABLE}}
"""What a reader must be told, because no message does."""
OMS_DEBEZIUM = ("debezium:oms", "debezium:oms-flatten")
ALL = Schemas(SCHEMA).table(DATABASE, TABLE)
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
        return [
            "0.000000",
            "-0.000001",
            "12345678901234.567890",
            "99999999999999.999999",
            "1.100000",
        ]
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

every_pair = pytest.mark.parametrize(
    ("there", "back"),
    [
        pytest.param(there, back, marks=[pytest.mark.slow] if (i + j) % 6 else [])
        for i, there in enumerate(SPECS)
        for j, back in enumerate(SPECS)
    ],
)
"""A sixth of the pairs, each dialect among them on both sides, runs in `make test-fast`."""


def row_of(seed: int) -> Image:
    """A row of values from the pools; one number per row keeps hypothesis quick over many pairs."""
    choose = Random(seed).choice
    return {
        name: choose(values) if name == "id" else choose([None, *values])
        for name, values in POOLS.items()
    }


ROWS = st.integers(0, 2**32).map(row_of)
TSO = st.integers(1_700_000_000_000, 1_800_000_000_000).map(lambda ms: (ms << 18) + 5)


@st.composite
def changes(draw: Any) -> Event:
    """A row change with everything that an event can tell."""
    op = draw(st.sampled_from(["insert", "update", "delete", "snapshot"]))
    after = draw(ROWS) if op != "delete" else None
    before = draw(ROWS) if op in ("update", "delete") else None
    if before and after:
        before["id"] = after["id"]  # a changed key is another test's
        before["c_int"], after["c_int"] = "1", "2"  # so is an update that changes nothing
    return whole_event(op, before, after, draw(TSO))


def whole_event(op: str, before: Image | None, after: Image | None, commit_ts: int) -> Event:
    assert ALL is not None
    time = (commit_ts >> 18) * 1_000
    return Event(
        "row", op, DATABASE, TABLE, ("id",), before, after, ALL.types, None, commit_ts,
        time, time + 5_123_456, dict(POSITION),
    )  # fmt: skip


@cache
def codec(spec: str) -> tuple[Encoder, Callable[..., Any]]:
    options = OPTIONS.get(spec, {})
    return Encoder(spec, schema=SCHEMA, **options), decoder(
        spec, schema=SCHEMA, **TOLD.get(spec, {})
    )


def written(spec: str, events: list[Event]) -> list[Any]:
    encoder = codec(spec)[0]
    found = list(map(encoder, events))
    assert [] == [e.error for e in found if e.error]
    return packed(encoder, events, found)[0]


def read(spec: str, records: list[Any]) -> list[Event]:
    decode = codec(spec)[1]
    found = [
        e for r in records for e in decode_message(decode, r.key, r.value, TOPIC, MAX_MESSAGE_BYTES)
    ]
    assert [] == [e.error for e in found if e.error]
    return found


def through(spec: str, events: list[Event]) -> list[Event]:
    return read(spec, written(spec, events))


def carried(spec: str) -> frozenset[str]:
    _, dialect, encoding = target(spec)
    return encoding.carries(dialect, build(encoding.options, OPTIONS.get(spec, {})))


def shared_places(there: str, back: str) -> set[str]:
    """The parts of a position that both formats carry."""
    both = carried(there) & carried(back)
    places = {code.removeprefix(PLACE) for code in both if code.startswith(PLACE)}
    if (there in OMS_DEBEZIUM) != (back in OMS_DEBEZIUM):
        places -= {"file", "pos"}  # OMS has them in one text
    return places


@cache
def listed(there: str, back: str) -> frozenset[str]:
    """What the report lists for going from `there` to `back`, written as here."""
    return frozenset(
        loss.code for loss in losses(there, back, schema=True, **OPTIONS.get(back, {}))
    )


def erased(event: Event, lost: Set[str], places: set[str]) -> Event:
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
    if e.types is not None:
        e.types = dict(sorted(e.types.items()))
        if "json-null" in lost:  # Canal has another JDBC code for it
            e.types["c_json"] = e.types["c_json"]._replace(jdbc=None)
    return e


def value(name: str, text: str | None, lost: Set[str]) -> str | None:
    """A value without what is lost."""
    family = COLUMNS[name].family
    if text is None:
        return None
    if "datetime-micros" in lost and family == "datetime" and len(text) > 23:
        return text[:23] + "0" * (len(text) - 23)
    if "json-null" in lost and family == "json" and text == "null":
        return None
    if "float-digits" in lost and family in ("float", "double"):
        return repr(float(text))
    if "zero-dates" in lost and "0000-00-00" in text and family in ("date", "datetime"):
        return None
    return text


@every_pair
def test_there_and_back(there: str, back: str) -> None:
    lost = listed(there, back)
    places = shared_places(there, back)

    @settings(
        max_examples=examples(10),
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
    )
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


POSITIONS = {c.removeprefix(PLACE) for spec in SPECS for c in carried(spec) if c.startswith(PLACE)}
GIVEN_BACK = {"key", "types", "type-details", "bare-values", "enum-labels", "bigint-unsigned"}
GIVEN_BACK |= {"decimal-scale", "types-guessed", "key-unknown", "ddl-op"}
"""Losses that a reader with the schema does not see: it knows, and puts them right."""


@every_pair
def test_each_loss_is_one(there: str, back: str) -> None:
    """What is reported of an event does not come out of its messages again."""
    name, dialect = there.split(":")
    encoder = Encoder(back, schema=SCHEMA, **OPTIONS.get(back, {}))
    met: set[str] = set()
    unseen = GIVEN_BACK | {"extra"} if name == back.partition(":")[0] else GIVEN_BACK
    for event in through(there, [*specimens(name, dialect)]):
        outcome = encoder(event)
        met.update(outcome.lost)
        found = read(back, outcome.records) if event.kind == "row" else []
        for code in set(outcome.lost) - unseen - KINDS.keys() - TOLD.get(back, {}).keys():
            rest = set(outcome.lost) - {code, *IMPLIED.get(code, ())}
            if code == "incomplete":  # which `extra` says
                rest.discard("extra")
            one, *others = (fields(erased(e, rest, POSITIONS)) for e in (event, *found))
            assert [one] != others, f"{code} is reported and all is there"

    assert met <= listed(there, back) | {w for c in met for w in IMPLIED.get(c, ())}


@every_pair
def test_what_is_no_row_comes_back(there: str, back: str) -> None:
    name, dialect = there.split(":")
    events = [e for e in through(there, [*specimens(name, dialect)]) if kind_of(e) != "row"]
    lost = listed(there, back)
    again = through(there, through(back, events))

    def facts(found: list[Event]) -> list[Any]:
        said = [(kind_of(e), e.ddl, *(place(e) if e.kind == "ddl" else ())) for e in found]
        # A truncation may come back as its statement, and a delete may bring its own tombstone.
        told = lost | {"tombstone"}
        return [f for f in said if f[0] not in told and not (f[1] or "").startswith("TRUNCATE")]

    def place(event: Event) -> tuple[Any, ...]:
        return (
            None if "database" in lost else event.database,
            None if "table" in lost else event.table,
            None if "commit-ts" in lost else event.commit_ts,
        )

    came = facts([e for e in again if kind_of(e) != "row"])
    assert facts(events) == [fact for fact in came if fact[0] in {f[0] for f in facts(events)}]
