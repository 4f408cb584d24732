"""Events as Arrow batches: messages of many rows, and rows that share much."""

from __future__ import annotations

import pyarrow as pa
import pytest
from messages import canal

from headgate.arrow.events import cuts, decode_batches
from headgate.codec.decoder import decoder
from headgate.core.limits import MAX_MESSAGE_BYTES


def test_a_message_of_many_rows_is_not_copied_for_each() -> None:
    rows = [{"id": str(i), "note": "n" * 60} for i in range(60_000)]
    batch = pa.RecordBatch.from_pydict({"value": [canal(data=rows)], "topic": ["t"]})
    assert len(rows) * batch.nbytes > 2**31  # beyond what an Arrow column holds
    found = pa.Table.from_batches(decode_batches([batch], decoder("auto"), MAX_MESSAGE_BYTES))

    assert len(rows) == found.num_rows
    assert {"t"} == {origin["topic"] for origin in found.column("origin").to_pylist()}


def test_rows_that_share_a_long_statement_are_cut_into_batches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("headgate.arrow.events.EXPANDED_BYTES", 10_000_000)
    message = canal(sql="s" * 10_000, data=[{"id": str(i)} for i in range(1_000)])
    batch = pa.RecordBatch.from_pydict({"value": [message]})
    sizes = [b.num_rows for b in decode_batches([batch], decoder("auto"), MAX_MESSAGE_BYTES)]

    assert 1_000 == sum(sizes)
    assert max(sizes) < 1_000
    assert [(0, 0)] == list(cuts(batch, []))
