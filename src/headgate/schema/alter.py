"""The changes that an ALTER TABLE makes."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from headgate.core.errors import shown
from headgate.schema.changes import (
    AddColumn,
    AddIndex,
    AlterTable,
    DropColumn,
    DropIndex,
    ModifyColumn,
    MoveColumn,
    Position,
    RenameColumn,
    RenameIndex,
    ReplaceRows,
    SetCharset,
    SetDefault,
    SetPrimaryKey,
    TableId,
)
from headgate.schema.columns import ReadColumn, read_column, read_default
from headgate.schema.create_table import read_index, table_charset
from headgate.schema.definition import Index
from headgate.schema.statement import LAST_ACTIONS, Action, table_words
from headgate.schema.tokenizer import Cursor, Unreadable, set_of

_HARMLESS = set_of("""
    ENGINE COMMENT AUTO_INCREMENT AUTO_RANDOM_BASE AUTO_ID_CACHE AVG_ROW_LENGTH CHECKSUM COMPRESSION
    CONNECTION DATA INDEX DELAY_KEY_WRITE ENCRYPTION ENGINE_ATTRIBUTE INSERT_METHOD KEY_BLOCK_SIZE
    MAX_ROWS MIN_ROWS PACK_KEYS PASSWORD ROW_FORMAT SECONDARY_ENGINE SECONDARY_ENGINE_ATTRIBUTE
    SECONDARY_LOAD SECONDARY_UNLOAD STATS_AUTO_RECALC STATS_PERSISTENT STATS_SAMPLE_PAGES
    TABLESPACE UNION ALGORITHM LOCK FORCE ENABLE DISABLE WITH WITHOUT TTL TTL_ENABLE
    TTL_JOB_INTERVAL PLACEMENT SHARD_ROW_ID_BITS PRE_SPLIT_REGIONS CACHE NOCACHE ATTRIBUTES
    AFFINITY DEFAULT CHARACTER CHARSET COLLATE CONVERT
    STATS_OPTIONS STATS_BUCKETS STATS_TOPN WAIT NOWAIT PAGE_COMPRESSED TRANSACTIONAL SET
    """)
"""The first words of parts that change no column and no key."""
_NO_CHANGE = (
    "ADD FOREIGN KEY", "ADD CHECK", "ADD PARTITION", "ADD PERIOD", "DROP FOREIGN KEY", "DROP CHECK",
)  # fmt: skip


def read_action(table: TableId, action: Action, sql: str) -> Iterable[AlterTable | ReplaceRows]:
    """The changes of one part; a new name of the table is not among them."""
    read = _READERS.get(action.kind)
    if read is not None:
        return read(table, action, sql)
    cursor = action.cursor
    word, place = cursor.word(), cursor.place
    if action.kind in _NO_CHANGE or word in LAST_ACTIONS:
        return ()
    if word == "ALTER":
        return _alter(table, cursor, sql)
    if word not in _HARMLESS:
        raise cursor.error(f"ALTER TABLE … {shown(word)} is not known")
    charset, converts = table_charset(cursor), action.kind == "CONVERT TO"
    if charset == "binary":
        raise Unreadable("the character set becomes binary", place)
    return [SetCharset(table, charset, converts)] if charset or converts else ()


def _add_column(table: TableId, action: Action, sql: str) -> list[AlterTable]:
    cursor = action.cursor
    cursor.take("COLUMN")
    if_not_exists = cursor.take("IF", "NOT", "EXISTS") or action.if_not_exists
    read, position = _read_placed(cursor, sql)
    add = AddColumn(table, read.definition, position, if_not_exists)
    return [add, *_key_changes(table, read, if_not_exists)]


def _key_changes(table: TableId, read: ReadColumn, if_applied: bool) -> list[AlterTable]:
    """What a column's own attributes PRIMARY KEY and UNIQUE change."""
    name, changes = read.definition.name, list[AlterTable]()
    if read.unique:
        changes.append(AddIndex(table, "", Index((name,), True), if_applied=if_applied))
    if read.primary:
        changes.append(SetPrimaryKey(table, (name,), if_applied))
    return changes


def _read_placed(cursor: Cursor, sql: str) -> tuple[ReadColumn, Position | None]:
    """A column definition, and where FIRST or AFTER put it."""
    position, words, end = None, cursor.words, cursor.end
    length = end - cursor.at
    if length > 2 and words[end - 1].word == "FIRST":
        position, end = Position(), end - 1
    elif length > 3 and words[end - 2].word == "AFTER":
        position, end = Position(words[end - 1].text), end - 2
    return read_column(Cursor(words, cursor.at, end), sql), position


def _modify_column(table: TableId, action: Action, sql: str) -> list[AlterTable]:
    cursor = action.cursor
    cursor.take("COLUMN")
    if_exists = cursor.take("IF", "EXISTS")
    return _modified(table, cursor, sql, if_exists)


def _modified(table: TableId, cursor: Cursor, sql: str, if_exists: bool) -> list[AlterTable]:
    read, position = _read_placed(cursor, sql)
    changes: list[AlterTable] = [ModifyColumn(table, read.definition, if_exists)]
    if position is not None:
        changes.append(MoveColumn(table, read.definition.name, position, if_exists))
    return changes + _key_changes(table, read, if_exists)


