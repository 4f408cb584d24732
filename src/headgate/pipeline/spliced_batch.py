"""What the fast path made of a batch: spliced messages or rows, and the events of the rest."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.headers import from_text, header_bytes, to_text
from headgate.arrow.messages import Partition
from headgate.core.event import Event
from headgate.landing.row_texts import RowTexts
from headgate.landing.table_rows import RowLayout
from headgate.pipeline.change import MessageBatch, offset_names
from headgate.pipeline.dedup import identity
from headgate.pipeline.ordering import commit_time

if TYPE_CHECKING:
    from headgate.fastpath.program import Spliced
    from headgate.fastpath.templates import Template

IDENTITY, ROW = -1, -2
"""The sinks, so to speak, of what identifies a change: that is the value, its commit the key, its
table the topic; and of the row of a table: that is the value, its commit the key, its layout the
topic."""


@dataclass
class PlacedChanges:
    """What was spliced and has a place in the source's log."""

    rows: list[int]
    """The numbers of their messages, ascending."""
    ids: list[bytes]
    tables: list[str]
    commits: list[int | None]
    times: list[int]
    """In microseconds."""

    def newest(self, until: int) -> int:
        """The newest time of a change by the source's clock, of those not beyond a limit."""
        commits = [commit for commit in self.commits if commit is not None]
        times = [time for time in self.times if time <= until]
        return commit_time(max(commits)) if commits else max(times, default=0)


@dataclass
class FastPathResult:
    """What was spliced of a batch, and the events of the rest."""

    spliced: Spliced
    templates: list[tuple[Template, int]]
    """The templates of what was spliced, and how often."""
    partition: Partition
    messages: pa.RecordBatch
    """All rows."""
    headers: CarriedHeaders | None
    """The headers of all rows, if any has some."""
    rows: Any
    """The numbers of the rows that were not spliced."""
    rest: pa.RecordBatch
    """Those rows."""
    events: list[Event]
    """Their events."""
    counts: list[int]
    """How many events each of them has."""
    placed: PlacedChanges

    @cached_property
    def names(self) -> pa.Array:
        """What the changes of all rows are known by."""
        names = offset_names(self.partition, self.messages)
        if not self.placed.rows:
            return names
        known_by = names.to_pylist()
        for row, id_ in zip(self.placed.rows, self.placed.ids):
            known_by[row] = id_.hex()
        return pa.array(known_by, pa.string())

    @property
    def ids(self) -> list[bytes]:
        """The identities of all changes that have one, spliced or not."""
        others = [identity(event) for event in self.events if event.kind == "row"]
        return [*self.placed.ids, *(id_ for id_ in others if id_ is not None)]

    def last_change(self) -> int | None:
        """The row of the batch's last change, if that was spliced."""
        spliced = np.flatnonzero(self.spliced.templates >= 0)
        others = np.repeat(self.rows, self.counts)[[e.kind == "row" for e in self.events]]
        if not len(spliced) or (len(others) and others[-1] > spliced[-1]):
            return None
        return int(spliced[-1])

    def newest(self, until: int) -> int:
        """The newest time of a change, of those not beyond a limit."""
        times = self.spliced.times[self.spliced.templates >= 0]
        times = times[times <= until]
        return int(times.max()) if len(times) else 0

    def counted(self) -> tuple[Counter[Any], Counter[tuple[str, ...]]]:
        """Changes by database, table and operation; and what was lost, by sink."""
        changes: Counter[Any] = Counter()
        losses: Counter[tuple[str, ...]] = Counter()
        for template, count in self.templates:
            ((op, database, table),) = template.answer.about
            changes[database, table, op] += count
            for codes in template.answer.lost:
                if codes:
                    losses[codes] += count
        return changes, losses

    def records(self, sink: int) -> tuple[Any, Any, dict[str, pa.Array]]:
        """What was spliced for a sink: the rows it comes of, its kinds, and its columns."""
        from headgate.fastpath.splicer import binary_array

        spliced, fixed = self.spliced, self.spliced.columns
        kinds, rows = spliced.kinds, spliced.rows
        columns = {
            "key": binary_array(spliced.keys, spliced.key_ends, fixed.no_key[kinds]),
            "value": binary_array(spliced.values, spliced.value_ends, fixed.no_value[kinds]),
        }
        of_sink = fixed.sink[kinds] == sink
        if not of_sink.all():
            mask = pa.array(of_sink)
            columns = {name: column.filter(mask) for name, column in columns.items()}
            kinds, rows = kinds[of_sink], rows[of_sink]
        return rows, kinds, columns

    def row_texts(self, messages: MessageBatch, job_id: str) -> RowTexts:
        """What was spliced for sinks of tables."""
        rows, kinds, columns = self.records(ROW)
        layouts = self.spliced.columns.topic.take(pa.array(kinds)).dictionary_encode()
        return RowTexts(
            [msgspec.json.decode(t, type=RowLayout) for t in layouts.dictionary.to_pylist()],
            layouts.indices.to_numpy(),
            columns["value"],
            columns["key"].cast(pa.string()),
            pa.array(messages.numbers, pa.int64()).take(pa.array(rows)),
            f"{job_id} {messages.partition_name}",
        )

    def written_messages(self, sink: int) -> tuple[Any, dict[str, pa.Array]]:
        """What was spliced for a sink of messages: the rows it comes of, and its columns."""
        from headgate.fastpath.splicer import by_kind

        rows, kinds, columns = self.records(sink)
        fixed = self.spliced.columns
        columns["id"] = with_numbers(self.names.take(pa.array(rows)), rows)
        columns["partition"] = by_kind(fixed.partition, kinds)
        columns["topic"] = by_kind(fixed.topic, kinds)
        if fixed.table.null_count < len(fixed.table):
            columns["table"] = by_kind(fixed.table, kinds)
        if self.headers is not None:
            columns["headers"] = self.headers.texts.take(pa.array(rows))
        return rows, columns


