"""How connectors, which are jars, get onto Spark's classpath: resolved once, then from a cache."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from xml.sax.saxutils import quoteattr

import pyspark

from headgate.core.errors import Unreachable, UsageError, unknown_name

log = logging.getLogger("headgate")
AWS_SDK = "2.29.52"
"""The version that hadoop-aws was built with."""
AWS_MODULES = (
    "annotations", "apache-client", "arns", "auth", "aws-core", "aws-query-protocol",
    "aws-xml-protocol", "checksums", "checksums-spi", "crt-core", "endpoints-spi", "http-auth",
    "http-auth-aws", "http-auth-aws-eventstream", "http-auth-spi", "http-client-spi",
    "identity-spi", "json-utils", "metrics-spi", "netty-nio-client", "profiles", "protocol-core",
    "regions", "retries", "retries-spi", "s3", "s3-transfer-manager", "sdk-core", "sts",
    "third-party-jackson-core", "utils",
)  # fmt: skip
"""What S3 needs of the SDK: 9 MB, where the bundle that hadoop-aws asks for has 600."""
DELTA = "4.4.0"
"""The Delta Lake that merges with Spark 4.1.4; 4.1.0 does not."""
KAFKA_FOR_SPARK = ("4.1.0", "4.1.1", "4.1.2", "4.1.3")
"""The versions of Spark's Kafka connector whose checksums are known."""
TOKEN_PROVIDER = "4.1.0-preview1"
"""The newest of 4.1 that Maven Central answered for; the connector does not load without it."""


def kafka_connector(spark: str) -> tuple[str, ...]:
    """The Kafka connector of a version of Spark.

    Of the versions with a known checksum, the newest that is of the same 4.x and not newer than
    Spark. Of another 4.x it has Spark's own version, and no checksum that Headgate knows.

    >>> [kafka_connector(spark)[0].rpartition(":")[2] for spark in ("4.1.1", "4.1.9", "4.2.0")]
    ['4.1.1', '4.1.3', '4.2.0']
    """
    same = [v for v in KAFKA_FOR_SPARK if numbers(v)[:2] == numbers(spark)[:2]]
    known = max((v for v in same if numbers(v) <= numbers(spark)), key=numbers, default=None)
    return (
        f"org.apache.spark:spark-sql-kafka-0-10_2.13:{known or spark}",
        f"org.apache.spark:spark-token-provider-kafka-0-10_2.13:"
        f"{TOKEN_PROVIDER if known else spark}",
        "org.apache.kafka:kafka-clients:3.9.1",
        "org.apache.commons:commons-pool2:2.12.1",
    )


def numbers(version: str) -> tuple[int, ...]:
    """The numbers of a version, by which versions compare.

    >>> numbers("4.1.10") > numbers("4.1.9.dev0")
    True
    """
    return tuple(map(int, re.findall(r"\d+", version)[:3]))


CONNECTORS = {
    "kafka": kafka_connector(pyspark.__version__),
    "mariadb": ("org.mariadb.jdbc:mariadb-java-client:3.5.11",),
    "s3a": (
        "org.apache.hadoop:hadoop-aws:3.4.2",
        "org.reactivestreams:reactive-streams:1.0.4",
        "software.amazon.eventstream:eventstream:1.0.1",
        *(f"software.amazon.awssdk:{module}:{AWS_SDK}" for module in AWS_MODULES),
    ),
    "delta": (
        f"io.delta:delta-spark_4.1_2.13:{DELTA}",
        f"io.delta:delta-storage:{DELTA}",
        f"io.delta:delta-kernel-api:{DELTA}",
        f"io.delta:delta-kernel-defaults:{DELTA}",
        f"io.delta:delta-kernel-unitycatalog:{DELTA}",
        "io.unitycatalog:unitycatalog-client:0.6.0",
        "io.unitycatalog:unitycatalog-hadoop:0.6.0",
    ),
}
"""Maven coordinates by the connector's name: exactly the jars that the tests run with."""

CHECKSUMS = Path(__file__).with_name("jars.sha256")
"""The SHA-256 of each of them, in the form that `sha256sum --check` reads."""
TIMEOUT = 600
SPARK_JARS = Path(pyspark.__file__).parent / "jars"


