"""Parameters of sources that start at their beginning and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.core.errors import UsageError
from headgate.core.options import option


def _beginning(text: str) -> str:
    if text not in ("earliest", "earliest-offset"):
        raise UsageError("this source starts at its beginning; leave starting out")
    return "earliest"


@dataclass(frozen=True)
class FromBeginning:
    """Parameters of a source that starts at its beginning."""

    starting: str = option(
        "earliest", "where the first start begins: at the beginning", read=_beginning
    )
