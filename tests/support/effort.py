"""How many examples the randomised tests try: all of them, unless HEADGATE_EXAMPLES says less.

`make test-fast` sets it to a share of one, such as 0.2.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

SHARE = float(os.environ.get("HEADGATE_EXAMPLES", "1"))


def examples(count: int) -> int:
    """That many, or the share that is asked for.

    >>> examples(1_000) <= 1_000
    True
    """
    return max(2, round(count * SHARE))


def use_share() -> None:
    """Let hypothesis try that share where a test does not say how many, on a busy machine too."""
    count = examples(settings.default.max_examples)
    slow = [HealthCheck.too_slow]
    settings.register_profile(
        "share", max_examples=count, deadline=None, suppress_health_check=slow
    )
    settings.load_profile("share")
