"""Keys of job files, declared on the dataclasses they fill.

The reader, `--set` and the tables of docs/jobs.md all derive from these declarations.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field
from functools import cache
from typing import Any

from headgate.core.errors import UsageError, unknown_name
from headgate.core.scalars import truth, whole_number

Read = Callable[[str], Any] | type
"""What reads a value: a function of its text, or the dataclass of a section."""
_READ: dict[Any, Callable[[str], Any]] = {str: str, bool: truth, int: whole_number}


class KeyedError(UsageError):
    """A dataclass rejects the value of one of its keys, by which the error is located."""

    def __init__(self, key: str, text: str) -> None:
        super().__init__(text)
        self.key = key


@dataclass(frozen=True)
class Key:
    """One key of a section."""

    name: str
    """The key in files."""
    attribute: str
    """The field of the dataclass."""
    help: str
    read: Read
    """Reads the value, or an item of a list."""
    default: str = "none"
    """The default, for the docs."""
    many: bool = False
    """Whether it is a list; one item alone may stand for a list of one."""
    open: bool = False
    """Whether it is a mapping whose keys are not declared here."""
    aliases: Mapping[str, Read] = field(default_factory=dict)
    """Other names of the key, and what reads their values."""
    empty: str = ""
    """What to do instead of an empty list, where that is refused."""
    missing: str = ""
    """The error where a required key is missing."""
    path: bool = False
    """Whether it is a path, relative to the job file."""

    @property
    def names(self) -> dict[str, Read]:
        """All names of the key."""
        return {self.name: self.read, **self.aliases}


def key(
    help: str,
    default: Any = MISSING,
    *,
    name: str = "",
    read: Read | None = None,
    aliases: Mapping[str, Read] | None = None,
    default_text: str = "",
    empty: str = "",
    missing: str = "",
    path: bool = False,
    open: bool = False,
    secret: bool = False,
) -> Any:
    """Declare the field of a dataclass as a key of job files.

    A default that is text is read as if a file had it; one that is a class is instantiated.
    `name` is the key where it is not the field's name, `open` says that the keys of a mapping are
    not declared here, and `secret` keeps the value out of `repr`.
    """
    metadata = {
        "help": help, "name": name, "read": read, "aliases": aliases or {}, "empty": empty,
        "missing": missing, "path": path, "open": open, "default": default_text,
    }  # fmt: skip
    if default is MISSING:
        return field(metadata=metadata, repr=not secret)
    if isinstance(default, type):
        return field(default_factory=default, metadata=metadata, repr=not secret)
    if isinstance(default, str) and read is not None:
        metadata["default"] = default_text or f"`{default}`"
        default = read(default)
    return field(default=default, metadata=metadata, repr=not secret)


@cache
def keys(cls: type) -> dict[str, Key]:
    """The keys of a section, by name.

    >>> @dataclass
    ... class Section:
    ...     tables: tuple[str, ...] = key("which tables", (), name="table")
    >>> keys(Section)["table"].many
    True
    """
    hints = typing.get_type_hints(cls)
    fields = [f for f in dataclasses.fields(cls) if "help" in f.metadata]
    return {key.name: key for key in (_key(f, hints[f.name]) for f in fields)}


def spelling(name: str, known: Iterable[str]) -> str | None:
    """A name as it is declared; `_` and `-` are the same.

    >>> spelling("max-messages", ["trigger", "max_messages"])
    'max_messages'
    """
    plain = name.replace("-", "_")
    return next((word for word in known if word.replace("-", "_") == plain), None)


def one_of(what: str, known: tuple[str, ...]) -> Callable[[str], str]:
    """A reader of one of several words.

    >>> one_of("operation", ("insert", "update"))("insert")
    'insert'
    """

    def read(text: str) -> str:
        word = spelling(text, known)
        if word is None:
            raise unknown_name(what, text, known)
        return word

    return read


def not_empty(text: str) -> str:
    """A text that is not blank."""
    if not text.strip():
        raise UsageError("is empty; fill it or leave it out")
    return text


def _key(field: dataclasses.Field[Any], hint: Any) -> Key:
    data = field.metadata
    if isinstance(hint, types.UnionType):
        hint = next(t for t in typing.get_args(hint) if t is not type(None))
    many = typing.get_origin(hint) is tuple
    item = typing.get_args(hint)[0] if many else hint
    return Key(
        name=data["name"] or field.name,
        attribute=field.name,
        help=data["help"],
        default=data["default"] or _default_text(field),
        read=data["read"] or _READ.get(item, item),
        many=many,
        open=data["open"],
        aliases=data["aliases"],
        empty=data["empty"],
        missing=data["missing"],
        path=data["path"],
    )


def _default_text(field: dataclasses.Field[Any]) -> str:
    """A default for the docs."""
    default = field.default
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    if isinstance(default, tuple) and default:
        return " ".join(f"`{item}`" for item in default)
    return "required" if default is MISSING and field.default_factory is MISSING else "none"
