"""Many generated histories, landed (see tests/landing/test_landing_model.py)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from effort import examples
from histories import History, histories
from hypothesis import HealthCheck, given, settings
from landing_checks import DIALECTS, Delivery, check, deliveries
from written_dialects import limits_of


@pytest.mark.parametrize("name", DIALECTS)
def test_landed_tables_equal_the_server(name: str) -> None:
    limits = replace(limits_of(name), steps=80)

    @settings(max_examples=examples(100), deadline=None, suppress_health_check=list(HealthCheck))
    @given(histories(limits), deliveries())
    def run(history: History, delivery: Delivery) -> None:
        check(DIALECTS[name], history, delivery)

    run()
