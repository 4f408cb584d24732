"""Where messages come from: a class per scheme of a URI, imported on first use.

To add a source, write a module here with a class as sources/base.py describes it, and add a line.
Packages of third parties register theirs with the entry point group `headgate.sources`.
"""

from __future__ import annotations

from headgate.core.connectors import Entry, Registry
from headgate.sources.base import Source
from headgate.spark.filesystem import REMOTE

SOURCES: Registry[Source] = Registry(
    "source",
    {
        "kafka": Entry("headgate.sources.kafka:KafkaSource", "kafka://HOST:PORT/TOPIC"),
        "file": Entry("headgate.sources.files:FileSource", "file:///DIR"),
        **{
            scheme: Entry("headgate.sources.files:FileSource", f"{scheme}://BUCKET-OR-HOST/DIR")
            for scheme in REMOTE
        },
        "rocketmq": Entry(
            "headgate.sources.rocketmq:RocketMQSource",
            "rocketmq://HOST:PORT/TOPIC",
            "pip install 'headgate[rocketmq]'",
        ),
        "mysql": Entry(
            "headgate.sources.mysql:MySQLSource",
            "mysql://USER:PASSWORD@HOST:PORT/DATABASE.TABLE",
            "pip install 'headgate[mysql]'",
        ),
        "stdin": Entry("headgate.sources.stdin:StdinSource", "stdin:"),
    },
    dash="stdin",
)
