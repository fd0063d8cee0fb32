"""Links of pages that lead out of docs/: the site has a page of each such file."""

from pathlib import Path

import pytest

from docs.site.repository_links import RepositoryPages

LINKS = "[a](../bench/README.md#top) [b](../recipes/) [c](scores.md) [d](https://x.org) `[e](../bench/README.md)`\n"


@pytest.fixture
def site(tmp_path: Path) -> RepositoryPages:
    for path, text in {
        "docs/index.md": f"{LINKS}\n    [in code](../recipes/demo.toml)\n",
        "docs/scores.md": "# Scores\n",
        "bench/README.md": "[back](../docs/scores.md) [on](RESULTS.md) [gone](none.md)\n",
        "bench/RESULTS.md": "# Results\n",
        "recipes/demo.toml": 'name = "demo"\n',
        "recipes/_hidden.toml": "",
    }.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text, "utf-8")
    return RepositoryPages(tmp_path)


def test_files_that_are_linked_get_pages_and_those_that_these_link(site: RepositoryPages) -> None:
    pages = site.pages()
    assert pages.keys() == {
        *("repository/bench/README.md", "repository/bench/RESULTS.md"),
        *("repository/recipes/index.md", "repository/recipes/demo.toml.md"),
    }
    assert '````toml\nname = "demo"\n````' in pages["repository/recipes/demo.toml.md"]
    assert "hidden" not in pages["repository/recipes/index.md"]


def test_links_lead_to_these_pages_and_back(site: RepositoryPages) -> None:
    pages = site.pages()
    text = site.with_links_inside((site.root / "docs" / "index.md").read_text("utf-8"), "index.md")
    assert (
        "[a](repository/bench/README.md#top) [b](repository/recipes/index.md) [c](scores.md) [d](https://x.org)" in text
    )
    assert "    [in code](../recipes/demo.toml)\n" in text
    path = "repository/bench/README.md"
    found = site.with_links_inside(pages[path], path)
    assert found.endswith("[back](../../scores.md) [on](RESULTS.md) [gone](none.md)\n")
    listing = site.with_links_inside(pages["repository/recipes/index.md"], "repository/recipes/index.md")
    assert "- [demo.toml](demo.toml.md)\n" in listing
