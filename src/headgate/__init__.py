"""Headgate: the change-data-capture layer for Apache Spark.

`headgate.decode(df)` turns messages into change events, `headgate.encode` events into messages of
any format, `headgate.rows` events into typed rows. `headgate.land` keeps lake tables equal to the
source's, `headgate.table` reads one of them, `headgate.verify` compares them with their source.
`headgate.register` gives a session the stream of a database's changes.
Without Spark, `headgate.codec.decoder.decoder` decodes one message and
`headgate.codec.encoder.Encoder` encodes one event.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headgate.core.errors import DecodeError, HeadgateError, UsageError
from headgate.core.event import ColumnType, Event

if TYPE_CHECKING:
    from headgate.codec.loss_samples import losses
    from headgate.pipeline.data_sources import register
    from headgate.pipeline.land import land
    from headgate.pipeline.landed_table import table
    from headgate.spark.api import dead_letters, decode, decoder, encode, encoder, rows
    from headgate.verification.api import verify

__version__ = "0.1.0"
__all__ = [
    "ColumnType",
    "DecodeError",
    "Event",
    "HeadgateError",
    "UsageError",
    "dead_letters",
    "decode",
    "decoder",
    "encode",
    "encoder",
    "land",
    "losses",
    "register",
    "rows",
    "table",
    "verify",
]


def __getattr__(name: str) -> Any:
    # Spark is imported when it is first needed: codecs and the command line start without it.
    if name == "losses":
        from headgate.codec.loss_samples import losses

        return losses
    if name in ("dead_letters", "decode", "decoder", "encode", "encoder", "rows"):
        from headgate.spark import api as spark

        return getattr(spark, name)
    if name == "land":
        from headgate.pipeline.land import land

        return land
    if name == "register":
        from headgate.pipeline.data_sources import register

        return register
    if name == "table":
        from headgate.pipeline.landed_table import table

        return table
    if name == "verify":
        from headgate.verification.api import verify

        return verify
    raise AttributeError(f"module 'headgate' has no attribute {name!r}")
