"""What the sinks have in common that write below a directory of some file system."""

from __future__ import annotations

from headgate.core.connectors import Directory, Place
from headgate.core.reachability import check_writable
from headgate.spark.filesystem import is_remote, jars_for, local


class DirectorySink:
    """A sink with a `path`."""

    path: str

    @property
    def jars(self) -> tuple[str, ...]:
        """Those of the file system."""
        return jars_for(self.path)

    def place(self, topic: str | None) -> Place | None:
        """The directory."""
        return Directory(self.path)

    def reachable(self) -> None:
        """Whether a local directory can be written to."""
        if not is_remote(self.path):
            check_writable(local(self.path))
