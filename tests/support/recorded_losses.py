"""What the real producers themselves get wrong, reviewed one by one: nothing else may differ.

Found in `tests/vectors/`, where the server's own rows are the truth. A rule that no recording
needs any more fails the test, so that the list stays true.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from recorded import ABSENT, Difference

ANY = r".*"
NULL = r"None"
DEBEZIUM = r"dbz.*"
SNAPSHOT = r"dbz.*(snap2|snapshot).*"


class Loss(NamedTuple):
    """Differences that are a producer's own: each part is a regular expression."""

    recordings: str
    why: str
    column: str = ANY
    """Of `database.table.column`."""
    type: str = ANY
    truth: str = ANY
    decoded: str = ANY
    reading: str = ANY
    """With a schema, without, or converted: see `recorded.READINGS`."""

    def covers(self, recording: str, reading: str, difference: Difference) -> bool:
        """Whether a difference of a recording is this one."""
        return all(
            re.fullmatch(pattern, text, re.DOTALL)
            for pattern, text in (
                (self.recordings, recording),
                (self.reading, reading),
                (self.column, f"{difference.table}.{difference.column}"),
                (self.type, difference.type),
                (self.truth, shown(difference.truth)),
                (self.decoded, shown(difference.decoded)),
            )
        )


def shown(value: Any) -> str:
    return str(value)


MISSING = {
    "canal15": r"live\.(Odd.*|d\d|dp)|live_x\.t",  # it was set up to read the tables t_* only
    "maxwell122": r"live\.(d5|dp)|live_x\.t",
    # In a topic's name, a table's name with a dot looks like a database and a table.
    r"dbz35-smt-(d2t|drop|rwt|tomb|rewrite-ns)": r"live\.Odd.*|live_odd\.t_baddate",
    "dbz.*": r"live_odd\.t_baddate",  # left out of the connector: it stops at 2023-02-31
}
"""Tables whose changes a producer did not write at all."""

