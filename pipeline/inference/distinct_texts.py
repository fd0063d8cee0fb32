"""The best hypotheses of a search, each text once.

Two hypotheses may be one text: in other pieces, or with unknown pieces, which are not shown. If a beam finds too few
texts, one twice as wide is asked for more. Samples stay as they were drawn.
"""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from tfm.pipeline.config import DecodingConfig

MAX_BEAM_DOUBLINGS = 2
"""The number of times that the beam is doubled."""


class ScoredText(Protocol):
    """A text with its score."""

    @property
    def text(self) -> str: ...
    @property
    def score(self) -> float: ...


T = TypeVar("T", bound=ScoredText)


def requires_distinct_texts(config: DecodingConfig) -> bool:
    """Whether each text is to come once."""
    return config.strategy == "search" and config.n_best > 1


def find_distinct_texts(
    results: Sequence[Sequence[T]],
    config: DecodingConfig,
    search: Callable[[list[int], DecodingConfig], Sequence[Sequence[T]]],
) -> list[list[T]]:
    """The best `config.n_best` texts of each row, each once, best first.

    Args:
        results: the hypotheses of each row that the search as configured has found, best first.
        config: that search.
        search: finds the hypotheses of some rows by another configuration.
    """
    distinct_texts, wider_config = [_drop_repeats(hypotheses) for hypotheses in results], config
    for _ in range(MAX_BEAM_DOUBLINGS):
        short_rows = [
            row for row, texts in enumerate(distinct_texts) if 0 < len(texts) < min(config.n_best, len(results[row]))
        ]
        if not short_rows:
            break
        wider_config = wider_config.model_copy(update={"beam": 2 * wider_config.beam, "n_best": 2 * wider_config.beam})
        for row, extra_results in zip(short_rows, search(short_rows, wider_config), strict=True):
            best = distinct_texts[row][0]  # stays what it is without a list
            lower = [each for each in extra_results if each.score <= best.score]
            rest = sorted([*distinct_texts[row][1:], *lower], key=lambda each: -each.score)
            distinct_texts[row] = [best, *_drop_repeats([each for each in rest if each.text != best.text])]
    return [texts[: config.n_best] for texts in distinct_texts]


def _drop_repeats(hypotheses: Sequence[T]) -> list[T]:
    """The best of each text; hypotheses come best first."""
    best_by_text: dict[str, T] = {}
    for hypothesis in hypotheses:
        best_by_text.setdefault(hypothesis.text, hypothesis)
    return list(best_by_text.values())
