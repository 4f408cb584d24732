"""One message or event at a time: decoding and encoding with schemas, losses and partitions."""
