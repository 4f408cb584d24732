"""A server that tests start: it dies, and its folder goes, when the tests do."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

SHORT_LIVED = ("-XX:TieredStopAtLevel=1",)
"""Options of a JVM that lives for minutes: what its second compiler saves, it has used before."""

WATCHDOG = 'cat >/dev/null; kill -9 "$1"; rm -rf "$2"'
PATIENCE = 20


class ServerProcess:
    """One process of a server, and its output in a file."""

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        log: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                command, stdout=output, stderr=output, env=environment, start_new_session=True
            )
        # Its input ends when this process does, however it dies.
        self.watchdog = subprocess.Popen(
            ["sh", "-c", WATCHDOG, "watchdog", str(self.process.pid), str(folder)],
            stdin=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def is_running(self) -> bool:
        return self.process.poll() is None

    def end(self, kill: bool = False) -> None:
        """Stop it cleanly, or as kill -9 does; its folder stays."""
        self.process.kill() if kill else self.process.terminate()
        try:
            self.process.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        # Before its input ends: it would kill whoever has the number by then.
        self.watchdog.kill()
        self.watchdog.wait()
        if self.watchdog.stdin:
            self.watchdog.stdin.close()


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on; all stay open until the last is known, so that they differ."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()
