"""Where messages of captured changes differ from those of the real producers, and why.

A rule covers values of a column by what Headgate and the producer wrote; one that no message needs
fails the test, so that the list stays true.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

ANY = ".*"


class Difference(NamedTuple):
    """A member that Headgate and a producer wrote differently."""

    place: str
    """`table.column` of a value; of another member its path."""
    ours: Any
    theirs: Any


class Rule(NamedTuple):
    """Differences that are known: each part is a regular expression."""

    why: str
    place: str
    ours: str = ANY
    theirs: str = ANY

    def covers(self, found: Difference) -> bool:
        return all(
            re.fullmatch(pattern, str(text), re.DOTALL) for pattern, text in zip(self[1:], found)
        )


NOW = Rule("the default of the column is the time of the statement", r"t_timenn\.s6", "20..-.*")
ZEROS = r"t_bin\.(b1|b16|cb)|t_bkey\.k"
RULES: dict[str, list[Rule]] = {
    "canal": [
        NOW,
        Rule("BINARY comes without its trailing zeros", ZEROS, r".*\0"),
        Rule("a label loses its emoji", r"t_enum\.e: mysqlType", ".*😀.*", r".*'\?'.*"),
        Rule("MySQL's other name of a type", r"t_geo\.gc: mysqlType", "geometrycollection"),
        Rule(
            "DECIMAL without zeros at its end", r"t_num\.(d10|d10u|d30|d65|dz)",
            r"[\d.-]+0", r"[\d.-]+0",
        ),
        Rule("digits of Java's", r"t_num\.(fu|d)", r"[\d.]+E-?\d+", r"[\d.]+E-?\d+"),
        Rule("digits of Java's", r"t_json\.jn?", "1e100", r"1\.0E100"),
        Rule("a quote in a key of JSON is not escaped", r"t_json\.jn?", r'\{"z": .*'),
        Rule("temporal and binary values within JSON", r"t_json\.j", r'\{"b": true, "d": .*'),
        Rule(
            "text of latin1 and gbk is not decoded", r"t_str\.(c10|tx|v)[lg]", r".*[^\0-\x7f].*",
            ".*�.*",
        ),
        Rule("nor is that of ucs2", r"t_str\.vu", ".+", ".*\0.*|.*�.*|-N.*"),
    ],
    "maxwell": [
        NOW,
        Rule("BINARY comes without its trailing zeros", ZEROS, ".*A[AQgw]?=*"),
        Rule("the same", "t_bkey: primary_key", r"\['/w.*", r"\['/w==.*"),
        Rule("TIME outside of a day", r"t_time\.t\d", r"-.*|\d{3}:.*|24:.*"),
        Rule("dates that do not exist", r"t_baddate\.(d0|d6|dt)", r"2023-.*"),
        Rule("days left out of October 1582", r"t_time\.dt", "1582-10-10", "1582-10-20"),
        Rule("YEAR 0000", r"t_time(nn)?\.y", "0", "1900"),
        Rule("BIT over 32 bits is cut", r"t_num\.b(33|63|64)", r"\d{10,}", r"-?\d+"),
        Rule("digits of Java's", r"t_num\.fu", r"1\.1754944e-38|123456790\.0"),
        Rule("a label with a quote", r"t_enum\.e", "it's", "it''s"),
        Rule("index 0 of an ENUM is null", r"t_enum\.ed?", "0?", "None"),
        Rule("geometries are text", r"t_geo\..*", r"[\w+/=]+", r"[A-Z]+ (\(.*\)|EMPTY)"),
        Rule("temporal and binary values within JSON", r"t_json\.j", r"\{'b': True, 'd': .*"),
    ],
    "debezium": [
        NOW,
        Rule("defaults are left out of schemas", r".*: schema default", r"\(absent\)"),
        Rule("NULL becomes the default", r"t_def\..*", "None"),
        Rule("BOOLEAN is TINYINT(1) to the server", r"t_(int\.bo|def\.b): schema type", "int16"),
        Rule("the same", r"t_(int\.bo|def\.b)", "0", "False"),
        Rule("and values other than 0 are the same", r"t_(int\.bo|def\.b)", r"1|127|-128", "True"),
        Rule("REAL is a 32-bit float", r"t_num\.r: schema type", "double", "float"),
        Rule("the same", r"t_num\.r", r"1e-300|-1e\+300|3\.141592653589793"),
        Rule("FLOAT(7,2) as a 64-bit float", r"t_num\.f72", r"-?\d+\.\d\d?", r"-?\d+\.\d{6,}"),
        Rule("digits of Java's", r"t_num\.fu", r"1\.1754944e-38|123456790"),
        Rule("years below 100 are those of our time", r"t_time\.d[t\d]", r"-\d+", r"\d+"),
        Rule("zero TIMESTAMP is 1970", r"t_time\.s\d", "None", r"1970-01-01T00:00:00[.0]*Z"),
        Rule(
            "CHAR and VARCHAR with CHARACTER SET binary are text", r"t_bin\.(cb|vbin): schema type",
            "bytes", "string",
        ),
        Rule("the same", r"t_bin\.(cb|vbin)", r"[\w+/]+=*"),
        Rule("index 0 of an ENUM beside a label ''", r"t_enum\.e", "0", ""),
        Rule("digits of Java's", r"t_json\.jn?", "1e100", r"1\d{100}"),
        Rule("temporal and binary values within JSON", r"t_json\.j", r'\{"b": true, "d": .*'),
    ],
}  # fmt: skip
"""By producer."""
