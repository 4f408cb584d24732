"""Reading MySQL and MariaDB: from the server's packets to change events.

`connection` opens a stream of binlog events, `events` reads the small ones, `table_map` and
`columns` tell what a table's columns were, `values`, `rows`, `images` and `compiled` turn rows into
text, `transactions` puts events into transactions, and `batches` makes Arrow batches of them.
`reader` joins all of it. `snapshot` reads the rows of tables at a position of the binlog, with
`key_ranges`, `query_rows` and `corrections`; `login` says how the server is reached.
"""
