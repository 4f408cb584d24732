"""A checkpoint belongs to one running instance of its job at a time.

A small file in the checkpoint names its holder, which renews it. The lease is free when its holder
is known to be dead, or has not renewed it for a while. Another instance can take it then, so a
holder that was suspended (a stopped process, a machine out of memory) checks before each write that
it still holds the lease.
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
_own_tokens: set[str] = set()
"""The tokens of the leases that this process holds."""


class Holder(msgspec.Struct):
    """Who holds a checkpoint."""

    token: str
    host: str
    pid: int
    system: str | None
    """The booted system and its process namespace; None where they are unknown."""
    began: str | None
    """When the process started, by that system's clock: process ids are reused."""
    since: float
    renewed: float

    def described(self) -> str:
        """The holder, for an error."""
        since = datetime.fromtimestamp(self.since, UTC).isoformat(" ", "seconds")
        return f"process {self.pid} on {self.host}, since {since}"

    def is_dead(self) -> bool:
        """Whether the holder is known to be dead; only its own system can tell."""
        if self.system is None or self.system != this_system():
            return False
        if self.pid == os.getpid() and self.began == began(self.pid):
            return self.token not in _own_tokens
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
        self.instance = Holder(
            uuid.uuid4().hex, socket.gethostname(), pid, this_system(), began(pid), now, now
        )
        self.lost: LeaseError | None = None
        self.lock = threading.Lock()
        """Where a file is replaced in two steps, it must not be read between them."""
        self.ended = threading.Event()
        self.renewing = threading.Thread(target=self.keep, name="lease", daemon=True)

    def __enter__(self) -> Lease:
        holder = self.holder()
        if holder is not None and not holder.is_dead() and not self.is_silent(holder):
            raise LeaseError(
                f"{self.storage.uri} is in use by another instance of the job: "
                f"{holder.described()}; stop it first. If it is dead, the checkpoint is free "
                f"{self.expire_seconds:.0f} s after its last renewal"
            )
        self.write()
        _own_tokens.add(self.instance.token)
        self.renewing.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.renewing.join()
        _own_tokens.discard(self.instance.token)
        holder = read_state(self.storage, FILE, Holder)
        if holder is not None and holder.token == self.instance.token:
            self.storage.delete(FILE)

    def holder(self) -> Holder | None:
        """Who holds the lease; a file truncated by a crash, which nobody renews, does not count."""
        try:
            return read_state(self.storage, FILE, Holder)
        except DamagedState:
            truncated = self.storage.read(FILE)
            time.sleep(1.5 * self.renew_seconds)
            if self.storage.read(FILE) == truncated:
                return None
            return read_state(self.storage, FILE, Holder)

    def is_silent(self, holder: Holder) -> bool:
        """Whether a holder has stopped renewing its lease.

        Clocks differ and jump, so its timestamp only tells whether it is worth waiting to see.
        """
        if abs(time.time() - holder.renewed) < self.expire_seconds:
            return False
        time.sleep(1.5 * self.renew_seconds)
        return read_state(self.storage, FILE, Holder) == holder

    def check(self) -> None:
        """Raise where another instance has taken the lease."""
        if self.lost is not None:
            raise self.lost
        with self.lock:
            holder = read_state(self.storage, FILE, Holder)
        if holder is None or holder.token != self.instance.token:
            by = "which has ended since" if holder is None else holder.described()
            self.lost = LeaseError(
                f"{self.storage.uri} was taken over by another instance of the job, {by}, while "
                "this one did not renew its lease; nothing more is written. Leave the job to that "
                "instance, or stop it and start again"
            )
            raise self.lost

    def keep(self) -> None:
        """Renew the lease until it is released or lost."""
        while not self.ended.wait(self.renew_seconds):
            before = time.monotonic()
            try:
                self.check()
                self.write()
            except LeaseError:
                return
            except Exception:  # the next renewal, or the job's own writes, will report it
                continue
            suspended = time.monotonic() - before
            if suspended > self.expire_seconds:
                self.lost = LeaseError(
                    f"{self.storage.uri}: this instance of the job was suspended for "
                    f"{suspended:.0f} s while it renewed its lease, and another may have started; "
                    "start it again"
                )
                return

    def write(self) -> None:
        """Renew the lease."""
        self.instance.renewed = time.time()
        with self.lock:
            write_state(self.storage, FILE, self.instance)


def this_system() -> str | None:
    """An identifier of this booted system and its process namespace; None where it has none."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return None


def began(pid: int) -> str | None:
    """When a process of this system started; None if it is gone.

    >>> began(os.getpid()) == began(os.getpid()) != began(1)
    True
    """
    try:
        state, *rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (OSError, ValueError):
        return None
    return None if state in ("Z", "X") else rest[18]
