"""How a server is reached: parameters of a URI, and the connections that they describe."""

from __future__ import annotations

import ssl
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self, TypeVar
from urllib.parse import quote, urlencode

import pymysql

from headgate.core.connectors import Address
from headgate.core.errors import UsageError
from headgate.core.options import build, option
from headgate.core.scalars import duration, truth
from headgate.core.tls import TlsOptions, tls_texts
from headgate.mysql.connection import Connection
from headgate.mysql.errors import DisconnectedError

DEFAULT_PORT = 3306
CONNECT_SECONDS = 10
RETRY = 120.0
"""Seconds for which a server that is away is asked again."""
PAUSES = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
ACCESS_DENIED = {1044, 1045, 1142, 1143, 1227, 1698}
T = TypeVar("T")


@dataclass(frozen=True)
class LoginOptions(TlsOptions):
    """Parameters of any URI of a server."""

    insecure_skip_verify: bool = option(
        False, "do not check the server's certificate", read=truth, private=True
    )
    password_file: str | None = option(
        None, "file that contains the password, read at start", private=True
    )
    retry: float = option(
        RETRY, "how long a running job waits for a server that is away", read=duration
    )


O = TypeVar("O", bound=LoginOptions)  # noqa: E741


@dataclass(frozen=True)
class Login:
    """Where a server is, and who asks. It can be pickled; its text shows no secret."""

    host: str
    port: int
    user: str = field(repr=False)
    password: str = field(default="", repr=False)
    tls: dict[str, str] | None = field(default=None, repr=False)
    verify: bool = True
    retry: float = RETRY

    @property
    def address(self) -> str:
        """The server, for errors.

        >>> Login("db", 3306, "me", "hunter2").address
        'mysql://db:3306'
        """
        return f"mysql://{self.host}:{self.port}"

    @property
    def uri(self) -> str:
        """The server with user and password, as `headgate verify` takes it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        text = f"mysql://{quote(self.user, '')}:{quote(self.password, '')}@{host}:{self.port}/"
        if self.tls is None:
            return text
        if "cert" in self.tls:
            raise UsageError(
                "tables are compared through JDBC, which cannot show the certificate of cert= and "
                "key=; name the database beside the job, with a user who needs none and "
                "?sslMode=verify-full"
            )
        params = {"sslMode": "verify-full" if self.verify else "trust"}
        if self.verify and "ca" in self.tls:
            params["serverSslCert"] = self.tls["ca"]
        return f"{text}?{urlencode(params, quote_via=quote)}"

    def without_secrets(self) -> Self:
        """The login as it may be shown and stored."""
        return replace(self, user="", password="", tls=None)

    def connect(self) -> Connection:
        """A connection; DisconnectedError where nobody answers, UsageError where it is refused."""
        try:
            return Connection(
                host=self.host,
                port=self.port,
                user=self.user,
                password=self.password,
                connect_timeout=CONNECT_SECONDS,
                ssl=None if self.tls is None else _context(self.tls, self.verify),
            )
        except pymysql.err.OperationalError as error:
            number, text = (*error.args, "")[:2]
            if number in ACCESS_DENIED:
                raise UsageError(
                    f"{self.address} refuses the user; check name and password ({number})"
                ) from None
            raise DisconnectedError(
                f"{self.address} does not answer ({text}); check the address, and whether the "
                "server runs"
            ) from None
        except (pymysql.err.MySQLError, OSError, RuntimeError) as error:
            raise DisconnectedError(f"{self.address}: {error}") from None

    @contextmanager
    def connected(self) -> Iterator[Connection]:
        """A connection that is closed in the end."""
        connection = self.connect()
        try:
            yield connection
        finally:
            connection.close()

    def retried(self, action: Callable[[], T]) -> T:
        """What an action gives; while the server is away, it is tried again."""
        until, attempt = time.monotonic() + self.retry, 0
        while True:
            try:
                return action()
            except DisconnectedError as error:
                if time.monotonic() > until:
                    raise DisconnectedError(f"{self.address}: {error}") from None
            time.sleep(PAUSES[min(attempt, len(PAUSES) - 1)])
            attempt += 1


def _context(texts: dict[str, str], verify: bool) -> ssl.SSLContext:
    """TLS with the certificates whose texts are given."""
    context = ssl.create_default_context(cadata=texts.get("ca"))
    if not verify:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if "cert" in texts:
        with tempfile.TemporaryDirectory() as folder:  # Python takes a certificate from files only
            for word in ("cert", "key"):
                (Path(folder) / word).touch(mode=0o600)
                (Path(folder) / word).write_text(texts[word])
            context.load_cert_chain(f"{folder}/cert", f"{folder}/key")
    return context


def login_of(options: type[O], address: Address) -> tuple[O, Login]:
    """The options of a URI, and the login.

    >>> login_of(LoginOptions, Address("mysql", ("db:3306",), ("me", "pw")))[1].port
    3306
    """
    if len(address.hosts) != 1 or address.login is None:
        raise UsageError(
            f"one server is read, by a user: {address.scheme}://USER:PASSWORD@HOST:PORT/DB.TABLE"
        )
    own: Any = build(options, address.params)
    user, password = address.login
    if own.password_file is not None:
        if password:
            raise UsageError("the password is both in the URI and in password-file; give it once")
        password = _password(own.password_file, address.base)
        address.env.hide(password)
    host, _, port = address.hosts[0].rpartition(":")
    texts = tls_texts(own, own.insecure_skip_verify, address)
    verify = not own.insecure_skip_verify
    login = Login(host.strip("[]"), int(port), user, password, texts, verify, own.retry)
    return own, login


def _password(path: str, base: str | None) -> str:
    try:
        return (Path(base or ".") / path).read_text().rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the file of password-file cannot be read: {error}") from None
