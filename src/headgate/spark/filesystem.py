"""File systems by URI: the local one, and those that Spark reaches too, with Spark's settings."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
from pyarrow import fs

from headgate.core.errors import UsageError, shown, unknown_name

REMOTE = ("s3a", "s3", "hdfs", "viewfs", "gs", "abfs", "abfss")
"""Schemes of file systems that both Spark and Arrow have."""
NO_SETTINGS: Mapping[str, str] = MappingProxyType({})
LONGEST_NAME = 255
BLOCK_BYTES = 1024 * 1024
PREFIX = "spark.hadoop."
S3_SETTINGS = (
    "access.key", "secret.key", "session.token", "aws.credentials.provider", "endpoint",
    "endpoint.region", "path.style.access", "connection.ssl.enabled",
)  # fmt: skip
"""What is taken over of `spark.hadoop.fs.s3a.*`, also as `fs.s3a.bucket.NAME.*`."""


def is_remote(path: str) -> bool:
    """Whether a path is a URI of another file system than the local one.

    >>> is_remote("s3a://bucket/x"), is_remote("file:///x"), is_remote("/x")
    (True, False, False)
    """
    return "://" in path and not path.startswith("file:")


def local(path: str) -> str:
    """A path as Python opens it, from one that may have the scheme `file:`.

    >>> local("file:///a/b"), local("file:/a/b"), local("/a/b"), local("s3a://a/b")
    ('/a/b', '/a/b', '/a/b', 's3a://a/b')
    """
    return "/" + path.removeprefix("file:").lstrip("/") if path.startswith("file:") else path


def directory(path: str, base: str | None = None) -> str:
    """An absolute path, from one that may be relative to `base`; URIs stay as they are.

    >>> directory("out", "/data"), directory("s3a://bucket/x", "/data")
    ('/data/out', 's3a://bucket/x')
    """
    if not path:
        raise UsageError("the URI has no directory; write file:///DIR or file:DIR")
    for name in path.split("/"):
        if len(os.fsencode(name)) > LONGEST_NAME:
            raise UsageError(
                f"{shown(name)} is longer than the {LONGEST_NAME} bytes of a file's name; "
                "choose a shorter path"
            )
    return path if is_remote(path) else os.path.normpath(os.path.join(base or os.getcwd(), path))


def jars_for(path: str) -> tuple[str, ...]:
    """The connectors (jars.py) that Spark needs to reach a path.

    >>> jars_for("s3a://bucket/x"), jars_for("/data")
    (('s3a',), ())
    """
    return ("s3a",) if is_remote(path) and scheme_of(path) in ("s3", "s3a") else ()


def for_spark(path: str) -> str:
    """A path as Spark is given it: with its scheme, because Spark's default may be another.

    >>> for_spark("/a/b"), for_spark("hdfs://name/a")
    ('file:///a/b', 'hdfs://name/a')
    """
    return path if is_remote(path) else f"file://{os.path.abspath(local(path))}"


def file_system(uri: str, settings: Mapping[str, str]) -> tuple[Any, str]:
    """Arrow's file system of a path or URI, and the path in it; `settings` are Spark's.

    >>> file_system("file:///tmp/x", {})[1]
    '/tmp/x'
    """
    if not is_remote(uri):
        return fs.LocalFileSystem(), os.path.abspath(local(uri))
    scheme, path = scheme_of(uri), uri.partition("://")[2].rstrip("/")
    try:
        if scheme in ("s3", "s3a"):
            return s3(path.partition("/")[0], settings), path
        system, path = fs.FileSystem.from_uri(uri)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise UsageError(f"cannot use {uri}: {error}") from None
    return system, path.rstrip("/")


def find(path: str, settings: Mapping[str, str]) -> list[str] | None:
    """The files in a folder, by their paths in it, in name order; `['']` for a file, else None.

    >>> find("/nowhere", {})
    """
    if not is_remote(path):
        root = Path(local(path))
        if not root.is_dir():
            return [""] if root.exists() else None
        return [str(p.relative_to(root)) for p in sorted(root.rglob("*")) if p.is_file()]
    system, folder = file_system(path, settings)
    info = system.get_file_info(folder)
    if info.type != fs.FileType.Directory:
        return None if info.type == fs.FileType.NotFound else [""]
    inside = system.get_file_info(fs.FileSelector(folder, recursive=True))
    names = [each.path[len(folder) + 1 :] for each in inside if each.is_file]
    return sorted(names, key=lambda name: name.split("/"))


def size_of(path: str, settings: Mapping[str, str]) -> int:
    """How many bytes a file has."""
    if not is_remote(path):
        return os.path.getsize(local(path))
    system, inside = file_system(path, settings)
    return int(system.get_file_info(inside).size)


def open_file(path: str, settings: Mapping[str, str]) -> io.BufferedReader:
    """A file, open for reading."""
    if not is_remote(path):
        return open(local(path), "rb")
    system, inside = file_system(path, settings)
    return io.BufferedReader(system.open_input_file(inside), BLOCK_BYTES)


def scheme_of(uri: str) -> str:
    """The scheme of a URI; one that is not known is refused.

    >>> scheme_of("s3a://bucket/x")
    's3a'
    """
    scheme = uri.partition("://")[0].lower()
    if scheme not in REMOTE:
        raise unknown_name("file system", scheme, REMOTE)
    return scheme


def refuse_credentials(scheme: str, uri: str) -> None:
    """Refuse a URI with a user in it: URIs are written to logs and checkpoints.

    >>> refuse_credentials("s3a", "s3a://key:secret@bucket/x")
    Traceback (most recent call last):
    headgate.core.errors.UsageError: a URI of s3a has no user and no @; give credentials as \
