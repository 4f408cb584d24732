"""A MySQL or MariaDB database as tables: read by Spark through JDBC, in ranges of keys.

The server writes each value as the canonical text that events have, and texts become typed columns
as they do when they land, so that there is one definition of what a value is.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headgate.core.errors import HeadgateError, UsageError, reason_of
from headgate.core.mysql_types import parse_type
from headgate.core.scalars import Environment
from headgate.landing.shape import TableShape
from headgate.landing.types import DEFAULTS, TypePreferences
from headgate.mysql.sql import identifier, literal
from headgate.schema.changes import TableId
from headgate.verification.sides import Side, SideTable
from headgate.verification.typed_rows import shape_of, typed_rows

SCHEMES = ("mysql", "mariadb")
JARS = ("mariadb",)
DRIVER = "org.mariadb.jdbc.Driver"
DEFAULT_PORT = 3306
FETCHED_ROWS = 10_000
ROWS_PER_PARTITION = 500_000
MOST_PARTITIONS = 64
PART = "headgate_part"
SYSTEM = ("information_schema", "mysql", "performance_schema", "sys")
COLUMNS = """
    SELECT c.table_schema AS d, c.table_name AS t, c.column_name AS c, c.column_type AS y,
           c.ordinal_position AS o, k.ordinal_position AS k
    FROM information_schema.columns c
    JOIN information_schema.tables n
      ON n.table_schema = c.table_schema AND n.table_name = c.table_name
     AND n.table_type = 'BASE TABLE'
    LEFT JOIN information_schema.key_column_usage k
      ON k.table_schema = c.table_schema AND k.table_name = c.table_name
     AND k.column_name = c.column_name AND k.constraint_name = 'PRIMARY'
    WHERE c.table_schema NOT IN ({system}) {chosen}
