"""What single keys of a job file mean: names, endpoints, schema files."""

from __future__ import annotations

import re
from pathlib import Path

from headgate.codec.schemas import Schemas
from headgate.core.errors import UsageError, shown
from headgate.core.scalars import duration

_JOB_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)
_HOST_PORT = re.compile(r"(?:([A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\]):)?(\d{1,5})", re.ASCII)
_MAX_SCHEMA_BYTES = 64 * 1024 * 1024


def positive_duration(text: str) -> float:
    """Seconds, more than 0.

    >>> positive_duration("5s")
    5.0
    """
    seconds = duration(text)
    if seconds <= 0:
        raise UsageError("must be longer than 0s; leave it out for the default")
    return seconds


def job_name(text: str) -> str:
    """A job's name, which is a part of paths and of metrics."""
    if not _JOB_NAME.fullmatch(text):
        raise UsageError(f"invalid job name {shown(text)}; use letters, digits and . _ -")
    return text


def endpoint(text: str) -> str:
    """`host:port`; a port alone is on this machine only.

    >>> endpoint("9108")
    '127.0.0.1:9108'
    """
    match = _HOST_PORT.fullmatch(text)
    if match is None or not 0 <= int(match[2]) <= 65535:
        raise UsageError(f"invalid address {shown(text)}; use HOST:PORT, or PORT for 127.0.0.1")
    return f"{match[1] or '127.0.0.1'}:{int(match[2])}"


def read_schema(file: str) -> str:
    """The statements of a schema file, which must be understood."""
    path = Path(file)
    try:
        if path.stat().st_size > _MAX_SCHEMA_BYTES:
            raise UsageError("the schema file is too large")
        sql = path.read_text("utf-8-sig")
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not UTF-8; save it as UTF-8") from None
    Schemas(sql)
    return sql
