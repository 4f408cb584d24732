"""What the formats of Kafka Connect share."""
