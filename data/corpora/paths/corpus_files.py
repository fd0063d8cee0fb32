"""The files of a corpus: paths, patterns and URLs become files on this machine."""

import glob
import os
from pathlib import Path

from tfm.data.corpora.paths.remote_files import fetch_local_copy, is_url
from tfm.data.corpora.table_cells import column_names
from tfm.data.corpus_config import CorpusConfig
from tfm.data.credentials import redact_credentials
from tfm.data.errors import DataError
from tfm.data.lines import check_is_file


def corpus_files(corpus: CorpusConfig, *, online: bool = False) -> list[Path]:
    """The files of a corpus, in the order they are read; none for those that are not files.

    Args:
        corpus: the corpus.
        online: whether files behind URLs may be downloaded.

    Raises:
        DataError: there is none, or it is a pipe or device.
    """
    return [path for _, path in files_with_display_names(corpus, online=online)]


def files_with_display_names(corpus: CorpusConfig, *, online: bool) -> list[tuple[str, Path]]:
    """The files of a corpus, each with its name in messages: its path, or the URL of which it is a copy."""
    named_files: list[tuple[str, Path]] = []
    for place in corpus_paths_or_urls(corpus):
        if is_url(place):
            named_files.append((redact_credentials(place), fetch_local_copy(place, online=online)))
            continue
        if problem := _unnamed_side_problem(corpus, place):
            raise DataError(problem, file=place)
        paths = [place] if corpus.format == "text" or os.path.exists(place) else sorted(glob.glob(place))
        if not paths:
            raise DataError("no such file", file=place)
        named_files += [(each, check_is_file(Path(each))) for each in paths]
    return named_files


def _unnamed_side_problem(corpus: CorpusConfig, place: str) -> str | None:
    """The key to add, for a side of a corpus of text files that the recipe does not name and that is not there."""
    if corpus.format != "text" or place not in ("source", "target") or place in corpus.model_fields_set:
        return None
    if os.path.exists(place):
        return None
    remedy = ', or source = "none" for texts without one' if place == "source" else ""
    return f"no such file: the corpus does not name its {place}; add {place} = FILE{remedy}"


def corpus_paths_or_urls(corpus: CorpusConfig) -> list[str]:
    """The paths, patterns and URLs of the files of a corpus; none for those that are not files."""
    if corpus.format == "text":
        return column_names(corpus)
    return [] if corpus.format in ("generated", "huggingface") else [required_path(corpus)]


def required_path(corpus: CorpusConfig) -> str:
    assert corpus.path is not None  # so says CorpusConfig
    return corpus.path
