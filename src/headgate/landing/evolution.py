"""From what a DDL statement does to what has to be done to landed tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from headgate.core.errors import shown
from headgate.landing.alterations import alter, take_columns
from headgate.landing.contents import Contents, constant_column
from headgate.landing.mysql_times import NotComputable
from headgate.landing.operations import (
    AddColumns,
    CreateLanded,
    Describe,
    Discard,
    Empty,
    Grown,
    MoveTable,
    Operation,
    Park,
    Rewrite,
    Warn,
)
from headgate.landing.rules import (
    Context,
    Rules,
    SchemaChangeRefused,
    Statement,
    Tables,
    table_name,
)
from headgate.landing.shape import TableShape, difference, table_shape
from headgate.schema.changes import (
    AlterTable,
    CreateDatabase,
    CreateTable,
    DropDatabase,
    DropTable,
    RenameTable,
    ReplaceRows,
    SchemaChange,
    TableId,
    TruncateTable,
    Unknown,
)

_SHADOW = re.compile(r"_+(.+)_(?:gho|new)", re.DOTALL)
"""What gh-ost and pt-online-schema-change call the copy that takes a table's place."""


def operations(
    changes: Iterable[SchemaChange], statement: Statement, tables: Tables, rules: Rules
) -> list[Operation]:
    """What has to be done to landed tables after a statement, in order.

    >>> from headgate.schema.ddl import changes
    >>> orders = TableId("shop", "orders")
    >>> tables = Tables({orders: table_shape(orders, {"id": "int"})})
    >>> sql = "ALTER TABLE orders ADD note TEXT, ADD n INT NOT NULL"
    >>> [rewrite] = operations(changes(sql, "shop"), Statement(sql, "p"), tables, Rules())
    >>> rewrite.select["note"].text, rewrite.select["n"].text
    (None, '0')
    """
    if rules.behaviour == "ignore" or statement.is_snapshot:
        new = (each for each in changes if isinstance(each, CreateTable))
        changes = [change for change in new if change.table not in tables.landed]
    plan = _Plan(Context(statement, tables, rules))
    for change in changes:
        plan.apply(change)
    result = plan.operations()
    if rules.behaviour == "exception":
        for operation in result:
            if not isinstance(operation, CreateLanded) or operation.table in tables.landed:
                raise SchemaChangeRefused(
                    f"table {table_name(operation.table)} changes, and schema_change is exception: "
                    f"{shown(statement.text)}; set schema_change: evolve, or exclude the table"
                )
    return result


def follow(landed: TableShape, wanted: TableShape, rules: Rules) -> list[Operation]:
    """What has to be done to a landed table so that it takes rows of another shape, without DDL.

    New columns are NULL in the rows that are there, and types widen.

    >>> orders = TableId("shop", "orders")
    >>> old = table_shape(orders, {"id": "int"})
    >>> [add] = follow(old, table_shape(orders, {"id": "int", "note": "text"}), Rules())
    >>> [column.name for column in add.columns]
    ['note']
    """
    if rules.behaviour == "ignore":
        return []
    differences = difference(landed, wanted)
    if rules.behaviour == "exception" and (differences.new or differences.widened):
        columns = (*differences.new, *differences.widened)
        names = ", ".join(shown(column.name) for column in columns)
        raise SchemaChangeRefused(
            f"table {table_name(landed.table)}: rows have other columns than it has ({names}), and "
            "schema_change is exception; set schema_change: evolve, or exclude the table"
        )
    contents = Contents.of(landed)
    widened = {column.name: column for column in differences.widened}
    contents.columns = [
        replace(column, landed=widened.get(column.landed.name, column.landed))
        for column in contents.columns
    ]
    contents.columns += [constant_column(column, None) for column in differences.new]
    return in_place(contents, landed)


def in_place(contents: Contents, landed: TableShape) -> list[Operation]:
    """How a landed table becomes what its own rows make of it."""
    shape = contents.shape(landed.table)
    if landed.dropped or landed.reappeared:
        shape = msgspec.structs.replace(shape, reappeared=True)
    known = {column.name: column for column in landed.columns}
    stays = [column for column in contents.columns if column.landed.name in known]
    new = [column for column in contents.columns if column.landed.name not in known]
    only_grows = len(stays) == len(known) and all(
        column.is_kept and column.landed.type == known[column.landed.name].type for column in stays
    )
    if not only_grows or not all(column.is_null for column in new):
        return [Rewrite(landed.table, shape, contents.select())]
    if new:
        return [AddColumns(landed.table, tuple(column.landed for column in new), shape)]
    if landed.dropped or not is_same(landed, shape) or shape.names != landed.names:
        return [Describe(landed.table, shape)]
    return []


