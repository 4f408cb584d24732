"""To which Kafka partition a message goes, by the rules of the producers themselves."""

from __future__ import annotations

from headgate.core.errors import UsageError, shown, unknown_name
from headgate.core.event import Event
from headgate.formats.partitioning import (
    Partition,
    PartitionRules,
    RuleOptions,
    table_crc,
    with_ddl_first,
)

MAX_PARTITIONS = 2**31 - 1
"""Kafka numbers partitions with 32 bits."""

COUNTERPARTS = {
    "primary-key": "index-value",
    "index-value": "primary-key",
    "database": "table",
    "ts": "transaction-id",
    "transaction-id": "ts",
}
"""The rule that another producer has instead of one."""


def partitioner(
    rule: str | None,
    count: int | None,
    columns: str | None,
    rules: PartitionRules | None,
    broadcast_ddl: bool,
    zone: str = "UTC",
) -> Partition:
    """The function that chooses the partitions of each event's message.

    `count` is the number of partitions, `columns` what the rule `columns` hashes, `zone` where the
    producer hashes TIMESTAMP as local text. Without `rules` Kafka chooses, by the message's key.

    >>> from headgate.formats import load
    >>> rules = load("canal-json").encoding.partition_rules["ticdc"]
    >>> choose = partitioner("index-value", 16, None, rules, broadcast_ddl=True)
    >>> choose(Event("row", "insert", "test", "t1", key=("a",), after={"a": "11"}))
    (2,)
    """
    name = rule_of(rules, rule)
    listed = column_list(name, columns)
    if count is None:
        if rule is not None:
            raise UsageError(f"the partition rule {name} needs partition-num: how many there are")
        return left_to_kafka
    if not 1 <= count <= MAX_PARTITIONS:
        raise UsageError(f"partition-num cannot be {count}; it is 1 to {MAX_PARTITIONS}")
    if rules is None:
        return left_to_kafka
    if name is None:
        return all_to_first
    row = rules.rules[name](RuleOptions(listed, zone))
    return rules.partition(name, row, count, broadcast_ddl)


def by_table(count: int) -> Partition:
    """Where messages without a key go whose partition is else left to Kafka, to keep their order.

    >>> by_table(16)(Event("row", "insert", "test", "t1"))
    (15,)
    """
    return with_ddl_first("table", table_hash, count, False)


def table_hash(event: Event) -> int:
    """The hash of a table's name."""
    return table_crc[event.database or "", event.table or ""]


def left_to_kafka(event: Event) -> tuple[None]:
    """Kafka's own partitioner goes by the message's key."""
    return (None,)


def all_to_first(event: Event) -> tuple[int]:
    """A producer without a rule writes to one partition."""
    return (0,)


def rule_of(rules: PartitionRules | None, rule: str | None) -> str | None:
    """The rule's own name; None where the producer has neither that nor a default.

    >>> from headgate.formats import load
    >>> rule_of(load("maxwell").encoding.partition_rules["maxwell"], "primary_key")
    'primary-key'
    """
    if rule is None:
        return None if rules is None else rules.default
    if rules is None:
        raise UsageError(
            f"unknown partition rule {shown(rule)}; messages of this format are placed by Kafka, "
            "by their key: leave partition out"
        )
    plainly = rule.strip().lower().replace("_", "-")
    name = rules.aliases.get(plainly, plainly)
    if name in rules.rules:
        return name
    counterpart = COUNTERPARTS.get(name)
    if counterpart in rules.rules:
        known = ", ".join(sorted(rules.rules))
        raise UsageError(
            f"{rules.producer} has no partition rule {name!r}; did you mean {counterpart!r}? "
            f"known: {known}"
        )
    raise unknown_name(f"partition rule of {rules.producer}", rule, rules.rules)


def column_list(rule: str | None, columns: str | None) -> tuple[str, ...]:
    """The names that partition-columns lists.

    >>> column_list("columns", "id, region")
    ('id', 'region')
    """
    listed = tuple(name.strip() for name in (columns or "").split(",") if name.strip())
    if rule == "columns" and not listed:
        raise UsageError("the partition rule columns needs partition-columns, as in 'id,region'")
    if columns is not None and rule != "columns":
        raise UsageError(
            "partition-columns is for the partition rule columns; add partition=columns"
        )
    if len({name.lower() for name in listed}) < len(listed):
        # Hashes are joined by XOR: the second mention would undo the first.
        raise UsageError("partition-columns names a column twice; name each once")
    return listed
