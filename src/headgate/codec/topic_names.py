"""Which names topics can have, written out, as templates and as patterns."""

from __future__ import annotations

import re

from headgate.codec.routing import topic_template
from headgate.core.errors import UsageError, shown
from headgate.core.names import MAX_TOPIC

_TOPIC = re.compile(r"[A-Za-z0-9._-]+", re.ASCII)
_PLACE = re.compile(r"\{(database|schema|table)\}|\$\d+")
_TOPIC_GLOB = re.compile(r"[A-Za-z0-9._*?-]+", re.ASCII)


def checked_topic(template: str) -> str:
    """A template of a topic's name, refusing one that cannot become a name.

    >>> checked_topic("cdc.{database}.{table}")
    'cdc.{database}.{table}'
    """
    topic_template(template)
    plain = _PLACE.sub("x", template)
    if not _TOPIC.fullmatch(plain) or len(plain) > MAX_TOPIC or plain in (".", ".."):
        raise UsageError(
            f"invalid topic name {shown(template)}; use at most {MAX_TOPIC} letters, digits and "
            ". _ -, and {database}, {schema} and {table} for the names of the event"
        )
    return template


def check_topic_pattern(topic: str) -> None:
    """Refuse a pattern that no topic can match.

    >>> check_topic_pattern("cdc-*")
    """
    if not _TOPIC_GLOB.fullmatch(topic) or len(topic) > MAX_TOPIC or topic in (".", ".."):
        raise UsageError(
            f"invalid topic name {shown(topic)}; use letters, digits and . _ -, "
            "and * and ? for any text and any character"
        )
