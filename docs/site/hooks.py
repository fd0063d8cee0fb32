"""Hooks of mkdocs: pages that are generated, and links that lead out of docs/ into the repository."""

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from pymdownx.slugs import slugify

from docs.site.command_pages import command_pages
from docs.site.python_pages import python_page
from docs.site.recipe_pages import recipe_pages
from docs.site.repository_links import RepositoryPages

ROOT = Path(__file__).parents[2]
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
    """Let links out of docs/ lead to the generated page of the file."""
    return REPOSITORY.with_links_inside(markdown, page.file.src_uri)
