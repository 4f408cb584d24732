"""ALTER TABLE's changes of a table."""

from __future__ import annotations

from collections.abc import Callable

from headgate.core.errors import shown
from headgate.schema.columns import Defined, read_column
from headgate.schema.table_builder import Draft, add_index, binary_charset, is_index
from headgate.schema.tokenizer import Cursor, Unreadable, set_of

_HARMLESS_SPECS = set_of("""
    ENGINE COMMENT AUTO_INCREMENT AUTO_RANDOM_BASE AUTO_ID_CACHE AVG_ROW_LENGTH CHECKSUM COMPRESSION
    CONNECTION DATA INDEX DELAY_KEY_WRITE ENCRYPTION ENGINE_ATTRIBUTE INSERT_METHOD KEY_BLOCK_SIZE
    MAX_ROWS MIN_ROWS PACK_KEYS PASSWORD ROW_FORMAT SECONDARY_ENGINE SECONDARY_ENGINE_ATTRIBUTE
    SECONDARY_LOAD SECONDARY_UNLOAD STATS_AUTO_RECALC STATS_PERSISTENT STATS_SAMPLE_PAGES
    TABLESPACE UNION ALGORITHM LOCK FORCE ENABLE DISABLE WITH WITHOUT ALTER TTL TTL_ENABLE
    TTL_JOB_INTERVAL PLACEMENT SHARD_ROW_ID_BITS PRE_SPLIT_REGIONS CACHE NOCACHE ATTRIBUTES
    AFFINITY DEFAULT CHARACTER CHARSET COLLATE CONVERT
    STATS_OPTIONS STATS_BUCKETS STATS_TOPN WAIT NOWAIT PAGE_COMPRESSED TRANSACTIONAL SET
    """)
_LAST_SPECS = set_of("""
    ORDER PARTITION REORGANIZE TRUNCATE COALESCE ANALYZE CHECK OPTIMIZE REBUILD REPAIR IMPORT
    DISCARD EXCHANGE REMOVE SPLIT MERGE COMPACT FIRST LAST
    """)
"""What comes last in an ALTER, may have commas of its own, and changes no column."""


def alter(draft: Draft, cursor: Cursor) -> Cursor | None:
    """Apply an ALTER's changes; the cursor is at the new name where one is a RENAME TO."""
    renamed = None
    for part in () if cursor.done() else cursor.parts():
        word, line = part.word(), part.line
        if word in _LAST_SPECS or (word in ("ADD", "DROP") and part.word(1) == "PARTITION"):
            break
        if word in _CHANGES:
            part.at += 1
            _CHANGES[word](draft, part)
        elif part.take("RENAME"):
            renamed = _rename_part(draft, part) or renamed
        elif word not in _HARMLESS_SPECS:
            raise Unreadable(f"ALTER TABLE … {shown(word)} is not known", line)
        elif binary_charset(part):
            raise Unreadable("the character set becomes binary", line)
    if not draft.columns:
        raise cursor.error("no column is left")
    return renamed


def _rename_part(draft: Draft, part: Cursor) -> Cursor | None:
    """RENAME COLUMN or INDEX, done; for RENAME TO, the words of the new name."""
    line = part.line
    if part.take_any("INDEX", "KEY"):
        old, new = _old_and_new(part)
        index = draft.indexes.get(old.lower())
        draft.drop_index(old, line)
        if index:
            draft.add_index(new, index)
        return None
    if part.take("COLUMN"):
        old, new = _old_and_new(part)
        name = draft.find(old)
        if name is None and draft.ahead and draft.find(new):
            return None
        name = draft.get(old, line)
        draft.put(Defined(new, draft.columns[name], False, False), line, name)
        return None
    part.take_any("TO", "AS", "=")
    return part


def _old_and_new(part: Cursor) -> tuple[str, str]:
    """Two names with TO between them."""
    old = part.name("a name")
    if not part.take("TO"):
        raise part.error("expected TO")
    return old, part.name("a name")


def _add(draft: Draft, part: Cursor) -> None:
    """ADD: an index, a constraint, a column, or several columns in parentheses."""
    if is_index(part):
        add_index(draft, part)
        return
    part.take("COLUMN")
    unless = part.take("IF", "NOT", "EXISTS")
    if part.word() == "(":
        for each in part.parens("columns").parts():
            if is_index(each):
                add_index(draft, each)
            else:
                _place(draft, each, None, unless)
        return
    _place(draft, part, None, unless)


def _modify(draft: Draft, part: Cursor) -> None:
    """MODIFY a column."""
    part.take("COLUMN")
    if_there = part.take("IF", "EXISTS")
    if not if_there or draft.find(part.text()):
        _place(draft, part, draft.get(part.text(), part.line))


def _change(draft: Draft, part: Cursor) -> None:
    """CHANGE a column, its name too."""
    part.take("COLUMN")
    if_there = part.take("IF", "EXISTS")
    line, old = part.line, part.name("a column name")
    name = draft.find(old)
    if name is None and if_there:
        return
    if name is None and draft.ahead:
        name = draft.find(part.text())
    _place(draft, part, name or draft.get(old, line))


def _place(draft: Draft, part: Cursor, old: str | None, unless: bool = False) -> None:
    """Put a column definition where FIRST or AFTER say, or in place of the column `old`."""
    line, words, moved, after = part.line, part.words[part.at :], False, None
    if len(words) > 2 and words[-1].word == "FIRST":
        words, moved = words[:-1], True
    elif len(words) > 3 and words[-2].word == "AFTER":
        words, moved, after = words[:-2], True, draft.get(words[-1].text, line)
    defined = read_column(Cursor(words, line), draft.binary)
    there = draft.find(defined.name)
    if old is None and there is not None:
        if unless:
            return
        old = there if draft.ahead else None
    draft.put(defined, line, old)
    if moved and after != defined.name:
        draft.move(defined.name, after)


def _drop(draft: Draft, part: Cursor) -> None:
    """DROP a column, a key or a constraint."""
    line = part.line
    if part.take_any("FOREIGN", "CHECK"):
        return
    if part.take("PRIMARY"):
        draft.key = ()
        return
    if part.take_any("INDEX", "KEY"):
        if_there = part.take("IF", "EXISTS")
        name = part.name("an index name")
        if not if_there or name.lower() in draft.indexes:
            draft.drop_index(name, line)
        return
    if part.take("CONSTRAINT"):
        part.take("IF", "EXISTS")
        name = part.name("a constraint's name")
        if name.lower() in (*draft.indexes, "primary"):
            draft.drop_index(name, line)
        return
    part.take("COLUMN")
    if_there = part.take("IF", "EXISTS")
    name = part.name("a column name")
    if draft.find(name) is not None or not (if_there or draft.ahead):
        draft.drop(draft.get(name, line))


_CHANGES: dict[str, Callable[[Draft, Cursor], None]] = {
    "ADD": _add,
    "MODIFY": _modify,
    "CHANGE": _change,
    "DROP": _drop,
}
