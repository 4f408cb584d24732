"""Statements in the binlog as events: DDL, and DML where the binlog has statements for rows."""

from __future__ import annotations

import re

from headgate.core.event import Event
from headgate.mysql.events import Query
from headgate.schema.ddl import read_statements
from headgate.schema.statement import HEAD_WORDS, first_statement, table_words
from headgate.schema.tokenizer import Cursor, Unreadable

_DML = {"INSERT": "insert", "REPLACE": "insert", "UPDATE": "update", "DELETE": "delete"}

_MODIFIERS = ("LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED", "QUICK", "IGNORE")
_ACCOUNTS = ("USER", "ROLE", "SERVER")
_SETTINGS = re.compile(r"\s*SET\s+STATEMENT\s.*?\sFOR\s", re.IGNORECASE | re.DOTALL)
"""MariaDB's settings for one statement, which follows."""
_ACCOUNT_SETTINGS = {("SET", "PASSWORD"), ("SET", "ROLE"), ("SET", "DEFAULT")}


def named_tables(query: Query) -> list[tuple[str, str]]:
    """The databases and names of the tables that a statement names.

    >>> named_tables(Query(1, "a", "RENAME TABLE t TO b.u"))
    [('a', 't'), ('b', 'u')]
    """
    tables = [table for each in read_statements(query.sql, None) for table in each.tables]
    return [(table.database or query.database or "", table.table) for table in tables]


def is_about_accounts(query: Query) -> bool:
    """Whether a statement is of users, roles and passwords, or has one in it.

    >>> is_about_accounts(Query(1, "a", "SET PASSWORD FOR x = '*1'"))
    True
    >>> is_about_accounts(Query(1, "a", "SET STATEMENT max_statement_time=1 FOR CREATE USER x"))
    True
    """
    sql = _SETTINGS.sub("", query.sql)
    head = first_statement(sql, HEAD_WORDS)
    if head.is_ddl:
        return head.object in _ACCOUNTS
    return head.verb in ("GRANT", "REVOKE") or (head.verb, head.object) in _ACCOUNT_SETTINGS


def written_tables(query: Query) -> list[tuple[str, str]]:
    """The tables that an INSERT, UPDATE or the like names where those stand that it writes to.

    >>> written_tables(Query(1, "a", "INSERT INTO b.t SELECT * FROM u"))
    [('b', 't')]
    >>> written_tables(Query(1, "a", "UPDATE t JOIN b.u ON 1 SET v = 1"))
    [('a', 't'), ('b', 'u')]
    """
    head = first_statement(query.sql, HEAD_WORDS)
    several = head.verb in ("UPDATE", "DELETE")
    if _DML.get(head.verb) is None:
        return []
    tables: list[tuple[str, str]] = []
    cursor = Cursor(head.text.words, 1)
    is_expected = True
    while not cursor.done() and cursor.word() not in ("SET", "WHERE") and (several or not tables):
        if cursor.take_any(*_MODIFIERS):
            continue
        if cursor.take_any(",", "JOIN", "FROM", "USING", "INTO"):
            is_expected = True
            continue
        try:
            names = table_words(cursor)
        except Unreadable:
            cursor.at += 1
            continue
        if is_expected:
            database = names[-2].text if len(names) > 1 else query.database or ""
            tables.append((database, names[-1].text))
        is_expected = False
    return tables


def described(query: Query) -> Event:
    """A statement as an event, with the database of its table.

    >>> event = described(Query(1, "a", "CREATE TABLE b.t (i INT)"))
    >>> event.kind, event.op, event.database, event.table
    ('ddl', 'create', 'b', 't')
    >>> described(Query(1, "a", "INSERT INTO t VALUES (1)")).kind
    'statement'
    """
    head = first_statement(query.sql, HEAD_WORDS)
    if not head.is_ddl:
        op = _DML.get(head.verb)
        return Event("statement", op, query.database, ddl=query.sql)
    event = Event("ddl", head.op, query.database, ddl=query.sql)
    tables = [table for reading in read_statements(query.sql, None) for table in reading.tables]
    if head.object == "DATABASE":
        event.database = _database(query)
    elif tables:
        event.table = tables[0].table
        # Names without a database are of the session's: it must stay with the statement then.
        if all(table.database is not None for table in tables):
            event.database = tables[0].database
    return event


def _database(query: Query) -> str | None:
    """The database that a statement is about."""
    for reading in read_statements(query.sql, query.database):
        for change in reading.changes:
            return getattr(change, "database", query.database)
    return query.database


def xa_name(sql: str) -> str:
    """The name of a distributed transaction.

    >>> xa_name("XA COMMIT X'61',X'',1 ONE PHASE")
    "X'61',X'',1"
    """
    return sql.split(maxsplit=2)[2].split(" ")[0]