def _change_column(table: TableId, action: Action, sql: str) -> list[AlterTable]:
    cursor = action.cursor
    cursor.take("COLUMN")
    if_exists = cursor.take("IF", "EXISTS")
    old, new = cursor.name("a column name"), cursor.text()
    changes = _modified(table, cursor, sql, if_exists)
    return changes if new == old else [RenameColumn(table, old, new, if_exists), *changes]


def _rename_column(table: TableId, action: Action, sql: str) -> list[AlterTable]:
    cursor = action.cursor
    cursor.at += 1
    return [RenameColumn(table, *_old_and_new(cursor))]


def _rename_index(table: TableId, action: Action, sql: str) -> list[AlterTable]:
    cursor = action.cursor
    cursor.at += 1
    return [RenameIndex(table, *_old_and_new(cursor))]


def _old_and_new(cursor: Cursor) -> tuple[str, str]:
    """Two names with TO between them."""
    old = cursor.name("a name")
    if not cursor.take("TO"):
        raise cursor.error("expected TO")
    return old, cursor.name("a name")


def _add_index(table: TableId, action: Action, sql: str) -> list[AlterTable]:
    cursor = action.cursor
    index = read_index(cursor)
    if index is None:
        return []
    if index.primary:
        return [SetPrimaryKey(table, index.columns)]
    return [AddIndex(table, index.name, Index(index.columns, index.unique), index.if_not_exists)]


def _drop_column(table: TableId, action: Action, sql: str) -> list[AlterTable]:
    cursor = action.cursor
    cursor.take("COLUMN")
    if_exists = cursor.take("IF", "EXISTS")
    return [DropColumn(table, cursor.name("a column name"), if_exists)]


def _drop_index(table: TableId, action: Action, sql: str) -> list[AlterTable]:
    cursor = action.cursor
    constraint = cursor.word() == "CONSTRAINT"
    cursor.at += 1
    # A constraint may be a foreign key or a check, which are not kept.
    if_exists = cursor.take("IF", "EXISTS") or constraint
    return [drop_index(table, cursor.name("an index name"), if_exists)]


def drop_index(table: TableId, name: str, if_exists: bool) -> AlterTable:
    """The change that drops an index by its name; the primary key's is PRIMARY."""
    if name.lower() == "primary":
        return SetPrimaryKey(table, ())
    return DropIndex(table, name, if_exists)


def _drop_primary_key(table: TableId, action: Action, sql: str) -> list[AlterTable]:
    return [SetPrimaryKey(table, ())]


def _replace_rows(table: TableId, action: Action, sql: str) -> list[ReplaceRows]:
    """What partitions and table spaces take away or bring; EXCHANGE does it to another table too.

    A partition that is converted is, or becomes, another table.
    """
    tables, cursor = [table], action.cursor
    while not cursor.done():
        if cursor.take("TABLE"):
            words = table_words(cursor)
            database = words[0].text if len(words) > 1 else table.database
            tables.append(TableId(database, words[-1].text))
        else:
            cursor.at += 1
    return [ReplaceRows(each, action.kind) for each in tables]


def _alter(table: TableId, cursor: Cursor, sql: str) -> list[AlterTable]:
    """ALTER COLUMN … SET or DROP DEFAULT, ALTER INDEX, ALTER CHECK."""
    cursor.at += 1
    if cursor.word() in ("INDEX", "KEY", "CHECK", "CONSTRAINT"):
        return []
    cursor.take("COLUMN")
    cursor.take("IF", "EXISTS")
    name = cursor.name("a column name")
    if cursor.take("SET", "DEFAULT"):
        return [SetDefault(table, name, read_default(cursor, sql))]
    if cursor.take("DROP", "DEFAULT"):
        return [SetDefault(table, name, None)]
    if cursor.take("SET") and cursor.word() in ("VISIBLE", "INVISIBLE"):
        return []
    raise cursor.error(f"ALTER COLUMN … {shown(cursor.text())} is not known")


_READERS: dict[str, Callable[[TableId, Action, str], Iterable[AlterTable | ReplaceRows]]] = {
    "ADD COLUMN": _add_column,
    "ADD INDEX": _add_index,
    "ADD VECTOR INDEX": _add_index,
    "ADD PRIMARY KEY": _add_index,
    "DROP COLUMN": _drop_column,
    "DROP INDEX": _drop_index,
    "DROP CONSTRAINT": _drop_index,
    "DROP PRIMARY KEY": _drop_primary_key,
    "MODIFY COLUMN": _modify_column,
    "CHANGE COLUMN": _change_column,
    "RENAME COLUMN": _rename_column,
    "RENAME INDEX": _rename_index,
    "DROP PARTITION": _replace_rows,
    "TRUNCATE PARTITION": _replace_rows,
    "EXCHANGE PARTITION": _replace_rows,
    "CONVERT PARTITION": _replace_rows,
    "CONVERT TABLE": _replace_rows,
    "FIRST PARTITION": _replace_rows,
    "DISCARD PARTITION": _replace_rows,
    "DISCARD TABLESPACE": _replace_rows,
    "IMPORT PARTITION": _replace_rows,
    "IMPORT TABLESPACE": _replace_rows,
}
