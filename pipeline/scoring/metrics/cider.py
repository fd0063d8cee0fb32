"""CIDEr-D (Vedantam, Zitnick and Parikh 2015, https://arxiv.org/abs/1411.5726): captions beside several references.

Texts are vectors of their n-grams' counts, weighted by how few segments' references have the n-gram. A segment's set of
references is a document; the documents are those of the corpus that is scored.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tfm.pipeline.artifacts.canonical_json import sha256_of_json
from tfm.pipeline.config import EvaluationConfig
from tfm.pipeline.scoring.metrics.references import empty_references_signature, num_references_signature
from tfm.pipeline.scoring.metrics.score import Score
from tfm.pipeline.scoring.metrics.tokenization import UnicodeWordTokenizer

NGRAM_ORDERS = (1, 2, 3, 4)
LENGTH_PENALTY_SIGMA = 6.0
SCORE_SCALE = 10.0
"""The paper's constants: n-grams, the deviation of the penalty for another length, and the factor at the front."""

Tokens = Sequence[str]
Ngram = tuple[str, ...]
Vector = Mapping[Ngram, float]


@dataclass(frozen=True)
class DocumentFrequencies:
    """The number of documents that have each n-gram."""

    counts: Mapping[Ngram, int]
    num_documents: int

    def weight(self, ngram: Ngram) -> float:
        """ln(documents / documents that have it); as in the authors' program, one that none has counts as in one."""
        return math.log(self.num_documents / max(1, self.counts.get(ngram, 0)))

    def digest(self) -> str:
        """12 hex digits of the sha256 of all counts, by which other documents are known."""
        counts = sorted((" ".join(ngram), count) for ngram, count in self.counts.items())
        return sha256_of_json([self.num_documents, counts])[:12]


def cider_d(hypotheses: Sequence[str], references: Sequence[Sequence[str]], config: EvaluationConfig) -> Score:
    """Compute the mean CIDEr-D of the segments in 0..10; with several references, the mean over those of each segment.

    Tokens are ROUGE's `unicode` ones. The authors' program takes those of the Penn Treebank in lower case, without
    punctuation, so that contractions and numbers differ. A segment whose references have no words scores 10 where the
    hypothesis has none either, else 0; the signature has the number of such segments. For weights that are all 0, as of
    a single segment, see `zero_weights_reason`.

    Args:
        hypotheses: one for each segment.
        references: one or more lists as long; a blank line stands for a reference that a segment lacks.
        config: not read.
    """
    segments = references_of_segments(references)
    frequencies = document_frequencies(segments)
    values = cider_d_of_segments(hypotheses, segments, frequencies)
    num, wordless = (
        num_references_signature(references),
        empty_references_signature(references, UnicodeWordTokenizer().tokenize),
    )
    signature = (
        f"nrefs:{num}{'' if num == '1' else '|refs:mean'}|case:lc|tok:unicode-words|norm:nfc"
        f"|n:{max(NGRAM_ORDERS)}|sigma:{LENGTH_PENALTY_SIGMA:g}|df:references|documents:{frequencies.num_documents}"
        f"|df-sha256:{frequencies.digest()}{wordless}|stat:mean*{SCORE_SCALE:g}"
    )
    return Score(math.fsum(values) / len(values), signature)


def cider_d_of_segments(
    hypotheses: Sequence[str], segments: Sequence[Sequence[Tokens]], frequencies: DocumentFrequencies
) -> list[float]:
    """Compute CIDEr-D of each segment in 0..10.

    Args:
        hypotheses: one for each segment.
        segments: the references of each, as `references_of_segments` gives them.
        frequencies: the number of documents that have each n-gram.
    """
    tokenize = UnicodeWordTokenizer().tokenize
    return [
        cider_d_of_segment(tokenize(hypothesis), segment, frequencies)
        for hypothesis, segment in zip(hypotheses, segments, strict=True)
    ]


