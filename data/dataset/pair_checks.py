"""Checks of encoded pairs: what no later stage could use stops the making of a dataset."""

import numpy as np

from tfm.data.corpora.portions import Corpus
from tfm.data.corpora.sources import describe_corpus
from tfm.data.dataset.examples import ExampleChunk
from tfm.data.errors import DataError, format_count


def check_token_budget(chunk: ExampleChunk, corpus: Corpus, budget: int) -> None:
    """Check that each pair fits into a batch.

    Args:
        chunk: the pairs.
        corpus: where they come from.
        budget: tokens a batch holds.

    Raises:
        DataError: one pair alone exceeds the budget.
    """
    lengths = np.maximum(chunk.source.lengths, chunk.target.lengths) + 1
    long_rows = np.flatnonzero(lengths > budget)
    if len(long_rows):
        row, length = int(chunk.rows[long_rows[0]]) + 1, int(lengths[long_rows[0]])
        noun = "pair" if corpus.has_source else "text"
        raise DataError(
            f"{noun} {row} has {length} tokens including its end token, but a batch holds {budget}: "
            "raise data.batch_tokens, or lower data.limits.max_length to drop it",
            file=describe_corpus(corpus),
        )


def check_each_word_has_tag(chunk: ExampleChunk, corpus: Corpus) -> None:
    """Check that a source has as many words as tags, where words are counted.

    Args:
        chunk: the pairs.
        corpus: where they come from.

    Raises:
        DataError: a source has more or fewer words.
    """
    if chunk.source.words is None:
        return
    words, tags = chunk.source.words[1], chunk.target.lengths
    mismatches = np.flatnonzero(words != tags)
    if len(mismatches):
        row = mismatches[0]
        sizes = f"{format_count(words[row], 'word')} and {format_count(tags[row], 'tag')}"
        raise DataError(
            f"pair {chunk.rows[row] + 1} has {sizes}: each word needs one tag", file=describe_corpus(corpus)
        )
