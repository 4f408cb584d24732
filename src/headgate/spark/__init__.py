"""What knows Spark: the DataFrame API, sessions, jars and file systems."""
