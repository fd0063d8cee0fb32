"""ROUGE (Lin 2004), with the package rouge-score, with a tokenizer for all scripts or its own."""

import math
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib.metadata import version
from typing import Any

from tfm.pipeline.config import EvaluationConfig
from tfm.pipeline.scoring.bare_packages import import_without_package_code
from tfm.pipeline.scoring.metrics.references import (
    drop_blank_references,
    empty_references_signature,
    is_correctly_empty,
    num_references_signature,
)
from tfm.pipeline.scoring.metrics.score import Score
from tfm.pipeline.scoring.metrics.tokenization import ROUGE_TOKENIZERS, RougeScoreTokenizer, UnicodeWordTokenizer

TOKENIZER_SIGNATURES = {"unicode": "unicode-words|norm:nfc", "rouge-score": "[a-z0-9]+"}
"""The names of the tokenizers in signatures."""


def rouge(kind: str, hypotheses: Sequence[str], references: Sequence[Sequence[str]], config: EvaluationConfig) -> Score:
    """Compute the mean F1 of a ROUGE over the segments in 0..100, and the means of recall and precision.

    With several references all three are of the one with the best F1 of each segment. All three are 100 if neither side
    has a token: the signature has the number of segments whose references have none.

    Args:
        kind: rouge1, rouge2, rougeL or rougeLsum.
        hypotheses: one for each segment.
        references: one or more lists as long; a blank line stands for a reference that a segment lacks.
        config: `rouge_tokenize` and `rouge_stemmer` are read.
    """
    triples = rouge_of_segments(kind, hypotheses, references, config)
    f1, recall, precision = (100 * math.fsum(column) / len(triples) for column in zip(*triples, strict=True))
    num, stem = num_references_signature(references), "porter" if config.rouge_stemmer else "no"
    of_several = "" if num == "1" else "|refs:best-f1"
    wordless = empty_references_signature(references, ROUGE_TOKENIZERS[config.rouge_tokenize].tokenize)
    signature = (
        f"nrefs:{num}{of_several}|case:lc|tok:{TOKENIZER_SIGNATURES[config.rouge_tokenize]}|stem:{stem}|split:newline"
        f"{wordless}|stat:mean-f1*100|version:rouge-score-{_rouge_score_version()}"
    )
    return Score(f1, signature, recall, precision)


def rouge_of_segments(
    kind: str, hypotheses: Sequence[str], references: Sequence[Sequence[str]], config: EvaluationConfig
) -> list[tuple[float, float, float]]:
    """Compute F1, recall and precision of each segment in 0..1, held against the reference that gives the best F1.

    Args:
        kind: rouge1, rouge2, rougeL or rougeLsum.
        hypotheses: one for each segment.
        references: one or more lists as long; a blank line stands for a reference that a segment lacks.
        config: `rouge_tokenize` and `rouge_stemmer` are read.
    """
    split, tokenizer = ROUGE_TOKENIZERS[config.rouge_tokenize].tokenize, (config.rouge_tokenize, config.rouge_stemmer)
    return [
        (1.0, 1.0, 1.0)
        if is_correctly_empty(hypothesis, segment, split)
        else max(
            (
                _rouge_scores_of_pair(kind, tokenizer, reference, hypothesis)
                for reference in drop_blank_references(segment)
            ),
            key=_f_measure,
        )
        for hypothesis, *segment in zip(hypotheses, *references, strict=True)
    ]


@lru_cache(maxsize=2**14)
def _rouge_scores_of_pair(
    kind: str, tokenizer: tuple[str, bool], reference: str, hypothesis: str
) -> tuple[float, float, float]:
    """F1, recall and precision of one pair in 0..1. ROUGE-Lsum of texts of one line is ROUGE-L."""
    if kind == "rougeLsum" and "\n" not in reference + hypothesis:
        return _rouge_scores_of_pair("rougeL", tokenizer, reference, hypothesis)
    score = _rouge_scorer(kind, tokenizer).score(reference, hypothesis)[kind]
    return float(score.fmeasure), float(score.recall), float(score.precision)


def _f_measure(rouge_scores: tuple[float, float, float]) -> float:
    return rouge_scores[0]


@cache
def _rouge_scorer(kind: str, tokenizer: tuple[str, bool]) -> Any:
    # here, not at the top: validation during training does not need it
    with import_without_package_code("nltk", "nltk.stem"):
        from rouge_score.rouge_scorer import RougeScorer

    name, stems = tokenizer
    words = ROUGE_TOKENIZERS[name]
    return RougeScorer([kind], split_summaries=False, tokenizer=StemTokenizer(words) if stems else words)


class StemTokenizer:
    """The tokens of another tokenizer, of each with more than three characters its stem, as rouge-score has it."""

    def __init__(self, words: UnicodeWordTokenizer | RougeScoreTokenizer) -> None:
        with import_without_package_code("nltk", "nltk.stem"):
            from nltk.stem.porter import PorterStemmer

        self.words, self.stem = words, PorterStemmer().stem

    def tokenize(self, text: str) -> Sequence[str]:
        return [self.stem(word) if len(word) > 3 else word for word in self.words.tokenize(text)]


@cache
def _rouge_score_version() -> str:
    return version("rouge_score")
