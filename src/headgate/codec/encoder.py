"""Events to messages of one format: the losses counted, the partition chosen, rows packed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from headgate.codec.decoder import decoder
from headgate.codec.loss_samples import DATABASE, SCHEMA, TABLE, TOPIC, specimens
from headgate.codec.partitioning import by_table, partitioner
from headgate.codec.schemas import Schemas
from headgate.core.cache import Memo, Plans
from headgate.core.errors import UsageError, internal_error, shown
from headgate.core.event import Event, Record, Types, flattened, qualified
from headgate.core.json import exact_text
from headgate.core.losses import (
    NUMBERS,
    PLACE,
    PRESENT,
    SENTENCES,
    SIGN,
    Loss,
    checks,
    kind_of,
    strongest,
)
from headgate.core.mysql_types import MySqlType, parse_type
from headgate.core.names import NAME, safe, words
from headgate.core.options import EncodeOptions, build, names
from headgate.core.values import LAST_TIME, YEAR_ONE
from headgate.formats import encoding_of, extra_members, load, split, traits_of, writable
from headgate.formats._connect.keys import key_members
from headgate.formats.base import Encoding, Packer, TypeNames
from headgate.formats.partitioning import DispatchError, Partition

IN_A_SCHEMA = {"key", "types", "type-details", "bare-values"}
"""What is not lost where a schema tells it."""
BY_NAME = ("bare-values", "extra")
"""What is known to be lost by the names in an event's `extra`, as "incomplete" is."""


class Encoded(msgspec.Struct, gc=False):
    """What became of one event: its messages, what they do not carry, or why there are none."""

    records: list[Record]
    lost: list[str]
    error: tuple[str, str] | None = None


class Outlook(NamedTuple):
    """What can be said of an event before its values are looked at."""

    own: bool
    """Whether it is of the format to be written."""
    same: bool
    """Whether it is of that dialect too."""
    to_mysql: Callable[[Types | None], Types | None] | None
    """What makes MySQL's types of a vendor's own names, if they have those."""
    numbered: bool
    """Whether its ENUM and SET are numbers, and labels are wanted."""
    lost: list[str]
    """What is lost of `position` and `extra`."""
    encoded: bool
    """Whether values of columns without a type are in encodings that the target does not have."""


Told = tuple[str | None, str | None, bool, tuple[str, ...], tuple[str, ...]]
"""An event's format and dialect, whether it has types, the names in its `position` and `extra`."""


