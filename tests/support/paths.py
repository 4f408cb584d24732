"""Where things are that tests read."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
CASES = ROOT / "tests" / "cases"
"""Golden messages: one folder per message."""
REPRO = ROOT / "tests" / "repro"
"""Messages and schemas with which a defect was reproduced."""
VECTORS = ROOT / "tests" / "vectors"
"""Messages that real producers wrote, beside the server's rows."""
SUPPORT = ROOT / "tests" / "support"
DOCS = ROOT / "docs"
FEED = ROOT / "examples" / "feed"
"""The same changes in every dialect."""
