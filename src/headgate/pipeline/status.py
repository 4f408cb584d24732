"""What a job tells of itself: a status file, a line for people, JSON logs, Prometheus' figures."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, TextIO

import click
import msgspec

from headgate.core.errors import StorageError, UsageError, shown
from headgate.pipeline.counts import Counts
from headgate.pipeline.plan import PartitionReport
from headgate.pipeline.state import State
from headgate.spark.filesystem import NO_SETTINGS
from headgate.spark.state_files import DamagedState, read_state, write_state
from headgate.spark.storage import Storage

FILE = "status.json"
STALE_SECONDS = 30.0
SAVE_SECONDS = 10.0
"""An object store gets the status of a job that goes on no more often than this."""


class Status(msgspec.Struct):
    """A job as it is now."""

    name: str
    state: str = "starting"
    """`starting`, `running`, `stopped` or `failed`."""
    reason: str | None = None
    batch: int = -1
    updated: float = 0.0
    """When this was written, in seconds since the epoch."""
    rate: float = 0.0
    """Messages per second, of the last batch."""
    lag_offsets: int | None = None
    """Messages in the source that are not processed; None where the source cannot say."""
    lag_seconds: float | None = None
    """How long ago the newest change that was written happened; 0 when nothing waits."""
    watermark: int | None = None
    totals: Counts = msgspec.field(default_factory=Counts)
    splice_mismatches: int = 0
    """How often the job was stopped because splicing and the codecs disagree."""


class Reporter:
    """Keeps a job's status, and tells it."""

    def __init__(
        self, name: str, storage: Storage, json_logs: bool = False, out: TextIO | None = None
    ) -> None:
        self.status = Status(name)
        self.newest: int | None = None
        self.storage, self.json_logs = storage, json_logs
        self.out = out or sys.stderr
        self.saved = (0.0, "")
        """When the status was last written, and the state it told."""
        self.live = self.out.isatty() and not json_logs

    def starts_with(self, state: State) -> None:
        """Take in what earlier runs did."""
        self.status.batch, self.status.totals = state.batch, state.totals
        self.status.watermark, self.newest = state.announced, state.newest
        with suppress(DamagedState):  # it is written anew, and nothing depends on it
            earlier = read_state(self.storage, FILE, Status)
            self.status.splice_mismatches = 0 if earlier is None else earlier.splice_mismatches
        self.save()

    def started(self) -> None:
        """Say that the job runs, also where there is nothing to do yet."""
        self.status.state = "running"
        self.save()

    def batch_done(self, state: State, reports: list[PartitionReport], seconds: float) -> None:
        """Take in what a batch did, and say it."""
        status = self.status
        status.state, status.batch = "running", state.batch
        messages = sum(report.counts.messages for report in reports)
        status.rate = round(messages / seconds, 1) if seconds else 0.0
        status.totals, status.watermark = state.totals, state.announced
        self.newest = state.newest
        self.note_lag(status.lag_offsets)
        self.save()
        self.say("batch", messages=messages, seconds=round(seconds, 3))

    def note_lag(self, offsets: int | None) -> None:
        """Take in how far behind the job is."""
        self.status.lag_offsets = offsets
        if not offsets:
            self.status.lag_seconds = None if offsets is None else 0.0
        elif self.newest is not None:
            self.status.lag_seconds = round(max(0.0, time.time() - self.newest / 1e6), 3)

    def ended(self, state: str, reason: str | None = None) -> None:
        """Say how the job ended."""
        self.status.state, self.status.reason = state, reason
        self.save()
        if self.json_logs or state != "failed":  # whoever started it says why it failed
            self.say(state, reason=reason)

    def save(self) -> None:
        """Write the status for `headgate status`; to an object store not every time it changes."""
        now, state = time.time(), self.status.state
        held = now - self.saved[0] < SAVE_SECONDS and state == self.saved[1]
        if held and not self.storage.renames:
            return
        self.saved = now, state
        self.status.updated = now
        with suppress(StorageError):  # no reason to stop, and not to hide one
            write_state(self.storage, FILE, self.status)

    def say(self, event: str, **more: Any) -> None:
        """One line of the log."""
        if self.json_logs:
            told = {"event": event, **msgspec.to_builtins(self.status), **more}
            line = msgspec.json.encode(told).decode()
        else:
            line = describe(self.status)
        if self.live and event == "batch":
            self.out.write(f"\r\x1b[K{line}")
        else:
            self.out.write(f"{line}\n")
        self.out.flush()


