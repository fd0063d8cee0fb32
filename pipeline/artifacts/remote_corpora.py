"""Corpora behind URLs, downloaded before a stage reads them, so that the user sees how far it is."""

from tfm.data.config import DataConfig
from tfm.data.corpora.paths.corpus_files import corpus_paths_or_urls
from tfm.data.corpora.paths.remote_files import fetch_local_copy, is_url
from tfm.data.credentials import redact_credentials
from tfm.pipeline.runtime.progress import Reporter


def download_corpora(data: DataConfig, reporter: Reporter) -> None:
    """Download the files of a recipe's corpora that are behind URLs, where copies are missing or old.

    Args:
        data: the [data] part of a recipe; without `online` nothing is downloaded, and copies are used as they are.
        reporter: receives messages.

    Raises:
        DataError: a file is not there, or cannot be downloaded.
    """
    corpora = (*data.train, *data.valid, *data.tests.values())
    for url in dict.fromkeys(place for corpus in corpora for place in corpus_paths_or_urls(corpus) if is_url(place)):
        with reporter.bar(f"downloading {redact_credentials(url)}", None, "bytes") as bar:
            fetch_local_copy(url, online=data.online, on_bytes=lambda count, total: bar.advance(count))
