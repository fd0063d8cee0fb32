"""Wrong language: the share of hypotheses in another language than requested.

The language of a text is told by naive Bayes over its characters' n-grams (Dunning 1994, "Statistical Identification of
Language"), learned from the training data of the model alone: argmax over languages l of sum over the n-grams g of
count(g) log((count_l(g) + 1) / (count_l + V)), where V is the number of different n-grams. The known languages are
therefore those of the training data, as sources or as targets, and no other.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from math import log
from typing import TYPE_CHECKING

from tfm.data.dataset.directions import Direction
from tfm.pipeline.scoring.metrics.score import Score

if TYPE_CHECKING:
    from tfm.data.dataset.split import Split
    from tfm.tokenizer.tokenizer import Tokenizer

NGRAM_ORDER = 3  # of n-grams
MAX_TEXTS_PER_LANGUAGE = 5000  # of each language that are learned from


class LanguageIdentifier:
    """Tells in which of some languages a text is; texts: some of each language, by its code."""

    def __init__(self, texts: Mapping[str, Sequence[str]]) -> None:
        counts = {
            language: Counter(gram for text in language_texts for gram in char_ngrams(text))
            for language, language_texts in texts.items()
        }
        size = len(set().union(*counts.values()))
        self.languages = tuple(sorted(counts))
        self._log_probs = {
            language: {gram: log((count + 1) / (gram_counts.total() + size)) for gram, count in gram_counts.items()}
            for language, gram_counts in counts.items()
        }
        self._unseen = {language: log(1 / (gram_counts.total() + size)) for language, gram_counts in counts.items()}

    def language_of(self, text: str) -> str | None:
        """The likeliest language; None of a text without characters, or with none that training has in any language."""
        grams = [gram for gram in char_ngrams(text) if any(gram in known for known in self._log_probs.values())]
        if not grams:
            return None
        return max(self.languages, key=lambda language: self._log_prob(language, grams))

    def _log_prob(self, language: str, grams: Sequence[str]) -> float:
        log_probs, unseen = self._log_probs[language], self._unseen[language]
        return sum(log_probs.get(gram, unseen) for gram in grams)


def char_ngrams(text: str) -> Iterator[str]:
    """The n-grams of a text in lower case, a space at either end."""
    padded = f" {' '.join(text.lower().split())} "
    if padded.strip():
        yield from (padded[place : place + NGRAM_ORDER] for place in range(max(1, len(padded) - NGRAM_ORDER + 1)))


def train_identifier(
    train: "Split", directions: Sequence[Direction], source: "Tokenizer", target: "Tokenizer"
) -> LanguageIdentifier:
    """Return the identifier of the languages of a dataset, from MAX_TEXTS_PER_LANGUAGE training texts of each.

    Args:
        train: the training data.
        directions: its languages, in the order of its rows.
        source: the tokenizer of the source.
        target: the tokenizer of the target.
    """
    ids: dict[str, list[tuple[Tokenizer, list[int]]]] = {}
    first = 0
    for direction in directions:
        for language, tokenizer, column in (
            (direction.source, source, train.source),
            (direction.target, target, train.target),
        ):
            examples = ids.setdefault(language, [])
            rows = islice(range(first, first + direction.rows), MAX_TEXTS_PER_LANGUAGE - len(examples))
            examples += [(tokenizer, column[row].tolist()) for row in rows]
        first += direction.rows
    return LanguageIdentifier(
        {language: [tokenizer.decode(row_ids) for tokenizer, row_ids in pairs] for language, pairs in ids.items()}
    )


def wrong_language(hypotheses: Sequence[str], languages: Sequence[str], identifier: LanguageIdentifier) -> Score:
    """Compute the percentage of hypotheses in another language than was asked for; a text of no language is in none.

    Args:
        hypotheses: one for each segment.
        languages: the code of the language of each.
        identifier: of the languages of the training data.
    """
    predicted_languages = map(identifier.language_of, hypotheses)
    num_wrong = sum(
        predicted not in (None, expected) for predicted, expected in zip(predicted_languages, languages, strict=True)
    )
    method = f"char-{NGRAM_ORDER}-grams|naive-bayes|learned-from:train|stat:share*100"
    signature = f"languages:{'+'.join(identifier.languages)}|{method}"
    return Score(100 * num_wrong / len(hypotheses), signature)
