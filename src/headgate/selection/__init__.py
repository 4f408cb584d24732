"""Which tables, columns and rows a job takes, and where it routes them."""
