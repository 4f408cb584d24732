"""Options for encoding the formats of Debezium and its transform."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.core.options import EncodeOptions, option


@dataclass(frozen=True)
class EncodedValueOptions(EncodeOptions):
    """Options for values and their schema, named as in the connector and its converter."""

    schemas_enable: bool | None = option(
        None, "write the schema block; by default Debezium does and OMS does not"
    )
    topic_prefix: str | None = option(
        None, "source.name and first part of schema names; default: the event's, else headgate"
    )
    decimal_handling_mode: str = option(
        "precise", "how DECIMAL is written", ("precise", "string", "double")
    )
    decimal_format: str = option(
        "base64", "the converter's decimal.format, for precise decimals", ("base64", "numeric")
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
