"""How fast Headgate lands changes in Delta tables, beside MERGE in foreachBatch."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median

from harness import SAMPLE, first_line, markdown, times
from kafka_topics import BROKER, Broker
from landing_changes import Changes, State
from landing_sides import LAKE, Job, Peer
from pyspark.sql import SparkSession

MICRO_BATCH = 10_000
LARGE_BATCH = 1_000_000
"""The most messages that a job takes from Kafka at once by default."""
ONE_TABLE_CHANGES = 500_000
COLD = 3
"""Unmeasured turns of one table: before some million messages no JVM is warm, as a job's is."""
PEER_SECONDS = 12
"""How long the peer merges in a turn: a batch of all tables would take it minutes."""
PEER_BAR, SPEED_BAR, GROWTH_BAR = 5.0, 60_000, 1.3
ROWS, GROWTH = 100_000, 16
"""The rows of one table, and how many times as many it has when it has grown."""
WAITING, EACH = 30, 5
"""Micro-batches of a turn, where changes wait for their merge and where they do not. The former are
what 1,000 changes a second make in five minutes."""
GROWTH_ROUNDS = 2
LATER, NOW = "1h", "1ms"
"""Settings of merge_every by which changes wait, and by which those that wait are merged."""
LABELS = {
    "headgate": "headgate run",
    "peer": "MERGE in foreachBatch",
    "waiting 1": "headgate run, merge_every a time",
    f"waiting {GROWTH}": f"headgate run, merge_every a time, {GROWTH} x the rows",
    "batch 1": "headgate run, merge_every batch",
    f"batch {GROWTH}": f"headgate run, merge_every batch, {GROWTH} x the rows",
}
HEAD = ["tables", "by", "changes/s", "slowest to fastest", "ratio", "bar"]


@dataclass(frozen=True)
class Load:
    """Tables, and the changes that they go through."""

    name: str
    tables: int
    rows: int
    share: float
    """Changes for each message that the run is asked to measure with."""


LOADS = (
    Load("20 tables", 20, 20_000, 2.0),
    Load("200 small tables", 200, 1_000, 0.3),
)
ONE_TABLE = "1 table, large micro-batches"
GROWING = f"1 table that grows {GROWTH} times"


@dataclass
class LandingFigures:
    """The speeds of works, in changes per second, by turn."""

    name: str
    changes: int
    rates: dict[str, list[float]] = field(default_factory=dict)
    startups: list[float] = field(default_factory=list)
    """Seconds of the same job over SAMPLE changes, where that is what is taken out."""
    remarks: list[str] = field(default_factory=list)

    def remark(self, text: str) -> None:
        self.remarks.append(text)
        print(f"  ! {text}", flush=True)

    def add(self, work: str, rate: float) -> None:
        self.rates.setdefault(work, []).append(rate)
        print(f"  {LABELS[work]:55} {rate:>10,.0f} changes/s", flush=True)

    def rate(self, work: str) -> float | None:
        return median(self.rates[work]) if self.rates.get(work) else None

    def ratio(self, work: str, other: str) -> float | None:
        a, b = self.rate(work), self.rate(other)
        return a / b if a and b else None


@dataclass
class LandingBar:
    """What a work must reach, or must not exceed; None when it was not measured."""

    work: str
    name: str
    wanted: float
    reached: float | None
    is_ceiling: bool = False

    @property
    def holds(self) -> bool:
        if self.reached is None:
            return False
        return self.reached <= self.wanted if self.is_ceiling else self.reached >= self.wanted

    def __str__(self) -> str:
        if self.reached is None:
            return f"not measured: {self.name}"
        return f"{'holds' if self.holds else 'MISSED'}: {self.name}"


def measure(spark: SparkSession, count: int, rounds: int) -> list[LandingFigures]:
    """Every part in turn, through one broker."""
    parts: list[tuple[LandingFigures, Callable[[Broker, LandingFigures], None]]] = []
    for load in LOADS:
        figures = LandingFigures(load.name, whole_batches(count * load.share, rounds))
        parts.append((figures, lambda b, f, load=load: measure_load(spark, b, f, load, rounds)))
    figures = LandingFigures(ONE_TABLE, min(count, ONE_TABLE_CHANGES))
    parts.append((figures, lambda b, f: measure_one(spark, b, f, rounds)))
    shorter = min(1.0, count / LARGE_BATCH)
    batches = max(1, int(WAITING * shorter))
    figures = LandingFigures(GROWING, batches * MICRO_BATCH)
    parts.append((figures, lambda b, f: measure_growth(spark, b, f, batches, shorter)))
    for figures, run in parts:
        print(f"\nLanding, {figures.name}: {figures.changes:,} changes", flush=True)
        try:
            with Broker(heap="1g", properties=BROKER, jvm_options=()) as broker:
                run(broker, figures)
        except Exception as error:  # what was measured before must not be lost
            figures.remark(f"not measured to the end: {first_line(error)}")
        shutil.rmtree(LAKE, ignore_errors=True)
    return [figures for figures, _ in parts]


