"""The bits of a column's `flags`, as TiCDC's Open Protocol numbers them."""

BINARY, HANDLE, GENERATED, PRIMARY, UNIQUE, MULTIPLE, NULLABLE, UNSIGNED = (
    1 << bit for bit in range(8)
)
