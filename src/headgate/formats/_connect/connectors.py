"""Names of the connectors, as in `source.connector`."""

from __future__ import annotations

TICDC = "TiCDC"
"""TiCDC's protocol `debezium`, whose only log position is the commit timestamp."""
MYSQL_LIKE = {"mysql", "mariadb", TICDC, None}
POSTGRESQL = "postgresql"