class Encoder:
    """Encodes events of a stream, in order; it learns tables' schemas from the DDL it sees.

    >>> encoder = Encoder("maxwell")
    >>> encoder(Event("row", "insert", "d", "t", after={"id": "1"})).records[0].value
    b'{"database":"d","table":"t","type":"insert","data":{"id":"1"}}'
    >>> encoder(Event("watermark", commit_ts=1)).lost
    ['watermark']
    """

    def __init__(self, spec: str, source: Mapping[str, Any] | None = None, **options: Any) -> None:
        """An encoder of a format; `source` has the options with which the events were decoded."""
        self.name, dialect, self.encoding = target(spec)
        self.dialect = dialect
        told = build(self.encoding.options, options)
        carried = self.encoding.carries(dialect, told)
        self.carried = carried
        self.checks = checks(carried | {*BY_NAME})
        self.places = {c.removeprefix(PLACE) for c in carried if c.startswith(PLACE)}
        self.has_placeholder = self.encoding.has_placeholder and "incomplete" in carried
        """Whether the format has a word for a value that the source's log did not hold."""
        self.encode = self.encoding.encoder(dialect, told)
        self.strict = told.strict
        self.schemas = Schemas(told.schema, source)
        self.informed = told.schema is not None
        self.route = router(told, dialect, self.encoding)
        self.partitions: Mapping[str, int] = {}
        """How many partitions topics have, where that is not `partition_num`."""
        self.topic: str | None = None
        """Where the next event goes, if that is not the option's to say."""
        self.outlooks = Memo(self.outlook)
        self.names_only = "types" in carried and "type-details" not in carried
        self.mysql_types: Memo[TypeNames, Plans[Types | None]] = Memo(
            lambda type_names: Plans(type_names.to_mysql)
        )
        type_names = traits_of(self.name, dialect).type_names
        self.has_details = Plans(
            details_finder(carried, type_names.tells_sign if type_names else frozenset())
        )
        self.labels = NUMBERS not in carried
        self.flat = "schema-name" not in carried
        self.unlabelled = Plans(unlabelled_columns)
        self.packer = self.encoding.packer and self.encoding.packer(told)
        self.deleted: Event | None = None
        """The row before, if it was a delete."""
        self.may_splice = told.splice and self.packer is None

    def __call__(self, event: Event, untyped: Sequence[str] | None = None) -> Encoded:
        """Encode one event; a tombstone right behind its delete belongs to that.

        `untyped` is what completing it from a schema elsewhere has told (`Schemas.complete`).
        """
        if event.kind == "tombstone":
            deleted = self.deleted
            return self.tombstone(event, deleted if deleted and follows(event, deleted) else None)
        if event.kind == "row":
            self.deleted = event if event.op == "delete" else None
        return self.outcome(event, untyped)

    def tombstone(self, event: Event, deleted: Event | None) -> Encoded:
        """Encode a tombstone; that of a known delete has the key, topic and partition of it.

        >>> deleted = Event("row", "delete", "d", "t", ("id",), before={"id": "1"})
        >>> tombstone = Event("tombstone", format="debezium", extra={"key": '{"id":1}'})
        >>> encoder = Encoder("debezium", schemas_enable=False)
        >>> encoder.tombstone(tombstone, deleted).records  # it was written with the delete
        []
        """
        if deleted is None:
            return self.outcome(event)
        gone = self.outcome(deleted)
        if gone.error is not None or any(record.value is None for record in gone.records):
            return Encoded([], [], gone.error)
        outcome = self.outcome(event)
        for record in outcome.records if gone.records else ():
            last = gone.records[-1]
            record.key, record.topic, record.partition = last.key, last.topic, last.partition
        return outcome

    def outcome(self, event: Event, untyped: Sequence[str] | None = None) -> Encoded:
        """Encode one event; an exception that no encoder means to raise is its error."""
        try:
            return self.encoded(event, untyped)
        except Exception as error:
            return Encoded([], [], internal_error(error))

    def encoded(self, event: Event, untyped: Sequence[str] | None) -> Encoded:
        """Encode one event."""
        types = event.types
        own, same, to_mysql, numbered, unplaced, encoded = self.outlooks[
            event.format,
            event.dialect,
            types is not None,
            tuple(event.position or ()),
            tuple(event.extra or ()),
        ]
        if to_mysql is not None and types is not None:
            types = to_mysql(types)
            event = msgspec.structs.replace(event, types=types)
        kind = "row" if event.kind == "row" and event.op != "truncate" else kind_of(event)
        lost: list[str] = []
        if kind == "invalid":
            return Encoded([], [], event.error or ("invalid", "the event is invalid"))
        wrong = malformed(event, own)
        if wrong is not None:
            return Encoded([], [], ("malformed-event", f"{wrong}; check what made the event"))
        if kind != "row":
            if kind == "ddl":
                self.learn(event)
            if kind not in self.carried and (kind == "truncate" or not own):
                if kind != "truncate" or "ddl" not in self.carried:
                    return self.judge([], [kind])
                event, lost = truncation(event), [kind]
        for code, present in self.checks:
            if present(event):
                lost.append(code)
        lost += unplaced
        if event.op == "update" and not self.has_placeholder:
            event = without_unavailable(event)
        if self.names_only and types is not None and not same and self.has_details(types):
            lost.append("type-details")
        if self.informed and untyped is None:
            if kind == "row":
                event = msgspec.structs.replace(event)
                untyped = self.schemas.complete(event)
                types = event.types
            elif self.schemas.table(event.database, event.table, event.schema) is not None:
                untyped = ()
        if untyped is not None:
            lost = [code for code in lost if code not in IN_A_SCHEMA]
            lost += ["untyped"] * len(untyped)
        if encoded and kind == "row" and "untyped" not in lost and lacks_types(event):
            lost.append("untyped")
        if numbered and types is not None:
            unknown = self.unlabelled(types)
            if unknown:
                lost += ["enum-labels"] * unlabelled(event, unknown)
        records = self.encode(flattened(event) if event.schema and self.flat else event, lost)
        if not records:
            return self.judge([], [kind])
        if self.route is not None:
            try:
                records = self.route(event, records, self.topic, self.partitions)
            except DispatchError as error:
                return Encoded([], lost, (error.code, str(error)))
        return self.judge(records, lost) if self.strict else Encoded(records, lost)

    def learn(self, event: Event) -> None:
        """Follow a DDL event without writing it."""
        self.schemas.learn(event)
        self.informed = True

    def judge(self, records: list[Record], lost: list[str]) -> Encoded:
        """The outcome; under `strict`, none that loses anything."""
        if not (lost and self.strict):
            return Encoded(records, lost)
        said = "; ".join(SENTENCES[code] for code in dict.fromkeys(lost))
        return Encoded([], lost, ("lossy", f"{said}; leave strict out, or choose another format"))

    def outlook(self, told: Told) -> Outlook:
        """What is to be expected of events of which so much is told."""
        format, dialect, typed, position, extra = told
        own = format == self.name
        same = own and dialect in (None, self.dialect)
        like = Event("row", format=format, dialect=dialect, types={} if typed else None)
        like.extra = dict.fromkeys(extra, "")
        traits, target = traits_of(format, dialect), traits_of(self.name, self.dialect)
        lost = []
        if "bare-values" not in self.carried and PRESENT["bare-values"](like):
            lost.append("bare-values")
        if "incomplete" not in self.carried and not extra_members().partial.isdisjoint(extra):
            lost.append("incomplete")
        # The number of a row within its message is no place in the source's log.
        if any(n not in self.places and (n != "row" or traits.row_in_log) for n in position):
            lost.append("position")
        if not same and PRESENT["extra"](like):
            lost.append("extra")
        to_mysql = None if same or not traits.type_names else self.mysql_types[traits.type_names]
        encoded = traits.value_encoding not in (None, target.value_encoding)
        return Outlook(own, same, to_mysql, self.labels and traits.enum_as_number, lost, encoded)


