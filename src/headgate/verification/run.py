"""A verification from start to end: which tables, their checksums, then what differs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches

from headgate.core.errors import UsageError, shown
from headgate.selection.globs import TableGlob
from headgate.verification.comparison import (
    Pair,
    RowDifference,
    Sums,
    checksums,
    differences,
    differing_buckets,
    hashes,
    paired,
)
from headgate.verification.report import ColumnDifference, Difference, TableResult, Verification
from headgate.verification.sides import Side
from headgate.verification.typed_rows import table_ids

TABLES_AT_ONCE = 16
"""Tables whose checksums are computed by one Spark job."""
MOST_FOLLOWED = 100_000
"""So many rows that differ are looked at again, on sides that change."""
PAUSE = 2.0
SHOWN_MESSAGES = 3
Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is."""


@dataclass(frozen=True)
class Wanted:
    """What to compare, and how much of what differs to show."""

    tables: tuple[str, ...] = ()
    """Patterns of their names, each of which has to match; none: all that are captured."""
    most: int = 20
    """Most rows shown of a table."""
    wait: float = 60.0
    """How long, in seconds, rows that differ are looked at again where sides change."""
    progress: Progress = field(default=lambda _what, _done, _all: None)
    captured: tuple[str, ...] = ()
    """Patterns of the tables that the job captures; none: all."""

    def selects(self, name: str) -> bool:
        """Whether a table is to be compared.

        >>> Wanted(("shop.*",)).selects("shop.orders"), Wanted(("shop.a",)).selects("shop.b")
        (True, False)
        """
        chosen = self.tables or self.captured
        return not chosen or any(matches(pattern, name) for pattern in chosen)


def compare(source: Side, target: Side, wanted: Wanted) -> Verification:
    """Compare the tables of two sides."""
    started = time.monotonic()
    wanted.progress("reading the source", 0, 1)
    ours, theirs = source.tables(), target.tables()
    names = [name for name in ours if wanted.selects(name)]
    check_selected(source, names, {*ours, *theirs}, wanted)
    results: list[TableResult] = []
    for start in range(0, len(names), TABLES_AT_ONCE):
        wanted.progress("checksums", start, len(names))
        results += compare_tables(source, target, names[start : start + TABLES_AT_ONCE], wanted)
    known = set(names)
    extra = [name for name in theirs if name not in known and wanted.selects(name)]
    results += [TableResult(name, "extra") for name in extra]
    equal = all(result.state in ("equal", "extra") for result in results)
    seconds = round(time.monotonic() - started, 3)
    wanted.progress("done", len(names), len(names))
    return Verification(source.name, target.name, equal, results, seconds)


def check_selected(source: Side, names: Sequence[str], there: set[str], wanted: Wanted) -> None:
    """Refuse a comparison of nothing, which would be equal: of all tables `names` are compared."""
    for pattern in wanted.tables:
        if not any(matches(pattern, name) for name in there):
            near = get_close_matches(pattern, there, n=3, cutoff=0.5)
            meant = f"did you mean {' or '.join(map(shown, near))}?"
            raise UsageError(
                f"no table of the source or the target matches {shown(pattern)}; "
                f"{meant if near else f'they have {len(there)} others'}"
            )
    if not names:
        which = ", ".join(wanted.tables or wanted.captured)
        has = f"no table {which}" if which else "no tables"
        raise UsageError(
            f"there is nothing to compare: {source.name} has {has}; check the names of database "
            "and tables, and whether its user may see them"
        )


def matches(pattern: str, name: str) -> bool:
    """Whether a pattern selects a table.

    >>> matches("shop.*", "shop.orders"), matches("a.b.*", "a.b.t"), matches("shop.a", "shop.b")
    (True, True, False)
    """
    glob = TableGlob(pattern)
    return any(glob.matches((each.database, None, each.table)) for each in table_ids(name))


