"""A checkpoint belongs to one running instance of its job at a time.

Who holds it is in a small file of the checkpoint, that the holder renews. It is free when its
holder is known to be dead, or has not renewed it for a while. Another can take it then, so a holder
that was held up (a stopped process, a machine without memory) looks before each write whether the
checkpoint is still its own.
"""

from __future__ import annotations

import os
import socket
import threading
import time
import uuid
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from headgate.core.errors import HeadgateError
from headgate.spark.state_files import DamagedState, read_state, write_state
from headgate.spark.storage import Storage

FILE = "lease.json"
RENEW_SECONDS, EXPIRE_SECONDS = 10.0, 60.0
_held: set[str] = set()
"""The leases of this process."""


class Holder(msgspec.Struct):
    """Who holds a checkpoint."""

    token: str
    host: str
    pid: int
    system: str | None
    """The running system and its process numbers; None where that cannot be said."""
    began: str | None
    """When the process began, by that system's clock: numbers of processes are used again."""
    since: float
    renewed: float

    def described(self) -> str:
        """The holder, for an error."""
        since = datetime.fromtimestamp(self.since, UTC).isoformat(" ", "seconds")
        return f"process {self.pid} on {self.host}, since {since}"

    def is_dead(self) -> bool:
        """Whether the holder is known to be gone; only its own system can tell."""
        if self.system is None or self.system != this_system():
            return False
        if self.pid == os.getpid() and self.began == began(self.pid):
            return self.token not in _held
        return began(self.pid) != self.began


class LeaseError(HeadgateError):
    """The checkpoint belongs to another instance of the job."""


class Lease:
    """The right to write to a checkpoint and its targets.

    >>> import tempfile
    >>> store = Storage(tempfile.mkdtemp())
    >>> with Lease(store) as lease:
    ...     lease.check()
    ...     lease.lost is None
    True
    """

    def __init__(
        self, storage: Storage, renew: float = RENEW_SECONDS, expire: float = EXPIRE_SECONDS
    ) -> None:
        self.storage, self.renew_seconds, self.expire_seconds = storage, renew, expire
        now, pid = time.time(), os.getpid()
        self.own = Holder(
            uuid.uuid4().hex, socket.gethostname(), pid, this_system(), began(pid), now, now
        )
        self.lost: LeaseError | None = None
        self.lock = threading.Lock()
        """Where a file is replaced in two steps, it is not to be looked for between them."""
        self.ended = threading.Event()
        self.renewing = threading.Thread(target=self.keep, name="lease", daemon=True)

    def __enter__(self) -> Lease:
        found = self.holder()
        if found is not None and not found.is_dead() and not self.is_silent(found):
            raise LeaseError(
                f"{self.storage.uri} is in use by another instance of the job: "
                f"{found.described()}; stop that one first. If it is dead, the checkpoint is free "
                f"{self.expire_seconds:.0f} s after it was last heard of"
            )
        self.write()
        _held.add(self.own.token)
        self.renewing.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.renewing.join()
        _held.discard(self.own.token)
        found = read_state(self.storage, FILE, Holder)
        if found is not None and found.token == self.own.token:
            self.storage.delete(FILE)

    def holder(self) -> Holder | None:
        """Who holds the lease; a file that a crash cut short, and nobody renews, is no lease."""
        try:
            return read_state(self.storage, FILE, Holder)
        except DamagedState:
            cut = self.storage.read(FILE)
            time.sleep(1.5 * self.renew_seconds)
            if self.storage.read(FILE) == cut:
                return None
            return read_state(self.storage, FILE, Holder)

    def is_silent(self, found: Holder) -> bool:
        """Whether a holder has stopped renewing its lease.

        Clocks differ and jump, so that its time only says whether it is worth waiting to see.
        """
        if abs(time.time() - found.renewed) < self.expire_seconds:
            return False
        time.sleep(1.5 * self.renew_seconds)
        return read_state(self.storage, FILE, Holder) == found

    def check(self) -> None:
        """Refuse to go on where another has taken the lease."""
        if self.lost is not None:
            raise self.lost
        with self.lock:
            found = read_state(self.storage, FILE, Holder)
        if found is None or found.token != self.own.token:
            by = found.described() if found is not None else "one that has ended since"
            self.lost = LeaseError(
                f"{self.storage.uri} was taken over by another instance of the job, {by}, while "
                "this one was not heard of; nothing more is written. Leave the job to that one, or "
                "stop it and start again"
            )
            raise self.lost

    def keep(self) -> None:
        """Renew the lease until it is given back, or lost."""
        while not self.ended.wait(self.renew_seconds):
            looked = time.monotonic()
            try:
                self.check()
                self.write()
            except LeaseError:
                return
            except Exception:  # the next time, or what the job itself writes, tells
                continue
            held_up = time.monotonic() - looked
            if held_up > self.expire_seconds:
                self.lost = LeaseError(
                    f"{self.storage.uri}: this instance of the job was held up for {held_up:.0f} s "
                    "while it renewed its lease, and another may have begun; start it again"
                )
                return

    def write(self) -> None:
        """Say that the holder is alive."""
        self.own.renewed = time.time()
        with self.lock:
            write_state(self.storage, FILE, self.own)


def this_system() -> str | None:
    """What tells this running system, and its space of process numbers, from all others."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return None


def began(pid: int) -> str | None:
    """When a process of this system began; None if it is gone.

    >>> began(os.getpid()) == began(os.getpid()) != began(1)
    True
    """
    try:
        state, *rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (OSError, ValueError):
        return None
    return None if state in ("Z", "X") else rest[18]