def lacks_types(event: Event) -> bool:
    """Whether a row has a column whose type nobody tells.

    >>> lacks_types(Event("row", "insert", after={"id": "1"}))
    True
    """
    row = event.before if event.after is None else event.after
    if not row:
        return False
    return event.types is None or not row.keys() <= event.types.keys()


def follows(tombstone: Event, deleted: Event) -> bool:
    """Whether a tombstone's key is that of a deleted row, as far as can be seen from its values.

    >>> deleted = Event("row", "delete", "d", "t", ("id",), before={"id": "1"})
    >>> [follows(Event("tombstone", extra={"key": f'{{"id":{n}}}'}), deleted) for n in (1, 2)]
    [True, False]
    """
    sent = key_members((tombstone.extra or {}).get("key", "").encode())
    if not sent or not deleted.key or sent.keys() != set(deleted.key):
        return False
    row = deleted.before or {}
    return all(exact_text(value) == row.get(name) for name, value in sent.items())


IMAGES = {
    ("insert", False, True),
    ("snapshot", False, True),
    ("update", True, True),
    ("update", False, True),
    ("delete", True, False),
    ("truncate", False, False),
}
"""Operation, whether there is a before image, whether an after image: what rows there are."""


def malformed(event: Event, own: bool) -> str | None:
    """What is wrong with an event that no decoder makes, but a user's job might.

    `own` says that it is of the format to be written: Debezium has deletes that tell the key only,
    TiCDC some of tables without a key that tell no column at all.

    >>> malformed(Event("row", "insert", before={"id": "1"}), False)
    'the insert has a before image and no after image'
    """
    changed, emitted = event.event_time or 0, event.emit_time or 0
    if not (YEAR_ONE <= changed <= LAST_TIME and YEAR_ONE <= emitted <= LAST_TIME):
        return "a time is before year 1 or after year 9999"
    if event.kind != "row":
        return None
    before, after = bool(event.before), bool(event.after)
    if (event.op, before, after) in IMAGES:
        return None
    empty = traits_of(event.format, event.dialect).empty_deletes
    if event.op == "delete" and not after and own and event.before in empty:
        return None
    if event.op not in ("insert", "snapshot", "update", "delete", "truncate"):
        return f"no row has the operation {shown(event.op)}"
    has = ("a before image" if before else "no before image",
           "an after image" if after else "no after image")  # fmt: skip
    return f"the {event.op} has {' and '.join(has)}"


def target(spec: str) -> tuple[str, str, Encoding]:
    """A format that is to be written: its name, its dialect (the first, if none is named).

    >>> target("canal-json")[:2]
    ('canal-json', 'canal')
    """
    name, dialect = split(spec)
    if name == "auto":
        raise UsageError(f"a format to write must be named; choose one of: {', '.join(writable())}")
    format = load(name)
    if dialect in format.read_only:
        raise UsageError(
            f"{spec} is read and not written; to write it, choose {' or '.join(format.dialects)}"
        )
    return name, dialect or next(iter(format.dialects)), encoding_of(format)


