"""Every dialect of every format, as `format:dialect`."""

from __future__ import annotations

from headgate.formats import MODULES, load

SPECS = [f"{name}:{dialect}" for name in MODULES for dialect in load(name).dialects]
