"""Table definitions, and the reader of DDL."""
