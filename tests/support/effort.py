"""How much the tests try: everything, or in `make test-fast` a part of it.

HEADGATE_EXAMPLES is the share of random examples, such as 0.1.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

SHARE = float(os.environ.get("HEADGATE_EXAMPLES", "1"))


def examples(count: int) -> int:
    """That many, or the share that is asked for.

    >>> examples(1_000) <= 1_000
    True
    """
    return max(2, round(count * SHARE))


def one_in(every: int, cases: Iterable[Any]) -> list[Any]:
    """Parameters of a test; all but one in so many are `slow`, which `make test-fast` leaves out.

    >>> [len(case.marks) for case in one_in(2, ["a", "b", "c"])]
    [0, 1, 0]
    """
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)),
            marks=[pytest.mark.slow] if number % every else [],
        )
        for number, case in enumerate(cases)
    ]


def use_share() -> None:
    """Let hypothesis try that share where a test does not say how many, on a busy machine too."""
    count = examples(settings.default.max_examples)
    slow = [HealthCheck.too_slow]
    settings.register_profile(
        "share", max_examples=count, deadline=None, suppress_health_check=slow
    )
    settings.load_profile("share")
