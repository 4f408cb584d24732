"""Code shared by the formats with Kafka Connect's schemas."""
