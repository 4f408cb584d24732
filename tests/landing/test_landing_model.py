"""Generated histories of a MySQL server, landed: the tables are the server's.

Each history is written in a dialect, repeated, shuffled within what the dialect's messages tell of
their order, cut into batches, and its job killed between any two steps. `make torture` tries more
(tests/torture/test_landing.py).
"""

from __future__ import annotations

import pytest
from effort import examples, one_in
from histories import History, histories
from hypothesis import HealthCheck, given, settings
from landing_checks import DIALECTS, Delivery, check, deliveries
from written_dialects import limits_of


@pytest.mark.parametrize("name", one_in(4, DIALECTS))
def test_landed_tables_equal_the_server(name: str) -> None:
    @settings(
        max_examples=examples(3), deadline=None, suppress_health_check=list(HealthCheck),
        database=None,
    )  # fmt: skip
    @given(histories(limits_of(name)), deliveries())
    def run(history: History, delivery: Delivery) -> None:
        check(DIALECTS[name], history, delivery)

    run()
