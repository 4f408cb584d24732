"""One landed table, through delta-rs: what it is now, and each way in which it changes.

A table knows what it is: its properties have the shape that was landed, and the job that lands it.
Every commit of a batch has the batch's token, and none is repeated behind its back: where another
writer was faster, `CommitFailedError` is raised, and the caller looks at the table again.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import msgspec
import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, WriterProperties, write_deltalake
from deltalake import Schema as DeltaSchema
from deltalake.exceptions import TableNotFoundError
from deltalake.table import TableMerger

from headgate.core.errors import HeadgateError
from headgate.landing.shape import RESERVED, LandedColumn, TableShape
from headgate.landing.types import arrow_type, lake_type_of
from headgate.sinks.delta.statistics import writer_properties

SHAPE, JOB, LARGE = "headgate.shape", "headgate.job", "headgate.large"
"""Properties of a landed table."""
PLACE = "headgate.place"
"""Noted with columns that were moved: their places."""
WATERMARK = "headgate.watermark"
"""What a commit has its watermark under: in its own record, and as a transaction, which stays."""
POSITION, DELETED, OP = "_position", "_deleted", "_op"
TIME = pa.timestamp("us", tz="UTC")
LOG_COLUMNS = ((OP, pa.string()), (POSITION, pa.string()), ("_event_time", TIME))


class TableError(HeadgateError):
    """One table cannot be landed as it is: it is parked, and the others go on."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(f"{reason}; {remedy}")
        self.reason, self.remedy = reason, remedy


class OwnerError(HeadgateError):
    """A table belongs to something else: the job stops."""


@dataclass(frozen=True)
class Token:
    """What a commit is known by in the log of a table."""

    app: str
    version: int
    batch: int = 0
    watermark: int | None = None
    """Up to which point of the source the table is complete, where that is known."""

    def properties(self) -> CommitProperties:
        """The properties of a commit with this token."""
        metadata = {"headgate.batch": str(self.batch)}
        transactions = [Transaction(self.app, self.version)]
        if self.watermark is not None:
            metadata[WATERMARK] = metadata["userMetadata"] = str(self.watermark)
            transactions.append(Transaction(WATERMARK, self.watermark))
        return CommitProperties(
            custom_metadata=metadata, max_commit_retries=0, app_transactions=transactions
        )


@dataclass(frozen=True)
class Location:
    """Where a table is."""

    uri: str
    options: dict[str, str] = field(default_factory=dict, repr=False)
    generation: int = 0
    """Raised when tables are removed: another table may take their place."""

    def open(self) -> DeltaTable | None:
        """The newest version of the table; None where there is none."""
        table = _KEPT.pop((self.uri, self.generation), None)
        if table is not None and self.is_there(table.version()):
            table.update_incremental()
            return table
        try:
            return DeltaTable(self.uri, storage_options=self.options or None)
        except TableNotFoundError:
            return None

    def keep(self, table: DeltaTable) -> None:
        """Keep a table that is no longer used: opened again, it reads only what is new."""
        _KEPT[self.uri, self.generation] = table
        while len(_KEPT) > MOST_KEPT:
            _KEPT.pop(next(iter(_KEPT)))

    def is_there(self, version: int) -> bool:
        """Whether a version has not been removed, as far as that can be seen from here."""
        return "://" in self.uri or os.path.exists(f"{self.uri}/_delta_log/{version:020d}.json")


_KEPT: dict[tuple[str, int], DeltaTable] = {}
"""Tables that this process has opened before and does not use now; the last one at the end."""
MOST_KEPT = 500