Route = Callable[[Event, list[Record], "str | None", Mapping[str, int]], list[Record]]
"""Gives the records of an event the topic that is told, or the template's, and a partition."""


def router(options: EncodeOptions, dialect: str, encoding: Encoding) -> Route | None:
    """What gives each record its topic and partition; None where neither is asked for."""
    rules = encoding.partition_rules.get(dialect)

    def among(count: int | None) -> tuple[Partition, Partition | None]:
        """What chooses among so many partitions, and what does for messages without a key."""
        places = partitioner(
            options.partition,
            count,
            options.partition_columns,
            rules,
            encoding.broadcasts_ddl,
            options.timezone,
        )
        if rules is not None or count is None:
            return places, None
        # Not by the row's key, which some of these formats tell of some of a row's changes only.
        return places, by_table(count)

    split_update = None if rules is None else rules.split_update
    choices = Memo(among)
    usual = choices[options.partition_num]
    topic_of = topic_template(options.topic)
    if options.partition_num is None and options.topic is None:
        return None

    def route(
        event: Event, records: list[Record], topic: str | None, partitions: Mapping[str, int]
    ) -> list[Record]:
        if len(records) > 1 and split_update is not None:
            # The old row's partition may be another than the new one's.
            pairs = zip(split_update(event), records)
            return [r for part, r in pairs for r in route(part, [r], topic, partitions)]
        if topic is None:
            topic = topic_of(event)
        event = event if event.schema is None else flattened(event)
        count = None if topic is None else partitions.get(topic)
        by_key, keyless = usual if count is None else choices[count]
        choose = by_key if keyless is None or records[0].key is not None else keyless
        return [
            msgspec.structs.replace(record, topic=topic, partition=partition)
            for partition in choose(event)
            for record in records
        ]

    return route


def topic_template(template: str | None) -> Callable[[Event], str | None]:
    """A function from event to topic.

    >>> topic_template("cdc.{database}.{table}")(Event("row", "insert", "shop", "orders"))
    'cdc.shop.orders'
    """
    if template is None:
        return lambda _: None
    around = NAME.split(template)[::2]
    if any("{" in text or "}" in text for text in around):
        raise UsageError(
            f"option topic cannot be {template!r}; it may hold "
            "{database}, {schema} and {table} only"
        )
    if len(around) == 1:
        return lambda _: template

    def topic(event: Event) -> str | None:
        told = words(template, event.database, event.schema, event.table)
        if any(told[name] is None for name in NAME.findall(template)):
            return None  # a watermark, or DDL of a database: the sink's default topic
        return NAME.sub(lambda found: safe(str(told[found[1]])), template)

    return topic


def packed(
    encoder: Encoder, events: Iterable[Event], outcomes: Iterable[Encoded]
) -> tuple[list[Record], list[list[str] | None]]:
    """The messages of encoded events, and what each lost; rows are joined where formats do that."""
    records: list[Record] = []
    losses: list[list[str] | None] = []
    if encoder.packer is not None:
        return joined(encoder.packer, events, outcomes)
    for outcome in outcomes:
        found = outcome.records
        records += found
        if len(found) == 1:
            losses.append(outcome.lost or None)
        else:
            losses += spread(found, outcome.lost)
    return records, losses


def joined(
    packer: Packer, events: Iterable[Event], outcomes: Iterable[Encoded]
) -> tuple[list[Record], list[list[str] | None]]:
    """The same where a message holds several rows of a table."""
    records: list[Record] = []
    losses: list[list[str]] = []
    held: list[Record] = []
    group: object = None
    size = 0
    for event, outcome in zip(events, outcomes):
        row = event.kind == "row"
        for record, codes in zip(outcome.records, spread(outcome.records, outcome.lost)):
            names = (event.database, event.schema, event.table)
            own = (*names, record.topic, record.partition) if row else None
            added = packer.size(record)
            if row and own == group and packer.fits(len(held) + 1, size + added):
                held.append(record)
                size += added
                losses[-1] += codes or ()
                continue
            if held:
                records.append(packer.join(held))
            held, group, size = [record], own, added
            losses.append([*(codes or ())])
    if held:
        records.append(packer.join(held))
    return records, [codes or None for codes in losses]


