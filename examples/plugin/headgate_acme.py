"""A format, `{"do":"insert","db":"shop","table":"t","row":{"id":"1"}}`, and a sink that appends."""

from dataclasses import dataclass
from pathlib import Path

import msgspec

from headgate.core.errors import UsageError
from headgate.core.event import Event, Record
from headgate.core.json import parse, reader
from headgate.core.options import CommonOptions, EncodeOptions
from headgate.formats.base import Encoding, Format
from headgate.sinks.base import MessageSink, Writer


class Message(msgspec.Struct, omit_defaults=True):
    do: str
    db: str | None = None
    table: str | None = None
    row: dict[str, str | None] | None = None
    old: dict[str, str | None] | None = None


read = reader(Message)
CARRIED = frozenset({"insert", "before", "database", "table"})


def make_decoder(dialect, options):
    def decode(key, value, topic):
        m = parse(read, value or b"")  # what it raises becomes an `invalid` event
        before, after = (m.row, None) if m.do == "delete" else (m.old, m.row)
        origin = {"format": "acme-json", "dialect": "acme"}
        return [Event("row", m.do, m.db, m.table, before=before, after=after, **origin)]

    return decode


def make_encoder(dialect, options):
    def encode(event, lost):
        if event.kind != "row" or event.op == "truncate":
            return []  # no message: the event is counted as lost
        row, old = (event.before, None) if event.op == "delete" else (event.after, event.before)
        message = Message(event.op, event.database, event.table, row, old)
        return [Record(msgspec.json.encode(message, enc_hook=str))]

    return encode


FORMAT = Format(
    name="acme-json",
    summary="Acme's rows",
    dialects={"acme": "Acme, all versions"},
    options=CommonOptions,
    decoder=make_decoder,
    recognises=lambda message: "do" in message.members,
    kinds="rows",
    encoding=Encoding(EncodeOptions, make_encoder, lambda dialect, options: CARRIED),
)


@dataclass(frozen=True)
class AppendSink(MessageSink, Writer):
    """Appends values to a file: `append:/tmp/out.jsonl?protocol=acme-json`."""

    path: Path
    name = "append"
    summary = "values as lines of a file"
    promise = "at-least-once"
    authority = "path"

    @classmethod
    def from_uri(cls, address, format_options):
        return cls(Path(address.path))

    def open(self, spark, target):
        return self

    def write(self, batch, steps, topics):
        try:
            with self.path.open("ab") as file:
                for step in steps:
                    batch.still_ours()
                    rows = step.toLocalIterator()
                    file.writelines(bytes(row.value or b"null") + b"\n" for row in rows)
        except OSError as error:
            raise UsageError(f"append: {error.strerror}; name a file that can be written") from None
