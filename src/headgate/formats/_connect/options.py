"""Options of the formats that Debezium and its transform write."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.core.options import EncodeOptions, option


@dataclass(frozen=True)
class ValueOptions(EncodeOptions):
    """Options of values and of their schema, named as the connector and its converter have them."""

    schemas_enable: bool | None = option(
        None, "write the schema block; unless told, Debezium has it and OMS has not"
    )
    topic_prefix: str | None = option(
        None, "source.name and the first part of schema names; unless told, the event's or headgate"
    )
    decimal_handling_mode: str = option(
        "precise", "how DECIMAL is written", ("precise", "string", "double")
    )
    decimal_format: str = option(
        "base64", "the converter's form of precise decimals", ("base64", "numeric")
    )
    binary_handling_mode: str = option(
        "bytes", "how binary is written", ("bytes", "base64", "base64-url-safe", "hex")
    )
    time_precision_mode: str = option(
        "adaptive_time_microseconds",
        "how DATE, TIME and DATETIME are written",
        ("adaptive_time_microseconds", "connect", "isostring", "microseconds", "nanoseconds"),
    )
    bigint_unsigned_handling_mode: str = option(
        "long", "how BIGINT UNSIGNED is written", ("long", "precise")
    )
    column_propagate_source_type: bool = option(
        False, "put each column's MySQL type into the schema, so that exact types survive"
    )
