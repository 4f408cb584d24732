"""The formats that OMS writes to RocketMQ and DataHub."""

OMS_FORMATS = [
    "oms-default",
    "oms-default:extend-column-type",
    "canal-json:oms",
    "dataworks",
    "shareplex",
    "debezium:oms",
    "debezium:oms-flatten",
    "debezium-smt:oms",
]
"""Its nine methods without Maxwell, which it writes to Kafka only."""
