"""Table definitions, and the one reader of DDL.

`ddl.changes` reads a statement and `ddl.event_changes` an event; both give the SchemaChange values
of `changes`. `catalog.Catalog` applies them; `known_tables.KnownTables` is a schema file followed
by DDL events. What else a statement says (its operation, the parts of an ALTER TABLE, the names of
its tables) is in `statement` and `table_names`.
"""
