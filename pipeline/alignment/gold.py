"""Pairs of texts with the gold alignments of their words: from files, or of a built-in corpus."""

from pathlib import Path

from tfm.data.errors import DataError
from tfm.data.synthetic import registry
from tfm.pipeline.alignment.extraction import Pair
from tfm.pipeline.alignment.pharaoh import GoldLinks, read_gold_links
from tfm.pipeline.scoring.aligned_files import read_aligned_files


def is_built_in(source: Path) -> bool:
    """Whether a path is the name of a built-in corpus with alignments; where a file has that name, it is the file."""
    return str(source) in registry.GENERATORS_WITH_ALIGNMENTS and not source.exists()


def read_built_in(name: str) -> tuple[list[Pair], list[GoldLinks]]:
    """Return the test sentences of a built-in corpus, and their links."""
    known = list(registry.aligned_sentences(name))
    pairs = [Pair(english, german) for english, german, _ in known]
    return pairs, [GoldLinks(links.sure, links.possible) for _, _, links in known]


def read_pair_files(source: Path, target: Path, gold: Path | None) -> tuple[list[Pair], list[GoldLinks] | None]:
    """Return the pairs of two files, and their links.

    Args:
        source: file of the sources.
        target: file of their translations.
        gold: file of the links; None for none.

    Raises:
        DataError: a file is empty or is longer than another, or a line has what is no link.
    """
    lines = read_aligned_files({"source": source, "target": target})
    pairs = list(map(Pair, lines["source"], lines["target"]))
    if gold is None:
        return pairs, None
    links = list(read_gold_links(gold))
    if len(links) != len(pairs):
        raise DataError(f"has {len(links):,} lines, but {source} has {len(pairs):,}: give a line for each", file=gold)
    return pairs, links
