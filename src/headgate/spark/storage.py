"""Small files of a job, on any file system; each appears whole or not at all."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from typing import Any

import msgspec
from pyarrow import fs

from headgate.core.errors import naming
from headgate.spark.filesystem import NO_SETTINGS, file_system, for_spark

COPIES = 16
"""The number of objects that are copied in parallel."""


class Storage:
    """A folder. Names are relative to it; `settings` are Spark's, for file systems that need them.

    On a local file system a `private` folder can be read by its owner only.

    >>> import tempfile
    >>> store = Storage(tempfile.mkdtemp())
    >>> store.write("a/b", b"content")
    >>> store.read("a/b"), store.names("a"), store.read("none")
    (b'content', ['b'], None)
    """

    def __init__(
        self, uri: str, settings: Mapping[str, str] = NO_SETTINGS, private: bool = True
    ) -> None:
        self.uri, self.private = uri, private
        self.fs, self.root = file_system(uri, settings)
        self.is_local = isinstance(self.fs, fs.LocalFileSystem)
        self.renames = self.is_local or self.fs.type_name == "hdfs"
        """Whether folders can be renamed. Object stores cannot; their puts are atomic."""

    def path(self, name: str) -> str:
        """The path of a name, for Arrow."""
        return f"{self.root}/{name}" if name else self.root

    def for_spark(self, name: str) -> str:
        """The path of a name, for Spark."""
        return for_spark(f"{self.uri.rstrip('/')}/{name}" if name else self.uri)

    def exists(self, name: str = "") -> bool:
        """Whether there is a file or folder."""
        with self.naming("read", name):
            info = self.fs.get_file_info(self.path(name))
            return bool(info.type != fs.FileType.NotFound)

    def names(self, folder: str = "") -> list[str]:
        """The names in a folder, sorted; none if there is no such folder."""
        with self.naming("read", folder):
            chosen = fs.FileSelector(self.path(folder), allow_not_found=True)
            return sorted(info.base_name for info in self.fs.get_file_info(chosen))

    def read(self, name: str) -> bytes | None:
        """The bytes of a file; None if there is none."""
        if not self.exists(name):
            return None
        with self.naming("read", name), self.fs.open_input_stream(self.path(name)) as file:
            return bytes(file.read())

    def write(self, name: str, content: bytes) -> None:
        """Write a file; a reader sees the old one or the new one."""
        with self.naming("write", name):
            if not self.renames:
                with self.fs.open_output_stream(self.path(name)) as file:
                    file.write(content)
                return
            self.make_folder(os.path.dirname(name))
            staged = f"{name}.{uuid.uuid4().hex}.tmp"
            try:
                with self.create(staged) as file:
                    file.write(content)
                self.fs.move(self.path(staged), self.path(name))
            except OSError:
                with suppress(OSError):
                    self.fs.delete_file(self.path(staged))
                raise

    def write_json(self, name: str, content: Any) -> None:
        """Write a JSON file."""
        self.write(name, msgspec.json.format(msgspec.json.encode(content), indent=1))

    def create(self, name: str) -> Any:
        """A new file, open for writing."""
        if not self.is_local:
            return self.fs.open_output_stream(self.path(name))
        mode = 0o600 if self.private else 0o666
        return os.fdopen(os.open(self.path(name), os.O_CREAT | os.O_WRONLY | os.O_EXCL, mode), "wb")

    def make_folder(self, name: str) -> None:
        """Make a folder and those above it."""
        with self.naming("write", name):
            if not self.is_local:
                self.fs.create_dir(self.path(name), recursive=True)
                return
            os.makedirs(os.path.dirname(self.root), exist_ok=True)
            path = self.root
            for part in ("", *filter(None, name.split("/"))):
                path = os.path.join(path, part) if part else path
                with suppress(FileExistsError):
                    os.mkdir(path, 0o700 if self.private else 0o777)

    def move(self, name: str, to: str) -> None:
        """Rename a file."""
        with self.naming("write", to):
            self.fs.move(self.path(name), self.path(to))

    def move_folder(self, name: str, to: str) -> None:
        """Move a folder: atomically, where folders can be renamed.

        Elsewhere its files are copied, those at the top of the folder last: when they are there,
        all others are.
        """
        if self.renames:
            self.make_folder(os.path.dirname(to))
            self.move(name, to)
            return
        with self.naming("write", to):
            chosen = fs.FileSelector(self.path(name), recursive=True)
            infos = self.fs.get_file_info(chosen)
            files = [i.path[len(self.path(name)) + 1 :] for i in infos if i.is_file]

            def copy(file: str) -> None:
                self.fs.copy_file(self.path(f"{name}/{file}"), self.path(f"{to}/{file}"))

            with ThreadPoolExecutor(COPIES) as pool:
                for last in (False, True):
                    list(pool.map(copy, [file for file in files if ("/" not in file) == last]))
        self.delete(name)

    def delete(self, name: str) -> None:
        """Delete a file or a whole folder, if it is there."""
        with self.naming("delete", name):
            kind = self.fs.get_file_info(self.path(name)).type
            if kind == fs.FileType.Directory:
                self.fs.delete_dir(self.path(name))
            elif kind != fs.FileType.NotFound:
                self.fs.delete_file(self.path(name))

    def naming(self, verb: str, name: str) -> AbstractContextManager[None]:
        """Name the path in errors of the file system."""
        return naming(verb, self.path(name) if self.is_local else f"{self.uri}/{name}")
