"""A job's catalog: tables as DDL left them, and which DDL that was; a file named by its content.

A batch without DDL writes none and, in a process that has read it before, reads none: the cost does
not grow with the number of statements.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from hashlib import blake2b
from typing import Any, Protocol, TypeVar

import msgspec

from headgate.codec.schemas import Schemas
from headgate.config.job import Source
from headgate.core.errors import HeadgateError
from headgate.core.event import Event
from headgate.schema.known_tables import MAX_LEARNT_BYTES, LearntTable
from headgate.spark.state_files import damaged, read_state, write_state
from headgate.spark.storage import Storage

FOLDER = "catalog"
MOST_APPLIED = 100_000
"""So many statements, the newest, are recognised when they come again."""
MAX_CACHED = 4
"""Most catalogs and schema files that a process keeps in memory."""
T = TypeVar("T")


class ProcessedDdl(Protocol):
    """DDL that a pass has processed."""

    @property
    def id(self) -> str:
        """What it is known by."""

    @property
    def source(self) -> Event:
        """The event as it came."""

    @property
    def rejected(self) -> bool:
        """Whether it became a dead letter."""


class CatalogTooLarge(HeadgateError):
    """DDL defines more tables than a job keeps."""


class Catalog(msgspec.Struct, frozen=True):
    """The tables that DDL has changed so far, and that DDL."""

    tables: list[LearntTable] = []
    met: dict[str, bool] = {}
    """The DDL that was processed, by its id, oldest first. False: it became a dead letter, so its
    tables are as it made them, and it is not written yet."""

    def is_repeat(self, id: str) -> bool:
        """Whether DDL was processed and written before."""
        return self.met.get(id, False)


def read_catalog(storage: Storage, name: str | None) -> Catalog:
    """The catalog in the file of that name; an empty one without a name."""

    def read() -> Catalog:
        catalog = read_state(storage, f"{FOLDER}/{name}", Catalog)
        if catalog is None:
            raise damaged(storage, f"{FOLDER}/{name}")
        return catalog

    return Catalog() if name is None else _cached(("catalog", storage.uri, name), read)


def known_tables(storage: Storage, name: str | None, source: Source) -> Schemas:
    """The tables of a job's schema file, as DDL has changed them; to learn, take a copy."""
    file = file_tables(source)
    if name is None:
        return file
    key = ("tables", storage.uri, name, id(file))
    return _cached(key, lambda: file.with_learnt(read_catalog(storage, name).tables))


def decoder_options(source: Source) -> dict[str, Any]:
    """The options of a decoder that leaves it to the known tables to complete rows."""
    return {option: value for option, value in source.options.items() if option != "schema"}


def catalog_after(
    storage: Storage, name: str | None, source: Source, ddl: Sequence[ProcessedDdl]
) -> str | None:
    """Write the catalog after more DDL and return its file's name; without DDL, the old name."""
    if not ddl:
        return name
    before, tables = read_catalog(storage, name), known_tables(storage, name, source).copy()
    met = dict(before.met)
    for each in ddl:
        if each.id not in met:
            tables.learn(each.source)
        met[each.id] = not each.rejected
    if tables.pushed_out:
        raise CatalogTooLarge(
            f"DDL defines more than {MAX_LEARNT_BYTES >> 20} MiB of tables, more than a job keeps; "
            "give the job a source of fewer tables, or a new checkpoint and a schema file"
        )
    newest = dict(list(met.items())[-MOST_APPLIED:])
    after = Catalog(tables.learnt(file_tables(source)), newest)
    digest = blake2b(msgspec.msgpack.encode(after), digest_size=16).hexdigest()
    path = f"{FOLDER}/{digest}.json"
    if not storage.exists(path):
        write_state(storage, path, after)
    return f"{digest}.json"


def file_tables(source: Source) -> Schemas:
    """The tables of a job's schema file; not to be changed."""
    options = decoder_options(source)
    schema = source.options.get("schema")
    key = ("file", schema, repr(sorted(options.items())))
    return _cached(key, lambda: Schemas(schema, options))


_cache: dict[Hashable, Any] = {}


def _cached(key: Hashable, make: Callable[[], T]) -> T:
    """What this process made before, or makes now; the least recently used are dropped."""
    value: T = _cache.pop(key) if key in _cache else make()
    while len(_cache) >= MAX_CACHED:
        del _cache[next(iter(_cache))]
    _cache[key] = value
    return value
