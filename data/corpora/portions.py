"""Parts of corpora: random shares and the folds of cross-validation, by each text or, of running text, by its place."""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from tfm.data.corpus_config import CorpusConfig
from tfm.data.lines import normalize, normalize_whitespace

TextPair: TypeAlias = tuple[str, str]


@dataclass(frozen=True)
class HashRange:
    """The texts whose draw (see `draw`) lies in [low, high)."""

    low: float
    high: float
    seed: int

    def contains(self, text: str) -> bool:
        """Whether a text belongs to it."""
        return self.low <= hash_to_unit_interval(text, self.seed) < self.high

    def __str__(self) -> str:
        return f"random {self.high - self.low:.0%}"


@dataclass(frozen=True)
class Fold:
    """The texts of one fold of cross-validation (held_out), or all others, which are trained on; folds from 1."""

    number: int
    num_folds: int
    seed: int
    held_out: bool

    def contains(self, text: str) -> bool:
        """Whether a text belongs to it."""
        return (fold_number_of(text, self.num_folds, self.seed) == self.number) == self.held_out

    def __str__(self) -> str:
        return f"{'' if self.held_out else 'all but '}fold {self.number} of {self.num_folds}"


@dataclass(frozen=True)
class PositionRange:
    """The lines of a running text at relative positions in [low, high), or outside of it.

    by_text: the part of corpora with sources, which are no running text.
    """

    low: float
    high: float
    outside: bool
    by_text: HashRange | Fold

    def contains(self, source: str) -> bool:
        """Whether a pair with this source belongs to it, which is decided by its text."""
        return self.by_text.contains(source)

    def select_lines(self, lines: Iterable[TextPair]) -> Iterator[TextPair]:
        """Select the lines of a text that belong to it; they are read twice, and counted first."""
        count = sum(1 for _ in lines)
        for number, line in enumerate(lines):
            if (self.low <= number / count < self.high) != self.outside:
                yield line

    def __str__(self) -> str:
        return f"{self.by_text} (consecutive lines)"


@dataclass(frozen=True)
class RereadablePairs:
    """Pairs that are read again for each iteration."""

    open_pairs: Callable[[], Iterator[TextPair]]

    def __iter__(self) -> Iterator[TextPair]:
        return self.open_pairs()


@dataclass(frozen=True)
class Portion:
    """A part of some corpora, which may be portions themselves."""

    corpora: "tuple[Corpus, ...]"
    part: HashRange | Fold | PositionRange

    @property
    def weight(self) -> float:
        """The number of times that a pair occurs in an epoch."""
        return self.corpora[0].weight

    @property
    def has_source(self) -> bool:
        """Whether these are pairs; otherwise they are texts, each a target."""
        return any(corpus.has_source for corpus in self.corpora)

    @property
    def is_one_text(self) -> bool:
        """Whether source and target are the same text."""
        return all(corpus.is_one_text for corpus in self.corpora)

    @property
    def has_images(self) -> bool:
        """Whether its sources are images, which are never mixed with texts."""
        return self.corpora[0].has_images

    @property
    def languages(self) -> tuple[str, str] | None:
        """The languages of source and target, if they are said; see `apart`."""
        return self.corpora[0].languages

    @property
    def tag(self) -> str | None:
        """The control token before each source."""
        return self.corpora[0].tag

    @property
    def epochs(self) -> tuple[int, int] | None:
        """The first and the last epoch that use its pairs."""
        return self.corpora[0].epochs

    def select_pairs(self, corpus: "Corpus", pairs: Iterable[TextPair]) -> Iterator[TextPair]:
        """Select the pairs of one of its corpora that belong to the portion, by their source, or else their target.

        Lines of running text are decided by their place, so that `pairs` are read twice. In other texts without a
        source an empty one, which is a line break, goes with the text before it.
        """
        if corpus.has_source:
            return (pair for pair in pairs if self.part.contains(pair[0]))
        if isinstance(self.part, PositionRange):
            return self.part.select_lines(pairs)
        return _select_part_keeping_blank_lines(pairs, self.part)


Corpus: TypeAlias = CorpusConfig | Portion


def flatten_portions(corpora: Iterable[Corpus]) -> Iterator[Corpus]:
    """The same pairs in the same order; a portion of several corpora is a portion of each."""
    for corpus in corpora:
        if isinstance(corpus, Portion):
            yield from (Portion((each,), corpus.part) for each in flatten_portions(corpus.corpora))
        else:
            yield corpus


def hash_to_unit_interval(text: str, seed: int) -> float:
    """A uniform number in [0, 1) for a text.

    Drawn from the text, not from its position, so that repeated sentences are never on both sides of a split, nor
    sentences that differ only in white space or in Unicode normal form.
    """
    return _hash_text(normalize_whitespace(text), seed, num_bytes=6, purpose=b"") / 2**48


def fold_number_of(text: str, num_folds: int, seed: int) -> int:
    """The fold of a text, from 1 to num_folds, drawn independently of its `draw` with the same seed.

    Texts that some tokenizer may make one, as they differ in white space, Unicode form or case alone, are in one fold.
    """
    normalized_text = normalize_whitespace(normalize("NFKC", normalize("NFKC", text).casefold()))
    return _hash_text(normalized_text, seed, num_bytes=8, purpose=b"folds") % num_folds + 1


def _hash_text(text: str, seed: int, num_bytes: int, purpose: bytes) -> int:
    key = seed.to_bytes(8, "little")
    content = text.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(content, digest_size=num_bytes, key=key, person=purpose).digest(), "little")


def _select_part_keeping_blank_lines(pairs: Iterable[TextPair], part: HashRange | Fold) -> Iterator[TextPair]:
    is_selected = part.contains("")
    for pair in pairs:
        if pair[1] and not pair[1].isspace():
            is_selected = part.contains(pair[1])
        if is_selected:
            yield pair
