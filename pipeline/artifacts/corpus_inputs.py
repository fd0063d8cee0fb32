"""The files and built-in corpora that corpora consist of: downloaded before a stage reads them, and its inputs."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

from tfm.data.config import DataConfig
from tfm.data.corpora.paths.corpus_files import corpus_paths_or_urls
from tfm.data.corpora.paths.remote_files import fetch_local_copy, is_url
from tfm.data.corpora.portions import Corpus, Portion
from tfm.data.corpora.sources import content_fingerprints
from tfm.data.corpus_config import CorpusConfig
from tfm.data.corpus_keys.table_keys import drop_unset_keys
from tfm.data.credentials import redact_credentials
from tfm.pipeline.artifacts.artifact import Input
from tfm.pipeline.artifacts.canonical_json import JSON
from tfm.pipeline.runtime.progress import Bar, Reporter

SYNTHESIZE_STAGE = "synthesize"


def synthetic_corpus_folder(corpus: Corpus) -> str | None:
    """The folder of text that a model made, of a corpus that is such text."""
    return corpus.synthetic if isinstance(corpus, CorpusConfig) else None


def corpus_inputs(splits: Mapping[str, Sequence[Corpus]], *, online: bool) -> dict[str, Input]:
    """The inputs of some splits by "SPLIT: LABEL"; text that a model made is one, an artifact.

    Corpora that share a label, as two columns of one dataset do, and are not of the same texts, are numbered. Raises
    DataError where a corpus is not there.
    """
    inputs: dict[str, Input] = {}
    for name, corpora in splits.items():
        for corpus in corpora:
            if (folder := synthetic_corpus_folder(corpus)) is not None:
                inputs[f"{name}: {folder}"] = Input.from_artifact(Path(folder), SYNTHESIZE_STAGE)
                continue
            for label, path, fingerprint in content_fingerprints(corpus, online=online):
                corpus_input = Input.from_value(fingerprint, None if path is None else str(path))
                key, number = f"{name}: {label}", 1
                while inputs.setdefault(key, corpus_input) != corpus_input:
                    number += 1
                    key = f"{name}: {label} ({number})"
    return inputs


def text_changing_settings(corpus: Corpus) -> JSON:
    """Return the settings of a corpus that change the texts it gives."""
    if isinstance(corpus, Portion):
        return {**asdict(corpus.part), "corpora": [text_changing_settings(each) for each in corpus.corpora]}
    settings: dict[str, JSON] = drop_unset_keys(corpus.model_dump(mode="json", exclude={"weight", "epochs"}))
    return settings


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
