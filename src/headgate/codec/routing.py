"""The topic and partition of each message, as options ask for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from headgate.codec.partitioning import by_table, partitioner
from headgate.core.cache import BoundedCache
from headgate.core.errors import UsageError
from headgate.core.event import Event, Record, flattened
from headgate.core.names import NAME, safe, words
from headgate.core.options import EncodeOptions
from headgate.formats.base import Encoding
from headgate.formats.partitioning import Partition

Route = Callable[[Event, list[Record], "str | None", Mapping[str, int]], list[Record]]
"""Gives the records of an event the given topic, or the template's, and a partition."""


def router(options: EncodeOptions, dialect: str, encoding: Encoding) -> Route | None:
    """What gives each record its topic and partition; None where neither is asked for."""
    rules = encoding.partition_rules.get(dialect)

    def among(count: int | None) -> tuple[Partition, Partition | None]:
        """What chooses among so many partitions, and what does for messages without a key."""
        places = partitioner(
            options.partition,
            count,
            options.partition_columns,
            rules,
            encoding.broadcasts_ddl,
            options.timezone,
        )
        if rules is not None or count is None:
            return places, None
        # Not by the row's key, which some of these formats tell of some of a row's changes only.
        return places, by_table(count)

    split_update = None if rules is None else rules.split_update
    choices = BoundedCache(among)
    usual = choices[options.partition_num]
    topic_of = topic_template(options.topic)
    if options.partition_num is None and options.topic is None:
        return None

    def route(
        event: Event, records: list[Record], topic: str | None, partitions: Mapping[str, int]
    ) -> list[Record]:
        if len(records) > 1 and split_update is not None:
            # The old row's partition may be another than the new one's.
            pairs = zip(split_update(event), records)
            return [r for part, r in pairs for r in route(part, [r], topic, partitions)]
        if topic is None:
            topic = topic_of(event)
        event = event if event.schema is None else flattened(event)
        count = None if topic is None else partitions.get(topic)
        by_key, keyless = usual if count is None else choices[count]
        choose = by_key if keyless is None or records[0].key is not None else keyless
        return [
            msgspec.structs.replace(record, topic=topic, partition=partition)
            for partition in choose(event)
            for record in records
        ]

    return route


def topic_template(template: str | None) -> Callable[[Event], str | None]:
    """A function from event to topic.

    >>> topic_template("cdc.{database}.{table}")(Event("row", "insert", "shop", "orders"))
    'cdc.shop.orders'
    """
    if template is None:
        return lambda _: None
    around = NAME.split(template)[::2]
    if any("{" in text or "}" in text for text in around):
        raise UsageError(
            f"option topic cannot be {template!r}; it may hold "
            "{database}, {schema} and {table} only"
        )
    if len(around) == 1:
        return lambda _: template

    def topic(event: Event) -> str | None:
        values = words(template, event.database, event.schema, event.table)
        if any(values[name] is None for name in NAME.findall(template)):
            return None  # a watermark, or DDL of a database: the sink's default topic
        return NAME.sub(lambda match: safe(str(values[match[1]])), template)

    return topic
