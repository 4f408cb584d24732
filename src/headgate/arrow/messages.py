"""Messages as columns: as they are read, and as dead letters."""

from __future__ import annotations

import pyarrow as pa

from headgate.arrow.events import OVERSIZE, SOURCE_COLUMNS

Partition = tuple[str | None, int | None]
"""A topic and the number of its partition; files are partitions of a topic named as their folder.
"""
KAFKA_SCHEMA = pa.schema([*SOURCE_COLUMNS.items(), ("headers", pa.string())])
"""Kafka's columns, headers as text."""
MESSAGE_SCHEMA = pa.schema([*KAFKA_SCHEMA, ("place", pa.string()), (OVERSIZE, pa.string())])
"""Of a file: `place` is the file and line where there are no coordinates; what is too large is not
read whole."""
DEAD_LETTER = pa.struct(
    [*MESSAGE_SCHEMA, ("code", pa.string()), ("message", pa.string()), ("table", pa.string())]
)
"""A dead letter: the message as it was, in Kafka's columns, why, and of which table it seems."""
DEAD_LETTER_COLUMNS = tuple(field.name for field in DEAD_LETTER)
