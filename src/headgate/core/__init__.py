"""What everything else builds on: events, errors, limits, values. No Spark, no formats."""