class LandedTable:
    """A landed table at one version."""

    def __init__(self, location: Location, delta: DeltaTable) -> None:
        self.location, self.delta = location, delta

    @classmethod
    def open(cls, location: Location) -> LandedTable | None:
        """The newest version of a table; None where there is none."""
        delta = location.open()
        return None if delta is None else cls(location, delta)

    @cached_property
    def properties(self) -> dict[str, str]:
        """Its table properties."""
        return dict(self.delta.metadata().configuration)

    @cached_property
    def schema(self) -> pa.Schema:
        """Its columns."""
        return pa.schema(self.delta.schema().to_arrow())

    @cached_property
    def shape(self) -> TableShape:
        """What is landed: the columns that are there, with what is known of them."""
        noted = self.properties.get(SHAPE)
        if noted is None:
            raise OwnerError(
                f"{self.location.uri} is a Delta table that Headgate has not landed; move it, or "
                "choose another directory or another `table` path"
            )
        shape = msgspec.json.decode(noted, type=TableShape)
        known = {column.name: column for column in shape.columns}
        columns = []
        for each in self.schema:
            if each.name not in RESERVED:
                type_ = lake_type_of(each.type)
                column = known.get(each.name) or LandedColumn(each.name, type_)
                columns.append(msgspec.structs.replace(column, type=type_))
        return msgspec.structs.replace(shape, columns=tuple(columns))

    @cached_property
    def large(self) -> list[str]:
        """The columns that have large whole numbers (statistics.py)."""
        return msgspec.json.decode(self.properties.get(LARGE, "[]"), type=list[str])

    @cached_property
    def writer_properties(self) -> WriterProperties:
        """How the files of merges are written."""
        return writer_properties(self.schema, self.large, dictionaries=False)

    @property
    def has_rows(self) -> bool:
        """Whether it has files."""
        return bool(self.delta.get_add_actions().num_rows)

    def has(self, token: Token) -> bool:
        """Whether a commit with this token, or with a later one of its job, is there."""
        version = self.delta.transaction_version(token.app)
        return version is not None and version >= token.version

    def has_just(self, token: Token) -> bool:
        """Whether the last commit of the job has this token."""
        return self.delta.transaction_version(token.app) == token.version

    def is_described(self, shape: TableShape) -> bool:
        """Whether the table's properties have this shape."""
        return self.properties.get(SHAPE) == properties_of(shape, "")[SHAPE]

    def rows(self, columns: Sequence[str] | None = None, predicate: str | None = None) -> pa.Table:
        """Rows, by a predicate of SQL."""
        reader = self.delta.scan(None if columns is None else list(columns), predicate)
        schema = self.schema
        if columns is not None:
            schema = pa.schema([schema.field(name) for name in columns])
        table = pa.table(reader).select(schema.names)
        return pa.table([c.cast(f.type) for c, f in zip(table.columns, schema)], schema=schema)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All rows, batch by batch."""
        schema = self.schema
        # Begun here, because delta-rs cannot begin to read while it writes.
        reader = pa.RecordBatchReader.from_stream(self.delta.scan())

        def cast(batch: pa.RecordBatch) -> pa.RecordBatch:
            columns = [batch.column(each.name).cast(each.type) for each in schema]
            return pa.RecordBatch.from_arrays(columns, schema=schema)

        return map(cast, reader)

    # Changes: each is one commit

    def merger(self, rows: pa.Table, condition: str, token: Token) -> TableMerger:
        """A MERGE of rows `s` into this table `t`."""
        return self.delta.merge(
            rows,
            condition,
            source_alias="s",
            target_alias="t",
            writer_properties=self.writer_properties,
            commit_properties=token.properties(),
        )

    def append(self, rows: pa.Table, token: Token) -> None:
        """Add rows; columns that they do not have are null."""
        columns = [
            rows.column(each.name) if each.name in rows.column_names
            else pa.nulls(rows.num_rows, each.type)
            for each in self.schema
        ]  # fmt: skip
        write_deltalake(
            self.delta,
            pa.table(columns, schema=self.schema),
            mode="append",
            writer_properties=self.writer_properties,
            commit_properties=token.properties(),
        )

    def overwrite(
        self, schema: pa.Schema, batches: Iterable[pa.RecordBatch], token: Token | None = None
    ) -> None:
        """Replace all rows and all columns."""
        properties = writer_properties(schema, self.large)
        write_deltalake(
            self.delta,
            pa.RecordBatchReader.from_batches(schema, batches),
            mode="overwrite",
            schema_mode="overwrite",
            writer_properties=properties,
            commit_properties=commit_of(token),
        )

    def add_columns(self, columns: pa.Schema, token: Token | None = None) -> None:
        """Add columns that are null in all rows."""
        fields = DeltaSchema.from_arrow(columns).fields
        self.delta.alter.add_columns(list(fields), commit_properties=commit_of(token))

    def update(self, values: dict[str, str], condition: str, token: Token | None) -> None:
        """Set columns of some rows to expressions of SQL."""
        self.delta.update(
            values,
            predicate=condition,
            writer_properties=self.writer_properties,
            commit_properties=commit_of(token),
        )

    def describe(self, shape: TableShape, job: str, token: Token | None = None) -> None:
        """Note the shape in the table's properties."""
        self.delta.alter.set_table_properties(
            properties_of(shape, job),
            raise_if_not_exists=False,
            commit_properties=commit_of(token),
        )

    def reordered(self, names: Sequence[str]) -> LandedTable:
        """The table with its columns in this order, Headgate's own behind; files stay as they are.

        Where its columns are others, it stays as it is.
        """
        present = [name for name in self.schema.names if name not in RESERVED]
        if present == list(names) or sorted(present) != sorted(names):
            return self
        own = [name for name in self.schema.names if name in RESERVED]
        # delta-rs takes schemas for equal that differ in their order only.
        fields = [
            self.schema.field(name).with_metadata({PLACE: str(place)})
            for place, name in enumerate([*names, *own])
        ]
        write_deltalake(
            self.delta,
            pa.schema(fields).empty_table(),
            mode="overwrite",
            schema_mode="overwrite",
            predicate="false",
            commit_properties=commit_of(None),
        )
        return self.again()

    def note_large(self, columns: Iterable[str]) -> LandedTable:
        """The table with columns noted that have large whole numbers."""
        names = sorted({*self.large, *columns})
        if names == self.large:
            return self
        self.delta.alter.set_table_properties(
            {LARGE: msgspec.json.encode(names).decode()},
            raise_if_not_exists=False,
            commit_properties=commit_of(None),
        )
        return self.again()

    def again(self) -> LandedTable:
        """The newest version."""
        self.delta.update_incremental()
        return LandedTable(self.location, self.delta)


