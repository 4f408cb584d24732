"""How loops are compiled. Numba is imported with this module: only loops import it."""

from __future__ import annotations

from typing import Any

from numba import njit, types
from numba.extending import intrinsic

memcpy: Any = types.ExternalFunction("memcpy", types.uintp(types.uintp, types.uintp, types.uintp))
memcmp: Any = types.ExternalFunction("memcmp", types.int32(types.uintp, types.uintp, types.uintp))
"""Of the C library: whole words at a time."""


def compiled(function: Any) -> Any:
    """The function as machine code, cached on disk for the next process where possible."""
    try:
        return njit(cache=True, nogil=True)(function)
    except RuntimeError:
        return njit(nogil=True)(function)


def pointer_to(kind: Any) -> Any:
    """A function from an address to a pointer, for compiled functions."""
    pointer: Any = types.CPointer

    def at(typing: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

        return pointer(kind)(types.uintp), generate

    return intrinsic(at)