def whole_batches(changes: float, rounds: int) -> int:
    """So many changes, as equal numbers of micro-batches for all rounds."""
    return max(1, round(changes / MICRO_BATCH / rounds)) * rounds * MICRO_BATCH


def loaded(spark: SparkSession, broker: Broker, changes: Changes) -> Job:
    """A job that has landed the rows that are there in the beginning."""
    job = Job(spark, broker, changes)
    job.send(changes.load())
    job.land(LARGE_BATCH)
    return job


def measure_load(
    spark: SparkSession, broker: Broker, figures: LandingFigures, load: Load, rounds: int
) -> None:
    """Both sides in turn; the first batches, one for each turn of the peer, are the warm-up."""
    changes = Changes(load.tables, load.rows)
    job = loaded(spark, broker, changes)
    peer = Peer(spark, job, PEER_SECONDS)
    for _ in range(rounds + 1):
        batch = list(changes.batch(MICRO_BATCH))
        peer.decode(batch)
        job.send(batch)
    job.land(MICRO_BATCH)
    after_warm_up = job.state()
    peer.turn()
    for _ in range(rounds):
        part = figures.changes // rounds
        job.send(changes.batch(part))
        figures.add("headgate", part / job.seconds(MICRO_BATCH))
        figures.add("peer", peer.turn())
    compare(figures, "Headgate", job.state(), changes.state())
    by_peer = peer.state()
    compare(figures, "the peer", by_peer, {name: after_warm_up[name] for name in by_peer})
    job.remove()


def compare(figures: LandingFigures, side: str, state: State, expected: State) -> None:
    """Remark on the tables of a side that are not as they should be."""
    if wrong := [name for name in expected if state.get(name) != expected[name]]:
        figures.remark(f"{side} landed {len(wrong)} of {len(expected)} tables wrong: {wrong[:3]}")


def measure_one(spark: SparkSession, broker: Broker, figures: LandingFigures, rounds: int) -> None:
    """One table; a micro-batch has all changes of a turn, fewer than a job takes by default.

    What is measured is the speed without the start-up, which is the same job over few changes.
    """
    changes = Changes(1, ROWS)
    job = loaded(spark, broker, changes)

    def landed(count: int) -> float:
        job.send(changes.batch(count))
        return job.land(LARGE_BATCH)

    for _ in range(COLD):
        landed(figures.changes)
    for _ in range(rounds):
        startup, taken = landed(SAMPLE), landed(figures.changes)
        figures.startups.append(startup)
        figures.add("headgate", figures.changes / (taken - startup))
    compare(figures, "Headgate", job.state(), changes.state())
    job.remove()


def measure_growth(
    spark: SparkSession, broker: Broker, figures: LandingFigures, batches: int, share: float
) -> None:
    """The same changes a second, of a table and of one with many times as many rows."""
    jobs = {
        size: loaded(spark, broker, Changes(1, int(ROWS * size * share))) for size in (1, GROWTH)
    }
    for job in jobs.values():
        wait_and_merge(job, 1)
    for _ in range(GROWTH_ROUNDS):
        for size, job in jobs.items():
            figures.add(f"waiting {size}", batches * MICRO_BATCH / wait_and_merge(job, batches))
        for size, job in jobs.items():
            job.send(job.changes.batch(EACH * MICRO_BATCH))
            figures.add(f"batch {size}", EACH * MICRO_BATCH / job.seconds(MICRO_BATCH))
    for job in jobs.values():
        compare(figures, "Headgate", job.state(), job.changes.state())
        job.remove()


def wait_and_merge(job: Job, batches: int) -> float:
    """The seconds of micro-batches whose changes wait, and of one that merges them all."""
    job.send(job.changes.batch((batches - 1) * MICRO_BATCH))
    waiting = job.seconds(MICRO_BATCH, LATER) if batches > 1 else 0.0
    job.send(job.changes.batch(MICRO_BATCH))
    return waiting + job.seconds(MICRO_BATCH, NOW)