def cider_d_of_segment(hypothesis: Tokens, references: Sequence[Tokens], frequencies: DocumentFrequencies) -> float:
    """Compute CIDEr-D of one segment in 0..10.

        1/4 Σ_n 10/m Σ_j exp(-(l(c) - l(s_j))² / (2 σ²)) · min(gⁿ(c), gⁿ(s_j)) · gⁿ(s_j) / (‖gⁿ(c)‖ ‖gⁿ(s_j)‖)

    c is the hypothesis, s_j one of its m references, l the number of tokens, gⁿ a vector of `tf_idf`. The authors'
    program counts pairs of tokens for l, of which the difference is the same. Without references an empty hypothesis is
    right.

    Args:
        hypothesis: its tokens.
        references: the tokens of each.
        frequencies: the number of documents that have each n-gram.
    """
    if not references:
        return 0.0 if hypothesis else SCORE_SCALE
    total = 0.0
    for order in NGRAM_ORDERS:
        vector = tf_idf(hypothesis, order, frequencies)
        for reference in references:
            penalty = math.exp(-((len(hypothesis) - len(reference)) ** 2) / (2 * LENGTH_PENALTY_SIGMA**2))
            total += penalty * clipped_cosine(vector, tf_idf(reference, order, frequencies))
    return SCORE_SCALE * total / (len(NGRAM_ORDERS) * len(references))


def tf_idf(tokens: Tokens, order: int, frequencies: DocumentFrequencies) -> Vector:
    """Compute gⁿ: the count of each n-gram times its weight.

    Equation 1 of the paper divides by the number of n-grams as well, which a cosine does not see. Clipping would:
    counts as they are, as in the authors' program, clip an n-gram where the hypothesis has it more often.

    Args:
        tokens: of a text.
        order: n.
        frequencies: the number of documents that have each n-gram.
    """
    return {
        ngram: count * frequencies.weight(ngram) for ngram, count in Counter(_iterate_ngrams(tokens, order)).items()
    }


def clipped_cosine(hypothesis: Vector, reference: Vector) -> float:
    """The cosine of two vectors, in which the hypothesis has of each n-gram no more than the reference.

    0 if a vector is 0: a text has fewer tokens than the n-grams, or each of its n-grams is in all documents. The
    authors' first program divides 0 by 0 there, later ones have 0.
    """
    norms = _vector_norm(hypothesis) * _vector_norm(reference)
    if norms == 0:
        return 0.0
    return math.fsum(min(hypothesis.get(ngram, 0.0), g) * g for ngram, g in reference.items()) / norms


def document_frequencies(segments: Sequence[Sequence[Tokens]]) -> DocumentFrequencies:
    """Count the segments whose references have each n-gram; segments without references are no documents."""
    counts = Counter(ngram for segment in segments for ngram in _segment_ngrams(segment))
    return DocumentFrequencies(counts, sum(bool(segment) for segment in segments))


def references_of_segments(references: Sequence[Sequence[str]]) -> list[list[Tokens]]:
    """Return the tokens of each segment's references, without those that have no words.

    A segment may thus have fewer references than others.
    """
    tokenize = UnicodeWordTokenizer().tokenize
    return [
        [tokens for text in segment if text and (tokens := tokenize(text))] for segment in zip(*references, strict=True)
    ]


def zero_weights_reason(references: Sequence[Sequence[str]]) -> str | None:
    """Return the reason why no n-gram of the references has a weight; None if one has.

    Without weights CIDEr-D could only be 0.
    """
    segments = references_of_segments(references)
    documents = [segment for segment in segments if segment]
    if not documents:
        return "no reference has a word" if segments else None
    first = _segment_ngrams(documents[0])
    if any(_segment_ngrams(segment) != first for segment in documents[1:]):
        return None
    if len(documents) == 1:
        return "one segment alone has references with words: every n-gram's weight would be ln(1 / 1) = 0"
    return f"the references of all {len(documents)} texts have the same n-grams: every weight would be ln 1 = 0"


def _segment_ngrams(segment: Sequence[Tokens]) -> set[Ngram]:
    """The n-grams of a segment's references."""
    return {ngram for tokens in segment for order in NGRAM_ORDERS for ngram in _iterate_ngrams(tokens, order)}


def _iterate_ngrams(tokens: Tokens, order: int) -> Iterator[Ngram]:
    return zip(*(tokens[begin:] for begin in range(order)), strict=False)


def _vector_norm(vector: Vector) -> float:
    return math.sqrt(math.fsum(g * g for g in vector.values()))
