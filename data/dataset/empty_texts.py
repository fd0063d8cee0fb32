"""Validation and test pairs without a text: empty cells, null, blank lines; kept, and therefore reported.

Texts alone may be blank where those of the training data are, too.
"""

from dataclasses import dataclass

from tfm.data.corpora.portions import Corpus
from tfm.data.corpora.sources import describe_corpus
from tfm.data.dataset.examples import ExampleChunk
from tfm.data.errors import format_count, format_share


@dataclass
class EmptyTextCounter:
    """Counts the pairs of a split with an empty source, and those with only empty targets.

    Args:
        rows: the number of pairs.
        sources: the number of empty sources.
        targets: the number of pairs without a target.
        blank_texts: the number of blank texts alone.
        first: the pair and corpus of the first, for messages.
    """

    rows: int = 0
    sources: int = 0
    targets: int = 0
    blank_texts: int = 0
    first: str = ""

    def add(self, chunk: ExampleChunk, corpus: Corpus) -> None:
        """Count the pairs of a chunk; of texts without a source an empty one is a line break."""
        if not corpus.has_source:
            self.blank_texts += sum(map(is_blank, chunk.target.texts))
            self.rows += len(chunk)
            return
        extra_references = chunk.extra_references or [()] * len(chunk)
        for row, source, target, references in zip(
            chunk.rows.tolist(), chunk.source.texts, chunk.target.texts, extra_references, strict=True
        ):
            no_source = chunk.source.pixels is None and is_blank(source)
            no_target = all(map(is_blank, (target, *references)))
            self.sources += no_source
            self.targets += no_target
            if (no_source or no_target) and not self.first:
                self.first = f"pair {row + 1} of {describe_corpus(corpus)}"
        self.rows += len(chunk)

    def warning(self, split: str, *, training_drops_empty: bool = False) -> str | None:
        """The warning about a split that has any; blank texts alone are none where the training data have theirs."""
        if self.blank_texts and training_drops_empty:
            return (
                f"{format_share(self.blank_texts, self.rows, 'text', 'is', 'are')} blank in the {split} split, and "
                'those of the training data are dropped: for a language model set data.limits.empty = "keep", or '
                "remove them"
            )
        counts = {"source": self.sources, "target": self.targets}
        descriptions = [f"{count:,} empty {side}{'s' if count > 1 else ''}" for side, count in counts.items() if count]
        if not descriptions:
            return None
        note = "; what a model writes for an empty target counts as wrong" if self.targets else ""
        return (
            f"the {split} split has {' and '.join(descriptions)} among {format_count(self.rows, 'pair')}, the first in "
            f"{self.first}{note}: remove these pairs, or fill in their texts"
        )


def is_blank(text: str) -> bool:
    """Whether nothing but white space is in a text."""
    return not text or text.isspace()