def bars(figures: LandingFigures) -> list[LandingBar]:
    if figures.name == ONE_TABLE:
        rate = figures.rate("headgate")
        return [LandingBar("headgate", f"{SPEED_BAR:,} changes/s", SPEED_BAR, rate)]
    if figures.name == GROWING:
        work = f"waiting {GROWTH}"
        cost = figures.ratio("waiting 1", work)
        name = f"at most {GROWTH_BAR} x the cost of a change"
        return [LandingBar(work, name, GROWTH_BAR, cost, is_ceiling=True)]
    ratio = figures.ratio("headgate", "peer")
    return [LandingBar("headgate", f"{PEER_BAR:g} x MERGE in foreachBatch", PEER_BAR, ratio)]


def ratio_text(figures: LandingFigures, work: str) -> str:
    """How a work compares with its other side."""
    kind, _, size = work.partition(" ")
    if size == str(GROWTH):
        cost = figures.ratio(f"{kind} 1", work)
        return f"{cost:.2f} x the cost" if cost else ""
    return times(figures.ratio(work, "peer")) if work == "headgate" else ""


def table(results: list[LandingFigures]) -> list[list[str]]:
    lines = []
    for figures in results:
        judged = {bar.work: str(bar) for bar in bars(figures)}
        for work, label in LABELS.items():
            if not (rates := figures.rates.get(work)):
                continue
            spread = f"{min(rates):,.0f} to {max(rates):,.0f}"
            cells = [f"{median(rates):,.0f}", spread, ratio_text(figures, work)]
            lines.append([figures.name, label, *cells, judged.get(work, "")])
    return lines


def startup_text(results: list[LandingFigures]) -> str:
    """How long a job takes to start, where it was measured."""
    startups = [seconds for figures in results for seconds in figures.startups]
    return f" ({median(startups):.2f} s)" if startups else ""


def section(results: list[LandingFigures], rounds: int) -> list[str]:
    remarks = [f"- {f.name}: {remark}" for f in results for remark in f.remarks]
    right = (
        "- What Headgate landed was compared with what the generator meant, and the tables that "
        "the peer got to with what Headgate had landed of the same changes: no difference."
    )
    changes = {figures.name: figures.changes for figures in results}
    first, many = LOADS
    return [
        "## Landing in Delta tables",
        markdown(HEAD, table(results)),
        "\n".join(remarks) if remarks else right,
        "Messages as TiCDC writes them (Canal-JSON with its extension), of tables with seven "
        "columns: four in five are updates, of rows chosen by Zipf's law, the others inserts and, "
        f"half as many, deletes. {changes[first.name]:,} changes of {first.tables} tables that "
        f"begin with {first.rows:,} rows each, and {changes[many.name]:,} of {many.tables} with "
        f"{many.rows:,}, in micro-batches of {MICRO_BATCH:,}. Headgate is a whole job from a topic "
        "of a real broker to Delta tables (`run` with `once` in a warm session), with its "
        "checkpoint, its deduplication and its dead letters; the time of the same job with nothing "
        f"to do is taken out. The median of {rounds} turns counts; a turn is a part of the "
        "changes.",
        "**MERGE in foreachBatch** is what the documentation of Delta Lake shows, for many tables: "
        "for each table in the micro-batch the last change of each key by a window, and a `MERGE` "
        "of Spark into its Delta table. It reads changes that Headgate decoded and typed before, "
        "which its time does not include, with two partitions for shuffles and for Delta's "
        "snapshots, which is faster here than the defaults: both are in its favour. It is measured "
        "on fewer changes, because it takes seconds for each table: a turn is a micro-batch of "
        f"{MICRO_BATCH:,} changes of which it merges one table after another until "
        f"{PEER_SECONDS} s have gone, and its speed is that of the tables that it got to. The "
        "sides take turns.",
        f"**Large micro-batches**: {changes[ONE_TABLE]:,} changes of one table of {ROWS:,} rows "
        f"in a micro-batch, from message to landed rows, {COLD} times unmeasured. Here it is the "
        f"start-up that is taken out, the time of the same job over {SAMPLE} changes"
        f"{startup_text(results)}. **A table that grows**: changes of one "
        f"table of {ROWS:,} rows and of one of {ROWS * GROWTH:,}. With `merge_every` a time, "
        f"{changes[GROWING] // MICRO_BATCH} micro-batches are kept and then merged together (what "
        "1,000 changes a second make in five minutes), all of which is measured; with "
        f"`merge_every: batch` each of {EACH} is merged by itself. The bar is on the former: "
        f"the cost of a change must not grow by more than {GROWTH_BAR} x. {GROWTH_ROUNDS} turns.",
    ]
