"""The messages of examples/feed."""

from __future__ import annotations

from paths import FEED

from headgate.sources.message_files import Split, read


def feed(dialect: str) -> list[tuple[bytes | None, bytes | None, int | None, None]]:
    """The messages of a dialect, to produce: key, value, partition 0, no headers."""
    (path,) = FEED.glob(f"{dialect.replace(':', '.')}.*")
    rows = [row for batch in read(Split(str(path))) for row in batch.to_pylist()]
    return [(row.get("key"), row["value"], 0, None) for row in rows]
