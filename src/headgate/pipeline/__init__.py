"""`headgate run`: a job described in one file, as a Structured Streaming query."""
