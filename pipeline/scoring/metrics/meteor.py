"""METEOR (Banerjee and Lavie 2005), by nltk, with synonyms from a WordNet folder that the user names, or without."""

import math
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tfm.pipeline.config import EvaluationConfig
from tfm.pipeline.scoring.metrics.references import (
    drop_blank_references,
    empty_references_signature,
    is_correctly_empty,
    num_references_signature,
)
from tfm.pipeline.scoring.metrics.score import Score
from tfm.pipeline.scoring.metrics.tokenization import UnicodeWordTokenizer
from tfm.pipeline.scoring.metrics.wordnet import open_wordnet

ALPHA, BETA, GAMMA = 0.9, 3.0, 0.5
"""The paper's constants: F = P R / (ALPHA P + (1 - ALPHA) R), penalty = GAMMA (chunks / matches) ** BETA."""
NO_WORDNET_SIGNATURE = "modules:exact+stem|"
"""The signature's part for a METEOR without synonyms, which is another score."""
EMPTY_WORDNET = SimpleNamespace(synsets=lambda word: [])


def meteor(hypotheses: Sequence[str], references: Sequence[Sequence[str]], config: EvaluationConfig) -> Score:
    """Compute the mean METEOR of the segments in 0..100; with several references, the best one of each segment.

    Tokens are ROUGE's `unicode` ones. Stems (Porter) and synonyms (`config.wordnet`) are those of English. METEOR is
    100 if neither side has a token: the signature has the number of segments whose references have none.

    Args:
        hypotheses: one for each segment.
        references: one or more lists as long; a blank line stands for a reference that a segment lacks.
        config: `wordnet` is read.

    Raises:
        DataError: `config.wordnet` holds no WordNet.
    """
    values = meteor_of_segments(hypotheses, references, config)
    _, modules = _load_synonyms(config.wordnet)
    num = num_references_signature(references)
    of_several = "" if num == "1" else "|refs:best"
    wordless = empty_references_signature(references, UnicodeWordTokenizer().tokenize)
    signature = (
        f"nrefs:{num}{of_several}|case:lc|tok:unicode-words|norm:nfc|{modules}stem:porter"
        f"|alpha:{ALPHA:g}|beta:{BETA:g}|gamma:{GAMMA:g}{wordless}|stat:mean*100|version:nltk-{version('nltk')}"
    )
    return Score(100 * math.fsum(values) / len(values), signature)


def meteor_of_segments(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], config: EvaluationConfig
) -> list[float]:
    """Compute METEOR of each segment in 0..1, held against the best of its references.

    Args:
        hypotheses: one for each segment.
        references: one or more lists as long; a blank line stands for a reference that a segment lacks.
        config: `wordnet` is read.

    Raises:
        DataError: `config.wordnet` holds no WordNet.
    """
    # here, not at the top: nltk takes long to load, and few evaluations need it
    from nltk.translate.meteor_score import meteor_score

    synonyms, _ = _load_synonyms(config.wordnet)
    tokenize = UnicodeWordTokenizer().tokenize

    def meteor_of_segment(hypothesis: str, segment: Sequence[str]) -> float:
        if is_correctly_empty(hypothesis, segment, tokenize):
            return 1.0
        tokenized_references, constants = (
            list(map(tokenize, drop_blank_references(segment))),
            {"alpha": ALPHA, "beta": BETA, "gamma": GAMMA},
        )
        return float(
            meteor_score(
                tokenized_references, tokenize(hypothesis), stemmer=_porter_stemmer(), wordnet=synonyms, **constants
            )
        )

    return [
        meteor_of_segment(hypothesis, segment) for hypothesis, *segment in zip(hypotheses, *references, strict=True)
    ]


def _load_synonyms(folder: str | None) -> tuple[Any, str]:
    """The object that METEOR asks for synonyms, each word once, and the name of the modules in signatures."""
    if folder is None:
        return EMPTY_WORDNET, NO_WORDNET_SIGNATURE
    wordnet = open_wordnet(Path(folder))
    return SimpleNamespace(synsets=lru_cache(2**14)(wordnet.synsets)), (
        f"modules:exact+stem+synonyms|wordnet:{wordnet.name}|"
    )


@cache
def _porter_stemmer() -> Any:
    """nltk's Porter stemmer, which stems each word once."""
    from nltk.stem.porter import PorterStemmer

    return SimpleNamespace(stem=lru_cache(2**16)(PorterStemmer().stem))
