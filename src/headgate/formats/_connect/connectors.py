"""The connectors whose messages have Kafka Connect's schemas, by the names they give themselves."""

from __future__ import annotations

TICDC = "TiCDC"
"""TiCDC's protocol `debezium`, whose place in the log is the commit number alone."""
MYSQL_LIKE = {"mysql", "mariadb", TICDC, None}