spark.hadoop.fs.… under pipeline: spark, or in the environment
    """
    host = uri.partition("://")[2].partition("/")[0]
    if "@" in host and not scheme.startswith("abfs"):  # there it is the container's place
        raise UsageError(
            f"a URI of {scheme} has no user and no @; give credentials as spark.hadoop.fs.… under "
            "pipeline: spark, or in the environment"
        )


def s3(bucket: str, settings: Mapping[str, str]) -> fs.S3FileSystem:
    """S3 with Spark's settings of `s3a`; the AWS SDK's defaults for what is not set."""

    def setting(name: str) -> str | None:
        of_bucket = settings.get(f"{PREFIX}fs.s3a.bucket.{bucket}.{name}")
        return of_bucket or settings.get(f"{PREFIX}fs.s3a.{name}") or None

    named = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    endpoint = setting("endpoint") or named
    secure = (setting("connection.ssl.enabled") or "true").lower() != "false"
    if endpoint and "://" not in endpoint:
        endpoint = f"{'https' if secure else 'http'}://{endpoint}"
    of_aws = not endpoint or ".amazonaws." in endpoint
    virtual = bool(setting("endpoint")) and (setting("path.style.access") or "").lower() != "true"
    return fs.S3FileSystem(
        access_key=setting("access.key"),
        secret_key=setting("secret.key"),
        session_token=setting("session.token"),
        anonymous="Anonymous" in (setting("aws.credentials.provider") or ""),
        region=setting("endpoint.region") or (region_of(bucket) if of_aws else None),
        endpoint_override=endpoint,
        force_virtual_addressing=virtual,
        allow_delayed_open=True,  # a small file is one request
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=5),
    )


@cache
def region_of(bucket: str) -> str:
    """Where a bucket of AWS is."""
    return str(fs.resolve_s3_region(bucket))


def for_workers(uris: Iterable[str], settings: Mapping[str, str]) -> dict[str, str]:
    """Of Spark's settings, what a worker needs to open these paths: nothing, if they are local.

    >>> for_workers(["s3a://b/x"], {"spark.hadoop.fs.s3a.endpoint": "h", "spark.x": "1"})
    {'spark.hadoop.fs.s3a.endpoint': 'h'}
    >>> for_workers(["/x"], {"spark.hadoop.fs.s3a.endpoint": "h"})
    {}
    """
    schemes = {scheme_of(uri) for uri in uris if is_remote(uri)}
    wanted = f"{PREFIX}fs.s3a."
    chosen = schemes & {"s3", "s3a"}
    return {n: v for n, v in settings.items() if chosen and n.startswith(wanted)}


def session_settings(configuration: Any, uris: Iterable[str]) -> dict[str, str]:
    """What a session's Hadoop configuration says of the file systems of these paths.

    It has what spark-submit and `core-site.xml` say too, and opens Hadoop's credential stores.
    """
    settings: dict[str, str] = {}
    for uri in uris:
        if not is_remote(uri) or scheme_of(uri) not in ("s3", "s3a"):
            continue
        bucket = uri.partition("://")[2].partition("/")[0]
        for name in S3_SETTINGS:
            for full in (f"fs.s3a.{name}", f"fs.s3a.bucket.{bucket}.{name}"):
                value = configuration.getPassword(full)
                if value is not None:
                    settings[PREFIX + full] = "".join(value)
    return settings
