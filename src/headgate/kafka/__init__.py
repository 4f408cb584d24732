"""What the Kafka source and the Kafka sink share: client options and the admin client."""
