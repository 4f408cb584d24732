"""The parts of a URI, and the URI without its secrets."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from functools import cache
from typing import Any, ClassVar, NamedTuple, Protocol
from urllib.parse import unquote

from headgate.core.connectors import Address, Authority, Registry
from headgate.core.errors import UsageError, shown, unknown_name
from headgate.core.options import spelled
from headgate.core.scalars import Environment
from headgate.formats import load, registered
from headgate.sinks import DELTA_REMOTE, SINKS
from headgate.sources import SOURCES
from headgate.spark.filesystem import REMOTE, refuse_credentials

BODY = "large-message-handle-compression"
"""TiCDC's name for the compression of values; `compression` is that of Kafka's batches."""
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL | re.ASCII)
_HOST = re.compile(r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.%]+\])(?::(\d{1,5}))?", re.ASCII)
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_BETWEEN_HOSTS = re.compile("[,;]")
SECRETS = (
    "password", "jaas.config", "keystore.key", "token", "secret", "access-key", "secret-key"
)  # fmt: skip
"""Ends of the names of parameters whose values are secret."""
_PLUGIN = "a package can add it (entry points, as in examples/plugin)"
_LAKE = "tables are landed in Delta: delta:///DIR"
_DATABASES = ("postgres", "postgresql", "oracle", "sqlserver", "mssql", "tidb", "oceanbase", "jdbc")
_DOCUMENTS = ("mongodb", "mongodb+srv", "elasticsearch")
_LAKES = ("iceberg", "hudi", "paimon")
_DELTA = ("delta", *(f"delta+{each}" for each in DELTA_REMOTE))
_QUEUES = ("pulsar", "kinesis", "nats", "redis", "amqp", "pubsub", "mqtt", "http", "https")
_FROM_DATABASE = (
    "of databases only MySQL and MariaDB are read directly, as mysql://USER:PASSWORD@HOST/DB.T; "
    "the changes of others are read from Kafka, where a connector of theirs writes them"
)
ELSEWHERE: Mapping[str, Mapping[str, str]] = {
    "source": {
        **dict.fromkeys((*_DATABASES, "mariadb"), _FROM_DATABASE),
        **dict.fromkeys(_DOCUMENTS, "documents are not rows with columns"),
        **dict.fromkeys(_LAKES, "changes are read from queues, files and MySQL"),
        **dict.fromkeys(
            _DELTA, "it is a sink of tables, as delta:///DIR; files are read as file:///DIR"
        ),
        **dict.fromkeys(_QUEUES, _PLUGIN),
    },
    "sink": {
        **dict.fromkeys((*_DATABASES, *_DOCUMENTS, "mariadb", "mysql"), _LAKE),
        **dict.fromkeys(_LAKES, _LAKE),
        **dict.fromkeys(_QUEUES, _PLUGIN),
    },
}
"""What is said of schemes that no connector has, by the role in which they are named."""
_IN_URI = "percent-encode : / ? # @ & % in names and passwords"


class Given(NamedTuple):
    """Parameters that are given beside a URI; those of `--set` override the URI's own."""

    beside: Mapping[str, str] = {}
    forced: Mapping[str, str] = {}
    nulls: Sequence[str] = ()
    """Those whose value is YAML's null, which may be meant as a word."""


class Shape(Protocol):
    """What a connector's class says of its URIs."""

    authority: ClassVar[Authority]
    default_port: ClassVar[int]


def take_apart(
    uri: str, registry: Registry[Any], given: Given, base: str | None, env: Environment
) -> Address:
    """The parts of a URI. `${NAME}` is replaced in the parts, where it cannot become more parts."""
    whole = env.whole(uri)
    text = (uri if whole is None else whole).strip()
    fill: Callable[[str], str] = env.fill
    if whole is not None:
        _hide_parts(text, env)
        fill = str
    if _CONTROL.search(text):
        raise UsageError("the URI has a control character; percent-encode it")
    scheme, rest = _scheme(text, registry)
    before, _, query = rest.partition("?")
    bare = scheme == registry.bare and not text.lower().startswith(f"{scheme}:")
    if "#" in query or ("#" in before and not bare):
        raise UsageError("the URI has a '#'; write it as %23")
    params = _merged(_query(query, fill), given)
    for name, value in params.items():
        if is_secret(name):
            env.hide(value)
    shape: type[Shape] = registry.load(scheme)
    if shape.authority == "hosts":
        example = registry.example(scheme)
        address = _with_hosts(scheme, shape.default_port, before, params, fill, env, example)
    elif shape.authority == "path":
        address = Address(scheme, path=_path(scheme, before, bare, fill), params=params)
    else:
        if before.strip("/"):
            raise UsageError(f"only parameters may follow {scheme}:, as in {scheme}:?…")
        address = Address(scheme, params=params)
    return replace(address, base=base, env=env)


