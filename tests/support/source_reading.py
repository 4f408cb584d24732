"""A database's source read batch by batch, as Spark asks it to, without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

from headgate.arrow.records import events_of
from headgate.config.reader import job_of
from headgate.core.event import Event
from headgate.sources.mysql.beginning import beginning_of
from headgate.sources.mysql.capture import capture_of
from headgate.sources.mysql.offsets import CaptureOffset
from headgate.sources.mysql.planner import Planner
from headgate.sources.mysql.ranges import events_of_range, ranges
from headgate.spark.storage import Storage


def source_of(server: Any, tables: str, **options: str) -> Any:
    """The source of a job."""
    login = f"mysql://{server.user}:{server.password}@{server.address}"
    query = "&".join(f"{name.replace('_', '-')}={quote(text)}" for name, text in options.items())
    job = job_of(f"{login}/{tables}?{query}", ["console:?protocol=maxwell"], {})
    return job.source.connector


class Reading:
    """A capture with a state of its own, and how far it is."""

    def __init__(self, folder: Path) -> None:
        self.state = Storage(str(folder))
        self.at: CaptureOffset | None = None

    def events(self, source: Any) -> list[Event]:
        """All that is there now and was not read yet."""
        beginning = beginning_of(source, self.state)
        at = self.at or beginning.start
        capture = capture_of(source, beginning, at, self.state.uri, {}, 2)
        planner, read = Planner(capture), []
        try:
            while (end := planner.next()) != at:
                for part in ranges(at, end):
                    for batch in events_of_range(capture, part):
                        read += events_of(batch)
                planner.planned = at = end
        finally:
            planner.scan.close()
        self.at = at
        return read

    def ids(self, source: Any) -> list[str]:
        """The column `id` of the rows that are read."""
        images = [e.after or e.before or {} for e in self.events(source) if e.kind == "row"]
        return [str(image["id"]) for image in images]
