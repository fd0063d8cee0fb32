"""Lines of a text to pairs with log-probabilities, in order; and the lines that give none, with the reason."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import tee

import numpy as np
from numpy.typing import NDArray

from tfm.data.lines import chunk_rows
from tfm.pipeline.config import MbrUtility
from tfm.pipeline.inference.translation_records import Translation
from tfm.pipeline.synthesis.closest import closest_index
from tfm.pipeline.synthesis.config import NoiseConfig
from tfm.pipeline.synthesis.held_out import HeldOutTexts
from tfm.pipeline.synthesis.noise import add_noise

LINES_PER_CHECK = 2048
"""Lines that are compared with held-out texts at a time."""
EMPTY_REASON, HELD_OUT_REASON, TOO_LONG_REASON = "empty", "held out", "too long"
NO_OUTPUT_REASON, SCORE_REASON = "nothing written", "score"
REMEDY_BY_REASON = {
    EMPTY_REASON: "give a text with words",
    HELD_OUT_REASON: "give a text that no test set has",
    TOO_LONG_REASON: "give a text of shorter lines",
    NO_OUTPUT_REASON: "train the model longer, or give another one",
    SCORE_REASON: "give a lower min_score, or a percentile in its place",
}
"""By the reason why a pair is left out, the remedy where that leaves out most of all."""
DROP_REASONS = tuple(REMEDY_BY_REASON)
LineTranslator = Callable[[Iterable[str]], Iterator[Sequence[Translation]]]
TextRow = tuple[str, ...]
"""A line, and after it its references if it has any."""
LengthCheck = Callable[[list[str]], Sequence[bool]]
"""Texts -> whether each is longer than the model reads: it would translate a beginning, and pair it with the whole."""


@dataclass(frozen=True)
class SyntheticPair:
    """A line and what a model wrote of it.

    Args:
        line: number of the line, from 1.
        rank: number of the translation among those of the line, from 1, the best first.
        input: the line.
        output: what the model wrote, maybe with noise.
        log_prob: of what the model wrote, its end token included, in nats; 0 where it was not asked.
        num_tokens: that the log-probability is the sum over.
        dropped: the reason why the pair is left out; None: it stays.
    """

    line: int
    rank: int
    input: str
    output: str
    log_prob: float
    num_tokens: int
    dropped: str | None = None

    @property
    def score(self) -> float:
        """The log-probability a token."""
        return self.log_prob / max(self.num_tokens, 1)


def synthesize_pairs(
    rows: Iterable[TextRow],
    held_out: HeldOutTexts,
    are_too_long: LengthCheck,
    translate: LineTranslator,
    utility: MbrUtility,
    noise: NoiseConfig | None,
) -> Iterator[SyntheticPair]:
    """Yield the pairs of each line, in order; a line that is not translated, or gives nothing, as one that is dropped.

    A line with references has one pair, that of the translation that is closest to them.

    Args:
        rows: the lines of the text, with their references.
        held_out: texts that are not translated.
        are_too_long: whether the model cannot read texts whole; such lines are not translated.
        translate: gives the translations of texts, in their order.
        utility: the name of the likeness of a translation to a reference.
        noise: settings of the noise in what is written; None for none.
    """
    all_rows, rows_to_translate = tee(_rows_with_skip_reason(rows, held_out, are_too_long))
    translations = translate(text for (text, *_), reason in rows_to_translate if reason is None)
    for line, ((text, *references), reason) in enumerate(all_rows, 1):
        if reason is not None:
            yield SyntheticPair(line, 1, text, "", 0.0, 0, reason)
            continue
        candidates = list(enumerate(next(translations), 1))
        if references:
            candidates = [candidates[closest_index([each.text for _, each in candidates], references, utility)]]
        for rank, translation in candidates:
            pair = SyntheticPair(line, rank, text, translation.text, translation.log_prob, translation.num_tokens)
            if not translation.text.strip():
                yield replace(pair, dropped=NO_OUTPUT_REASON)
            else:
                yield pair if noise is None else replace(pair, output=add_noise(translation.text, noise, rank))
    next(translations, None)  # at its end it warns of what the model could not read


def min_kept_score(scores: NDArray[np.float64], percentile: float) -> float:
    """The lowest score that stays if this share of all, in percent, is dropped, the worst first.

    Args:
        scores: (n,) of all pairs.
        percentile: the share, less than 100.
    """
    index = int(len(scores) * percentile / 100)
    return float(np.partition(scores, index)[index]) if len(scores) else float("-inf")


def drop_low_scores(pairs: Iterable[SyntheticPair], limit: float | None) -> Iterator[SyntheticPair]:
    """Yield the pairs, those with a score below the limit as dropped."""
    for pair in pairs:
        is_low = limit is not None and pair.dropped is None and pair.score < limit
        yield replace(pair, dropped=SCORE_REASON) if is_low else pair


def _rows_with_skip_reason(
    rows: Iterable[TextRow], held_out: HeldOutTexts, are_too_long: LengthCheck
) -> Iterator[tuple[TextRow, str | None]]:
    """Each line with its references, and the reason why it is not translated; one that is held out is a reason too."""
    for chunk in chunk_rows(rows, LINES_PER_CHECK):
        texts = [text for text, *_ in chunk]
        are_held_out = iter(held_out.contains([text for row in chunk for text in row]).tolist())
        for row, text, is_too_long in zip(chunk, texts, are_too_long(texts), strict=True):
            is_held_out = sum(next(are_held_out) for _ in row) > 0
            if not text or text.isspace():
                yield row, EMPTY_REASON
            elif is_held_out:
                yield row, HELD_OUT_REASON
            else:
                yield row, TOO_LONG_REASON if is_too_long else None
