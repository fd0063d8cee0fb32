"""How many pieces of a common vocabulary each language gets: VoCap (Zheng et al. 2021).

Pieces V serve a language well if its texts D are likely, each piece being as probable as it is frequent in D:

    ALP(D, V) = 1 / |D| · sum over texts s in D, sum over pieces x of s, log p(x)        (average log probability)

More pieces make it larger, ever more slowly. Sizes are sought that maximise, with q_i the share of the texts,

    sum over languages i of q_i^β · ALP(D_i, V_i)   so that the union of all V_i is of the size wanted,

step by step: more pieces always go to the language whose term they raise most.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tokenizers import Tokenizer, models

LANGUAGE_SAMPLING_EXPONENT = 0.7  # below 1: languages of few texts count for more than their share
UNKNOWN_PIECE = "<unk>"


@dataclass(frozen=True)
class LanguageVocabulary:
    """A vocabulary of a language: log probabilities of its pieces, and its term of the sum, q^β · ALP."""

    pieces: Mapping[str, float]
    term: float


VocabularyFactory = Callable[[int], LanguageVocabulary]
"""The vocabulary of a language after so many steps."""


def average_log_probability(words: Mapping[str, int], num_texts: int, pieces: Mapping[str, float]) -> float:
    """ALP(D, V) of texts whose words were counted, each word segmented as the unigram model of the pieces does."""
    unigram = Tokenizer(models.Unigram([(UNKNOWN_PIECE, 0.0), *pieces.items()], 0, False))
    counts: Counter[int] = Counter()
    for encoded, times in zip(unigram.encode_batch(list(words)), words.values(), strict=True):
        for number in encoded.ids:
            counts[number] += times
    total = counts.total()
    return math.fsum(count * math.log(count / total) for count in counts.values()) / num_texts


def weighted_alp(language_share: float, alp: float) -> float:
    """q^β · ALP."""
    return float(language_share**LANGUAGE_SAMPLING_EXPONENT * alp)


def allocate_vocabularies(languages: Mapping[str, VocabularyFactory], size: int) -> dict[str, LanguageVocabulary]:
    """The vocabulary of each language, as large as it gets; together they have `size` pieces, or somewhat more.

    Fewer where no language has more pieces. Among equal gains the first language takes the step.
    """
    steps = dict.fromkeys(languages, 0)
    current = {language: sizes(0) for language, sizes in languages.items()}
    candidates = {language: sizes(1) for language, sizes in languages.items()}
    while len({piece for vocabulary in current.values() for piece in vocabulary.pieces}) < size:
        growing_languages = [each for each in languages if len(candidates[each].pieces) > len(current[each].pieces)]
        if not growing_languages:
            break
        best = max(growing_languages, key=lambda language: candidates[language].term - current[language].term)
        steps[best] += 1
        current[best], candidates[best] = candidates[best], languages[best](steps[best] + 1)
    return current
