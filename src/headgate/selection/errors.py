"""Why an event cannot go where a job sends it."""

from __future__ import annotations

from typing import Any

from headgate.core.errors import HeadgateError


class SelectionError(HeadgateError):
    """An event cannot be selected, projected or routed as the job says; `code` is stable.

    Codes: `no-table`, `key-column`, `route`.
    """

    def __init__(self, code: str, what: str, remedy: str) -> None:
        super().__init__(f"{what}; {remedy}")
        self.code, self.what, self.remedy = code, what, remedy

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.code, self.what, self.remedy)
