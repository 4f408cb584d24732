"""Debezium's geometry objects as canonical text: MySQL's bytes, as Canal sends them too."""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from struct import unpack_from
from typing import Any

from headgate.core.json import Number

LEAST, POINT_SIZE = 5, 21
"""Sizes of well-known binary: byte order and type, and those plus a point's two coordinates."""
LARGEST_SRID = 2**31 - 1


def geometry(value: Any) -> Any:
    """Base64 of the SRID and the well-known binary; values this cannot represent are unchanged.

    >>> geometry({"wkb": "AQEAAAA=", "srid": 4326}), geometry({"wkb": "AQ==", "srid": None})
    ('5hAAAAEBAAAA', {'wkb': 'AQ==', 'srid': None})
    """
    if value.__class__ is not dict or value.keys() != {"wkb", "srid"}:
        return value
    wkb, srid = well_known(value["wkb"]), reference(value["srid"])
    if wkb is None or srid is None:
        return value
    return b64encode(srid.to_bytes(4, "little") + wkb).decode()


def point(value: Any) -> Any:
    """The same for a POINT, provided that its coordinates match its bytes."""
    if value.__class__ is not dict or value.keys() != {"x", "y", "wkb", "srid"}:
        return value
    wkb = well_known(value["wkb"])
    if wkb is None or len(wkb) != POINT_SIZE:
        return value
    coordinates = coordinate(value["x"]), coordinate(value["y"])
    if coordinates != unpack_from("<dd" if wkb[0] == 1 else ">dd", wkb, 5):
        return value
    canonical = geometry({"wkb": value["wkb"], "srid": value["srid"]})
    return canonical if canonical.__class__ is str else value


def coordinate(value: Any) -> float | None:
    """A coordinate; None if it is not a finite number.

    >>> coordinate(Number("1.50")), coordinate(10**400)
    (1.5, None)
    """
    try:
        return float(value) if value.__class__ in (int, Number) else None
    except OverflowError:
        return None


def well_known(value: Any) -> bytes | None:
    """The well-known binary; None if it is too short or not in standard base64."""
    if value.__class__ is not str:
        return None
    try:
        wkb = b64decode(value, validate=True)
    except (Base64Error, ValueError):
        return None
    return wkb if len(wkb) >= LEAST and b64encode(wkb).decode() == value else None


def reference(value: Any) -> int | None:
    """The SRID, 0 for null; None if it would not survive the round trip through MySQL's bytes.

    >>> reference(None), reference(4326), reference(0)
    (0, 4326, None)
    """
    if value is None:
        return 0
    return value if value.__class__ is int and 0 < value <= LARGEST_SRID else None
