"""A replica of the tests' MySQL, to be promoted."""

from __future__ import annotations

from mysql_server import MySQL


class Replica(MySQL):
    """A server that follows another one from now on."""

    options = tuple(each.replace("server-id=12", "server-id=13") for each in MySQL.options)

    def follow(self, source: MySQL) -> None:
        """Begin with what the other one has done; what it did before is not here."""
        self.run(
            "RESET MASTER", f"SET GLOBAL gtid_purged = '{done(source)}'",
            f"CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={source.port}, "
            f"SOURCE_USER='{source.user}', SOURCE_PASSWORD='{source.password}', "
            "SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1",
            "START REPLICA",
        )  # fmt: skip

    def promote(self, source: MySQL) -> None:
        """Wait for all that the other one has, and follow it no more."""
        with self.connect() as sql, sql.cursor() as cursor:
            cursor.execute(f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{done(source)}', 60)")
            assert cursor.fetchall() == ((0,),)
        self.run("STOP REPLICA")


def done(server: MySQL) -> str:
    """The transactions of a server."""
    with server.connect() as sql, sql.cursor() as cursor:
        cursor.execute("SELECT @@GLOBAL.gtid_executed")
        return str(cursor.fetchall()[0][0]).replace("\n", "")