def create(
    location: Location,
    shape: TableShape,
    schema: pa.Schema,
    job: str,
    token: Token | None = None,
) -> LandedTable:
    """A new table without rows."""
    delta = DeltaTable.create(
        location.uri,
        DeltaSchema.from_arrow(schema),
        mode="error",
        configuration=properties_of(shape, job),
        storage_options=location.options or None,
        raise_if_key_not_exists=False,
        commit_properties=commit_of(token),
    )
    return LandedTable(location, delta)


def landed_schema(columns: Sequence[LandedColumn], *, log: bool, soft: bool) -> pa.Schema:
    """The columns of a landed table: those of the source, then those of Headgate."""
    fields: list[Any] = [pa.field(column.name, arrow_type(column.type)) for column in columns]
    if log:
        fields += [pa.field(name, type_) for name, type_ in LOG_COLUMNS]
        return pa.schema([*fields, pa.field("_commit_ts", pa.int64())])
    fields.append(pa.field(POSITION, pa.string()))
    if soft:
        fields.append(pa.field(DELETED, pa.bool_()))
    return pa.schema(fields)


def properties_of(shape: TableShape, job: str) -> dict[str, str]:
    """The properties of a table."""
    return {SHAPE: msgspec.json.encode(shape).decode(), JOB: job}


def commit_of(token: Token | None) -> CommitProperties:
    """The properties of a commit; without a token, of one that changes nothing if repeated."""
    return CommitProperties(max_commit_retries=0) if token is None else token.properties()
