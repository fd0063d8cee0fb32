"""Probabilities of texts under a model: `tfm.load(...).score(...)`."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tfm.data.config import DataConfig
from tfm.pipeline.api import arguments
from tfm.pipeline.errors import DataError, RecipeError
from tfm.pipeline.inference.source_problems import warn_of_unknown_sources
from tfm.pipeline.model_io.loaded_model import LoadedModel
from tfm.pipeline.runtime.forks import exclude_other_threads
from tfm.pipeline.runtime.progress import Reporter
from tfm.pipeline.scoring.likelihood_scores import score_likelihood, split_from_lines
from tfm.pipeline.scoring.metrics.score import Score
from tfm.pipeline.scoring.perplexity import perplexity
from tfm.pipeline.scoring.segment_scores import Likelihoods
from tfm.pipeline.tasks.abilities import TASK_SPECS


@dataclass(frozen=True)
class TextScores:
    """Probabilities of n texts under a model, as `tfm evaluate` computes them.

    Args:
        log_probs: (n,) of each text with its end, in nats; NaN for one that has no probability, with a warning.
        num_tokens: (n,) predictions in each text.
        figures: perplexity, word_perplexity and bits_per_character of all texts together, each with its signature.
    """

    log_probs: NDArray[np.float64]
    num_tokens: NDArray[np.int64]
    figures: Mapping[str, Score]

    @property
    def perplexity(self) -> float:
        """exp(-log p / tokens), from the sums over all texts."""
        return self.figures["perplexity"].score

    @classmethod
    def from_likelihoods(cls, figures: Mapping[str, Score], likelihoods: Likelihoods) -> "TextScores":
        score_names = ("perplexity", "word_perplexity", "bits_per_character")
        return cls(likelihoods.log_probs, likelihoods.pieces, {name: figures[name] for name in score_names})


def score_texts(
    loaded: LoadedModel,
    sources: str | Iterable[str],
    targets: str | Iterable[str] | None,
    reporter: Reporter,
    to: str | None,
    source_language: str | None,
    stride: int | None,
) -> TextScores:
    """Compute the scores of `Model.score`.

    Args:
        loaded: the model.
        sources: the texts, or one.
        targets: their translations, as many; None for a language model.
        reporter: receives progress and warnings.
        to: the language of the targets, of a model of several.
        source_language: the language of the sources, for a model that is told it.
        stride: tokens between the beginnings of windows of text; None: side by side.

    Raises:
        DataError: there are no texts, their numbers differ, or none has a probability.
        RecipeError: targets or a stride do not fit the model's task.
    """
    lines = arguments.to_text_list(sources, "sources")
    stride = None if stride is None else arguments.check_whole_number(stride, "stride", 1)
    if TASK_SPECS[loaded.config.task].continues_text:
        if targets is not None:
            raise RecipeError("score: a language model reads one text at a time: give no targets")
        return _score_running_text(loaded, lines, reporter, stride)
    if targets is None or stride is not None:
        raise RecipeError("score: a translation is scored after its source: give sources and targets, no stride")
    target_texts = arguments.to_text_list(targets, "targets")
    if len(lines) != len(target_texts):
        raise DataError(f"score: {len(lines)} sources and {len(target_texts)} targets: give one target for each source")
    _check_there_are_texts(lines)
    with exclude_other_threads():
        loaded = loaded.for_languages(*arguments.check_languages(to, source_language))
        warn_of_unknown_sources(loaded.source_tokenizer, lines, reporter)
        return TextScores.from_likelihoods(*perplexity(loaded, lines, [target_texts], reporter=reporter))


def _check_there_are_texts(lines: list[str]) -> None:
    if not lines:
        raise DataError("score: there are no texts: give one or more")


def _score_running_text(loaded: LoadedModel, lines: list[str], reporter: Reporter, stride: int | None) -> TextScores:
    _check_there_are_texts(lines)
    split = split_from_lines(lines, loaded.source_tokenizer, loaded.target_tokenizer)
    with exclude_other_threads():
        result = score_likelihood(loaded, "texts", split, DataConfig().batch_tokens, reporter, stride=stride)
    assert result.likelihoods is not None
    return TextScores.from_likelihoods(result.scores, result.likelihoods)
