"""What the RocketMQ source and the RocketMQ sink share: options, the JVM client, message layout."""
