"""Docstrings for the site: examples become code blocks, which Markdown would take for quotes."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

EXAMPLE = re.compile(r"^( *)(>>> .*(?:\n(?! *\n).+)*)", re.MULTILINE)


def fenced(text: str) -> str:
    """A docstring with fences around its examples."""
    return EXAMPLE.sub(lambda match: f"{match[1]}```pycon\n{match[0]}\n{match[1]}```", text)


class Doctests(Extension):
    """Puts the examples of docstrings into fences."""

    def on_instance(self, *, obj: Object, **_: Any) -> None:
        """Called for every module, class, function and attribute."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)