"""


@dataclass(frozen=True)
class Database:
    """Where a database is."""

    host: str
    name: str | None
    """None: all databases of the server."""
    user: str
    password: str = field(repr=False)
    params: dict[str, str] = field(default_factory=dict)
    """Parameters of the driver."""

    @property
    def uri(self) -> str:
        """The URI without user and password."""
        return f"mysql://{self.host}/{self.name or ''}"

    def spark_options(self) -> dict[str, str]:
        """The options of Spark's JDBC source; those that it does not know are the driver's."""
        return {
            **self.params,
            "sessionVariables": "time_zone='+00:00'",
            # By this scheme Spark knows how names are quoted.
            "url": f"jdbc:mysql://{self.host}/?permitMysqlScheme",
            "driver": DRIVER,
            "user": self.user,
            "password": self.password,
            "fetchsize": str(FETCHED_ROWS),
        }


def parse_database(uri: str, environment: Mapping[str, str] | None = None) -> Database:
    """The database of a URI; `${NAME}` is taken from the environment.

    >>> database = parse_database("mysql://reader:${PW}@db/shop", {"PW": "x"})
    >>> database.host, database.name, database.password
    ('db:3306', 'shop', 'x')
    """
    env = Environment(os.environ if environment is None else environment)
    parts = urlsplit(uri)
    try:
        host, port = parts.hostname, parts.port or DEFAULT_PORT
    except ValueError:
        host, port = None, 0
    if host is None or parts.username is None or parts.path.count("/") > 1 or parts.fragment:
        raise UsageError(
            f"a database is written {parts.scheme or 'mysql'}://USER:PASSWORD@HOST:PORT/DATABASE; "
            "percent-encode : / ? # @ & % in names and passwords, and write secrets as ${NAME}"
        )
    user, password = (env.fill(unquote(text or "")) for text in (parts.username, parts.password))
    params = {name: env.fill(value) for name, value in parse_qsl(parts.query)}
    name = unquote(parts.path[1:]).removesuffix(".*")  # as the source of a job is written
    return Database(f"{host}:{port}", name or None, user, password, params)


class DatabaseSide(Side):
    """The tables of a database, or of all databases of a server."""

    live = True

    def __init__(
        self, spark: SparkSession, database: Database, prefer: TypePreferences = DEFAULTS
    ) -> None:
        self.spark, self.database, self.prefer = spark, database, prefer
        self.name = database.uri
        self.shapes: dict[str, TableShape] | None = None

    def tables(self) -> list[str]:
        """The base tables."""
        return sorted(self.known())

    def known(self) -> dict[str, TableShape]:
        """The shapes of all tables."""
        if self.shapes is None:
            chosen = self.database.name
            query = COLUMNS.format(
                system=", ".join(map(literal, SYSTEM)),
                chosen="" if chosen is None else f"AND c.table_schema = {literal(chosen)}",
            )
            tables: dict[str, list[Any]] = {}
            for row in self.run(query):
                tables.setdefault(f"{row.d}.{row.t}", []).append(row)
            self.shapes = {}
            for name, rows in tables.items():
                columns = {r.c: r.y for r in sorted(rows, key=lambda r: r.o)}
                key = [r.c for r in sorted((r for r in rows if r.k), key=lambda r: r.k)]
                self.shapes[name] = shape_of(
                    TableId(rows[0].d, rows[0].t), columns, key, self.prefer
                )
        return self.shapes

    def table(self, name: str) -> SideTable | None:
        """The rows of a table."""
        shape = self.known().get(name)
        if shape is None:
            return None
        texts = self.texts(shape)
        row = F.to_json(
            F.struct(*(F.col(f"c{n}").alias(c.source_name) for n, c in enumerate(shape.columns)))
        )
        rows = texts.select(row.cast("binary").alias("row"))
        json = frozenset(c.name for c in shape.columns if parse_type(c.mysql).family == "json")
        return SideTable(typed_rows(rows, shape, self.prefer), shape.key, json)

    def texts(self, shape: TableShape) -> DataFrame:
        """The columns of a table as canonical texts `c0`, `c1` …, in ranges of its key."""
        columns = [
            f"{text_sql(identifier(column.source_name), column.mysql)} AS c{number}"
            for number, column in enumerate(shape.columns)
        ]
        database, table = shape.table
        source = f"{identifier(database or '')}.{identifier(table)}"
        first = next((c for c in shape.columns if c.name in shape.key[:1]), None)
        options = self.database.spark_options()
        if first is not None and parse_type(first.mysql).family == "integer":
            name = identifier(first.source_name)
            columns.append(f"{name} AS {PART}")
            bounds = f"SELECT MIN({name}) AS a, MAX({name}) AS b, COUNT(*) AS n FROM {source}"
            [ends] = self.run(bounds)
            parts = min(MOST_PARTITIONS, int(ends.n or 0) // ROWS_PER_PARTITION + 1)
            if parts > 1:
                options |= {
                    "partitionColumn": PART, "lowerBound": str(ends.a), "upperBound": str(ends.b),
                    "numPartitions": str(parts),
                }  # fmt: skip
        options["dbtable"] = f"(SELECT {', '.join(columns)} FROM {source}) AS headgate_rows"
        return self.spark.read.format("jdbc").options(**options).load()

    def run(self, query: str) -> list[Any]:
        """The rows of a small query."""
        options = {**self.database.spark_options(), "query": query}
        try:
            return self.spark.read.format("jdbc").options(**options).load().collect()
        except (PySparkException, Py4JError) as error:
            raise HeadgateError(f"cannot read {self.name}: {reason_of(error)}") from None

    def refresh(self) -> None:
        """Rows are read when they are compared; tables may have changed since."""
        self.shapes = None


def text_sql(column: str, mysql: str | None) -> str:
    """SQL for the canonical text of a column.

    >>> text_sql("`a`", "bit(4)"), text_sql("`a`", "int")
    ('CAST(`a` + 0 AS CHAR)', 'CAST(`a` AS CHAR)')
    """
    match parse_type(mysql).family:
        case "bit":
            return f"CAST({column} + 0 AS CHAR)"
        case "float":  # as a FLOAT it would be printed with six digits
            return f"CAST({column} + 0e0 AS CHAR)"
        case "binary":
            return f"REPLACE(TO_BASE64({column}), '\\n', '')"
        case "spatial":
            return f"REPLACE(TO_BASE64(CAST({column} AS BINARY)), '\\n', '')"
        case _:
            return f"CAST({column} AS CHAR)"
