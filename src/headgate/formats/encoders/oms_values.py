"""How OMS writes a column's value, method by method."""

from __future__ import annotations

from headgate.formats.encoders.common import Write
from headgate.mysql_types import MySqlType


def canal_writer(type_: MySqlType) -> Write | None:
    """Method Canal."""
    return None
