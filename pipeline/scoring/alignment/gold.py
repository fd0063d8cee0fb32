"""Pairs of texts, with the gold alignments of their words if they are known: from files, of a built-in corpus, or of
a dataset."""

from collections.abc import Iterator
from pathlib import Path

from tfm.data.artifact_tokenizers import load_tokenizer_pair
from tfm.data.dataset.metadata import DATASET_FILE
from tfm.data.dataset.store import load_dataset
from tfm.data.errors import DataError, format_count, format_names
from tfm.data.synthetic import registry
from tfm.pipeline.alignment.extraction import SentencePair
from tfm.pipeline.alignment.gold_links import pair_error, read_gold_links
from tfm.pipeline.alignment.pharaoh import (
    GoldLinks,
    is_counted_from_one,
    outside_link,
    outside_link_problem,
)
from tfm.pipeline.alignment.piece_links import CHUNK_ROWS, RowTexts
from tfm.pipeline.artifacts.artifact import open_artifact
from tfm.pipeline.runtime.progress import Reporter
from tfm.pipeline.scoring.aligned_files import read_given_files


def is_built_in(source: Path) -> bool:
    """Whether a path is the name of a built-in corpus with alignments; where a file has that name, it is the file."""
    return str(source) in registry.GENERATORS_WITH_ALIGNMENTS and not source.exists()


def read_built_in(name: str) -> tuple[list[SentencePair], list[GoldLinks]]:
    """Return the test sentences of a built-in corpus, and their links."""
    sentences = list(registry.aligned_sentences(name))
    pairs = [SentencePair(english, german) for english, german, _ in sentences]
    return pairs, [GoldLinks(links.sure, links.possible) for _, _, links in sentences]


def is_dataset(source: Path) -> bool:
    """Whether a path is the folder of a dataset."""
    return (source / DATASET_FILE).is_file()


def read_dataset_pairs(folder: Path) -> Iterator[SentencePair]:
    """Yield the training pairs of a dataset, in order, as their pieces spell them.

    Raises:
        DataError: the folder is no dataset of texts, or its pairs are of several directions.
    """
    manifest = open_artifact(folder, "preprocess")
    data = load_dataset(manifest.folder)
    if data.train.images is not None:
        raise DataError("its sources are images: words are aligned in texts", file=folder)
    directions = list(dict.fromkeys(each.name for each in data.directions.get("train", ())))
    if len(directions) > 1:
        problem = (
            f"its training pairs have {len(directions)} directions ({format_names(directions)}), and all would be "
            "aligned as one: align the files of each direction, `tfm align MODEL SOURCE TARGET --to LANGUAGE`"
        )
        raise DataError(problem, file=folder)
    texts = RowTexts(*load_tokenizer_pair(data.tokenizer_folder))
    for first in range(0, len(data.train), CHUNK_ROWS):
        rows = range(first, min(first + CHUNK_ROWS, len(data.train)))
        yield from (SentencePair(source, target) for source, target in texts.texts(data.train, rows))


def read_pair_files(
    source: Path, target: Path, gold: Path | None, reporter: Reporter
) -> tuple[list[SentencePair], list[GoldLinks] | None]:
    """Return the pairs of two files, and their links.

    Args:
        source: file of the sources.
        target: file of their translations.
        gold: file of the links; None for none.
        reporter: receives a warning of a file that seems to be no text a line.

    Raises:
        DataError: a file is empty or is longer than another, a line has what is no link, or a link is of a word that
            its pair does not have.
    """
    lines = read_given_files({"source": source, "target": target}, reporter)
    pairs = list(map(SentencePair, lines["source"], lines["target"]))
    if gold is None:
        return pairs, None
    links = list(read_gold_links(gold, len(pairs)))
    if len(links) != len(pairs):
        counts = f"has {format_count(len(links), 'line')}, but {source} has {len(pairs):,}"
        raise DataError(f"{counts}: give a line for each", file=gold)
    if not any(pair_links.possible for pair_links in links):
        raise DataError("has no link, so that nothing can be compared with it", file=gold)
    for line, (pair, pair_links) in enumerate(zip(pairs, links, strict=True), 1):
        sizes = len(pair.source.split()), len(pair.target.split())
        if (outside := outside_link(pair_links, *sizes)) is not None:
            problem = outside_link_problem(outside, *sizes, from_one=is_counted_from_one(links))
            raise pair_error(gold, line, problem)
    return pairs, links