def spread(records: list[Record], lost: list[str]) -> list[list[str] | None]:
    """An event's losses, told with the first of its messages.

    >>> spread([Record(b"d"), Record(None)], ["key"])
    [['key'], None]
    """
    return [lost or None if i == 0 else None for i in range(len(records))]


def without_unavailable(event: Event) -> Event:
    """An update whose old row has no columns either whose new value the source's log did not hold.

    Those did not change; with an old value and no new one they would look as if they did.

    >>> event = Event("row", "update", before={"id": "1", "body": "x"}, after={"id": "1"})
    >>> event.extra = {"unavailable": '{"body":"__debezium_unavailable_value"}'}
    >>> without_unavailable(event).before
    {'id': '1'}
    """
    if event.before is None or event.after is None or "unavailable" not in (event.extra or ()):
        return event
    before = {name: value for name, value in event.before.items() if name in event.after}
    return msgspec.structs.replace(event, before=before)


def truncation(event: Event) -> Event:
    """A truncated table as the DDL statement that does it.

    >>> truncation(Event("row", "truncate", "shop", "a`b")).ddl
    'TRUNCATE TABLE `shop`.`a``b`'
    """
    table = qualified(event.schema, event.table)
    names = [n.replace("`", "``") for n in (event.database, table) if n]
    statement = "TRUNCATE TABLE " + ".".join(f"`{name}`" for name in names)
    return msgspec.structs.replace(event, kind="ddl", op="truncate", ddl=statement)


def details_finder(
    carried: frozenset[str], tells_sign: frozenset[str]
) -> Callable[[Types | None], bool]:
    """What says whether a type map tells more than is written by who writes the types' names.

    `tells_sign` has the types whose written name tells whether they are signed.

    >>> from headgate.core.event import ColumnType
    >>> types = {"id": ColumnType("int unsigned")}
    >>> [details_finder(frozenset(carried), frozenset())(types) for carried in ([], [SIGN])]
    [True, False]
    """

    def has_sign(type_: MySqlType) -> bool:
        return type_.unsigned and SIGN not in carried and type_.base not in tells_sign

    def has_details(types: Types | None) -> bool:
        parsed = [parse_type(told.mysql) for told in (types or {}).values()]
        return any(t.length is not None or t.labels or has_sign(t) for t in parsed)

    return has_details


def unlabelled_columns(types: Types | None) -> list[tuple[str, bool]]:
    """The ENUM and SET columns whose labels the types do not tell.

    True beside those that tell them, `''` among them, so that MySQL's error value is a number.
    """
    parsed = ((name, parse_type(told.mysql)) for name, told in (types or {}).items())
    return [
        (name, bool(type_.labels))
        for name, type_ in parsed
        if type_.base in ("enum", "set")
        and (not type_.labels or (type_.base == "enum" and "" in type_.labels))
    ]


def unlabelled(event: Event, columns: list[tuple[str, bool]]) -> int:
    """How many numbers an event has in the place of labels."""
    images = [image for image in (event.before, event.after) if image]
    found = [(image.get(name), labelled) for image in images for name, labelled in columns]
    return sum(text == "0" if labelled else text is not None for text, labelled in found)


def losses(from_: str, to: str, schema: bool = False, **options: Any) -> list[Loss]:
    """What converting from one format to another cannot carry.

    `from_` and `to` are `name` or `name:dialect`; `schema` says that a table schema will be given;
    the options are those of the target. The answer is not a table kept by hand: specimens of every
    kind and type are written in the one format, read, and written in the other.

    >>> [loss.code for loss in losses("canal-json", "canal-json:tencent")]
    ['statement', 'key', 'types', 'position', 'extra']
    """
    name, dialect, source = target(from_)
    known = {"schema": SCHEMA} if schema else {}
    unnamed = {"database": DATABASE, "table": TABLE}  # where no message names them
    told = {n: v for n, v in unnamed.items() if n in names(load(name).options)}
    read = decoder(f"{name}:{dialect}", **known, **told)
    encoder = Encoder(to, None, **options, **known)
    met = {
        code
        for written in ({}, source.fullest.get(dialect, {}))
        for specimen in specimens(name, dialect)
        for record in Encoder(from_, None, **written)(specimen).records
        for event in read(record.key, record.value, TOPIC)
        for code in encoder(event).lost
    }
    return [
        Loss(code, SENTENCES[code]) for code in strongest(code for code in SENTENCES if code in met)
    ]