def describe(status: Status) -> str:
    """A status as one line.

    >>> describe(Status("orders", "running", batch=3, rate=1200.0, lag_offsets=0))
    'orders: running, batch 3, 1,200 messages/s, 0 behind, 0 messages, 0 dead letters'
    """
    parts = [status.state, f"batch {status.batch}", f"{status.rate:,.0f} messages/s"]
    if status.lag_offsets is not None:
        parts.append(f"{status.lag_offsets:,} behind")
    if status.lag_seconds:
        parts.append(f"{status.lag_seconds:,.1f} s late")
    totals = status.totals
    parts += [f"{totals.messages:,} messages", f"{totals.dead_letters:,} dead letters"]
    if totals.repeated:
        parts.append(f"{totals.repeated:,} repeats")
    if status.reason:
        parts.append(status.reason)
    return f"{status.name}: {', '.join(parts)}"


def details(status: Status) -> Iterator[str]:
    """A status as lines: the job, then table by table what was written and what was not."""
    yield describe(status)
    tables = sorted({*status.totals.rows, *status.totals.rejected})
    for table in tables:
        rows = status.totals.rows.get(table, {})
        dead = status.totals.rejected.get(table, {})
        told = [f"{n:,} {op}" for op, n in sorted(rows.items())]
        told += [f"{n:,} dead ({code})" for code, n in sorted(dead.items())]
        yield f"  {shown(table)[1:-1] or '(no table)'}: {', '.join(told)}"


def read(checkpoint: str, settings: Mapping[str, str] = NO_SETTINGS) -> Status:
    """The status that a job last wrote."""
    status = read_state(Storage(f"{checkpoint}/headgate", settings), FILE, Status)
    if status is None:
        raise UsageError(f"{checkpoint} holds no job's status; name a job file or its checkpoint")
    silent = time.time() - status.updated
    if status.state in ("starting", "running") and silent > STALE_SECONDS:
        status.reason = f"not heard of for {silent:,.0f} s; it may have been killed"
    return status


def metrics(status: Status) -> Iterator[Any]:
    """A status as Prometheus' figures."""
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    totals = status.totals
    labels = ["job"]
    for name, help_, value in (
        ("messages", "Messages read", totals.messages),
        ("events", "Events in the messages read", totals.events),
        ("watermarks", "Watermarks among them", totals.watermarks),
        ("rejected_events", "Events in dead letters", totals.rejected_events),
        ("repeated", "Changes recognised as repeats", totals.repeated),
        ("late", "Changes that came after the watermark", totals.late),
        ("filtered", "Changes that the selection leaves out", totals.filtered),
        ("splice_mismatches", "Stops by a mismatch of splicing", status.splice_mismatches),
    ):
        family = CounterMetricFamily(f"headgate_{name}", help_, labels=labels)
        family.add_metric([status.name], value)
        yield family
    rows = CounterMetricFamily("headgate_rows", "Changes written", labels=["job", "table", "op"])
    for table, counts in totals.rows.items():
        for op, n in counts.items():
            rows.add_metric([status.name, table, op], n)
    yield rows
    dead = CounterMetricFamily(
        "headgate_dead_letters", "Dead letters", labels=["job", "table", "code"]
    )
    for table, counts in totals.rejected.items():
        for code, n in counts.items():
            dead.add_metric([status.name, table, code], n)
    yield dead
    for name, help_, gauge in (
        ("rate", "Messages per second, of the last batch", status.rate),
        ("lag_offsets", "Messages in the source that wait", status.lag_offsets),
        ("lag_seconds", "Age of the newest change written", status.lag_seconds),
        ("up", "Whether the job runs", float(status.state == "running")),
    ):
        if gauge is not None:
            found = GaugeMetricFamily(f"headgate_{name}", help_, labels=labels)
            found.add_metric([status.name], gauge)
            yield found


def serve(reporter: Reporter, address: str) -> Any:
    """Serve the figures over HTTP; returns what stops it."""
    from prometheus_client import CollectorRegistry, start_http_server

    class Collector:
        def collect(self) -> Iterator[Any]:
            return metrics(reporter.status)

    registry = CollectorRegistry()
    registry.register(Collector())
    host, _, port = address.rpartition(":")
    try:
        server, _ = start_http_server(int(port), addr=host or "127.0.0.1", registry=registry)
    except OSError as error:
        raise UsageError(f"cannot serve metrics on {address}: {error.strerror}") from None
    return server


def echo(status: Status, as_json: bool) -> None:
    """Print a status."""
    if as_json:
        click.echo(msgspec.json.encode(status))
    else:
        for line in details(status):
            click.echo(line)
