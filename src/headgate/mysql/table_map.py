"""The table map event: which table the rows after it are of, and what its columns are."""

from __future__ import annotations

from dataclasses import dataclass, field

from headgate.mysql.charsets import charset_of
from headgate.mysql.events import HEADER_SIZE, packed_int

TINY, SHORT, LONG, FLOAT, DOUBLE, TIMESTAMP, LONGLONG, INT24 = 1, 2, 3, 4, 5, 7, 8, 9
DATE, TIME, DATETIME, YEAR, NEWDATE, VARCHAR, BIT = 10, 11, 12, 13, 14, 15, 16
TIMESTAMP2, DATETIME2, TIME2 = 17, 18, 19
BLOB_COMPRESSED, VARCHAR_COMPRESSED = 140, 141
"""MariaDB: `VARCHAR(…) COMPRESSED` and its like."""
VECTOR, JSON, NEWDECIMAL, ENUM, SET = 242, 245, 246, 247, 248
BLOB, VAR_STRING, STRING, GEOMETRY = 252, 253, 254, 255

NUMERIC = frozenset({TINY, SHORT, INT24, LONG, LONGLONG, FLOAT, DOUBLE, NEWDECIMAL, YEAR})
CHARACTER = frozenset({VARCHAR, VAR_STRING, STRING, BLOB, BLOB_COMPRESSED, VARCHAR_COMPRESSED})
_TWO_BYTES = frozenset(
    {VARCHAR, VARCHAR_COMPRESSED, VAR_STRING, BIT, NEWDECIMAL, STRING, ENUM, SET}
)
_ONE_BYTE = frozenset({
    FLOAT, DOUBLE, BLOB, BLOB_COMPRESSED, JSON, GEOMETRY, VECTOR, TIMESTAMP2, DATETIME2, TIME2,
})  # fmt: skip

(
    _SIGNEDNESS, _DEFAULT_CHARSET, _COLUMN_CHARSET, _COLUMN_NAME, _SET_LABELS, _ENUM_LABELS,
    _GEOMETRY_TYPE, _SIMPLE_KEY, _PREFIX_KEY, _LABEL_DEFAULT_CHARSET, _LABEL_CHARSET,
) = range(1, 12)  # fmt: skip


@dataclass
class MappedColumn:
    """A column as the binlog describes it; what it does not tell is None."""

    type: int
    meta: int
    nullable: bool
    unsigned: bool | None = None
    charset: str | None = None
    name: str | None = None
    labels: tuple[bytes, ...] | None = None
    geometry: int | None = None


@dataclass
class TableMap:
    """A table at the time of the rows that follow."""

    id: int
    database: str
    table: str
    columns: list[MappedColumn]
    key: tuple[int, ...] | None = None
    """The columns of the primary key, in its order; None where the binlog does not tell."""
    raw: bytes = field(default=b"", repr=False)
    """What equals that of the same table with the same columns."""


