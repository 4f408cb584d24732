"""What sources of topics have in common: which topics are meant, and where reading starts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches

from headgate.codec.topic_names import check_topic_pattern
from headgate.core.errors import UsageError, shown, unknown_name

MOST_MESSAGES = 1_000_000
"""Most messages of a batch, unless the job says: a long topic is read in parts."""
TOPICS_HELP = "topics, separated by commas, if they are not in the path; `*` and `?` make a pattern"


def topics_of(path: str, more: str | None, example: str) -> tuple[str, ...]:
    """The topics of a source, from the path or the parameter `topics`.

    >>> topics_of("orders,cdc-*", None, "kafka://HOST:PORT/TOPIC")
    ('orders', 'cdc-*')
    """
    if path and more is not None:
        raise UsageError("topics are both in the path and in topics=; name them in one place")
    topics = tuple(t.strip() for t in (path or more or "").split(",") if t.strip())
    if not topics:
        raise UsageError(f"the source names no topic; write {example}")
    for topic in topics:
        check_topic_pattern(topic)
    if len(set(topics)) < len(topics):
        raise UsageError("a topic is named twice; name each once")
    return topics


def is_pattern(topic: str) -> bool:
    """Whether a name stands for several topics."""
    return "*" in topic or "?" in topic


def matching(wanted: Iterable[str], names: Iterable[str]) -> list[str]:
    """The topics that are meant.

    >>> matching(("cdc-*",), ["cdc-a", "other"])
    ['cdc-a']
    """
    patterns = [re.compile(pattern(topic)) for topic in wanted]
    return [name for name in names if any(each.fullmatch(name) for each in patterns)]


def pattern(topic: str) -> str:
    """A topic pattern as a regular expression, for Java too.

    >>> pattern("cdc-*.v?")
    'cdc-.*\\\\.v.'
    """
    kinds = {"*": ".*", "?": ".", ".": "\\."}
    return "".join(kinds.get(character, character) for character in topic)


def no_topic(wanted: Sequence[str], names: Iterable[str]) -> UsageError:
    """The error where no topic matches, with the nearest of those that there are.

    >>> print(no_topic(["ordres"], ["orders", "users"]))
    no topic matches ordres; did you mean orders? there are: orders, users
    """
    listed = [shown(name)[1:-1] for name in names if not name.startswith("__")]
    near = get_close_matches(wanted[0], listed, n=3, cutoff=0.6) if len(wanted) == 1 else []
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    there = ", ".join(listed[:20]) + (f" and {len(listed) - 20} more" if len(listed) > 20 else "")
    return UsageError(f"no topic matches {', '.join(wanted)}; {hint}there are: {there or 'none'}")


def starting_position(text: str) -> str:
    """Where the first start begins: `earliest`, `latest`, or a time as ISO text.

    >>> starting_position("earliest-offset")
    'earliest'
    """
    word = {"earliest-offset": "earliest", "latest-offset": "latest"}.get(text, text)
    if word not in ("earliest", "latest"):
        try:
            datetime.fromisoformat(word)
        except ValueError:
            raise unknown_name(
                "starting position", text, ("earliest", "latest", "2024-05-01T08:00:00Z")
            ) from None
    return word


def milliseconds(time: str) -> int:
    """A time as ISO text in milliseconds since 1970; UTC if it has no zone.

    >>> milliseconds("2024-05-01T00:00:00")
    1714521600000
    """
    moment = datetime.fromisoformat(time)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return int(moment.timestamp() * 1000)
