"""What sources and sinks have in common: how they are registered, addressed, checked and compared.

A connector is a class, registered by the scheme of its URI. Packages of third parties register
theirs with the entry point groups `headgate.sources` and `headgate.sinks`:

    [project.entry-points."headgate.sinks"]
    pulsar = "headgate_pulsar:PulsarSink"
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, ClassVar, Generic, Literal, NamedTuple, Protocol, TypeVar

from headgate.core.errors import MissingPackage, UsageError, unknown_name
from headgate.core.options import NoOptions
from headgate.core.scalars import Environment

T = TypeVar("T")

Authority = Literal["hosts", "path", "none"]
"""What follows the scheme of a URI: `//USER:PASSWORD@HOST:PORT,…/PATH`, a path, or nothing."""


class Connector(Protocol):
    """What sources and sinks declare."""

    name: ClassVar[str]
    summary: ClassVar[str]
    authority: ClassVar[Authority] = "none"
    default_port: ClassVar[int] = 0
    Options: ClassVar[type] = NoOptions
    """A frozen dataclass declared with `option()`: URI parameters, keys of a job file, docs and
    `headgate connectors` derive from it."""
    settings_prefix: ClassVar[str | None] = None
    """Parameters that start so are settings of the client, and are not looked at."""
    tolerated: ClassVar[frozenset[str]] = frozenset()
    """Parameters that are ignored: of a format that does not have them, or of the other end."""
    unsupported: ClassVar[Mapping[str, str]] = {}
    """What parameters start with that others have and this connector has not, and what to do."""

    def reachable(self) -> None:
        """Look, in seconds and without Spark, whether what the URI names is there.

        UsageError where it is not; what is wrong and cannot be seen so, `open` finds.
        """
        return None


class Entry(NamedTuple):
    """A line of a registry."""

    target: str
    """`module:Class`; imported on first use."""
    uri: str
    """How a URI is written, e.g. `kafka://HOST:PORT/TOPIC`."""
    install: str = ""
    """What to do where the class cannot be imported, e.g. `pip install 'headgate[datahub]'`."""


class Registry(Generic[T]):
    """Connectors by the scheme of their URI."""

    def __init__(
        self, role: str, entries: Mapping[str, Entry], *, dash: str, bare: str = "file"
    ) -> None:
        self.role, self.entries, self.group = role, entries, f"headgate.{role}s"
        self.dash = dash
        """The scheme that `-` stands for."""
        self.bare = bare
        """The scheme of a URI that is a path only."""

    def schemes(self) -> list[str]:
        """All schemes: Headgate's own, then those of installed packages."""
        return [*self.entries, *(n for n in self._plugins() if n not in self.entries)]

    def names(self) -> list[str]:
        """One scheme for each connector: several file systems are one."""
        targets: dict[str, str] = {}
        for scheme, entry in self.entries.items():
            targets.setdefault(entry.target, scheme)
        return [*targets.values(), *self.schemes()[len(self.entries) :]]

    def load(self, scheme: str) -> type[T]:
        """The class of a scheme; what is missing is named with the command that installs it."""
        if scheme in self.entries:
            entry = self.entries[scheme]
            target, install = entry.target, entry.install
        elif (plugin := self._plugins().get(scheme)) is not None:
            target, install = plugin.value, f"reinstall {plugin.dist.name if plugin.dist else ''}"
        else:
            raise unknown_name(f"scheme of a {self.role}", scheme, self.schemes())
        module, _, name = target.partition(":")
        try:
            cls: type[T] = getattr(import_module(module), name)
        except (ImportError, AttributeError) as error:
            if isinstance(error, ModuleNotFoundError):
                missing = MissingPackage.of(error, f"the {scheme} {self.role}")
                if missing is not error:
                    raise missing from None
            raise UsageError(
                f"the {scheme} {self.role} cannot be loaded: {error}; {install or 'install it'}"
            ) from None
        return cls

    def example(self, scheme: str | None = None) -> str:
        """How a URI is written; without a scheme, one that names a host."""
        if scheme is None:
            return next(each.uri for each in self.entries.values() if "HOST" in each.uri)
        return self.entries[scheme].uri if scheme in self.entries else f"{scheme}:…"

    def _plugins(self) -> dict[str, EntryPoint]:
        return {each.name.lower(): each for each in entry_points(group=self.group)}


@dataclass(frozen=True)
class Address:
    """A URI taken apart, as a connector's class is given it."""

    scheme: str
    hosts: tuple[str, ...] = ()
    """Each as `host:port`."""
    login: tuple[str, str] | None = field(default=None, repr=False)
    path: str = ""
    params: dict[str, str] = field(default_factory=dict, repr=False)
    """The parameters, and those that a job file gives beside the URI."""
    base: str | None = None
    """The directory of the job file, which relative paths start from."""
    env: Environment = field(default_factory=Environment, repr=False)
    """Hides secrets in error messages."""


@dataclass(frozen=True)
class Report:
    """What `headgate check` learnt of a source or sink."""

    facts: dict[str, Any] = field(default_factory=dict)
    """E.g. `{"topics": {"orders": 3}}`; a value is a number, a text, a dict of texts or of numbers
    of partitions, a list of sentences, or None."""

    def lines(self, verb: str) -> Iterator[str]:
        """The facts for people."""
        for what, fact in self.facts.items():
            if isinstance(fact, dict):
                each = (
                    f"{name} ({n})" if isinstance(n, str) else f"{name} ({n} partitions)"
                    for name, n in fact.items()
                )
                yield f"{verb} {what}: {', '.join(each)}"
            elif isinstance(fact, list):
                yield from (f"{what}: {sentence}" for sentence in fact)
            else:
                yield f"{verb} {what}" + ("" if fact is None else f": {fact}")


# Places, so that a job is refused that would read what it writes


@dataclass(frozen=True)
class Directory:
    """A directory that is read or written, with everything in it."""

    path: str


@dataclass(frozen=True)
class Topic:
    """A topic, or all that a pattern names, on some servers."""

    system: str
    servers: frozenset[str]
    name: str


Place = Directory | Topic
