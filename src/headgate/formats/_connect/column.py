"""A column of a Kafka Connect schema, and how its values are written."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from headgate.core.losses import Lossy
from headgate.formats.encoding import Write, boolean


class Column(NamedTuple):
    """A column's schema, split where the converter writes `optional`, and its value writer."""

    write: Write | None
    head: dict[str, Any]
    tail: Mapping[str, Any] = MappingProxyType({})

    def field(self, name: str, optional: bool) -> dict[str, Any]:
        """The column as a field of a struct.

        >>> Column(None, {"type": "string"}).field("name", True)
        {'type': 'string', 'optional': True, 'field': 'name'}
        """
        return {**self.head, "optional": optional, **self.tail, "field": name}


def plain(type_: str, write: Write | None = None) -> Column:
    """A column whose schema has no name."""
    return Column(write, {"type": type_})


def named(type_: str, name: str, write: Write | None = None, **parameters: str) -> Column:
    """A column whose schema has a semantic name."""
    tail: dict[str, Any] = {"name": name, "version": 1}
    if parameters:
        tail["parameters"] = parameters
    return Column(write, {"type": type_}, tail)


TEXT, BOOLEAN = plain("string"), plain("boolean", boolean)
DATA, TIME = "io.debezium.data.", "io.debezium.time."
CONNECT = "org.apache.kafka.connect.data."


def always_lossy(column: Column, code: str) -> Column:
    """The same column, with every value counted as a loss."""
    write = column.write or str

    def with_loss(text: str) -> Any:
        raise Lossy(code, write(text))

    return column._replace(write=with_loss)
