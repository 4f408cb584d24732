"""What the tests' MySQL and MariaDB have in common: a folder, a port, a password, a process."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Self

import pymysql
from server_process import ServerProcess, free_ports

from headgate.core.errors import UsageError

READY = 60
START = """ALTER USER root@localhost IDENTIFIED BY '{password}';
CREATE USER reader@localhost IDENTIFIED BY '{password}';
GRANT SELECT ON *.* TO reader@localhost;
"""


class DatabaseServer:
    """A server on loopback, from the files below `base`."""

    name: str
    program: str
    libraries: str
    options: tuple[str, ...]

    def __init__(self, base: Path) -> None:
        self.base = base
        self.folder = Path(tempfile.mkdtemp(prefix=f"headgate-{self.name.lower()}-"))
        self.log = self.folder / "log"
        [self.port] = free_ports(1)
        self.address = f"127.0.0.1:{self.port}"
        self.user, self.password = "root", secrets.token_hex(8)
        self.environment = {
            **os.environ,
            "LD_LIBRARY_PATH": str(base / self.libraries),
            # At its start a server removes temporary tables that it finds, others' too.
            "TMPDIR": str(self.folder),
        }
        self.process: ServerProcess | None = None

    def uri(self, database: str) -> str:
        """Of a user who may read and no more."""
        return f"mysql://reader:{self.password}@{self.address}/{database}"

    def install(self) -> None:
        """Make the data directory."""
        raise NotImplementedError

    def start(self) -> Self:
        """Make its data directory and start it; returns when it answers."""
        self.install()
        start = self.folder / "start.sql"
        start.write_text(START.format(password=self.password))
        self.launch(f"--init-file={start}")
        return self

    def restart(self) -> None:
        """Stop it cleanly and start it again, on the same port."""
        assert self.process is not None
        self.process.end()
        self.launch()

    def launch(self, *more: str) -> None:
        """Start it on its data directory; returns when it answers."""
        command = [
            *self.command(self.program), f"--socket={self.folder / 's'}", f"--port={self.port}",
            "--bind-address=127.0.0.1", "--log-bin=binlog", "--binlog-row-metadata=FULL",
            *self.options, *more,
        ]  # fmt: skip
        self.process = ServerProcess(command, self.folder, self.log, self.environment)
        self.wait()

    def wait(self) -> None:
        """Until it answers, or say with its log why it does not."""
        until = time.monotonic() + READY
        while self.process and self.process.is_running() and time.monotonic() < until:
            try:
                self.connect().close()
                return
            except pymysql.Error:
                time.sleep(0.2)
        text = self.log.read_text(errors="replace")
        self.close()
        raise UsageError(f"{self.name} did not start: {text[-500:]}")

    def close(self) -> None:
        """Stop it and remove its data."""
        if self.process:
            self.process.end(kill=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def command(self, program: str) -> list[str]:
        user = ["--user=root"] if os.geteuid() == 0 else []
        return [
            str(self.base / program), "--no-defaults", f"--basedir={self.base}",
            f"--datadir={self.folder / 'data'}", *user,
        ]  # fmt: skip

    def run_program(self, program: str, *options: str) -> None:
        """Run a program of the server's to its end."""
        done = subprocess.run(
            [*self.command(program), *options], capture_output=True, text=True, env=self.environment
        )
        if done.returncode:
            raise UsageError(f"{program}: {done.stdout[-300:]} {done.stderr[-300:]}")

    def connect(self) -> pymysql.Connection:
        return pymysql.connect(
            host="127.0.0.1", port=self.port, user=self.user, password=self.password,
            charset="utf8mb4", autocommit=True,
        )  # fmt: skip

    def run(self, *statements: str) -> None:
        """Run statements in one session."""
        with self.connect() as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