def grown(landed: TableShape, created: TableShape | None) -> Grown:
    """A landed table with rows that are newer than the statement that creates it.

    Its columns stay: what gave them their names and types, if not this statement, is yet to come.
    """
    contents = Contents.of(landed)
    contents.take_new(created)
    if created is not None:
        names = {column.name: column.source_name for column in created.columns}
        contents.set_key(tuple(names[name] for name in created.key))
    return Grown(contents.shape(landed.table), contents.select())


def is_same(one: TableShape, other: TableShape) -> bool:
    """Whether two shapes have the same columns, in any order, and the same key."""
    columns = [{column.name: column for column in shape.columns} for shape in (one, other)]
    return columns[0] == columns[1] and one.key == other.key


class _Plan:
    """The tables that a statement changes, as they will be."""

    def __init__(self, context: Context) -> None:
        self.context, self.rules, self.tables = context, context.rules, context.tables
        self.contents: dict[TableId, Contents | None] = {}
        """What will be under each name that was touched; None: no table."""
        self.grown: dict[TableId, Grown] = {}
        """Tables that are created though they are there, if their rows stay."""

    def apply(self, change: SchemaChange) -> None:
        """Go on by one change."""
        if not isinstance(change, AlterTable | ReplaceRows):
            _APPLY[type(change)](self, change)
        elif (contents := self.get(change.table)) is not None:
            alter(contents, change, self.context)

    def get(self, table: TableId) -> Contents | None:
        """What is under a name by now."""
        if table not in self.contents:
            shape = self.tables.landed.get(table)
            self.contents[table] = None if shape is None else Contents.of(shape)
        return self.contents[table]

    def truncate(self, change: TruncateTable) -> None:
        contents = self.get(change.table)
        if contents is None or self.rules.log or self.rules.ignore_deletes:
            return
        if self.rules.only_grow:
            contents.warnings.append("TRUNCATE is not applied")
        else:
            contents.clear()

    def create_table(self, change: CreateTable) -> None:
        contents, landed = self.get(change.table), self.tables.landed.get(change.table)
        is_there = contents is not None and not (landed is not None and landed.dropped)
        if is_there and change.if_not_exists:
            return
        shape = self.created_shape(change)
        if contents is not None and self.rules.only_grow:
            contents.take_new(shape)
            return
        if contents is not None and landed is not None and is_there and not change.or_replace:
            self.grown[change.table] = grown(landed, shape)
        if shape is not None:
            self.contents[change.table] = Contents.empty(shape)
        elif contents is not None:
            contents.clear()

    def created_shape(self, change: CreateTable) -> TableShape | None:
        """The shape of a new table; None where its columns are not known before its rows."""
        if (shape := self.tables.after.get(change.table)) is not None:
            return shape
        if change.like is not None and (like := self.get(change.like)) is not None:
            columns = (column.landed for column in like.columns if not column.landed.dropped)
            return TableShape(change.table, tuple(columns), like.key)
        if change.definition is None:
            return None
        types = {name: column.mysql for name, column in change.definition.columns.items()}
        return table_shape(change.table, types, change.definition.key, self.rules.prefer)

    def drop_table(self, change: DropTable) -> None:
        if self.get(change.table) is not None:
            self.contents[change.table] = None

    def drop_database(self, change: DropDatabase) -> None:
        for table in [t for t in self.tables.landed if t.database == change.database]:
            self.drop_table(DropTable(table))

    def rename_table(self, change: RenameTable) -> None:
        contents = self.get(change.table) or self.from_elsewhere(change)
        self.get(change.to)
        self.contents[change.to], self.contents[change.table] = contents, None

    def from_elsewhere(self, change: RenameTable) -> Contents | None:
        """What a table is whose place one takes that is not landed.

        The copy that gh-ost or pt-online-schema-change makes has the same rows: the table gets its
        columns. The rows of any other table are not known.
        """
        landed, after = self.tables.landed.get(change.to), self.tables.after.get(change.to)
        if landed is None or landed.dropped:
            return None
        contents = Contents.of(landed)
        shadow = _SHADOW.fullmatch(change.table.table)
        try:
            if after is None or shadow is None or not change.to.table.startswith(shadow[1]):
                raise NotComputable(
                    f"{table_name(change.table)} took its place, and that is not landed"
                )
            take_columns(contents, after, self.context)
        except NotComputable as error:
            contents.fail(f"{error}; it has to be among the job's tables", self.rules.park)
        return contents

    def unknown(self, change: Unknown) -> None:
        statement = self.context.statement
        named: Sequence[TableId] = change.tables
        if not named and statement.table is not None:
            named = (statement.table,)
        if not named:
            database = statement.database
            named = [t for t in self.tables.landed if database is None or database == t.database]
        for table in named:
            if (contents := self.get(table)) is not None:
                reason = f"the statement is not understood: {change.reason}"
                contents.fail(reason, self.rules.park)

    def leave(self, change: Any) -> None:
        """Nothing: a database is not landed."""

    # What remains to be done

    def operations(self) -> list[Operation]:
        """The operations: those that write, then those that remove tables, then warnings."""
        writing: list[Operation] = []
        warnings: list[Operation] = []
        stuck: dict[TableId, str] = {}
        for table, contents in self.contents.items():
            if contents is None:
                continue
            text = self.context.statement.text
            twice = None if self.rules.log else contents.name_of_two()
            if twice is not None:
                reason = f"column {shown(twice)} is there: rows that have it came before"
                contents.fail(reason, self.rules.park)
            warnings += [Warn(table, text, warning) for warning in contents.warnings]
            if contents.problem is not None:
                writing.append(self.parked(table, contents.problem))
                stuck[contents.origin or table] = contents.problem
            elif self.tables.takes(table) and twice is None:
                writing += self.written(table, self.finished(table, contents))
        moved = {each.table for each in writing if isinstance(each, MoveTable)}
        gone = [table for table, contents in self.contents.items() if contents is None]
        for table in gone:
            if table in stuck:
                writing.append(self.parked(table, stuck[table]))
        removing = [
            operation
            for table in gone
            if table not in stuck
            for operation in self.removed(table, table in moved)
        ]
        return [*writing, *removing, *warnings]

    def finished(self, table: TableId, contents: Contents) -> Contents:
        """The contents with what the catalog knows better: the key, and which columns are taken."""
        after = self.tables.after.get(table)
        if after is None:
            return contents
        taken = {column.source_name.lower() for column in after.columns}
        columns = [
            column
            for column in contents.columns
            if column.source.column is not None or column.landed.source_name.lower() in taken
        ]
        return replace(contents, columns=columns, key=after.key)

    def written(self, table: TableId, contents: Contents) -> list[Operation]:
        landed, shape = self.tables.landed.get(table), contents.shape(table)
        position = self.context.statement.position
        if self.rules.log and landed is not None:
            return follow(landed, shape, self.rules)
        if contents.origin is None or self.rules.log:
            if table in self.grown:
                return [CreateLanded(table, shape, position, self.grown[table])]
            if landed is not None and is_same(landed, shape) and not landed.dropped:
                return [Empty(table, shape, position)]
            return [CreateLanded(table, shape, position)]
        if contents.origin != table or landed is None:
            return [MoveTable(contents.origin, table, shape, contents.select())]
        return in_place(contents, landed)

    def removed(self, table: TableId, is_moved: bool) -> list[Operation]:
        """What becomes of a name without a table; rows that were moved need not be kept."""
        landed = self.tables.landed.get(table)
        if landed is None:
            return []
        if not self.rules.only_grow and (is_moved or self.rules.drop_table == "drop"):
            return [Discard(table)]
        if landed.dropped:
            return []
        return [Describe(table, msgspec.structs.replace(landed, dropped=True, reappeared=False))]

    def parked(self, table: TableId, reason: str) -> Park:
        remedy = (
            f"make {table_name(table)} what the source's table is, for example by loading it again "
            "from a snapshot, then run `headgate tables resume` for it"
        )
        return Park(table, self.context.statement.text, reason, remedy)


_APPLY: dict[type, Callable[[_Plan, Any], None]] = {
    CreateDatabase: _Plan.leave,
    TruncateTable: _Plan.truncate,
    CreateTable: _Plan.create_table,
    DropTable: _Plan.drop_table,
    DropDatabase: _Plan.drop_database,
    RenameTable: _Plan.rename_table,
    Unknown: _Plan.unknown,
}
