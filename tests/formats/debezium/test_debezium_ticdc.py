"""TiCDC's protocol `debezium`: commit numbers, watermarks, binary; the messages are TiCDC's own."""

from __future__ import annotations

import msgspec
import pytest
from cases import content
from paths import CASES

from headgate.codec.decoder import decoder
from headgate.codec.encoder import Encoder
from headgate.codec.sequence import order
from headgate.core.event import Event
from headgate.pipeline.dedup import identity


def case(name: str, **options: str) -> Event:
    folder = CASES / "debezium" / name
    (event,) = decoder("auto", **options)(content(folder, "key"), content(folder, "value"), "t")
    return event


@pytest.mark.parametrize("name", ["ticdc-update", "ticdc-ddl"])
def test_a_change_is_known_and_ordered_by_its_commit_number(name: str) -> None:
    event = case(name)
    later = msgspec.structs.replace(event, commit_ts=event.commit_ts + 1)  # the same row again

    assert identity(event) is not None
    assert identity(event) != identity(later)
    assert order(event) < order(later)  # type: ignore[operator]


def test_a_watermark_reaches_other_formats_of_ticdc() -> None:
    outcome = Encoder("canal-json:ticdc", enable_tidb_extension=True)(case("ticdc-watermark"))

    assert b'"watermarkTs":462238521072067200' in outcome.records[0].value
    assert b"TIDB_WATERMARK" in outcome.records[0].value


@pytest.mark.parametrize("name", ["ticdc-update", "ticdc-ddl", "ticdc-watermark"])
def test_the_commit_number_is_written_again_and_no_loss(name: str) -> None:
    outcome = Encoder("debezium")(case(name))
    again = decoder("debezium")(outcome.records[0].key, outcome.records[0].value, None)[0]

    assert (again.kind, again.commit_ts) == (case(name).kind, case(name).commit_ts)
    assert {"commit-ts", "watermark"}.isdisjoint(outcome.lost)


def test_binary_is_base64_where_a_schema_tells_that_it_is_binary() -> None:
    schema = "CREATE TABLE fid.pk_vb (id BIGINT, k VARBINARY(40), v VARCHAR(255))"
    event = case("ticdc-binary-by-columns", schema=schema)

    assert event.after is not None
    assert event.after["k"] == "0o8fa5k3sKYM9NZkuKq34MP8zDS2BxCBeBTRek1GaUAOUy0O5A=="


def test_debeziums_year_1900_is_0000_and_comes_back_without_loss() -> None:
    folder = CASES / "debezium" / "values-zero-dates"
    event = decoder("debezium")(None, content(folder, "value"), None)[0]
    outcome = Encoder("debezium")(event)

    assert event.after is not None
    assert event.after["y"] == "0000"
    assert b'"y":1900' in outcome.records[0].value
    assert "zero-dates" not in outcome.lost
