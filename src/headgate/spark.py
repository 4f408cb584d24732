"""The one place where codecs meet Spark: Arrow batches in, event columns out."""
from __future__ import annotations
import gc
from collections.abc import Callable, Iterator
from typing import Any
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
EVENT_DDL = """kind string, op string, database string, `table` string, key array<string>,
before map<string,string>, after map<string,string>,
types map<string,struct<mysql:string,jdbc:int,flags:int>>, ddl string, commit_ts bigint,
event_time timestamp, emit_time timestamp, position map<string,string>,
origin struct<format:string,dialect:string,topic:string,partition:int,offset:bigint,timestamp:timestamp>,
extra map<string,string>, error struct<code:string,message:string>, raw binary, raw_key binary"""
def decode(df, format="auto", **options):
    from headgate.arrow import decode_batches
    def run(batches):
        from headgate.formats import decoder
        gc.disable()
        yield from decode_batches(batches, decoder(format, **options), 1<<24)
    cols=[c for c in ("key","value","topic","partition","offset","timestamp") if c in df.columns]
    return df.select(*cols).mapInArrow(run, EVENT_DDL)
