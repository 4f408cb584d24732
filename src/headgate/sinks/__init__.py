"""Where messages and tables go: a class per scheme of a URI, imported on first use.

To add a sink, write a module here with a class as sinks/base.py describes it, and add a line.
Packages of third parties register theirs with the entry point group `headgate.sinks`.
"""

from __future__ import annotations

from headgate.core.connectors import Entry, Registry
from headgate.sinks.base import MessageSink, TableSink
from headgate.spark.filesystem import REMOTE

DELTA_REMOTE = ("s3a", "s3", "gs", "abfs", "abfss")
"""File systems that delta-rs has."""
SINKS: Registry[MessageSink | TableSink] = Registry(
    "sink",
    {
        "kafka": Entry("headgate.sinks.kafka:KafkaSink", "kafka://HOST:PORT/TOPIC"),
        "rocketmq": Entry(
            "headgate.sinks.rocketmq:RocketMQSink",
            "rocketmq://HOST:PORT/TOPIC",
            "pip install 'headgate[rocketmq]'",
        ),
        "datahub": Entry(
            "headgate.sinks.datahub:DataHubSink",
            "datahub://HOST:PORT/PROJECT/TOPIC",
            "pip install 'headgate[datahub]'",
        ),
        "file": Entry("headgate.sinks.files:FileSink", "file:///DIR"),
        **{
            scheme: Entry("headgate.sinks.files:FileSink", f"{scheme}://BUCKET-OR-HOST/DIR")
            for scheme in REMOTE
        },
        **{
            scheme: Entry("headgate.sinks.delta:DeltaSink", uri, "pip install 'headgate[delta]'")
            for scheme, uri in {
                "delta": "delta:///DIR",
                **{f"delta+{each}": f"delta+{each}://BUCKET-OR-HOST/DIR" for each in DELTA_REMOTE},
            }.items()
        },
        "console": Entry("headgate.sinks.console:ConsoleSink", "console:"),
    },
    dash="console",
)
