"""Formats of third parties, which their packages register by entry points."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from headgate.core.errors import UsageError
from headgate.formats.base import Format

GROUP = "headgate.formats"
RESERVED = "auto"


def installed(builtin: Collection[str]) -> dict[str, EntryPoint]:
    """The formats of installed packages by name; nobody may replace a `builtin` one."""
    points: dict[str, EntryPoint] = {}
    for point in _points():
        if point.name in builtin or point.name == RESERVED:
            raise UsageError(
                f"{package(point)} registers the format {point.name}, which is one of Headgate's "
                "own; rename the format, or uninstall the package"
            )
        if point.name in points:
            raise UsageError(
                f"{package(points[point.name])} and {package(point)} both register the format "
                f"{point.name}; uninstall one of them"
            )
        points[point.name] = point
    return points


@cache
def _points() -> tuple[EntryPoint, ...]:
    return tuple(sorted(set(entry_points(group=GROUP)), key=lambda point: point.name))


def load(name: str, point: EntryPoint) -> Format:
    """The format that an entry point names; UsageError where its package is broken."""
    try:
        loaded = point.load()
        format = getattr(loaded, "FORMAT", loaded)
    except Exception as error:  # a third party's package may raise anything
        raise UsageError(
            f"the format {name} of {package(point)} cannot be loaded: "
            f"{type(error).__name__}: {error}; update or uninstall the package"
        ) from error
    if not isinstance(format, Format) or format.name != name:
        raise UsageError(
            f"the entry point {name} of {package(point)} is not a headgate.formats.base.Format of "
            "that name; update or uninstall the package"
        )
    return format


def package(point: EntryPoint) -> str:
    """The package of an entry point, for errors."""
    return f"the package {point.dist.name} {point.dist.version}" if point.dist else point.value