class CarriedHeaders(NamedTuple):
    """The headers of messages, which go on with what is made of them."""

    texts: pa.Array
    sizes: Any
    """How many bytes of a message they take."""

    @property
    def text_sizes(self) -> Any:
        """How many bytes their texts have."""
        return pc.binary_length(self.texts).fill_null(0).to_numpy()


def carried_headers(column: pa.Array) -> CarriedHeaders | None:
    """The headers of messages without the ids of an earlier job; None where no message has any.

    >>> headers = carried_headers(pa.array(['[{"key":"trace","value":"AQ=="}]', None]))
    >>> headers.texts.to_pylist(), headers.sizes.tolist()
    (['[{"key":"trace","value":"AQ=="}]', None], [16, 0])
    """
    if column.null_count == len(column):
        return None
    encoded = column.dictionary_encode()
    each = [*map(from_text, encoded.dictionary.to_pylist()), ()]
    rows = encoded.indices.fill_null(len(each) - 1)
    texts = pa.array(map(to_text, each), pa.string(), size=len(each)).take(rows)
    return CarriedHeaders(texts, np.array([*map(header_bytes, each)])[rows.to_numpy()])


def with_numbers(names: pa.Array, rows: Any) -> pa.Array:
    """The names of messages: that of the row, and behind its first message a number.

    >>> with_numbers(pa.array(["a", "b", "b"]), np.array([0, 1, 1])).to_pylist()
    ['a', 'b', 'b.1']
    """
    if not len(rows) or not (rows[1:] == rows[:-1]).any():
        return names
    starts = np.flatnonzero(np.concatenate([[True], rows[1:] != rows[:-1]]))
    sizes = np.diff(np.append(starts, len(rows)))
    numbers = np.arange(len(rows)) - np.repeat(starts, sizes)
    suffixes = pa.array(["", *(f".{n}" for n in range(1, int(sizes.max())))], pa.string())
    return pc.binary_join_element_wise(names, suffixes.take(pa.array(numbers)), "")
