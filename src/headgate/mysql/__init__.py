"""Reading the binlog of MySQL and MariaDB: from the server's packets to change events.

`connection` opens a stream of binlog events, `events` reads the small ones, `table_map` and
`columns` tell what a table's columns were, `values`, `rows`, `images` and `compiled` turn rows into
text, `transactions` puts events into transactions, and `batches` makes Arrow batches of them.
`reader` joins all of it.
"""
