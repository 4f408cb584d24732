"""Why a binlog cannot be read, with what to do."""

from __future__ import annotations

from headgate.core.errors import HeadgateError, Unreachable


class BinlogError(HeadgateError):
    """The binlog cannot be read on; the text says why and what to do."""


class DisconnectedError(BinlogError, Unreachable):
    """The connection broke: connect again, and read on from the last position."""


class PurgedError(BinlogError):
    """The server no longer has the binlog from where reading was to go on."""


class SchemaError(BinlogError):
    """The columns of a table are not known, or are not those of its rows."""


def malformed(what: str) -> BinlogError:
    """An event that does not have the form it should have."""
    return BinlogError(
        f"{what}; compare with mysqlbinlog --verify-binlog-checksum, and report it with the "
        "server's version if that finds nothing wrong"
    )
