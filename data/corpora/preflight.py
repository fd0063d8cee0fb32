"""Errors of a corpus, found before any work: a quick pass over the raw bytes and a look at the first pair."""

from tfm.data.corpora import sources
from tfm.data.corpora.portions import Corpus, Portion
from tfm.data.corpora.splits import Splits
from tfm.data.corpus_config import CorpusConfig
from tfm.data.errors import DataError
from tfm.data.formats import huggingface
from tfm.data.formats.hub.hub_folder import DataFiles
from tfm.data.image_config import IMAGE_FORMATS
from tfm.data.lines import count_lines

LINE_BASED_FORMATS = ("text", "tsv", "csv", "jsonl", "labelled", "conllu", "conll", "po")


def check_and_count_splits(splits: Splits, *, online: bool = False) -> dict[str, int | None]:
    """Check every corpus; the number of pairs of each split, or None if only reading all of it could tell.

    Raises DataError for a missing file, differing line counts (naming both), invalid UTF-8 (naming file, line and
    byte), a missing column or split, and a split without any pair.
    """
    row_counts: dict[CorpusConfig, int | None] = {}
    sizes: dict[str, int | None] = {}
    for name, corpora in splits.corpora_by_split().items():
        counts = [_check_and_count_corpus(corpus, row_counts, online) for corpus in corpora]
        for corpus in corpora:
            if next(sources.read_pairs(corpus, online=online), None) is None:
                unit = "image" if corpus.has_images else "pair"
                raise DataError(f"the {name} split is empty: {sources.describe_corpus(corpus)} has no {unit} for it")
        sizes[name] = None if None in counts else sum(count or 0 for count in counts)
    return sizes


def _check_and_count_corpus(corpus: Corpus, row_counts: dict[CorpusConfig, int | None], online: bool) -> int | None:
    """The number of pairs, where cheap to know. Each corpus is read once, however many portions are cut from it."""
    if isinstance(corpus, Portion):
        for member in corpus.corpora:
            _check_and_count_corpus(member, row_counts, online)
        return None
    if corpus not in row_counts:
        row_counts[corpus] = check_and_count_rows(corpus, online=online)
    return row_counts[corpus]


def check_and_count_rows(corpus: CorpusConfig, *, online: bool = False) -> int | None:
    """Check the files of a corpus; the number of its rows, or None if only reading all of it could tell.

    Raises what `check_and_count_splits` does of files.
    """
    if corpus.format == "generated":
        return corpus.size
    num_rows = _count_all_rows(corpus, online)
    num_remaining = None if num_rows is None or corpus.merge_references else max(num_rows - corpus.skip, 0)
    return num_remaining if num_remaining is None or corpus.size is None else min(num_remaining, corpus.size)


def _count_all_rows(corpus: CorpusConfig, online: bool) -> int | None:
    """The number of all pairs in the files of a corpus, whichever part of them is used."""
    if corpus.format in IMAGE_FORMATS:
        return None
    if corpus.format == "huggingface":
        split = huggingface.open_split(str(corpus.path), corpus.split, online=online)
        return None if isinstance(split, DataFiles) else len(split)
    files = sources.corpus_files(corpus, online=online) if corpus.format in LINE_BASED_FORMATS else []
    lines = {path: count_lines(path) for path in files}
    if corpus.format != "text":
        return None
    if len(set(lines.values())) > 1:
        raise sources.line_count_error(lines)
    return next(iter(lines.values()))