def _scheme(text: str, registry: Registry[Any]) -> tuple[str, str]:
    """The scheme and what follows its colon; a bare path has none."""
    role = registry.role
    if text == "-" or text.startswith("-?"):
        return registry.dash, text[1:]
    match = _SCHEME.fullmatch(text)
    if match is None:
        return registry.bare, text
    scheme = match[1].lower()
    schemes = registry.schemes()
    if scheme not in schemes:
        if scheme in ELSEWHERE[role]:
            known, answer = ", ".join(sorted(schemes)), ELSEWHERE[role][scheme]
            raise UsageError(f"{scheme}: is no {role}; {answer}. Known: {known}")
        if "@" in text or scheme in _all_schemes():
            known = ", ".join(sorted(schemes))
            raise UsageError(f"unknown scheme of a {role}; known: {known}")
        error = unknown_name(f"scheme of a {role}", scheme, schemes)
        raise UsageError(f"{error}; brokers are written {registry.example()}")
    return scheme, match[2]


def _all_schemes() -> set[str]:
    return {*SOURCES.schemes(), *SINKS.schemes()}


def _path(scheme: str, before: str, bare: bool, fill: Callable[[str], str]) -> str:
    """The path of a URI; one on a file system that Spark reaches is itself a URI."""
    system = scheme.rpartition("+")[2]
    if system in REMOTE:
        return _remote_path(system, fill(_decoded(before)))
    return fill(before if bare else _decoded(_file_path(before)))


def _remote_path(scheme: str, rest: str) -> str:
    """A path on a file system that Spark reaches, as a URI."""
    host, _, path = rest.removeprefix("//").partition("/")
    if not rest.startswith("//") or not (host or path):
        raise UsageError(f"the URI has no directory; write {scheme}://BUCKET-OR-HOST/DIR")
    uri = f"{scheme}:{rest.rstrip('/')}"
    refuse_credentials(scheme, uri)
    return uri


def _file_path(before: str) -> str:
    if not before.startswith("//"):
        return before
    host, slash, path = before[2:].partition("/")
    if host not in ("", "localhost"):
        raise UsageError("a file has no host; write file:///DIR for /DIR, or file:DIR for ./DIR")
    return slash + path


def _query(query: str, fill: Callable[[str], str]) -> dict[str, str]:
    """The parameters; as in TiCDC, + is a space."""
    params: dict[str, str] = {}
    for pair in query.split("&"):
        if not pair:
            continue
        raw, equals, value = pair.partition("=")
        name = _decoded(raw)
        if not equals:
            which = shown(name) if _NAME.fullmatch(name) else "a parameter"
            raise UsageError(f"{which} has no value; write name=value, {_IN_URI}")
        name = _canonical(name)
        if name in params:
            raise UsageError(f"the parameter {shown(name)} is given twice; set it once")
        params[name] = fill(_decoded(value.replace("+", " ")))
    return params


def _merged(params: dict[str, str], given: Given) -> dict[str, str]:
    for name, value in given.beside.items():
        name = _canonical(name)
        if name in params:
            raise UsageError(f"{name} is given twice, in the URI or beside it; set it once")
        params[name] = value
    return params | {_canonical(name): value for name, value in given.forced.items()}


def _canonical(name: str) -> str:
    if name.startswith("kafka."):
        return name
    name = name.replace("_", "-")
    return "protocol" if name == "format" else name


def _with_hosts(
    scheme: str,
    port: int,
    before: str,
    params: dict[str, str],
    fill: Callable[[str], str],
    env: Environment,
    example: str,
) -> Address:
    if not before.startswith("//"):
        raise UsageError(f"the URI must start with {scheme}://; write {example}")
    authority, _, path = before[2:].partition("/")
    userinfo, at, hosts = authority.rpartition("@")
    login = None
    if at:
        user, colon, password = userinfo.partition(":")
        login = (fill(_decoded(user)), fill(_decoded(password)))
        env.hide(login[1])
        if not user or not colon:
            raise UsageError(f"USER:PASSWORD must come before @; {_IN_URI}")
    # What looks like a host may be a password whose / or @ was not encoded: it is not shown.
    secretive = "@" in before or any("@" in value for value in params.values())
    each_host = tuple(_hosts(fill(_decoded(hosts)), port, secretive))
    return Address(scheme, each_host, login, fill(_decoded(path.rstrip("/"))), params)


