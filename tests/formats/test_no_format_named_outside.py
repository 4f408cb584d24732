"""Nothing outside `formats/` names a format: what the rest has to know of one is data on it.

Read are the identifiers and the texts of the code: names, attributes, arguments, imports, literals.
Exempt are docstrings and comments, whose examples show real formats, and dialects whose names are
ordinary words of the language.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import headgate
from headgate.formats import MODULES, load

SOURCE = Path(headgate.__file__).parent
ORDINARY_WORDS = {"new", "default"}
DIALECTS = {d for name in MODULES for f in [load(name)] for d in (*f.dialects, *f.read_only)}
NAMES = {*MODULES, *MODULES.values(), *DIALECTS} - ORDINARY_WORDS
NAMED = re.compile(
    "(?<![a-z0-9])(?:"
    + "|".join(sorted(re.escape(n.replace("_", "-")) for n in NAMES))
    + ")(?![a-z0-9])"
)
MODULES_OUTSIDE = sorted(
    path for path in SOURCE.rglob("*.py") if path.relative_to(SOURCE).parts[0] != "formats"
)


def words(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The identifiers and texts of a module, without its docstrings."""
    docstrings = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str | bytes) and id(node) not in docstrings:
                yield line, node.value if isinstance(node.value, str) else repr(node.value)
            continue
        for field in ("id", "attr", "arg", "name", "asname", "module"):
            value = getattr(node, field, None)
            if isinstance(value, str):
                yield line, value


def named(source: str) -> list[tuple[int, str]]:
    """The lines and words of a module that name a format."""
    spelled = ((n, word, word.lower().replace("_", "-")) for n, word in words(ast.parse(source)))
    return [(line, word[:60]) for line, word, text in spelled if NAMED.search(text)]


@pytest.mark.parametrize("path", MODULES_OUTSIDE, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_format_is_named_outside_formats(path: Path) -> None:
    assert [] == named(path.read_text())


@pytest.mark.parametrize(
    "code",
    [
        'if event.format == "canal-json": pass',
        "from headgate.formats.debezium_smt import FORMAT",
        "MAXWELL_KEYS = 1",
        "x = event.open_protocol",
        'x = f"{name}:ticdc"',
        "def from_oms(): pass",
    ],
)
def test_a_name_is_seen(code: str) -> None:
    assert named(code)
    assert [] == named('def f():\n    """As in canal-json:ticdc."""\n    return "new"')
