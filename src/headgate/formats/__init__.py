"""The registry of wire formats: one package per format, one line here.

A format's package has `FORMAT`, which names its dialects and options and makes its codecs.
Packages are imported on first use. Those of third parties register theirs with the entry point
group `headgate.formats`, as an object or as a module that has `FORMAT`:

    [project.entry-points."headgate.formats"]
    acme-json = "headgate_acme:FORMAT"
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib import import_module
from typing import Any

from headgate.core.errors import UsageError, shown, unknown_name
from headgate.core.options import build, names, spelled
from headgate.formats import foreign, plugins
from headgate.formats.base import Encoding, ExtraMembers, Format, Traits

MODULES = {
    "canal-json": "canal_json",
    "open-protocol": "open_protocol",
    "oms-default": "oms_default",
    "dataworks": "dataworks",
    "shareplex": "shareplex",
    "debezium": "debezium",
    "debezium-smt": "debezium_smt",
    "maxwell": "maxwell",
}


@cache
def registered() -> tuple[str, ...]:
    """The names of all formats: Headgate's own, then those of installed packages.

    >>> "maxwell" in registered()
    True
    """
    return (*MODULES, *plugins.installed(MODULES))


@cache
def load(name: str) -> Format:
    """The format of that name.

    >>> load("maxwell").name
    'maxwell'
    """
    if name in MODULES:
        format: Format = import_module(f"headgate.formats.{MODULES[name]}").FORMAT
        return format
    if name not in registered():
        raise unknown_format(name)
    return plugins.load(name, plugins.installed(MODULES)[name])


@lru_cache(maxsize=256)
def official(name: str) -> str:
    """The name under which a format is registered, of any that people know it by.

    >>> official("debezium-json"), official("canal_json"), official("Canal")
    ('debezium', 'canal-json', 'canal-json')
    """
    if name in registered() or name == "auto":
        return name
    plain = name.strip().lower().replace("_", "-")
    if plain in registered() or plain == "auto":
        return plain
    return next((each for each in registered() if plain in load(each).aliases), name)


def unknown_format(name: str) -> UsageError:
    """The error for a name that no format has: what is known of it, and the nearest right one."""
    plain = name.strip().lower().replace("_", "-")
    there = ", ".join((*registered(), "auto"))
    if answer := foreign.answer(plain):
        return UsageError(f"unknown format {shown(name)}: {answer}. Formats: {there}")
    of_dialect = [f"{each}:{plain}" for each in registered() if plain in load(each).dialects]
    if of_dialect:
        return UsageError(
            f"unknown format {shown(name)}: it is a dialect; write {' or '.join(of_dialect)}. "
            f"Formats: {there}"
        )
    return unknown_name("format", name, [*registered(), "auto"])


def find(name: str | None) -> Format | None:
    """The format of that name, if there is one."""
    return load(name) if name in MODULES or name in registered() else None


def writable() -> list[str]:
    """The formats that can be written, too."""
    return [name for name in registered() if load(name).encoding is not None]


def encoding_of(format: Format) -> Encoding:
    """How a format is written; UsageError where it cannot be."""
    if format.encoding is None:
        raise UsageError(
            f"format {format.name} can be read but not written; "
            f"choose one of: {', '.join(writable())}"
        )
    return format.encoding


def split(spec: str) -> tuple[str, str | None]:
    """Take `name` or `name:dialect` apart, refusing what is not registered.

    >>> split("canal-json:ticdc")
    ('canal-json', 'ticdc')
    """
    name, colon, dialect = spec.strip().partition(":")
    name = official(name)
    if name == "auto" and not colon:
        return name, None
    format = load(name)
    if not colon:
        return name, None
    known = [*format.dialects, *format.read_only]
    if dialect not in known:
        raise unknown_name(f"dialect of {name}", dialect, known)
    return name, dialect


@lru_cache(maxsize=256)
def traits_of(format: str | None, dialect: str | None = None) -> Traits:
    """What is to be known of events of a format and dialect; of unknown ones, nothing special.

    >>> traits_of("maxwell", "ticdc").enum_as_number, traits_of(None).enum_as_number
    (True, False)
    """
    known = find(format)
    if known is None:
        return Traits()
    return known.dialect_traits.get(dialect or "", known.traits)


def resolves(spec: str) -> bool:
    """Whether messages of a format, or of a dialect, can say up to where they are complete.

    >>> resolves("open-protocol"), resolves("canal-json:canal")
    (True, False)
    """
    name, dialect = split(spec)
    traits = [traits_of(name, dialect)]
    if dialect is None:
        traits += load(name).dialect_traits.values()
    return any(each.watermarks or each.ends_transaction for each in traits)


@cache
def extra_members() -> ExtraMembers:
    """The members of `extra` that have such a meaning in any format.

    >>> "unavailable" in extra_members().partial
    True
    """
    formats = [load(name) for name in registered()]
    traits = [t.extra for f in formats for t in (f.traits, *f.dialect_traits.values())]
    return ExtraMembers(*(frozenset().union(*sets) for sets in zip(*traits)))


def share(options: Mapping[str, Any]) -> dict[str, Any]:
    """For `auto`: give each format the options it has, and refuse one that no format has."""
    formats = [load(name) for name in registered()]
    known = set().union(*(names(f.options) for f in formats))
    for name in options:
        if name.replace("-", "_") not in known:
            raise unknown_name("option", name, map(spelled, known))
    return {
        f.name: build(
            f.options,
            {k: v for k, v in options.items() if k.replace("-", "_") in names(f.options)},
        )
        for f in formats
    }


def describe_options(options: type) -> list[dict[str, Any]]:
    """Name, default, choices and help of each option, for `headgate formats` and the docs."""
    return [
        {
            "name": spelled(f.name),
            "default": f.default,
            "choices": list(f.metadata["choices"]),
            "help": f.metadata["help"],
        }
        for f in dataclasses.fields(options)
    ]