def _hosts(hosts: str, default_port: int, secretive: bool) -> Iterable[str]:
    """Each host as host:port; a semicolon separates them as well as a comma."""
    for number, host in enumerate(_BETWEEN_HOSTS.split(hosts), 1):
        match = _HOST.fullmatch(host.strip())
        if match is None or not 1 <= int(match[2] or default_port) <= 65535:
            which = f"broker {number}" if secretive else f"broker {shown(host)}"
            raise UsageError(
                f"{which} is not HOST:PORT; brokers are separated by commas, {_IN_URI}"
            )
        yield f"{match[1].lower()}:{int(match[2] or default_port)}"


def _decoded(text: str) -> str:
    """Percent-decoded text."""
    if _BAD_ESCAPE.search(text):
        raise UsageError("a % is not followed by two hexadecimal digits; write % as %25")
    try:
        plain = unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise UsageError("percent-encoded text is not UTF-8; encode it as UTF-8") from None
    if _CONTROL.search(plain):
        raise UsageError("the URI has an encoded control character; remove it")
    return plain


def _hide_parts(text: str, env: Environment) -> None:
    """Hide every part of a URI from an environment variable that is not a known word."""
    words = {*_all_schemes(), *_plain_words(), *registered(), "true", "false"}
    for part in re.split(r"[?&=/:@,;]+", text):
        if part and part not in words:
            env.hide(part)


# For logs


def is_secret(name: str) -> bool:
    """Whether the value of a parameter is a secret.

    >>> is_secret("sasl_password"), is_secret("kafka.sasl.jaas.config"), is_secret("password-file")
    (True, True, False)
    """
    return unquote(name).lower().replace("_", "-").endswith(SECRETS)


@cache
def _plain_words() -> frozenset[str]:
    """Parameters whose values are not secret: of formats, and of Headgate's own connectors."""
    formats = [load(name) for name in registered()]
    classes: list[type] = [
        cls for f in formats for cls in (f.options, f.encoding and f.encoding.options) if cls
    ]
    registries: tuple[Registry[Any], ...] = (SOURCES, SINKS)
    connectors = []
    for registry in registries:
        for name in registry.entries:
            with suppress(UsageError):  # its extra is not installed: no URI of it is used
                connectors.append(registry.load(name))
    classes += [each.Options for each in connectors]
    plain = {spelled(f.name) for cls in classes for f in fields(cls) if not f.metadata["private"]}
    tolerated = {word for each in connectors for word in getattr(each, "tolerated", ())}
    return frozenset((plain | tolerated | {"protocol", "format", BODY}) - {"schema"})


def masked(uri: str) -> str:
    """A URI for logs: without user and password, and with the values of harmless parameters only.

    >>> masked("kafka://me:pw@h:9092/t?protocol=maxwell&sasl-password=pw&kafka.ssl.key.password=x")
    'kafka://***@h:9092/t?protocol=maxwell&sasl-password=***&kafka.ssl.key.password=***'
    """
    before, question, query = uri.partition("?")
    head, slashes, rest = before.partition("//")
    hosts = _BETWEEN_HOSTS.split(rest.partition("/")[0])
    if slashes and not all(map(_HOST.fullmatch, hosts)):
        # Up to the last @ of all: a password may have any character that was not encoded.
        _, at, after = (rest + question + query).rpartition("@")
        if at:
            rest, question, query = after.partition("?")
            rest = f"***@{rest}"
    elif not slashes and "@" in before:
        head = "***@" + before.rpartition("@")[2]
    params = "&".join(_masked_pair(pair) for pair in query.split("&"))
    return _CONTROL.sub("?", f"{head}{slashes}{rest}{question}{params}")


def _masked_pair(pair: str) -> str:
    name, equals, _ = pair.partition("=")
    if not pair:
        return ""
    if not _NAME.fullmatch(name):
        return "***"
    if equals and name.replace("_", "-") in _plain_words():
        return pair
    return f"{name}=***"
