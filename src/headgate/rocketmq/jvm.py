"""The JVM of this Python process, in which RocketMQ's client runs.

A Python worker of Spark cannot call into the JVM of its executor. So each process that reads or
writes RocketMQ, the driver's and the workers', starts a small JVM of its own inside (JPype), once,
and keeps it. The client's jars are not on Spark's class path, where their libraries could clash
with Spark's: they are resolved on the driver, and workers on other machines get them as files.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headgate.core.errors import UsageError
from headgate.spark import jars

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VERSION = "5.4.0"
NETTY, TELEMETRY = "4.1.119.Final", "1.44.1"
COORDINATES = (
    f"org.apache.rocketmq:rocketmq-client:{VERSION}",
    f"org.apache.rocketmq:rocketmq-common:{VERSION}",
    f"org.apache.rocketmq:rocketmq-remoting:{VERSION}",
    "io.github.aliyunmq:rocketmq-slf4j-api:1.0.1",
    *(
        f"io.netty:netty-{part}:{NETTY}"
        for part in (
            "buffer", "codec", "codec-http", "codec-socks", "common", "handler", "handler-proxy",
            "resolver", "transport", "transport-classes-epoll", "transport-native-unix-common",
        )
    ),
    *(f"io.opentelemetry:opentelemetry-{part}:{TELEMETRY}" for part in ("api", "context")),
    "com.alibaba:fastjson:1.2.83",
    "com.alibaba.fastjson2:fastjson2:2.0.43",
    "com.google.guava:guava:32.0.1-jre",
    "com.google.guava:failureaccess:1.0.1",
    "commons-codec:commons-codec:1.13",
    "commons-validator:commons-validator:1.7",
    "org.apache.commons:commons-lang3:3.12.0",
)  # fmt: skip
"""The client and what of its dependencies it needs here: 12 MB, where all of them have 60."""
CHECKSUMS = Path(__file__).with_name("jars.sha256")
OPTIONS = (
    # Compiling more of the client than its first compiler does takes seconds of each worker's CPU,
    # and what is sent or pulled costs no less then.
    "-XX:TieredStopAtLevel=1",
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-Xrs",  # signals are Python's
    "-Dfile.encoding=UTF-8",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
)
_starting = threading.Lock()


def client_jars() -> list[str]:
    """The paths of the client's jars on this machine; resolved from Maven Central once."""
    folder = os.environ.get("HEADGATE_JARS")
    if not folder:
        return [str(path) for path in jars.checked(COORDINATES, CHECKSUMS)]
    paths = sorted(Path(folder).glob("*.jar"))
    if not any(jars.artifact(path) == "rocketmq-client" for path in paths):
        raise UsageError(
            f"HEADGATE_JARS names {folder}, where RocketMQ's client is not; put "
            f"{', '.join(COORDINATES)} there, or unset it to have them resolved from Maven Central"
        )
    return [str(path) for path in paths]


def shipped(spark: SparkSession) -> tuple[str, ...]:
    """The client's jars for the workers of a session: paths, or names of files that they get."""
    paths = client_jars()
    context = spark.sparkContext
    if str(context.master).startswith("local"):
        return tuple(paths)
    for path in paths:
        context.addFile(path)
    return tuple(os.path.basename(path) for path in paths)


def local_jars(names: Sequence[str]) -> list[str]:
    """Where a worker has the jars that were shipped to it."""
    from pyspark import SparkFiles

    return [name if os.path.isabs(name) else SparkFiles.get(name) for name in names]


def start(paths: Sequence[str] | None = None) -> Any:
    """Start this process's JVM if there is none, with these jars; returns the module jpype."""
    try:
        import jpype
    except ImportError:
        raise UsageError(
            "RocketMQ needs JPype1, which is not installed; pip install 'headgate[rocketmq]' here "
            "and on the workers"
        ) from None
    with _starting:
        if not jpype.isJVMStarted():
            classpath = client_jars() if paths is None else list(paths)
            jpype.startJVM(library(jpype), *OPTIONS, classpath=classpath, convertStrings=False)
            silence(jpype)
    return jpype


def silence(jpype: Any) -> None:
    """Load the client's logging, which says on standard error that there is no log to write to.

    Its errors are raised. A log of its own would be a file in everybody's home.
    """
    system = jpype.JClass("java.lang.System")
    errors = system.err
    nowhere = jpype.JClass("java.io.OutputStream").nullOutputStream()
    system.setErr(jpype.JClass("java.io.PrintStream")(nowhere))
    jpype.JClass("org.apache.rocketmq.logging.org.slf4j.LoggerFactory").getILoggerFactory()
    system.setErr(errors)


def library(jpype: Any) -> str:
    """The path of the JVM's library."""
    try:
        return str(jpype.getDefaultJVMPath())
    except (jpype.JVMNotFoundException, jpype.JVMNotSupportedException, OSError, ValueError):
        java = shutil.which("java")
        home = Path(java).resolve().parents[1] if java else None
        for path in home.glob("lib/**/libjvm.*") if home else ():
            return str(path)
        raise UsageError(
            "RocketMQ's client needs a JVM (17 or newer) on this machine and none was found; set "
            "JAVA_HOME"
        ) from None
