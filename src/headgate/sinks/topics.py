"""What sinks of topics have in common: the topic of a URI, and how rows are spread over it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from headgate.core.errors import UsageError, shown
from headgate.sinks.base import Target, Topics


def topic_of(path: str, format_options: dict[str, str]) -> str | None:
    """The topic of a sink, from the path or the parameter `topic`; the encoder gets it.

    >>> options = {}
    >>> topic_of("orders", options), options
    ('orders', {'topic': 'orders'})
    """
    if path:
        if format_options.get("topic", path) != path:
            raise UsageError("the topic is both in the path and in topic=; name it in one place")
        format_options["topic"] = path
    return format_options.get("topic")


def spread_over(
    sink: str, topic: str, has: int, options: Mapping[str, Any], parts: str, remedy: str
) -> int:
    """Over how many parts rows are spread of a topic that has so many.

    `partition-num` says so for the one topic that the sink names. Of topics that messages name,
    each has its own number, and it is that of new ones.
    """
    wanted = options.get("partition_num")
    if wanted is None or topic != options.get("topic"):
        return has
    if has < int(wanted):
        raise UsageError(
            f"{sink}: topic {topic} has {has} {parts}, fewer than the {wanted} that rows are "
            f"spread over; {remedy}"
        )
    return int(wanted)


def check_topics(sink: str, topics: Topics, names: Iterable[str]) -> None:
    """Refuse to write to topics that are refused; those that are missing are created."""
    names = list(names)
    topics.ensure(names)
    for name in names:
        if name in topics.refused:
            raise UsageError(f"{sink}: topic {shown(name)}: {topics.refused[name]}")


def fixed_topics(target: Target) -> list[str]:
    """The topic of a sink, unless events decide it."""
    topic = str(target.options.get("topic") or "")
    return [topic] if topic and "{" not in topic else []
