"""Positions of deleted keys: an older change that arrives late does not bring its row back.

They are a small Delta table beside the landed one, append only: `_key` (the key as text, null for
TRUNCATE), `_position` of the delete, and `_at`, when it was landed, by which old ones are removed.
It is written before the commit of the delete itself; noted twice is noted once. Where notes are
counted (tables without a key), `_app` and `_version` are the token of the commit they belong to:
an attempt that did not get to its commit has changed nothing, and its notes do not count.
Each kind of position has files of its own (`_kind`), whose statistics have its newest position:
changes that are newer than that read nothing.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from hashlib import blake2b

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, write_deltalake
from deltalake import Schema as DeltaSchema
from deltalake.exceptions import CommitFailedError

from headgate.codec.sequence import KIND, SNAPSHOT, supersedes
from headgate.landing.latest import Mask
from headgate.sinks.delta import sql
from headgate.sinks.delta.statistics import writer_properties
from headgate.sinks.delta.table import Location, Token

SCHEMA = pa.schema([
    ("_key", pa.string()), ("_position", pa.string()), ("_at", pa.timestamp("us", tz="UTC")),
    ("_app", pa.string()), ("_version", pa.int64()), ("_kind", pa.string()),
])  # fmt: skip
TIDY_EVERY = 50
"""After so many commits old positions are removed, and small files joined."""


class DeletedKeys:
    """The deleted keys of one table."""

    def __init__(self, location: Location, keep_seconds: float) -> None:
        self.location, self.keep_seconds = location, keep_seconds

    def remember(self, keys: pa.Array, positions: pa.Array, token: Token | None = None) -> None:
        """Note keys and the positions of their deletes; a null key is TRUNCATE."""
        now = int(time.time() * 1_000_000)
        app, version = (None, None) if token is None else (token.app, token.version)
        same = [pa.array([value] * len(keys)) for value in (now, app, version)]
        rows = pa.table([keys, positions, *same, kinds_of(positions)], names=SCHEMA.names)
        self.append(rows.cast(SCHEMA))

    def append(self, rows: pa.Table) -> None:
        """Add notes."""
        table = self.location.open()
        if table is None:
            table = DeltaTable.create(
                self.location.uri,
                DeltaSchema.from_arrow(SCHEMA),
                mode="ignore",
                partition_by=["_kind"],
                storage_options=self.location.options or None,
            )
        write_deltalake(table, rows, mode="append", writer_properties=writer_properties(SCHEMA, ()))
        if table.version() % TIDY_EVERY == 0:
            tidy(table, int((time.time() - self.keep_seconds) * 1_000_000))
        self.location.keep(table)

    def known(self, positions: pa.Array) -> pa.Table | None:
        """What is noted that changes at these positions may be older than; None for nothing."""
        table = self.location.open()
        if table is None:
            return None
        chosen = condition(positions, newest_positions(table))
        notes = rows_of(table, chosen) if chosen else None
        self.location.keep(table)
        return notes

    def everything(self) -> pa.Table | None:
        """All that is noted."""
        table = self.location.open()
        return None if table is None else rows_of(table, "TRUE")

    def outdated(self, rows: pa.Table, key: Sequence[str]) -> Mask:
        """The upserts that are older than the delete of their key, or than TRUNCATE."""
        result = np.zeros(rows.num_rows, np.bool_)
        known = self.known(rows.column("_position").combine_chunks())
        if known is None:
            return result
        texts = key_texts(rows, key)
        wanted = pc.or_kleene(pc.is_null(known["_key"]), pc.is_in(known["_key"], texts))
        known = known.filter(wanted)
        if not known.num_rows:
            return result
        deleted: dict[str | None, list[str]] = {}
        for name, position in zip(known["_key"].to_pylist(), known["_position"].to_pylist()):
            deleted.setdefault(name, []).append(position)
        truncated = deleted.get(None, [])
        for index, (name, position) in enumerate(
            zip(texts.to_pylist(), rows.column("_position").to_pylist())
        ):
            later = deleted.get(name, []) + truncated
            result[index] = not all(supersedes(position, each) for each in later)
        return result


def tidy(table: DeltaTable, before: int) -> None:
    """Remove what was noted before a time, and join small files; another writer goes first."""
    properties = CommitProperties(max_commit_retries=0)
    try:
        # As numbers of microseconds, times compare without a time zone in between.
        table.delete(f"CAST(_at AS BIGINT) < {before}", commit_properties=properties)
        table.optimize.compact(max_concurrent_tasks=1, commit_properties=properties)
        table.vacuum(dry_run=False, commit_properties=properties)
    except CommitFailedError:
        return


def rows_of(table: DeltaTable, condition: str) -> pa.Table | None:
    """Notes; None for none."""
    notes = pa.table(table.scan(SCHEMA.names, condition)).cast(SCHEMA)
    return notes if notes.num_rows else None


def newest_positions(table: DeltaTable) -> dict[str, str]:
    """By kind, the greatest position that is noted."""
    files = pa.table(table.get_add_actions(flatten=True))
    newest: dict[str, str] = {}
    if files.num_rows:
        kinds, ends = files.column("partition._kind"), files.column("max._position")
        for kind, end in zip(kinds.to_pylist(), pc.fill_null(ends, "~").to_pylist()):
            newest[kind] = max(end, newest.get(kind, ""))
    return newest


def condition(positions: pa.Array, newest: Mapping[str, str]) -> str | None:
    """What notes may be newer than changes at these positions; None for none of them.

    >>> condition(pa.array(["aaaaaaaa2", "aaaaaaaa1", "bbbbbbbb5"]),
    ...           {"aaaaaaaa": "aaaaaaaa7", "bbbbbbbb": "bbbbbbbb4"})
    "(_kind = 'aaaaaaaa' AND _position >= 'aaaaaaaa1')"
    """
    table = pa.table({"kind": kinds_of(positions), "position": positions})
    parts = []
    for each in table.group_by("kind").aggregate([("position", "min")]).to_pylist():
        kind, least = each["kind"], each["position_min"]
        if kind == SNAPSHOT:  # compares with all kinds
            return "TRUE"
        if least <= newest.get(kind, ""):
            parts.append(f"(_kind = {sql.text(kind)} AND _position >= {sql.text(least)})")
    return " OR ".join(parts) or None


def kinds_of(positions: pa.Array) -> pa.Array:
    """The kinds of positions."""
    return pc.utf8_slice_codeunits(positions, 0, KIND)


def key_texts(rows: pa.Table, key: Sequence[str]) -> pa.Array:
    r"""Each row's key as text: equal for equal keys only, whatever the columns' types.

    >>> key_texts(pa.table({"a": [1, 2], "b": ["x,y", None]}), ["a", "b"]).to_pylist()
    ['1,x\\,y', '2,\\N']
    """
    texts = []
    for name in key:
        column = rows.column(name).combine_chunks()
        if pa.types.is_binary(column.type):
            column = pa.array([None if v is None else v.hex() for v in column.to_pylist()])
        part = column.cast(pa.string())
        if len(key) > 1 or pa.types.is_string(column.type):
            part = pc.replace_substring(part, "\\", "\\\\")
            part = pc.replace_substring(part, ",", "\\,")
        texts.append(pc.fill_null(part, "\\N"))
    if len(texts) == 1:
        return texts[0]
    return pc.binary_join_element_wise(*texts, ",")


def digests(texts: pa.Array) -> list[str]:
    """A short name for each text."""
    return [blake2b(text.encode(), digest_size=16).hexdigest() for text in texts.to_pylist()]