def coordinates_of(name: str) -> tuple[str, ...]:
    """The Maven coordinates of a connector; a coordinate stands for itself.

    >>> coordinates_of("kafka")[0].rpartition(":")[0]
    'org.apache.spark:spark-sql-kafka-0-10_2.13'
    >>> coordinates_of("org.example:connector:1.0")
    ('org.example:connector:1.0',)
    """
    if ":" in name:
        return (name,)
    if name not in CONNECTORS:
        raise unknown_name("connector", name, CONNECTORS)
    return CONNECTORS[name]


def settings(*names: str) -> dict[str, str]:
    """The Spark settings that put these connectors onto the classpath of a new session.

    The jars are those in the directory that HEADGATE_JARS names, or else they are resolved from
    Maven Central once and then taken from the cache (HEADGATE_CACHE, or ~/.cache/headgate).

    >>> settings()
    {}
    """
    bundled = {artifact(jar) for jar in SPARK_JARS.glob("*.jar")}
    sets = [coordinates_of(name) for name in names]
    # Where Spark has the connector itself, it has what goes with it.
    missing = [coordinates for coordinates in sets if coordinates[0].split(":")[1] not in bundled]
    if not missing:
        return {}
    wanted = [each for coordinates in missing for each in coordinates]
    folder = os.environ.get("HEADGATE_JARS")
    if not folder:
        return on_classpath([jar for coordinates in missing for jar in checked(coordinates)])
    jars = sorted(Path(folder).glob("*.jar"))
    if not jars:
        raise UsageError(
            f"HEADGATE_JARS names {folder}, where there is no jar; put {', '.join(wanted)} "
            "there, or unset it to have them resolved from Maven Central"
        )
    return on_classpath(jars)


def checked(wanted: Sequence[str], checksums: Path | None = None) -> list[Path]:
    """The jars of a connector, each of which is the one that Headgate was tested with.

    `checksums` is a file like CHECKSUMS, which has those of CONNECTORS; of connectors that are not
    Headgate's own none are known.
    """
    jars = resolve(wanted, transitive=False)
    if checksums is None and tuple(wanted) not in CONNECTORS.values():
        return jars
    lines = (checksums or CHECKSUMS).read_text().splitlines()
    known = dict(line.split()[::-1] for line in lines)
    first = "{1}-{2}.jar".format(*wanted[0].split(":"))
    if first not in known:
        log.warning(
            "Headgate was not tested with %s, which goes with PySpark %s: of its jars only the "
            "checksums of Maven Central were verified",
            first,
            pyspark.__version__,
        )
        return jars
    names = {"{1}-{2}.jar".format(*coordinate.split(":")) for coordinate in wanted}
    wrong = [f"{name} is missing" for name in sorted(names - {jar.name for jar in jars})]
    for jar in jars:
        if jar.name not in names:
            wrong.append(f"{jar.name} is none of the connector's jars")
        elif hashlib.sha256(jar.read_bytes()).hexdigest() != known.get(jar.name):
            wrong.append(
                f"{jar.name} has another SHA-256 than the jar that Headgate is tested with"
            )
    if wrong:
        folder = cache() / folder_name(wanted, False)
        raise UsageError(
            f"{folder}: {', '.join(wrong)}; find out why, then remove the directory, and the jars "
            "are fetched again. Jars of your own go into a directory that HEADGATE_JARS names"
        )
    return jars


def on_classpath(jars: Iterable[Path]) -> dict[str, str]:
    """Spark's setting for jar files, without those of which Spark has its own.

    >>> on_classpath([Path("/jars/spark-tags_2.13-4.1.0.jar"), Path("/jars/kafka-clients-3.9.jar")])
    {'spark.jars': '/jars/kafka-clients-3.9.jar'}
    """
    bundled = {artifact(jar) for jar in SPARK_JARS.glob("*.jar")}
    return {"spark.jars": ",".join(str(jar) for jar in jars if artifact(jar) not in bundled)}


def artifact(jar: Path) -> str:
    """What a jar is of: its name without its version.

    >>> artifact(Path("spark-sql-kafka-0-10_2.13-4.1.0-preview1.jar"))
    'spark-sql-kafka-0-10_2.13'
    """
    return re.sub(r"-\d+\.\d.*", "", jar.stem)


def cache() -> Path:
    """Where resolved jars are kept."""
    folder = os.environ.get("HEADGATE_CACHE")
    return (Path(folder) if folder else Path.home() / ".cache" / "headgate") / "jars"


