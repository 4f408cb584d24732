"""How loops are compiled. Numba is imported with this module: only loops import it."""

from __future__ import annotations

from typing import Any

from numba import njit, types

memcpy: Any = types.ExternalFunction("memcpy", types.uintp(types.uintp, types.uintp, types.uintp))
memcmp: Any = types.ExternalFunction("memcmp", types.int32(types.uintp, types.uintp, types.uintp))
"""Of the C library: whole words at a time."""


def compiled(function: Any) -> Any:
    """The function as machine code, cached on disk for the next process where possible."""
    try:
        return njit(cache=True, nogil=True)(function)
    except RuntimeError:
        return njit(nogil=True)(function)
