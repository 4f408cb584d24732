"""Debezium's geometry objects as canonical text: MySQL's bytes, as Canal sends them too."""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from struct import unpack_from
from typing import Any

from headgate.core.json import Number

LEAST, POINT_SIZE = 5, 21
"""Bytes of well-known binary: byte order and type, and a point's two coordinates besides."""
LARGEST_SRID = 2**31 - 1


def geometry(value: Any) -> Any:
    """Base64 of the SRID and the well-known binary; whatever that cannot stand for stays.

    >>> geometry({"wkb": "AQEAAAA=", "srid": 4326}), geometry({"wkb": "AQ==", "srid": None})
    ('5hAAAAEBAAAA', {'wkb': 'AQ==', 'srid': None})
    """
    if value.__class__ is not dict or value.keys() != {"wkb", "srid"}:
        return value
    held, srid = well_known(value["wkb"]), reference(value["srid"])
    if held is None or srid is None:
        return value
    return b64encode(srid.to_bytes(4, "little") + held).decode()


def point(value: Any) -> Any:
    """The same of a POINT, if its coordinates say what its bytes say."""
    if value.__class__ is not dict or value.keys() != {"x", "y", "wkb", "srid"}:
        return value
    held = well_known(value["wkb"])
    if held is None or len(held) != POINT_SIZE:
        return value
    told = coordinate(value["x"]), coordinate(value["y"])
    if told != unpack_from("<dd" if held[0] == 1 else ">dd", held, 5):
        return value
    found = geometry({"wkb": value["wkb"], "srid": value["srid"]})
    return found if found.__class__ is str else value


def coordinate(value: Any) -> float | None:
    """A coordinate; None where it is none.

    >>> coordinate(Number("1.50")), coordinate(10**400)
    (1.5, None)
    """
    try:
        return float(value) if value.__class__ in (int, Number) else None
    except OverflowError:
        return None


def well_known(value: Any) -> bytes | None:
    """The well-known binary; None where it is none, or not in standard base64."""
    if value.__class__ is not str:
        return None
    try:
        held = b64decode(value, validate=True)
    except (Base64Error, ValueError):
        return None
    return held if len(held) >= LEAST and b64encode(held).decode() == value else None


def reference(value: Any) -> int | None:
    """The SRID, 0 for null; None where MySQL's bytes would come back as something else.

    >>> reference(None), reference(4326), reference(0)
    (0, 4326, None)
    """
    if value is None:
        return 0
    return value if value.__class__ is int and 0 < value <= LARGEST_SRID else None