def compare_tables(
    source: Side, target: Side, names: Sequence[str], wanted: Wanted
) -> list[TableResult]:
    """Compare some tables: one Spark job for their checksums, and more for those that differ."""
    results: dict[str, TableResult] = {}
    pairs = pairs_of(source, target, names, results)
    for pair, sums in zip(pairs, checksums(pairs) if pairs else []):
        result = result_of(pair, *sums)
        if result.state == "different":
            show(pair, differing_buckets(*sums), source, target, wanted, result)
        results[pair.name] = result
    return [results[name] for name in names]


def pairs_of(
    source: Side, target: Side, names: Iterable[str], results: dict[str, TableResult]
) -> list[Pair]:
    """The tables that both sides have; `results` gets those of which nothing can be compared."""
    pairs = []
    for name in names:
        ours, theirs = source.table(name), target.table(name)
        if ours is None or theirs is None:
            results[name] = TableResult(name, "missing" if theirs is None else "extra")
            continue
        pair = paired(name, ours, theirs)
        if pair.columns:
            pairs.append(pair)
        else:
            results[name] = TableResult(name, "different", lacking=list(pair.lacking))
    return pairs


def result_of(pair: Pair, source: Sums, target: Sums) -> TableResult:
    """What the checksums of a table say."""
    same = not differing_buckets(source, target) and not pair.lacking
    return TableResult(
        pair.name,
        "equal" if same else "different",
        source.rows,
        target.rows,
        source.checksum,
        target.checksum,
        lacking=list(pair.lacking),
        notes=list(pair.notes),
    )


def show(
    pair: Pair,
    buckets: list[int],
    source: Side,
    target: Side,
    wanted: Wanted,
    result: TableResult,
) -> None:
    """Find the rows that differ, and put the first of them into the result."""
    if not buckets:
        return
    only = None
    if wanted.wait and (source.live or target.live):
        pair, only = settled(pair, buckets, source, target, wanted)
        if only is not None and not only:
            result.state = "different" if pair.lacking else "equal"
            result.notes.append("rows that changed meanwhile were compared again")
            return
    wanted.progress(f"rows of {pair.name}", 0, 1)
    difference = differences(pair, buckets, wanted.most, only)
    result.counts = dict(sorted(difference.counts.items()))
    result.differences = [described(pair, each) for each in difference.rows]
    if pair.has_key:
        keys = {each.key: shown for each, shown in zip(difference.rows, result.differences)}
        for key, messages in source.messages(pair.name, list(keys), SHOWN_MESSAGES).items():
            keys[key].messages = messages


def settled(
    pair: Pair, buckets: list[int], source: Side, target: Side, wanted: Wanted
) -> tuple[Pair, list[int] | None]:
    """The rows that still differ when the target has had time to follow, by hashes of their keys.

    A row that differed is right if the target has it later as the source had it at any time since
    the first look. None where there are too many rows to follow.
    """
    pending = hashes(pair, buckets, MOST_FOLLOWED)
    if len(pending) >= MOST_FOLLOWED:
        return pair, None
    seen = {key: {ours} for key, (ours, _) in pending.items()}
    until = time.monotonic() + wanted.wait
    while pending and time.monotonic() < until:
        wanted.progress(f"{len(pending)} rows of {pair.name} again", 0, 1)
        time.sleep(min(PAUSE, max(0.0, until - time.monotonic())))
        source.refresh()
        target.refresh()
        again = pairs_of(source, target, [pair.name], {})
        if not again:
            break
        pair = again[0]
        now = hashes(pair, buckets, MOST_FOLLOWED, pending)
        for key in list(pending):
            if key in now:
                seen[key].add(now[key][0])
            if key not in now or now[key][1] in seen[key]:
                del pending[key]
    return pair, list(pending)


def described(pair: Pair, row: RowDifference) -> Difference:
    """A row that differs, column by column."""
    columns = {}
    for number, name in enumerate(pair.columns):
        ours = None if row.source is None else row.source[number]
        theirs = None if row.target is None else row.target[number]
        if row.source is None or row.target is None or ours != theirs:
            columns[name] = ColumnDifference(ours, theirs)
    return Difference(row.kind, dict(zip(pair.key, row.key)), columns, row.copies)
