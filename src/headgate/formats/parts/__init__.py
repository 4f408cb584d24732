"""What several codecs share: Kafka Connect values, OMS values, Debezium's other messages."""
