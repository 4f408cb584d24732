"""What the README and the docs say is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from paths import DOCS, ROOT

from headgate.formats import MODULES, load

PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


def test_the_readme_lists_every_format_and_dialect() -> None:
    text = (ROOT / "README.md").read_text()
    listed = (DOCS / "formats" / "index.md").read_text()
    for name in MODULES:
        dialects = ", ".join(f"`{d}`" for d in load(name).dialects)
        assert f"| `{name}` | {dialects} |" in text
        assert f"| [`{name}`]({name}.md) | {dialects}" in listed


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) < 150


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("name", MODULES)
def test_a_formats_page_names_its_dialects_and_options(name: str) -> None:
    import dataclasses

    from headgate.core.options import CommonOptions, EncodeOptions, names, spelled

    page = (DOCS / "formats" / f"{name}.md").read_text()
    format = load(name)
    for dialect in format.dialects:
        assert f"`{dialect}`" in page or f"`{name}:{dialect}`" in page
    for field in dataclasses.fields(format.options):
        if field.name not in names(CommonOptions):
            assert spelled(field.name) in page
    for field in dataclasses.fields(format.encoding.options):
        if field.name not in names(EncodeOptions):
            assert spelled(field.name) in page


def test_losses_in_the_docs_are_those_in_the_code() -> None:
    from headgate.core.losses import SENTENCES

    page = (DOCS / "convert.md").read_text()

    assert list(SENTENCES) == re.findall(r"^\| `([a-z][a-z-]+)` \|", page, re.MULTILINE)


def test_error_codes_in_the_docs_are_those_in_the_code() -> None:
    code = "\n".join(p.read_text() for p in (ROOT / "src").rglob("*.py"))
    raised = set(re.findall(r'DecodeError\(\s*"([a-z0-9-]+)"', code))
    raised |= set(re.findall(r'code = "([a-z-]+)" if', code))
    page = (DOCS / "events.md").read_text()

    assert set() == {c for c in raised if f"`{c}`" not in page}
