"""Corpora behind URLs, downloaded before a stage reads them, so that the user sees how far it is."""

from contextlib import ExitStack

from tfm.data.config import DataConfig
from tfm.data.corpora.paths.corpus_files import corpus_paths_or_urls
from tfm.data.corpora.paths.remote_files import fetch_local_copy, is_url
from tfm.data.credentials import redact_credentials
from tfm.pipeline.runtime.progress import Bar, Reporter


def download_corpora(data: DataConfig, reporter: Reporter) -> None:
    """Download the files of a recipe's corpora that are behind URLs, where copies are missing or old.

    Args:
        data: the [data] part of a recipe; without `online` nothing is downloaded, and copies are used as they are.
        reporter: receives the progress of what is downloaded.

    Raises:
        DataError: a file is not there, or cannot be downloaded.
    """
    corpora = (*data.train, *data.valid, *data.tests.values())
    for url in dict.fromkeys(path for corpus in corpora for path in corpus_paths_or_urls(corpus) if is_url(path)):
        _fetch_with_progress(url, online=data.online, reporter=reporter)


def _fetch_with_progress(url: str, *, online: bool, reporter: Reporter) -> None:
    """Fetch a file; a bar is there from its first bytes on, of which a copy that is up to date has none."""
    bars: list[Bar] = []
    with ExitStack() as stack:

        def advance(count: int, total: int | None) -> None:
            if not bars:
                bar = reporter.bar(f"downloading {redact_credentials(url)}", total, "bytes")
                bars.append(stack.enter_context(bar))
            bars[0].advance(count)

        fetch_local_copy(url, online=online, on_bytes=advance)
