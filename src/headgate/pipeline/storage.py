"""Small files of a job, on any file system that Arrow knows; each appears whole or not at all."""

from __future__ import annotations

import os
import uuid
from typing import Any

import msgspec
import pyarrow as pa
from pyarrow import fs

from headgate.errors import UsageError


class Storage:
    """A folder. Names are relative to it.

    >>> import tempfile
    >>> store = Storage(tempfile.mkdtemp())
    >>> store.write_json("a/b.json", {"n": 1})
    >>> store.read_json("a/b.json"), store.names("a"), store.read_json("none.json")
    ({'n': 1}, ['b.json'], None)
    """

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self.fs, self.root = file_system(uri)

    def path(self, name: str) -> str:
        """The path of a name, for Arrow."""
        return f"{self.root}/{name}" if name else self.root

    def for_spark(self, name: str) -> str:
        """The path of a name, for Spark."""
        return f"{self.uri}/{name}" if "://" in self.uri else self.path(name)

    def exists(self, name: str = "") -> bool:
        """Whether there is a file or folder."""
        found: bool = self.fs.get_file_info(self.path(name)).type != fs.FileType.NotFound
        return found

    def names(self, folder: str = "") -> list[str]:
        """What is in a folder, sorted; nothing if there is no such folder."""
        chosen = fs.FileSelector(self.path(folder), allow_not_found=True)
        return sorted(info.base_name for info in self.fs.get_file_info(chosen))

    def read(self, name: str) -> bytes | None:
        """The bytes of a file; None if there is none."""
        if not self.exists(name):
            return None
        with self.fs.open_input_stream(self.path(name)) as file:
            return bytes(file.read())

    def read_json(self, name: str) -> Any:
        """The content of a JSON file; None if there is none."""
        found = self.read(name)
        return None if found is None else msgspec.json.decode(found)

    def write(self, name: str, content: bytes) -> None:
        """Write a file; a reader sees the old one or the new one."""
        self.make_folder(os.path.dirname(name))
        staged = self.path(f"{name}.{uuid.uuid4().hex}.tmp")
        with self.fs.open_output_stream(staged) as file:
            file.write(content)
        self.fs.move(staged, self.path(name))

    def write_json(self, name: str, content: Any) -> None:
        """Write a JSON file."""
        self.write(name, msgspec.json.format(msgspec.json.encode(content), indent=1))

    def write_table(self, name: str, table: pa.Table) -> None:
        """Write a table as an Arrow file."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        self.write(name, sink.getvalue())

    def read_table(self, name: str) -> pa.Table:
        """Read a table that `write_table` wrote."""
        with self.fs.open_input_file(self.path(name)) as file:
            return pa.ipc.open_file(file).read_all()

    def make_folder(self, name: str) -> None:
        """Make a folder and those above it; only its owner may look in."""
        if isinstance(self.fs, fs.LocalFileSystem):
            os.makedirs(self.path(name), mode=0o700, exist_ok=True)
        else:
            self.fs.create_dir(self.path(name), recursive=True)

    def move(self, name: str, to: str) -> None:
        """Rename a file or a folder."""
        self.fs.move(self.path(name), self.path(to))

    def delete(self, name: str) -> None:
        """Delete a file or a whole folder, if it is there."""
        kind = self.fs.get_file_info(self.path(name)).type
        if kind == fs.FileType.Directory:
            self.fs.delete_dir(self.path(name))
        elif kind != fs.FileType.NotFound:
            self.fs.delete_file(self.path(name))


def file_system(uri: str) -> tuple[Any, str]:
    """Arrow's file system of a path or URI, and the path in it.

    >>> file_system("file:///tmp/x")[1]
    '/tmp/x'
    """
    if "://" not in uri:
        return fs.LocalFileSystem(), os.path.abspath(uri)
    try:
        found, path = fs.FileSystem.from_uri(uri.replace("s3a://", "s3://", 1))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise UsageError(f"cannot use {uri}: {error}") from None
    return found, path.rstrip("/")
