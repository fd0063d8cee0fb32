"""Hooks of mkdocs: pages that are generated, and links that lead out of docs/ into the repository."""

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from pymdownx.slugs import slugify

from docs.site.command_pages import command_pages
from docs.site.dialect import as_in_mkdocs
from docs.site.python_pages import python_page
from docs.site.recipe_pages import recipe_pages
from docs.site.repository_links import RepositoryPages

ROOT = Path(__file__).parents[2]
REFERENCE = "reference/README.md"
"""The page that leads to the generated ones; in the repository, where they are not, it names their places."""
REPOSITORY = RepositoryPages(ROOT)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Name headings as code hosts do, so that a link to one works there and here."""
    config.mdx_configs["toc"]["slugify"] = slugify(case="lower")
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    generated = REPOSITORY.pages() | recipe_pages(changelog) | command_pages() | python_page()
    for path, text in generated.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let links out of docs/ lead to the generated page of the file, in the Markdown of mkdocs."""
    if page.file.src_uri == REFERENCE:
        markdown = re.sub(r"`reference/(\S+?)/?`", _link_to_generated, markdown)
    return as_in_mkdocs(REPOSITORY.with_links_inside(markdown, page.file.src_uri))


def _link_to_generated(place: re.Match[str]) -> str:
    """The link to a generated page, of the place that a reader of the repository is told."""
    name = place[1]
    return f"[{name}]({name}.md)" if name == "python" else f"[{name}]({name}/index.md)"
