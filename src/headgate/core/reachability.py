"""Whether servers answer and directories are there, found out in seconds and without Spark."""

from __future__ import annotations

import os
import queue
import socket
import time
from collections.abc import Iterable
from threading import Thread

from headgate.core.errors import Unreachable, UsageError

SECONDS = 5.0
"""How long servers are waited for, all of them together."""
_PATTERN = frozenset("*?[{")


def check_servers(addresses: Iterable[str], seconds: float = SECONDS) -> None:
    """Refuse servers, each `host:port`, of which none takes a connection.

    >>> check_servers(["127.0.0.1:1"])
    Traceback (most recent call last):
    headgate.core.errors.Unreachable: 127.0.0.1:1 cannot be reached: Connection refused; check the \
address, and that the server runs
    """
    wanted = sorted(addresses)
    answers: queue.Queue[tuple[str, str | None]] = queue.Queue()
    for address in wanted:
        Thread(target=lambda a: answers.put((a, _connect(a, seconds))), args=(address,),
               daemon=True).start()  # fmt: skip
    reasons = dict.fromkeys(wanted, f"no answer within {seconds:.0f} s")
    until = time.monotonic() + seconds
    for _ in wanted:
        try:
            address, reason = answers.get(timeout=max(0.0, until - time.monotonic()))
        except queue.Empty:
            break
        if reason is None:
            return
        reasons[address] = reason
    each = ", ".join(f"{address} cannot be reached: {why}" for address, why in reasons.items())
    raise Unreachable(f"{each}; check the address, and that the server runs")


def _connect(address: str, seconds: float) -> str | None:
    """Why a server cannot be reached; None where it can."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=seconds).close()
    except socket.gaierror:
        return "the host's name is not known"
    except TimeoutError:
        return f"no answer within {seconds:.0f} s"
    except OSError as error:
        return os.strerror(error.errno) if error.errno else str(error)
    return None


def check_readable(path: str) -> None:
    """Refuse a local path that is not there or cannot be read; patterns are not looked at.

    >>> check_readable("/no/such/directory")
    Traceback (most recent call last):
    headgate.core.errors.UsageError: there is no directory /no/such/directory; create it, or \
correct the path
    """
    if _PATTERN & set(path):
        return
    if not os.path.exists(path):
        raise UsageError(f"there is no directory {path}; create it, or correct the path")
    if not os.access(path, os.R_OK | (os.X_OK if os.path.isdir(path) else 0)):
        raise UsageError(f"{path} cannot be read; change its permissions, or correct the path")


def check_writable(path: str) -> None:
    """Refuse a local directory that can be neither written to nor created.

    >>> check_writable("/dev/null/out")
    Traceback (most recent call last):
    headgate.core.errors.UsageError: /dev/null/out cannot be created: /dev/null is not a \
directory; correct the path
    """
    there = os.path.abspath(path)
    while not os.path.lexists(there):
        there = os.path.dirname(there)
    does = "written to" if there == os.path.abspath(path) else "created"
    if not os.path.isdir(there):
        reason = f"{there} is not a directory; correct the path"
    elif not os.access(there, os.W_OK | os.X_OK):
        reason = f"no permission to write to {there}; change it, or correct the path"
    else:
        return
    raise UsageError(f"{path} cannot be {does}: {reason}")
