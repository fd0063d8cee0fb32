"""The pages of the documentation as a whole: their size, and their places in the site."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
MAX_WORDS = 1500
MAX_README_LINES = 150


def named_pages(nav: list[Any]) -> Iterator[str]:
    """The pages that the menu of the site leads to."""
    for entry in nav:
        for value in entry.values() if isinstance(entry, dict) else [entry]:
            yield from named_pages(value) if isinstance(value, list) else [value]


def test_the_readme_is_a_page_that_one_reads() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= MAX_README_LINES


def test_no_page_is_too_long_to_be_read_at_once() -> None:
    counts = {str(page.relative_to(DOCS)): len(page.read_text("utf-8").split()) for page in DOCS.rglob("*.md")}
    assert {name: count for name, count in counts.items() if count > MAX_WORDS} == {}


def test_every_page_has_one_place_in_the_menu() -> None:
    nav = yaml.safe_load((DOCS / "site" / "mkdocs.yml").read_text("utf-8"))["nav"]
    named = [page for page in named_pages(nav) if not page.startswith("reference/") or page.endswith("README.md")]
    there = [page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")]
    assert sorted(named) == sorted(there)
