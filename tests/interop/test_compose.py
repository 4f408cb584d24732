"""The brokers that compose.yaml describes work: their settings, on the servers' own jars."""

from __future__ import annotations

import yaml
from confluent_kafka import Consumer
from kafka_broker import SERVER, Broker
from paths import ROOT
from rocketmq_server import Sent, Server

from headgate.rocketmq import jvm

COMPOSE = ROOT / "compose.yaml"


def test_the_settings_of_compose_make_a_broker(broker: Broker) -> None:
    service = yaml.safe_load(COMPOSE.read_text())["services"]["kafka"]
    assert f"apache/kafka:{SERVER[0].rpartition(':')[2]}" == service["image"]
    assert ["127.0.0.1:9092:9092"] == service["ports"]
    # As the image's start script does it: a variable is the setting of that name.
    settings = [
        f"{name.removeprefix('KAFKA_').replace('_', '.').lower()}={value}"
        for name, value in service["environment"].items()
    ]
    told = "\n".join([*settings, "log.dirs={data}"])
    for number, place in (("9092", "{port}"), ("9093", "{controller}")):
        assert number in told
        told = told.replace(number, place)
    with Broker(properties=told) as described:
        topic = described.create_topic("orders")
        described.produce(topic, [(b"k", b"v", None, None)])
        consumer = Consumer({**described.client, "group.id": "g", "auto.offset.reset": "earliest"})
        consumer.subscribe([topic])
        message = consumer.poll(30)
        assert message is not None
        assert (b"k", b"v") == (message.key(), message.value())
        consumer.commit(message, asynchronous=False)  # into a topic of Kafka's own
        consumer.close()


def test_the_settings_of_compose_make_a_rocketmq() -> None:
    compose = yaml.safe_load(COMPOSE.read_text())
    names, service = (compose["services"][name] for name in ("rocketmq-names", "rocketmq"))
    for each in (names, service):
        assert f"apache/rocketmq:{jvm.VERSION}" == each["image"]
    assert (["127.0.0.1:9876:9876"], ["127.0.0.1:10911:10911"]) == (
        names["ports"],
        service["ports"],
    )
    told = compose["configs"]["rocketmq-broker"]["content"]
    for setting, value in (("listenPort", "10911"), ("namesrvAddr", "rocketmq-names:9876")):
        assert f"{setting}={value}\n" in told
    settings = told.replace("10911", "{port}").replace(
        "rocketmq-names:9876", "127.0.0.1:{name_port}"
    )
    with Server(
        broker=f"{settings}storePathRootDir={{store}}\nhaListenPort={{ha_port}}\n"
    ) as found:
        found.create_topic("orders", 2)
        found.produce("orders", [Sent(b"v", 1, "t", "k")])

        (message,) = found.consume("orders")
        assert (1, b"v", "t", "k") == (message.queue, message.body, message.tags, message.keys)
