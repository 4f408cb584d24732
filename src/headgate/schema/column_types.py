"""A column's type in DDL, as MySQL stores it."""

from __future__ import annotations

from headgate.core.errors import unknown_name
from headgate.core.mysql_types import COLUMN_TYPES
from headgate.schema.tokenizer import Cursor, Unreadable

MAX_LABELS = 65_535
"""As many as MySQL allows in an ENUM."""

_SYNONYMS = {
    "integer": "int", "int1": "tinyint", "int2": "smallint", "int3": "mediumint",
    "middleint": "mediumint", "int4": "int", "int8": "bigint", "dec": "decimal",
    "numeric": "decimal", "fixed": "decimal", "real": "double", "float4": "float",
    "float8": "double", "character": "char", "nchar": "char", "nvarchar": "varchar",
    "varcharacter": "varchar", "geomcollection": "geometrycollection",
}  # fmt: skip
_WHOLE = {
    "BOOL": ("tinyint", ["1"]),
    "BOOLEAN": ("tinyint", ["1"]),
    "SERIAL": ("bigint", []),
    "LONG VARBINARY": ("mediumblob", []),
    "LONG CHAR VARYING": ("mediumtext", []),
    "LONG VARCHAR": ("mediumtext", []),
    "LONG": ("mediumtext", []),
}
_WHOLE_STARTS = frozenset(words.split()[0] for words in _WHOLE)
_DEFAULT_PARAMETERS = {"char": ["1"], "binary": ["1"], "bit": ["1"], "decimal": ["10", "0"]}
_NEED_PARAMETERS = ("varchar", "varbinary", "enum", "set")
_FRACTIONS = ("time", "datetime", "timestamp")
_LOB_SIZES = (("tiny", 1 << 8), ("", 1 << 16), ("medium", 1 << 24), ("long", 1 << 34))
AS_BINARY = {"char": "binary", "varchar": "varbinary"} | {
    f"{size}text": f"{size}blob" for size, _ in _LOB_SIZES
}


def read_type(cursor: Cursor) -> tuple[str, list[str]]:
    """Read a type: its MySQL name and its parameters."""
    if cursor.word() in _WHOLE_STARTS:
        for words, stored in _WHOLE.items():
            if cursor.take(*words.split()):
                return stored
    cursor.take("NATIONAL")
    place, written = cursor.place, cursor.name("a type").lower()
    base = _SYNONYMS.get(written, written)
    if base not in COLUMN_TYPES:
        raise Unreadable(str(unknown_name("column type", written, COLUMN_TYPES)), place)
    if base == "double":
        cursor.take("PRECISION")
    if base == "char" and cursor.take_any("VARYING", "VARCHAR"):
        base = "varchar"
    parameters = _parameters(cursor, base) if cursor.word() == "(" else []
    if base in _NEED_PARAMETERS and not parameters:
        raise Unreadable(f"{base} needs a length or labels in parentheses", place)
    return _as_stored(base, parameters)


def _parameters(cursor: Cursor, base: str) -> list[str]:
    """The numbers or labels in a type's parentheses."""
    parameters: list[str] = []
    labelled = base in ("enum", "set")
    for part in cursor.parens("the type's length").parts(MAX_LABELS):
        text, word = part.text(), part.word()
        if part.end - part.at == 1 and labelled and not word:
            label = text.rstrip(" ").replace("\\", "\\\\").replace("'", "''")
            parameters.append(f"'{label}'")
        elif part.end - part.at == 1 and not labelled and word.isascii() and word.isdigit():
            parameters.append(word)
        else:
            raise part.error(f"{base} has something other than its length or labels in ( )")
    return parameters


def _as_stored(base: str, parameters: list[str]) -> tuple[str, list[str]]:
    """What MySQL makes of a type: `decimal` is decimal(10,0), `float(30)` is double."""
    if base == "decimal" and len(parameters) == 1:
        return base, [*parameters, "0"]
    if base in _FRACTIONS and parameters == ["0"]:
        return base, []
    if base == "float" and len(parameters) == 1:
        return ("float" if int(parameters[0][:9]) <= 24 else "double"), []
    if base in ("text", "blob") and parameters:
        # MySQL takes the smallest that holds so many characters, of up to four bytes each.
        most = int(parameters[0][:11]) * (4 if base == "text" else 1)
        return next((size for size, top in _LOB_SIZES if most < top), "long") + base, []
    return base, parameters or _DEFAULT_PARAMETERS.get(base, [])
