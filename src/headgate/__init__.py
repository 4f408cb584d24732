"""Headgate: the change-data-capture layer for Apache Spark.

`headgate.decode(df)` turns messages into change events, `headgate.encode` events into messages of
any format, `headgate.rows` events into typed rows. `headgate.land` keeps lake tables equal to the
source's, `headgate.table` reads one of them, `headgate.verify` compares them with their source.
`headgate.run` runs a job, `headgate.session` starts a session with the connectors that are needed,
and `headgate.register` gives a session Headgate's data sources and its SQL function.
Without Spark, `headgate.codec.decoder.decoder` decodes one message and
`headgate.codec.encoder.Encoder` encodes one event.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from headgate.core.errors import DecodeError, HeadgateError, MissingPackage, UsageError
from headgate.core.event import ColumnType, Event

if TYPE_CHECKING:
    from headgate.codec.loss_samples import losses
    from headgate.landing.rows import rows
    from headgate.pipeline.job_api import run
    from headgate.pipeline.land import land
    from headgate.pipeline.landed_table import table
    from headgate.pipeline.registration import register
    from headgate.spark.api import dead_letters, decode, decoder, encode, encoder
    from headgate.spark.user_session import session
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
    "run",
    "session",
    "table",
    "verify",
]
_ON_SPARK = {
    "dead_letters": "headgate.spark.api",
    "decode": "headgate.spark.api",
    "decoder": "headgate.spark.api",
    "encode": "headgate.spark.api",
    "encoder": "headgate.spark.api",
    "land": "headgate.pipeline.land",
    "register": "headgate.pipeline.registration",
    "rows": "headgate.landing.rows",
    "run": "headgate.pipeline.job_api",
    "session": "headgate.spark.user_session",
    "table": "headgate.pipeline.landed_table",
    "verify": "headgate.verification.api",
}
"""Modules by the name that is imported from them when it is first used: Spark takes a second."""
_LAZY = {"losses": "headgate.codec.loss_samples", **_ON_SPARK}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'headgate' has no attribute {name!r}")
    try:
        return getattr(import_module(_LAZY[name]), name)
    except ModuleNotFoundError as error:
        raise MissingPackage.of(error, f"headgate.{name}") from None


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"] if find_spec("pyspark") else {*__all__} - {*_ON_SPARK})
