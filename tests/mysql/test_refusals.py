"""Errors that say what to do, and settings that are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.config.reader import job_of
from headgate.core.connectors import Report
from headgate.core.errors import UsageError
from headgate.mysql.connection import Start, refusal
from headgate.mysql.errors import PurgedError
from headgate.mysql.login import Login
from headgate.sources.mysql.offsets import CaptureOffset
from headgate.verification.database import parse_database


def test_another_server_without_gtids_is_refused() -> None:
    """Its files are others, whatever their names."""
    offset = CaptureOffset("binlog.000004", 157, "", 1, "schema", [])
    assert offset.start(1) == Start("binlog.000004", 157, "")
    with pytest.raises(UsageError, match=r"its server_id was changed, set it back; or begin with"):
        offset.start(2)


def test_a_replica_that_was_sent_away_is_not_told_to_begin_anew() -> None:
    text = (
        "A replica with the same server_uuid/server_id as this replica has connected to the source"
    )
    error = refusal(b"\xd4\x04#HY000" + text.encode(), "the server sends no binlog")
    assert "server-id" in str(error)
    assert not isinstance(error, PurgedError)
    assert isinstance(refusal(b"\xd4\x04#HY000Could not find first log file", ""), PurgedError)


@pytest.mark.parametrize(
    "option", ["chunk-rows=0", "max-batch-bytes=0", "parallel-chunks=0", "heartbeat=0s"]
)
def test_numbers_that_cannot_be_are_refused(option: str) -> None:
    with pytest.raises(UsageError, match=option.partition("=")[0]):
        job_of(f"mysql://me:x@db/shop.*?{option}", ["console:?protocol=maxwell"], {})


def test_the_report_for_people() -> None:
    facts = {"tables": {"shop.t": "about 5 rows"}, "advice": ["do this", "do that"]}
    assert list(Report(facts).lines("reads")) == [
        "reads tables: shop.t (about 5 rows)", "advice: do this", "advice: do that",
    ]  # fmt: skip


def test_tables_are_compared_over_tls_too() -> None:
    pem = "-----BEGIN CERTIFICATE-----\nab+/=\n-----END CERTIFICATE-----\n"
    login = Login("db", 3306, "me", "p&w", {"ca": pem})
    assert parse_database(login.uri, {}).params == {
        "sslMode": "verify-full", "serverSslCert": pem,
    }  # fmt: skip
    unchecked = Login("db", 3306, "me", "p&w", {"ca": pem}, verify=False)
    assert parse_database(unchecked.uri, {}).params == {"sslMode": "trust"}
    assert parse_database(Login("db", 3306, "me", "x").uri, {}).params == {}
    with pytest.raises(UsageError, match="cannot show the certificate of cert= and key="):
        _ = Login("db", 3306, "me", "x", {"cert": pem, "key": str(Path())}).uri
