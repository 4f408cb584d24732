"""`headgate check` counts what would become of each event of a sample."""

from __future__ import annotations

from headgate.core.event import Event
from headgate.pipeline.check import Sample, described
from headgate.selection.routes import Route
from headgate.selection.selection import Rules, Selection
from headgate.selection.tables import Tables


def test_events_are_selected_routed_filtered_or_rejected() -> None:
    rules = Rules(Tables(("shop.*",)), routes=(Route("shop.(.*)", "lake.$1", "cdc.$1"),))
    selection, sample = Selection(rules), Sample()
    for event in (
        Event("row", "insert", "shop", "orders", format="maxwell"),
        Event("row", "insert", "shop", "orders", format="canal-json", dialect="ticdc"),
        Event("row", "insert", "crm", "people", format="maxwell"),
        Event("row", "insert", format="maxwell"),
        Event("invalid", error=("malformed-json", "it ends early")),
    ):
        sample.add(event, selection)

    assert {"maxwell": 3, "canal-json:ticdc": 1} == sample.formats
    assert {"shop.orders": {"to": "lake.orders", "topic": "cdc.orders", "events": 2}} == (
        sample.tables
    )
    assert {"crm.people": 1} == sample.filtered
    assert [("malformed-json", 1), ("no-table", 1)] == sorted(
        (reason.partition(":")[0], n) for reason, n in sample.rejected.items()
    )
    assert ["lake", "lake"] == [event.database for event in sample.events]


def test_the_report_as_lines() -> None:
    sink = {"sink": "console:", "format": "maxwell", "messages": 2, "losses": {}, "rejected": {}}
    lake = {"sink": "delta:x", "tables": {}, "losses": {}, "rejected": {}, "parked tables": "a, b"}
    report = {
        "job": "orders",
        "reads": {"topics": {"cdc": 2}},
        "sampled": 3,
        "formats": {"maxwell": 3},
        "tables": {"shop.t": {"to": "lake.t", "topic": None, "events": 2}},
        "filtered": {"": 1},
        "rejected": {"no-table: …": 1},
        "writes": [{**sink, "topics": {"out": 3}}, {**sink, "topics": {}}, lake],
    }

    assert [
        "job orders",
        "  reads topics: cdc (2 partitions)",
        "  sampled 3 messages: maxwell (3 events)",
        "  table shop.t -> lake.t: 2 events",
        "  filtered (no table): 1 events",
        "  dead letters: 1 x no-table: …",
        "  writes 2 messages to console: as maxwell",
        "    finds topics: out (3 partitions)",
        "  writes 2 messages to console: as maxwell",
        "  lands 0 tables in delta:x",
        "    finds parked tables: a, b",
    ] == list(described(report))
