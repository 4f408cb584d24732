"""The values of a message that conditions refer to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from headgate.arrow.events import TEXT_MAP, bounded, decode_parts, most_bytes_of, text_maps
from headgate.codec.decoder import decoder
from headgate.codec.schemas import Schemas
from headgate.config.job import Job
from headgate.core.cache import PerTypeMap
from headgate.core.event import Event, Image, Types
from headgate.pipeline.row_filter.condition import (
    NEW,
    OLD,
    ROW,
    Condition,
    ImageColumn,
    conditions_of,
)
from headgate.pipeline.row_filter.types import UNTYPED, name_in, signature
from headgate.selection.selection import Selection, SelectionError
from headgate.spark.api import fast_worker, parse_schema

IMAGES_DDL = (
    "images array<struct<rule: int, signature: string, "
    "old: map<string, string>, new: map<string, string>>>"
)
IMAGE = pa.struct(
    [("rule", pa.int32()), ("signature", pa.string()), ("old", TEXT_MAP), ("new", TEXT_MAP)]
)
NOT_WANTED = -1
"""The rule of a row that the job filters out anyway: it is dropped without a condition."""


def with_condition_values(messages: DataFrame, job: Job) -> DataFrame:
    """Messages with `images`: for each row under a condition, the values that it refers to.

    Rows are in the order of the message's events. A row that the job filters out has the rule
    NOT_WANTED, and one for which the selection has an error has no rule.
    """
    conditions, selection = conditions_of(job), Selection(job)
    options = dict(job.source.options)
    if job.schema is not None:
        options.setdefault("schema", job.schema)
    format, schema = job.source.format, options.get("schema")
    # Only what a worker needs is sent to it: the job may hold secrets.

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with fast_worker():
            decode = decoder(format, **options)
            limit = most_bytes_of(options)
            extractor = ValueExtractor(conditions, selection, Schemas(schema))
            for batch in batches:
                for several in bounded(batch):
                    for part, events, counts in decode_parts(several, decode, limit):
                        yield part.append_column("images", extractor.images(events, counts))

    out = StructType([*messages.schema.fields, *parse_schema(IMAGES_DDL).fields])
    return messages.mapInArrow(run, out)


class ValueExtractor:
    """Takes the values that conditions refer to out of events."""

    def __init__(
        self, conditions: Mapping[int, Condition], selection: Selection, schemas: Schemas
    ) -> None:
        self.conditions, self.selection, self.schemas = conditions, selection, schemas
        self.signatures: dict[int, Callable[[Types | None], str]] = {
            rule: PerTypeMap(partial(signature, condition))
            for rule, condition in conditions.items()
        }

    def images(self, events: Sequence[Event], counts: Sequence[int]) -> pa.Array:
        """The images of a batch's messages; `counts` has the number of events per message."""
        rules: list[int | None] = []
        signatures: list[str | None] = []
        olds: list[Image | None] = []
        news: list[Image | None] = []
        offsets, at = [0], 0
        for count in counts:
            for event in events[at : at + count]:
                rule = self.selection.condition_of(event)
                if rule is None:
                    continue
                wanted = self.is_wanted(event)
                if not wanted:
                    rules.append(None if wanted is None else NOT_WANTED)
                    signatures.append(None)
                    olds.append(None)
                    news.append(None)
                    continue
                rules.append(rule)
                signatures.append(self.signature(rule, event))
                old, new = images_of(event)
                columns = self.conditions[rule].columns
                olds.append(_selected(old, columns, OLD, new is None))
                news.append(_selected(new, columns, NEW, True))
            at += count
            offsets.append(len(rules))
        rows = pa.StructArray.from_arrays(
            [
                pa.array(rules, pa.int32()),
                pa.array(signatures, pa.string()),
                text_maps(olds),
                text_maps(news),
            ],
            fields=list(IMAGE),
        )
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), rows)

    def is_wanted(self, event: Event) -> bool | None:
        """Whether the job processes an event; None where the selection has an error for it."""
        try:
            return self.selection.wants(event)
        except SelectionError:
            return None

    def signature(self, rule: int, event: Event) -> str:
        """The types of a condition's columns in an event's table."""
        types = self.signatures[rule](event.types)
        if UNTYPED in types:
            table = self.schemas.table(event.database, event.table, event.schema)
            if table is not None:
                return signature(self.conditions[rule], {**table.types, **(event.types or {})})
        return types


def images_of(event: Event) -> tuple[Image | None, Image | None]:
    """The old and the new row: None where a change has none, empty where it was not sent.

    >>> images_of(Event("row", "update", after={"id": "1"}))
    ({}, {'id': '1'})
    >>> images_of(Event("row", "insert", after={"id": "1"}))
    (None, {'id': '1'})
    """
    old = (event.before or {}) if event.op in ("update", "delete") else None
    new = None if event.op == "delete" else (event.after or {})
    return old, new


def _selected(
    image: Image | None, columns: Sequence[ImageColumn], which: str, current: bool
) -> Image | None:
    """The values of an image that a condition refers to, under the condition's names."""
    if image is None:
        return None
    values: Image = {}
    for column in columns:
        if column.image == which or (current and column.image == ROW):
            name = name_in(image, column.name)
            if name is not None:
                values[column.name] = image[name]
    return values
