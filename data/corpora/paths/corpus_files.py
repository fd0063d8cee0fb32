"""The files of a corpus: paths, patterns and URLs become files on this machine."""

import glob
import os
from pathlib import Path

from tfm.data.corpora.paths.remote_files import fetch_local_copy, is_url
from tfm.data.corpora.table_cells import column_names
from tfm.data.corpus_config import CorpusConfig
from tfm.data.credentials import redact_credentials
from tfm.data.errors import DataError, missing_file_error
from tfm.data.lines import check_is_file


def corpus_files(corpus: CorpusConfig, *, online: bool = False) -> list[Path]:
    """The files of a corpus, in the order of reading; none for a corpus without files.

    Args:
        corpus: the corpus.
        online: whether files behind URLs may be downloaded.

    Raises:
        DataError: there is none, or it is a pipe or device.
    """
    return [path for _, path in files_with_display_names(corpus, online=online)]


def files_with_display_names(corpus: CorpusConfig, *, online: bool) -> list[tuple[str, Path]]:
    """The files of a corpus, each with its name for messages: its path, or the URL that it was copied from."""
    named_files: list[tuple[str, Path]] = []
    for path_or_url in corpus_paths_or_urls(corpus):
        if is_url(path_or_url):
            named_files.append((redact_credentials(path_or_url), fetch_local_copy(path_or_url, online=online)))
            continue
        if problem := _unnamed_side_problem(corpus, path_or_url):
            raise DataError(problem, file=path_or_url)
        is_side = corpus.format == "text" and corpus.has_source  # lines of one file belong to those of another
        paths = [path_or_url] if is_side or os.path.exists(path_or_url) else sorted(glob.glob(path_or_url))
        if corpus.format == "text" and not is_side and any(map(os.path.isdir, paths)):
            folder = next(filter(os.path.isdir, paths))
            raise DataError(f'is a folder: name the files in it, as target = "{Path(folder) / "*.txt"}"', file=folder)
        if not paths:
            raise missing_file_error(path_or_url)
        named_files += [(each, check_is_file(Path(each))) for each in paths]
    return named_files


def _unnamed_side_problem(corpus: CorpusConfig, side: str) -> str | None:
    """The problem of a side that the recipe does not name and whose file does not exist, with the key to add."""
    if corpus.format != "text" or side not in ("source", "target") or side in corpus.model_fields_set:
        return None
    if os.path.exists(side):
        return None
    remedy = ', or source = "none" for texts without one' if side == "source" else ""
    return f"no such file: the corpus does not name its {side}; add {side} = FILE{remedy}"


def corpus_paths_or_urls(corpus: CorpusConfig) -> list[str]:
    """The paths, patterns and URLs of the files of a corpus; none for a corpus without files."""
    if corpus.format == "text":
        return column_names(corpus)
    return [] if corpus.format in ("generated", "huggingface") else [required_path(corpus)]


def required_path(corpus: CorpusConfig) -> str:
    assert corpus.path is not None  # CorpusConfig checks it
    return corpus.path
