"""The tables that DDL told a job, and which DDL that was: a file, named by its content.

A batch without DDL writes none and, in a process that has read it before, reads none: what it costs
to know tables does not grow with the statements that told them.
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
MOST_HELD = 4
"""Most catalogs, schema files and their like that a process holds."""
T = TypeVar("T")


class MetDdl(Protocol):
    """DDL that a pass met."""

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
    """DDL told more tables than a job keeps."""


class Catalog(msgspec.Struct, frozen=True):
    """What DDL told a job so far."""

    tables: list[LearntTable] = []
    met: dict[str, bool] = {}
    """The DDL that was met, by its id, oldest first. False: it became a dead letter, so its tables
    are as it made them, and it is not written yet."""

    def is_repeat(self, id: str) -> bool:
        """Whether DDL was met and written before."""
        return self.met.get(id, False)


def read_catalog(storage: Storage, name: str | None) -> Catalog:
    """What the file of that name holds; nothing without one."""

    def read() -> Catalog:
        found = read_state(storage, f"{FOLDER}/{name}", Catalog)
        if found is None:
            raise damaged(storage, f"{FOLDER}/{name}")
        return found

    return Catalog() if name is None else _held(("catalog", storage.uri, name), read)


def known_tables(storage: Storage, name: str | None, source: Source) -> Schemas:
    """The tables of a job's schema file, as DDL has changed them since; who learns takes a copy."""
    file = file_tables(source)
    if name is None:
        return file
    told = ("tables", storage.uri, name, id(file))
    return _held(told, lambda: file.with_learnt(read_catalog(storage, name).tables))


def decoder_options(source: Source) -> dict[str, Any]:
    """The options of a decoder that leaves it to the known tables to complete rows."""
    return {option: value for option, value in source.options.items() if option != "schema"}


def catalog_after(
    storage: Storage, name: str | None, source: Source, ddl: Sequence[MetDdl]
) -> str | None:
    """Write what is known after more DDL, and tell the file's name; the same one without any."""
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
            f"DDL told of more than {MAX_LEARNT_BYTES >> 20} MiB of tables, more than a job keeps; "
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
    told = ("file", schema, repr(sorted(options.items())))
    return _held(told, lambda: Schemas(schema, options))


_kept: dict[Hashable, Any] = {}


def _held(told: Hashable, make: Callable[[], T]) -> T:
    """What this process made before, or makes now; what was used last is held."""
    found: T = _kept.pop(told) if told in _kept else make()
    while len(_kept) >= MOST_HELD:
        del _kept[next(iter(_kept))]
    _kept[told] = found
    return found
