"""The decoder and the encoders of a job."""

from __future__ import annotations

from collections.abc import Sequence

from headgate.codec.decoder import decoder, with_keys
from headgate.codec.encoder import Encoder
from headgate.config.job import Job, Source
from headgate.formats.base import Decode
from headgate.pipeline.catalog import decoder_options, file_tables
from headgate.pipeline.plan import KnownTopics


def job_decoder(source: Source) -> Decode:
    """A decoder whose rows have the keys of the schema file, which repeats are recognised by.

    What else is known of tables is given to rows at their place between DDL.
    """
    decode = decoder(source.format, **decoder_options(source))
    schema = source.options.get("schema")
    return decode if schema is None else with_keys(decode, file_tables(source))


def job_encoders(job: Job, topics: Sequence[KnownTopics]) -> list[Encoder]:
    """An encoder for each sink, that knows how many partitions its topics have.

    Rows are completed before they come to it.
    """
    encoders = [Encoder(sink.format, **sink.options) for sink in job.sinks]
    for encoder, sink in zip(encoders, job.sinks):
        encoder.writes_tombstones = sink.connector.takes_tombstones
    for encoder, known in zip(encoders, topics):
        encoder.partitions = known.partitions
    return encoders