LOSSES = [
    # Debezium
    Loss(DEBEZIUM, "REAL is sent as a 32-bit float", column=r"live\.t_num\.r"),
    Loss(DEBEZIUM, "BOOLEAN is sent as true for 127 and -128", r"live\.t_int\.bo", decoded="1"),
    Loss(
        DEBEZIUM, "years below 100 are taken for 19xx and 20xx",
        type="date.*", truth=r"00\d\d-.*", decoded=r"(19|20)\d\d-.*",
    ),
    Loss(DEBEZIUM, "a zero date is null", type="date.*", truth="0000-00-00.*", decoded=NULL),
    Loss(
        DEBEZIUM, "a zero date in a NOT NULL column, and a zero TIMESTAMP, is 1970",
        type="(date|timestamp).*", truth="0000-00-00.*", decoded="1970-01-01.*",
    ),
    Loss(SNAPSHOT, "a zero TIMESTAMP becomes the default", truth="0000-00-00.*", decoded="2000-.*"),
    Loss(SNAPSHOT, "YEAR 0000 is 2000", type="year", truth="0000", decoded="2000"),
    Loss(
        r"dbz(?!.*(nulldef|snap2)).*", "NULL becomes the column's default",
        column=r"live\.t_def\..*", truth=NULL,
    ),
    Loss(r"dbz.*time-(connect|iso).*", "no TIME outside of a day", type="time.*", decoded=NULL),
    Loss(r"dbz.*time-iso.*", "24:00:00 is 00:00:00", type="time.*", truth="24:.*", decoded="00:.*"),
    Loss(
        r"dbz.*time-connect.*", "only milliseconds", type=r"(time|datetime)\([456]\)",
        truth=r".*\.\d{3}.+", decoded=r".*\.\d{3}0*|[\d: -]+",
    ),
    Loss(
        r"dbz.*time-ns.*", "64 bits of nanoseconds end in 1677 and 2262", type="datetime.*",
        truth=r"1[0-6]..-.*|9999-.*",
    ),
    Loss(r"dbz19(?!-snapshot).*", "negative TIME with a fraction", type="time.*", truth="-.*"),
    Loss("dbz19-snapshot", "the sign of a small TIME", type="time.*", truth=r"-00:00:00\..*"),
    Loss("dbz35-dec-double", "DECIMAL as a double", type="decimal.*"),
    Loss(SNAPSHOT, "FLOAT is read with six digits", type="float.*"),
    Loss(
        r"dbz35-snap2.*", "DECIMAL ZEROFILL is left out", column=r"live\.t_num\.dz",
        decoded=re.escape(ABSENT),
    ),
    Loss("dbz35-avroname", "names are made Avro's", column=r"live\.Odd.*"),
    Loss(
        DEBEZIUM, "temporal values within JSON", column=r"live\.t_json\.jn?",
        truth=r'\{"b": true, "d": "2024-01-02".*',
    ),
    Loss(
        DEBEZIUM, "BIGINT UNSIGNED wraps, unless a schema or the source's type tells that it does",
        type="bigint.* unsigned.*", truth=r"\d{19,}", decoded="-.*", reading="alone",
    ),
    Loss(
        r"dbz.*-smt.*", "a row without its envelope does not tell the connector, so that text which"
        " is the same as the placeholder for an unavailable value is taken for one",
        column=r"live\.t_str\..*", truth="__debezium_unavailable_value", decoded=re.escape(ABSENT),
    ),
    Loss(
        DEBEZIUM, "CHAR and VARCHAR with CHARACTER SET binary are sent as text, each byte a letter",
        column=r"live\.t_bin\.(vbin|cb)", reading="alone",
    ),
    Loss(
        r"dbz.*(-ns|-noschema|-d2t|-bin-.*)", "and nothing shows that where there are no types",
        column=r"live\.t_bin\.(vbin|cb)", reading="schema|converted",
    ),
    Loss(
        r"dbz35-bin-(hex|url)", "binary that is sent as text is binary only where a schema says so",
        type=r".*(blob|binary).*", reading="alone",
    ),
    # Canal
    Loss(
        "canal1.", "a label outside of the basic plane is a question mark in mysqlType",
        column=r"live\.t_enum\.e", truth="😀", decoded=r"\?", reading="alone",
    ),
    Loss(
        "canal1.", "no loss: MySQL's error value reads as ''; beside a label '' it is its number",
        column=r"live\.t_enum\.e", truth="", decoded="0",
    ),
    Loss(
        "canal1.", "BINARY comes without its trailing zeros, which only a schema can put back",
        type="binary.*", reading="alone",
    ),
    Loss(
        "canal1.", "text of other character sets is not decoded",
        column=r"live\.t_str\.(vu|..?[lg]|c10[lg])",
    ),
    Loss("canal1.", "a quote in a key of JSON is not escaped", type="json", truth=r'\{"z": \[1.*'),
    Loss("canal1.", "temporal values within JSON", type="json", truth=r'\{"b": true, "d": ".*'),
    # Maxwell
    Loss("maxwell.*", "BIT over 32 bits is cut", type=r"bit\((33|63|64)\)"),
    Loss("maxwell.*", "TIME outside of a day", type="time.*", truth=r"-.*|\d{3}:.*|24:.*"),
    Loss("maxwell.*", "dates before 1582-10-15 are moved", type="date.*", truth=r"(0|1[0-5]).*"),
    Loss("maxwell.*", "dates that do not exist are moved", column=r"live_odd\.t_baddate\..*"),
    Loss("maxwell.*", "a label with a quote", type="enum.*", truth="it's", decoded="it''s"),
    Loss("maxwell.*", "index 0 of an ENUM is null", type="enum.*", truth="", decoded=NULL),
    Loss("maxwell.*", "JSON null is NULL", type="json", truth="null", decoded=NULL),
    Loss("maxwell.*", "temporal values within JSON", type="json", truth=r'\{"b": true, "d": ".*'),
    Loss("maxwell.*", "geometries are sent as text", column=r"live\.t_geo\..*"),
]  # fmt: skip


GENERATED = r"fid\.gen\.gv"

TICDC_LOSSES = [
    Loss(ANY, "virtual generated columns are never sent", column=GENERATED),
    Loss(
        r".*-(delhandle|handlekey)", "only the handle key's columns, as it was set up",
        decoded=re.escape(ABSENT),
    ),
    Loss(r".*-noold", "no row before an update, as it was set up", column=r".*\(row\)"),
    Loss(
        "new.open-updated", "a column that becomes NULL is written without its name",
        column=r".*\(row\)", decoded=NULL,
    ),
    Loss(
        r".*\.(canal|open)-.*", "ENUM and SET are numbers, which only a schema makes labels",
        type=r"(enum|set)\(.*", decoded=r"\d+", reading="alone",
    ),
    Loss(r".*\.debezium-.*", "DECIMAL as a double", type="decimal.*"),
    Loss(
        r".*\.debezium-.*", "years below 100 are taken for 19xx and 20xx",
        type="date.*", truth=r"00\d\d-.*", decoded=r"(19|20)\d\d-.*",
    ),
    Loss(
        r".*\.debezium-.*", "dates that do not exist are null, or 1970 in a NOT NULL column",
        type="(date|timestamp).*", truth=r"0000-00-00.*|....-00-00 .*",
        decoded=r"None|1970-01-01.*",
    ),
    Loss(
        r".*\.debezium-.*", "NULL becomes the column's default", column=r"fid\.defs\..*",
        truth=NULL,
    ),
    Loss(
        r".*\.debezium-.*", "BIGINT UNSIGNED wraps, unless a schema tells that it does",
        type="bigint.* unsigned", truth=r"\d{19,}", decoded="-.*", reading="alone",
    ),
]  # fmt: skip
"""The same for TiCDC's own encoders."""
