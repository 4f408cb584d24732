"""Events, messages and typed rows as Arrow batches."""
