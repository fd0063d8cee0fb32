"""The ids that a model which gives labels reads of a line: as a whole, or word by word where each word gets a tag."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, chain

from tfm.pipeline.inference.source_problems import SourceProblems
from tfm.pipeline.tasks.abilities import TASK_SPECS
from tfm.tokenizer.tokenizer import Tokenizer


@dataclass(frozen=True)
class LabelSource:
    """The ids that a model reads of a line (without end token), and the number of ids of each word, if needed."""

    ids: list[int]
    sizes: list[int] | None = None

    def truncate(self, limit: int) -> "LabelSource":
        """Cut the source to the length that a model reads; a word that would have no piece left is gone."""
        if len(self.ids) <= limit:
            return self
        if self.sizes is None:
            return LabelSource(self.ids[:limit])
        starts = accumulate(self.sizes, initial=0)
        sizes = [min(size, limit - start) for start, size in zip(starts, self.sizes, strict=False) if start < limit]
        return LabelSource(self.ids[:limit], sizes)


def is_tagging_task(task: str) -> bool:
    """Whether a task gives a label for each word."""
    return TASK_SPECS[task].labels == "tags"


def encode_sources(
    tokenizer: Tokenizer, lines: Sequence[str], limit: int, source_problems: SourceProblems, *, by_word: bool
) -> list[LabelSource]:
    """Encode lines as a model reads them.

    Args:
        tokenizer: of the sources.
        lines: the texts.
        limit: the most ids that the model reads of a line; longer ones are cut.
        source_problems: counts the lines that are cut, and unknown pieces.
        by_word: whether each word gets a tag.
    """
    if by_word:
        words = tokenizer.encode_words(lines)
        sources = [LabelSource([*chain(*each)], [*map(len, each)]) for each in words]
    else:
        sources = [LabelSource(ids) for ids in tokenizer.encode_batch(lines)]
    source_problems.count_unknown_pieces(tokenizer, lines, [source.ids for source in sources])
    truncated_sources = [source.truncate(limit) for source in sources]
    source_problems.lines += len(lines)
    source_problems.cut += sum(len(source.ids) > limit for source in sources)
    source_problems.words += sum(
        len(original.sizes or ()) - len(truncated.sizes or ())
        for original, truncated in zip(sources, truncated_sources, strict=True)
    )
    return truncated_sources
