"""Options are dataclasses; command-line flags, URI parameters and docs derive from their fields."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

from headgate.core.errors import UsageError, unknown_name
from headgate.core.limits import MAX_MESSAGE_BYTES

T = TypeVar("T")
OptionValue = str | int | bool | None
"""The value of an option; None is as if it was not given."""


def option(
    default: Any,
    help: str,
    choices: tuple[str, ...] = (),
    *,
    read: Callable[[str], Any] | None = None,
    private: bool = False,
) -> Any:
    """Declare one option: its default, what it does, and what it may be.

    `read` makes a value of its text, where the type alone does not say how; UsageError where it
    cannot. The value of a `private` option is not shown in logs.
    """
    return field(
        default=default,
        metadata={"help": help, "choices": choices, "read": read, "private": private},
    )


@dataclass(frozen=True)
class NoOptions:
    """Where there is nothing to choose."""


@dataclass(frozen=True)
class CommonOptions:
    """Options that every format has."""

    timezone: str = option("UTC", "zone of TIMESTAMP values that the dialect sends as local text")
    strict: bool = option(False, "refuse a message whose dialect would have to be guessed")
    lean: bool = option(
        False, "leave out extra, and of position what does not order rows, where that saves time"
    )
    max_message_bytes: int = option(MAX_MESSAGE_BYTES, "largest message decoded")

    schema: str | None = option(
        None, "CREATE TABLE statements, for exact types, keys and the labels of ENUM and SET"
    )

    def __post_init__(self) -> None:
        check_zone(self.timezone)


@dataclass(frozen=True)
class EncodeOptions:
    """Options that every format has when it is written."""

    timezone: str = option("UTC", "zone in which the dialect writes TIMESTAMP as local text")
    strict: bool = option(False, "refuse an event of which the format cannot carry everything")
    schema: str | None = option(
        None, "CREATE TABLE statements, for types, keys and labels that the events do not have"
    )
    topic: str | None = option(
        None, "topic of the messages, where {database}, {schema} and {table} stand for the event's"
    )
    partition: str | None = option(None, "rule that chooses the partition (docs/dispatch.md)")
    partition_num: int | None = option(None, "number of the topic's partitions")
    partition_columns: str | None = option(
        None, "columns that the rule `columns` hashes, separated by commas"
    )
    splice: bool = option(
        True, "convert messages that look alike by copying their values (docs/splicing.md)"
    )

    def __post_init__(self) -> None:
        check_zone(self.timezone)


def check_zone(name: str) -> None:
    """Refuse a time zone that does not exist."""
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise UsageError(
            f"unknown timezone {name!r}; use a name such as 'Asia/Shanghai' or 'UTC'"
        ) from None


def spelled(name: str) -> str:
    """The outside spelling of an option: `max_message_bytes` is `max-message-bytes`.

    A name that is a keyword of Python has an underscore behind it: `as_` is `as`.
    """
    return name.rstrip("_").replace("_", "-")


def names(cls: type) -> set[str]:
    """The field names of an options dataclass."""
    return {f.name for f in dataclasses.fields(cls)}


def build(cls: type[T], given: Mapping[str, Any]) -> T:
    """Make options from a mapping, as typed on a command line, in a URI or in Python.

    >>> build(CommonOptions, {"max-message-bytes": "1024"}).max_message_bytes
    1024
    """
    hints = typing.get_type_hints(cls)
    known = {spelled(f.name): f for f in dataclasses.fields(cls)}  # type: ignore[arg-type]
    values = {}
    for raw_name, value in given.items():
        name = spelled(raw_name)
        if name not in known:
            raise unknown_name("option", raw_name, known)
        if value is None:  # as if it had not been given
            continue
        declared = known[name]
        if (read := declared.metadata["read"]) is not None:
            values[declared.name] = _read(name, read, str(value).strip())
            continue
        values[declared.name] = converted = _convert(name, value, hints[declared.name])
        choices = declared.metadata["choices"]
        if choices and converted not in choices:
            raise UsageError(
                f"option {name} cannot be {value!r}; it is one of: {', '.join(choices)}"
            )
    return cls(**values)


def _read(name: str, read: Callable[[str], Any], text: str) -> Any:
    """A value of its text; the error names the option."""
    try:
        return read(text)
    except UsageError as error:
        raise UsageError(str(error) if name in str(error) else f"{name}: {error}") from None


def _convert(name: str, value: Any, hint: Any) -> Any:
    if isinstance(hint, types.UnionType):
        hint = next(t for t in typing.get_args(hint) if t is not type(None))
    if isinstance(value, hint) and not (hint is int and isinstance(value, bool)):
        return value
    text = str(value).strip()
    if hint is bool and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if hint is int and text.isascii() and text.removeprefix("-").isdigit() and len(text) < 20:
        return int(text)
    if hint is str and isinstance(value, (str, int)):
        return text
    wanted = {bool: "true or false", int: "a whole number", str: "text"}[hint]
    raise UsageError(f"option {name} cannot be {value!r}; it takes {wanted}")
