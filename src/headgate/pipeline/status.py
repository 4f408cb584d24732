"""The status of a job: a status file, a line for people, JSON logs, Prometheus metrics."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, TextIO

import click
import msgspec

from headgate.core.errors import StorageError, UsageError, shown
from headgate.pipeline.console import Console
from headgate.pipeline.counts import Counts
from headgate.pipeline.plan import PartitionReport
from headgate.pipeline.state import State
from headgate.spark.filesystem import NO_SETTINGS
from headgate.spark.state_files import DamagedState, read_state, write_state
from headgate.spark.storage import Storage

FILE = "status.json"
STALE_SECONDS = 30.0
IDLE_SECONDS = 2.0
"""How long after its last batch a job is idle."""
IDLE_REPORT_SECONDS = 300.0
"""How often an idle job says so where no terminal is."""
SAVE_SECONDS = 10.0
"""The status of a running job is written to an object store at most once in this time."""


class Status(msgspec.Struct):
    """The status of a job."""

    name: str
    state: str = "starting"
    """`starting`, `running`, `stopped` or `failed`."""
    reason: str | None = None
    batch: int = -1
    updated: float = 0.0
    """When this was written, in seconds since the epoch."""
    rate: float = 0.0
    """Messages per second of the last batch; 0 while the job is idle or stopped."""
    idle_since: float | None = None
    """Since when there is nothing to do, in seconds since the epoch; None while there is."""
    lag_offsets: int | None = None
    """Messages in the source that are not processed yet; None where the source cannot tell."""
    lag_seconds: float | None = None
    """Age of the newest change that was written; 0 when nothing is pending."""
    watermark: int | None = None
    totals: Counts = msgspec.field(default_factory=Counts)
    splice_mismatches: int = 0
    """How often the job was stopped because splicing and the codecs disagree."""


class Reporter:
    """Keeps the status of a job, and reports it."""

    def __init__(
        self, name: str, storage: Storage, json_logs: bool = False, out: TextIO | None = None
    ) -> None:
        self.status = Status(name)
        self.newest: int | None = None
        self.storage, self.json_logs = storage, json_logs
        self.console = Console(out)
        self.saved = (0.0, "")
        """When the status was last written, and its state."""
        self.worked, self.idle_reported = time.time(), -IDLE_REPORT_SECONDS
        """When the last batch ended, or the job began; when it was last reported as idle."""
        self.busy_since: float | None = None

    def resume_from(self, state: State) -> None:
        """Continue the totals of earlier runs."""
        self.status.batch, self.status.totals = state.batch, state.totals
        self.status.watermark, self.newest = state.announced, state.newest
        with suppress(DamagedState):  # it is rewritten below, and nothing depends on it
            earlier = read_state(self.storage, FILE, Status)
            self.status.splice_mismatches = 0 if earlier is None else earlier.splice_mismatches
        self.save()

    def step(self, what: str) -> None:
        """Say what is being done before the first batch."""
        if not self.json_logs:
            self.console.line(f"{self.status.name}: {what}")

    def started(self) -> None:
        """Report that the job runs, also where there is nothing to do yet."""
        self.status.state, self.worked = "running", time.time()
        self.save()

    def idle(self) -> None:
        """Report that there is nothing to do: often in a terminal, rarely elsewhere."""
        self.busy_since = None
        if time.time() - self.worked < IDLE_SECONDS:
            return
        self.status.rate, self.status.idle_since = 0.0, self.worked
        self.status.updated = now = time.time()
        if self.json_logs:
            return
        if self.console.is_terminal:
            self.console.rewrite(describe(self.status))
        elif now - self.idle_reported >= IDLE_REPORT_SECONDS:
            self.idle_reported = now
            self.console.line(describe(self.status))

    def working(self) -> None:
        """Report, in a terminal, that a batch is under way."""
        self.status.idle_since = None
        now = time.monotonic()
        self.busy_since = self.busy_since or now
        if self.console.is_terminal and not self.json_logs:
            batch = f"batch {self.status.batch + 1} under way for {now - self.busy_since:,.0f} s"
            self.console.rewrite(f"{describe(self.status)}; {batch}")

    def batch_done(self, state: State, reports: list[PartitionReport], seconds: float) -> None:
        """Add a batch to the status, and report it."""
        status = self.status
        status.state, status.batch = "running", state.batch
        messages = sum(report.counts.messages for report in reports)
        status.rate = round(messages / seconds, 1) if seconds else 0.0
        status.idle_since, self.worked, self.busy_since = None, time.time(), None
        status.totals, status.watermark = state.totals, state.announced
        self.newest = state.newest
        self.set_lag(status.lag_offsets)
        self.save()
        self.log("batch", messages=messages, seconds=round(seconds, 3))

    def set_lag(self, offsets: int | None) -> None:
        """Set how many messages of the source are not processed yet."""
        self.status.lag_offsets = offsets
        if not offsets:
            self.status.lag_seconds = None if offsets is None else 0.0
        elif self.newest is not None:
            self.status.lag_seconds = round(max(0.0, time.time() - self.newest / 1e6), 3)

    def ended(self, state: str, reason: str | None = None) -> None:
        """Report how the job ended."""
        self.status.state, self.status.reason = state, reason
        self.status.rate, self.status.idle_since = 0.0, None
        self.save()
        if self.json_logs or state != "failed":  # the caller reports the failure
            self.log(state, reason=reason)
        self.console.close()

    def save(self) -> None:
        """Write the status for `headgate status`; to an object store not every time it changes."""
        now, state = time.time(), self.status.state
        recent = now - self.saved[0] < SAVE_SECONDS and state == self.saved[1]
        if recent and not self.storage.renames:
            return
        self.saved = now, state
        self.status.updated = now
        with suppress(StorageError):  # no reason to stop the job, nor to hide why it stopped
            write_state(self.storage, FILE, self.status)

    def log(self, event: str, **more: Any) -> None:
        """Write one line of the log."""
        if self.json_logs:
            entry = {"event": event, **msgspec.to_builtins(self.status), **more}
            self.console.line(msgspec.json.encode(entry).decode())
        elif event == "batch":
            self.console.rewrite(describe(self.status))
        else:
            self.console.line(describe(self.status))


def describe(status: Status) -> str:
    """A status as one line.

    >>> describe(Status("orders", "running", batch=3, rate=1200.0, lag_offsets=12, lag_seconds=3.2))
    'orders: running, batch 3, 1,200 messages/s, lag: 12 messages, 3.2 s; total: 0 messages, 0 dead letters'
    >>> describe(Status("orders", "running", batch=3, lag_offsets=0, idle_since=1.0, updated=8.0))
    'orders: running, idle for 7 s, batch 3, lag: 0 messages; total: 0 messages, 0 dead letters'
    """  # noqa: E501
    now = [status.state]
    if status.idle_since is not None:
        now.append(f"idle for {status.updated - status.idle_since:,.0f} s")
    now.append(f"batch {status.batch}" if status.batch >= 0 else "no batch yet")
    if status.state == "running" and status.idle_since is None:
        now.append(f"{status.rate:,.0f} messages/s")
    if status.lag_offsets is not None:
        now.append(f"lag: {status.lag_offsets:,} messages")
    if status.lag_seconds:
        now.append(f"{status.lag_seconds:,.1f} s")
    totals = status.totals
    total = [f"{totals.messages:,} messages", f"{totals.dead_letters:,} dead letters"]
    if totals.repeated:
        total.append(f"{totals.repeated:,} duplicates")
    if totals.filtered:
        total.append(f"{totals.filtered:,} filtered")
    reason = f"; {status.reason}" if status.reason else ""
    return f"{status.name}: {', '.join(now)}; total: {', '.join(total)}{reason}"


def details(status: Status) -> Iterator[str]:
    """A status as lines: the job, then for each table its changes, dead letters and merges."""
    yield describe(status)
    totals = status.totals
    for table in sorted({*totals.rows, *totals.rejected, *totals.merged}):
        rows, rejected = totals.rows.get(table, {}), totals.rejected.get(table, {})
        counts = [f"{n:,} {op}" for op, n in sorted(rows.items())]
        counts += [f"{n:,} rejected ({code})" for code, n in sorted(rejected.items())]
        counts += [f"{n:,} rows {what}" for what, n in totals.merged.get(table, {}).items() if n]
        yield f"  {shown(table)[1:-1] or '(no table)'}: {', '.join(counts)}"


def read(checkpoint: str, settings: Mapping[str, str] = NO_SETTINGS) -> Status:
    """The status that a job last wrote."""
    status = read_state(Storage(f"{checkpoint}/headgate", settings), FILE, Status)
    if status is None:
        raise UsageError(f"{checkpoint} has no status of a job; give a job file or its checkpoint")
    silent = time.time() - status.updated
    if status.state in ("starting", "running") and silent > STALE_SECONDS:
        status.reason = f"no status update for {silent:,.0f} s; the process may be dead"
    return status


def metrics(status: Status) -> Iterator[Any]:
    """A status as Prometheus metrics."""
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    totals = status.totals
    labels = ["job"]
    for name, help_, value in (
        ("messages", "Messages read", totals.messages),
        ("events", "Events in the messages read", totals.events),
        ("watermarks", "Watermarks among them", totals.watermarks),
        ("rejected_events", "Events in dead letters", totals.rejected_events),
        ("repeated", "Changes recognised as duplicates", totals.repeated),
        ("late", "Changes older than the watermark", totals.late),
        ("filtered", "Events filtered by the rules of the job", totals.filtered),
        (
            "splice_mismatches",
            "Stops because splicing and the codecs disagree",
            status.splice_mismatches,
        ),
    ):
        family = CounterMetricFamily(f"headgate_{name}", help_, labels=labels)
        family.add_metric([status.name], value)
        yield family
    rows = CounterMetricFamily("headgate_rows", "Changes written", labels=["job", "table", "op"])
    for table, counts in totals.rows.items():
        for op, n in counts.items():
            rows.add_metric([status.name, table, op], n)
    yield rows
    rejected = CounterMetricFamily(
        "headgate_dead_letters", "Dead letters", labels=["job", "table", "code"]
    )
    for table, counts in totals.rejected.items():
        for code, n in counts.items():
            rejected.add_metric([status.name, table, code], n)
    yield rejected
    merged = CounterMetricFamily(
        "headgate_merged", "What merges did to landed tables", labels=["job", "table", "result"]
    )
    for table, counts in totals.merged.items():
        for result, n in counts.items():
            merged.add_metric([status.name, table, result], n)
    yield merged
    for name, help_, gauge in (
        ("rate", "Messages per second of the last batch; 0 while idle", status.rate),
        ("lag_offsets", "Messages in the source that are not processed yet", status.lag_offsets),
        ("lag_seconds", "Age of the newest change written", status.lag_seconds),
        ("up", "Whether the job runs", float(status.state == "running")),
    ):
        if gauge is not None:
            gauges = GaugeMetricFamily(f"headgate_{name}", help_, labels=labels)
            gauges.add_metric([status.name], gauge)
            yield gauges


def serve(reporter: Reporter, address: str) -> Any:
    """Serve the metrics over HTTP; returns the server, which can be shut down."""
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
