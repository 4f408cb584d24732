"""Whether a target equals its source: checksums of both, computed by Spark, down to single rows."""
