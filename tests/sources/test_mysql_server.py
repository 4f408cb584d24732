"""How a source meets its server: TLS with certificates, and ids of replicas."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from binlog_capture import Capture
from source_reading import Reading, source_of

from headgate.config.reader import job_of
from headgate.core.errors import HeadgateError, UsageError
from headgate.mysql.connection import Connection
from headgate.sources.mysql.check import checked

pytestmark = pytest.mark.slow

DATABASE = "headgate_server"


@pytest.fixture(params=["mysql", "mariadb"])
def server(request: pytest.FixtureRequest) -> Any:
    found = request.getfixturevalue(request.param)
    Capture(found, DATABASE).run("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (7)")
    return found


@contextmanager
def replica(server: Any, id: int) -> Iterator[Connection]:
    """A replica that is connected, as this library connects."""
    connection = Connection(
        host="127.0.0.1", port=server.port, user=server.user, password=server.password
    )
    try:
        connection.binlog(connection.current_position(), id)
        yield connection
    finally:
        connection.close()


def test_the_servers_own_id_is_refused(server: Any) -> None:
    own = {"MySQL": "12", "MariaDB": "11"}[server.name]
    with pytest.raises(UsageError, match=f"the server's own id, {own}: choose another"):
        checked(source_of(server, f"{DATABASE}.*", server_id=own))


def test_a_replica_with_the_jobs_id_is_told(server: Any) -> None:
    """It may be the job itself, which runs."""
    source = source_of(server, f"{DATABASE}.*", server_id="70001", parallel_chunks="2")
    assert not [each for each in checked(source).facts["advice"] if "replica with the id" in each]
    with replica(server, 70_003):
        (said,) = [each for each in checked(source).facts["advice"] if "with the id 70003" in each]
        without = checked(source_of(server, f"{DATABASE}.*")).facts["advice"]
    assert "choose another server-id" in said
    assert not [each for each in without if "replica" in each]


def test_anybody_elses_replica_with_the_jobs_id_is_refused(
    mysql: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MySQL tells replicas apart by their uuids."""
    Capture(mysql, DATABASE).run("CREATE TABLE t (id INT PRIMARY KEY)")
    other = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff"
    monkeypatch.setattr("headgate.mysql.connection.replica_uuid", lambda _: other)
    with replica(mysql, 70_011), pytest.raises(UsageError, match="a replica with the id 70011 is"):
        checked(source_of(mysql, f"{DATABASE}.*", server_id="70011"))


def test_tables_that_have_to_be_locked_are_told(mysql: Any) -> None:
    Capture(mysql, DATABASE).run("CREATE TABLE t (id INT)", "CREATE TABLE u (id INT PRIMARY KEY)")
    mysql.run(
        "DROP USER IF EXISTS unlocking@localhost",
        f"CREATE USER unlocking@localhost IDENTIFIED BY '{mysql.password}'",
        "GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO unlocking@localhost",
    )
    uri = f"mysql://unlocking:{mysql.password}@{mysql.address}/{DATABASE}.*"
    job = job_of(uri, ["console:?protocol=maxwell"], {})

    told = [each for each in checked(job.source.connector).facts["advice"] if "LOCK" in each]
    mysql.run(f"GRANT LOCK TABLES ON {DATABASE}.* TO unlocking@localhost")
    after = checked(job.source.connector).facts["advice"]

    assert told == [
        f"{DATABASE}.t has no primary key, so it is locked for a moment when its snapshot begins: "
        f"GRANT LOCK TABLES ON `{DATABASE}`.* TO the user"
    ]
    assert not [each for each in after if "LOCK" in each]


def openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A CA, and certificates of a server on loopback and of a client."""
    folder = tmp_path_factory.mktemp("certificates")
    openssl(folder, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout",
            "ca.key", "-out", "ca.pem", "-subj", "/CN=Test CA")  # fmt: skip
    for name, more in (
        ("server", "subjectAltName=IP:127.0.0.1"),
        ("client", "extendedKeyUsage=clientAuth"),
    ):
        openssl(folder, "req", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key", "-out",
                f"{name}.csr", "-subj", f"/CN={name}")  # fmt: skip
        (folder / f"{name}.ext").write_text(more)
        openssl(folder, "x509", "-req", "-in", f"{name}.csr", "-days", "2", "-out", f"{name}.pem",
                "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-extfile",
                f"{name}.ext")  # fmt: skip
    for path in folder.iterdir():
        path.chmod(0o644)
    return folder


def test_tls_with_certificates_of_the_client(
    mysql: Any, certificates: Path, tmp_path: Path
) -> None:
    """The user has to show a certificate; the tables are read, and the binlog after them."""
    capture = Capture(mysql, DATABASE)
    capture.run("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    capture.run(
        *(f"SET GLOBAL ssl_{name} = '{certificates}/{file}'" for name, file in
          (("ca", "ca.pem"), ("cert", "server.pem"), ("key", "server.key"))),
        "ALTER INSTANCE RELOAD TLS", "DROP USER IF EXISTS tls@'%'",
        "CREATE USER tls@'%' IDENTIFIED BY 'hunter2' REQUIRE X509",
        "GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO tls@'%'",
    )  # fmt: skip
    uri = f"mysql://tls:hunter2@{mysql.address}/{DATABASE}.*"

    def source(query: str) -> Any:
        return job_of(f"{uri}?{query}", ["console:?protocol=maxwell"], {}).source.connector

    ca = f"ca={certificates}/ca.pem"
    whole = source(f"{ca}&cert={certificates}/client.pem&key={certificates}/client.key")
    reading = Reading(tmp_path)
    assert ["1"] == reading.ids(whole)
    capture.run("INSERT INTO t VALUES (2)")
    assert ["2"] == reading.ids(whole)
    with whole.login.connected() as connection:
        ((_, cipher),) = connection.query("SHOW STATUS LIKE 'Ssl_cipher'")
    assert cipher
    for query in (ca, "insecure-skip-verify=true"):
        with pytest.raises(HeadgateError) as caught:
            checked(source(query))
        assert "hunter2" not in str(caught.value)
    with pytest.raises(HeadgateError, match="certificate verify failed"):
        checked(source(f"ca={certificates}/client.pem&cert={certificates}/client.pem&key="
                       f"{certificates}/client.key"))  # fmt: skip