def resolve(wanted: Sequence[str], transitive: bool = True) -> list[Path]:
    """The jars of Maven coordinates with all that they depend on; from the cache if once resolved.

    >>> resolve(["a:b"])
    Traceback (most recent call last):
    headgate.core.errors.UsageError: 'a:b' is not a Maven coordinate; write group:artifact:version
    """
    for coordinate in wanted:
        if not re.fullmatch(r"[^\s:]+:[^\s:]+:[^\s:]+", coordinate):
            raise UsageError(
                f"{coordinate!r} is not a Maven coordinate; write group:artifact:version"
            )
    folder = cache() / folder_name(wanted, transitive)
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".resolving-") as unfinished:
            jars = fetch(wanted, transitive, Path(unfinished))
            try:
                jars.rename(folder)
            except OSError:
                # Another process was faster, which is as good.
                if not folder.is_dir():
                    raise
    return sorted(folder.glob("*.jar"))


def folder_name(coordinates: Sequence[str], transitive: bool) -> str:
    """One directory for one set of coordinates; no colon, which a Java classpath splits at."""
    first = "-".join(coordinates[0].split(":")[1:])
    whole = " ".join([*coordinates, str(transitive)])
    return f"{first}-{hashlib.sha256(whole.encode()).hexdigest()[:8]}"


def fetch(coordinates: Sequence[str], transitive: bool, folder: Path) -> Path:
    """Have Ivy, which PySpark ships, bring the jars into a directory inside this one."""
    ivy = next(iter(SPARK_JARS.glob("ivy-*.jar")), None)
    if ivy is None:
        raise unresolved(
            coordinates, f"the installed PySpark has no Ivy (ivy-*.jar) in {SPARK_JARS}"
        )
    if not java().is_file():
        raise unresolved(coordinates, "resolving needs a JDK (17 or newer) and none was found")
    wanted, jars = folder / "ivy.xml", folder / "jars"
    wanted.write_text(ivy_file(coordinates, transitive))
    command = [str(java()), "-jar", str(ivy), "-ivy", str(wanted), "-cache", str(folder / "ivy")]
    command += ["-types", "jar", "bundle"]
    command += ["-retrieve", f"{jars}/[artifact]-[revision](-[classifier]).[ext]"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        raise unresolved(coordinates, f"Ivy had no answer within {TIMEOUT} seconds") from None
    if done.returncode or not any(jars.glob("*.jar")):
        raise unresolved(coordinates, complaint(done.stdout + done.stderr))
    return jars


def java() -> Path:
    """The java command."""
    home = os.environ.get("JAVA_HOME")
    return Path(home) / "bin" / "java" if home else Path(shutil.which("java") or "java")


def ivy_file(coordinates: Iterable[str], transitive: bool) -> str:
    """What to resolve, as Ivy reads it."""
    lines = []
    for coordinate in coordinates:
        group, name, version = map(quoteattr, coordinate.split(":"))
        lines.append(
            f'<dependency org={group} name={name} rev={version} conf="default->default" '
            f'transitive="{str(transitive).lower()}"/>'
        )
    return (
        '<ivy-module version="2.0"><info organisation="headgate" module="jars"/>'
        '<configurations><conf name="default"/></configurations>'
        f"<dependencies>{''.join(lines)}</dependencies></ivy-module>"
    )


def complaint(output: str) -> str:
    """What Ivy could not do, out of all that it printed.

    >>> complaint(":: problems ::\\n  :: org.x#y;1.0: not found\\n")
    'org.x:y:1.0: not found'
    """
    lines = [line.strip() for line in output.splitlines()]
    missing = re.findall(r"^\s*:: (\S+)#(\S+);(\S+): (.+)$", output, re.MULTILINE)
    problems = [f"{group}:{name}:{version}: {why}" for group, name, version, why in missing]
    problems += [line for line in lines if "Server access error" in line or "FAILED" in line][:2]
    return "; ".join(dict.fromkeys(problems)) or (lines[-1] if lines else "Ivy printed nothing")


def unresolved(coordinates: Sequence[str], why: str) -> Unreachable:
    """What was tried and what to do."""
    return Unreachable(
        f"cannot get {', '.join(coordinates)} from Maven Central ({why}); check the network "
        "(behind a proxy: JAVA_TOOL_OPTIONS='-Dhttps.proxyHost=… -Dhttps.proxyPort=…'), or put the "
        "jars into a directory and name it in HEADGATE_JARS, or start with spark-submit --packages"
    )