def read_table_map(event: bytes, is_mariadb: bool = False) -> TableMap:
    """Read a table map event."""
    at = HEADER_SIZE
    table_id = int.from_bytes(event[at : at + 6], "little")
    at += 8
    start = at
    size = event[at]
    database = event[at + 1 : at + 1 + size].decode()
    at += size + 2
    size = event[at]
    table = event[at + 1 : at + 1 + size].decode()
    at += size + 2
    count, at = packed_int(event, at)
    types = event[at : at + count]
    length, at = packed_int(event, at + count)
    metas = _metas(types, event[at : at + length])
    at += length
    nulls = event[at : at + (count + 7) // 8]
    at += len(nulls)
    columns = [
        MappedColumn(*_real_type(type_, meta), bool(nulls[i >> 3] >> (i & 7) & 1))
        for i, (type_, meta) in enumerate(zip(types, metas))
    ]
    table_map = TableMap(table_id, database, table, columns, raw=event[start:])
    _read_metadata(event, at, table_map, is_mariadb)
    return table_map


def _metas(types: bytes, data: bytes) -> list[int]:
    metas, at = [], 0
    for type_ in types:
        if type_ in _TWO_BYTES:
            order = "little" if type_ in (VARCHAR, VARCHAR_COMPRESSED, BIT) else "big"
            metas.append(int.from_bytes(data[at : at + 2], order))  # type: ignore[arg-type]
            at += 2
        elif type_ in _ONE_BYTE:
            metas.append(data[at])
            at += 1
        else:
            metas.append(0)
    return metas


def _real_type(type_: int, meta: int) -> tuple[int, int]:
    """CHAR, ENUM and SET share a type: its meta tells which, and two bits of a CHAR's length."""
    if type_ != STRING:
        return type_, meta
    first, second = meta >> 8, meta & 0xFF
    if first & 0x30 != 0x30:
        return first | 0x30, second | (first & 0x30 ^ 0x30) << 4
    return first, second


def _read_metadata(event: bytes, at: int, table: TableMap, is_mariadb: bool) -> None:
    """Read what binlog_row_metadata adds; with MariaDB, geometries have a character set too."""
    columns = table.columns
    numeric = [c for c in columns if c.type in NUMERIC]
    character = [c for c in columns if c.type in CHARACTER or (is_mariadb and c.type == GEOMETRY)]
    labelled = [c for c in columns if c.type in (ENUM, SET)]
    while at < len(event):
        code = event[at]
        size, at = packed_int(event, at + 1)
        data = event[at : at + size]
        at += size
        if code == _SIGNEDNESS:
            for i, column in enumerate(numeric):
                column.unsigned = bool(data[i >> 3] >> (7 - (i & 7)) & 1)
        elif code in (_DEFAULT_CHARSET, _LABEL_DEFAULT_CHARSET):
            _default_charsets(data, character if code == _DEFAULT_CHARSET else labelled)
        elif code in (_COLUMN_CHARSET, _LABEL_CHARSET):
            numbers = _integers(data)
            for column, number in zip(
                character if code == _COLUMN_CHARSET else labelled, numbers, strict=True
            ):
                column.charset = charset_of(number)
        elif code == _COLUMN_NAME:
            for column, name in zip(columns, _strings(data), strict=True):
                column.name = name.decode()
        elif code in (_SET_LABELS, _ENUM_LABELS):
            kind = SET if code == _SET_LABELS else ENUM
            _labels(data, [c for c in labelled if c.type == kind])
        elif code == _GEOMETRY_TYPE:
            for column, number in zip((c for c in columns if c.type == GEOMETRY), _integers(data)):
                column.geometry = number
        elif code == _SIMPLE_KEY:
            table.key = tuple(_integers(data))
        elif code == _PREFIX_KEY:
            table.key = tuple(_integers(data)[::2])
    if table.key is None and any(c.name is not None for c in columns):
        table.key = ()


def _default_charsets(data: bytes, columns: list[MappedColumn]) -> None:
    """A default, and the columns that have another."""
    default, *others = _integers(data)
    known = dict(zip(others[::2], others[1::2]))
    for i, column in enumerate(columns):
        column.charset = charset_of(known.get(i, default))


def _labels(data: bytes, columns: list[MappedColumn]) -> None:
    at = 0
    for column in columns:
        count, at = packed_int(data, at)
        labels = []
        for _ in range(count):
            size, at = packed_int(data, at)
            labels.append(data[at : at + size])
            at += size
        column.labels = tuple(labels)


def _integers(data: bytes) -> list[int]:
    numbers, at = [], 0
    while at < len(data):
        number, at = packed_int(data, at)
        numbers.append(number)
    return numbers


def _strings(data: bytes) -> list[bytes]:
    strings, at = [], 0
    while at < len(data):
        size, at = packed_int(data, at)
        strings.append(data[at : at + size])
        at += size
    return strings
