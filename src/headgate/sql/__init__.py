"""MySQL's CREATE, ALTER, RENAME and DROP, read for the names, types and keys of tables."""
