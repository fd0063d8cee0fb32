"""Validation: loss, perplexity and token accuracy of the references, and scores of the model's own output.

Texts are translated by the code of `tfm translate`, and scored by that of `tfm evaluate`. Several directions each have
their own figures, and training is judged by their means.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tfm.data.dataset.split import Split
from tfm.data.errors import DataError
from tfm.data.images.row_images import RowImages
from tfm.pipeline.config import DecodingConfig, EvaluationConfig
from tfm.pipeline.decoding.decode import decode
from tfm.pipeline.inference.translation_records import join_to_one_line
from tfm.pipeline.runtime.distributed import World
from tfm.pipeline.runtime.out_of_memory import raise_oom_as_data_error, too_large_message
from tfm.pipeline.scoring.metrics.bleu_tokenizer import resolve_tokenizer, tokenizer_of_signature
from tfm.pipeline.scoring.metrics.inapplicable_metrics import inapplicable_metrics, too_long_reasons
from tfm.pipeline.scoring.metrics.registry import METRIC_FUNCTIONS, Score
from tfm.pipeline.scoring.metrics.score import exp_or_inf, mean_of_directions
from tfm.pipeline.tasks.task import Rows, Task
from tfm.pipeline.training_config import ValidationScoreName
from tfm.tokenizer.tokenizer import Tokenizer


class ValidationScorer:
    """Scores the output of a model for the validation source against its target, as `tfm evaluate` scores tests.

    metrics: those that the references have. missing: by name, why the others cannot be computed.

    Args:
        references: one or more lists, one text for each segment.
        evaluation: settings of the metrics.
        metrics: names of the metrics.
    """

    def __init__(
        self, references: Sequence[Sequence[str]], evaluation: EvaluationConfig, metrics: Sequence[ValidationScoreName]
    ) -> None:
        self.references = references
        evaluation = resolve_tokenizer(evaluation, references).model_copy(update={"metrics": tuple(metrics)})
        for name, reason in too_long_reasons([], references, evaluation).items():
            label, remedy = (
                ("BLEU", "validation.bleu = false") if name == "bleu" else (name, "other validation.metrics")
            )
            raise DataError(f"validation target: {reason} for {label}; shorten it, or set {remedy}")
        self.missing = inapplicable_metrics([], references, evaluation)
        self.metrics = tuple(name for name in metrics if name not in self.missing)
        self.evaluation = evaluation.model_copy(update={"metrics": self.metrics})

    def score(self, hypotheses: Sequence[str]) -> dict[str, Score]:
        """The scores of these hypotheses, by metric."""
        long_reasons = too_long_reasons(hypotheses, self.references, self.evaluation)
        functions = {name: METRIC_FUNCTIONS[name] for name in self.metrics if name not in long_reasons}
        return {name: metric(hypotheses, self.references, self.evaluation) for name, metric in functions.items()}


class ValidationTranslator(ValidationScorer):
    """Translates the validation source and scores the translations.

    Args:
        split: the validation data.
        target_tokenizer: decodes the translations.
        decoding: settings of decoding.
        evaluation: settings of the metrics.
        metrics: names of the metrics.
        previous_signature: the BLEU signature of an earlier validation of the same training. Its tokenizer replaces
            "auto", whatever has been installed since, so that figures can be compared.
    """

    def __init__(
        self,
        split: Split,
        target_tokenizer: Tokenizer,
        decoding: DecodingConfig,
        evaluation: EvaluationConfig,
        metrics: Sequence[ValidationScoreName] = ("bleu",),
        *,
        previous_signature: str | None = None,
    ) -> None:
        segments = split if split.images is None else split.group_by_image()
        self.sources: list[list[int]] | RowImages = (
            split.source.to_lists() if segments.images is None else segments.images
        )
        columns = (
            [segments.texts()[1]] if segments.images is None else [segments.texts()[1], *segments.further_references()]
        )
        if previous_signature is not None:
            evaluation = evaluation.model_copy(update={"bleu_tokenize": tokenizer_of_signature(previous_signature)})
        super().__init__([[join_to_one_line(text) for text in column] for column in columns], evaluation, metrics)
        self.target_tokenizer, self.decoding = target_tokenizer, decoding

    def scores(self, model: Any, world: World, check_interrupt: Callable[[], None]) -> dict[str, Score]:
        """Score the best hypotheses; every process translates its share of the sentences.

        Args:
            model: the network.
            world: this process among those of the training.
            check_interrupt: called often; may raise to break off.
        """
        rows = [row for row, _ in world.shard_items(range(len(self.sources)))]
        sources = self.sources
        share = (
            sources.select_rows(np.array(rows, np.int64))
            if isinstance(sources, RowImages)
            else [sources[row] for row in rows]
        )
        with raise_oom_as_data_error(
            lambda: "validation: translating does not fit in memory; lower decoding.batch_sentences"
        ):
            outputs = decode(model, share, self.decoding, device=world.device, on_done=lambda _: check_interrupt())
        texts = self.target_tokenizer.decode_batch([list(hypotheses[0].ids) for hypotheses in outputs])
        hypotheses = [""] * len(self.sources)
        for rank, part in enumerate(world.all_gather_object(texts)):
            hypotheses[rank :: world.size] = map(join_to_one_line, part)
        return self.score(hypotheses)


class LabelScorer(ValidationScorer):
    """Labels the validation source and scores the labels; a line without predictions has none.

    Args:
        split: the validation data.
        target_tokenizer: decodes the labels.
        task: predicts labels.
        batches: the rows of each batch.
        evaluation: settings of the metrics.
        metrics: names of the metrics.
    """

    def __init__(
        self,
        split: Split,
        target_tokenizer: Tokenizer,
        task: Task,
        batches: Sequence[Rows],
        evaluation: EvaluationConfig,
        metrics: Sequence[ValidationScoreName],
    ) -> None:
        super().__init__([split.texts()[1]], evaluation, metrics)
        self.split, self.target_tokenizer, self.task, self.batches = split, target_tokenizer, task, batches

    def scores(self, model: Any, world: World, check_interrupt: Callable[[], None]) -> dict[str, Score]:
        """Score the likeliest labels; every process labels its share of the batches.

        Args:
            model: the network.
            world: this process among those of the training.
            check_interrupt: called often; may raise to break off.
        """
        task: Any = self.task  # one that labels, so that it has `predict`
        predictions: list[tuple[int, list[int]]] = []
        for _, rows in world.shard_items(self.batches):
            check_interrupt()
            results = task.predict(model, task.batch(self.split, rows).to(world.device), 1)
            predictions += [(int(row), list(best.ids)) for row, (best, *_) in zip(rows, results, strict=True)]
        hypotheses = [""] * len(self.split)
        for part in world.all_gather_object(predictions):
            texts = self.target_tokenizer.decode_batch([ids for _, ids in part])
            for (row, _), text in zip(part, texts, strict=True):
                hypotheses[row] = text
        return self.score(hypotheses)


class Validator:
    """Computes the figures of a model on the validation split.

    Args:
        task: evaluates a batch.
        split: the validation data.
        batches: the rows of each batch.
        scorer: scores the model's own output; None: it is not scored.
    """

    def __init__(
        self, task: Task, split: Split, batches: Sequence[Rows], scorer: ValidationTranslator | LabelScorer | None
    ) -> None:
        self.task, self.split, self.batches, self.scorer = task, split, batches, scorer

    @torch.no_grad()
    def compute_metrics(
        self, model: Any, world: World, check_interrupt: Callable[[], None] = lambda: None
    ) -> dict[str, Any]:
        """Compute loss (-log p a prediction), perplexity, accuracy, bleu and its signature, and further scores.

        Sums are divided once. A prediction is a target token, or another unit that the task predicts.

        Args:
            model: the network.
            world: this process among those of the training.
            check_interrupt: called often; may raise to break off.
        """
        was_training = model.training
        model.eval()
        try:
            nll, correct, count, unknown = self.sum_predictions_over_processes(model, world, check_interrupt)
            scores = {} if self.scorer is None else self.scorer.scores(model, world, check_interrupt)
        finally:
            model.train(was_training)
        loss = nll / count
        return {
            "loss": loss,
            "perplexity": exp_or_inf(loss) if self.task.has_perplexity else None,
            "accuracy": correct / (count + unknown),
            **_validation_metrics(scores),
        }

    def sum_predictions_over_processes(
        self, model: Any, world: World, check_interrupt: Callable[[], None]
    ) -> tuple[float, float, float, float]:
        """Sum up the predictions of all processes, with a model in eval().

        Args:
            model: the network.
            world: this process among those of the training.
            check_interrupt: called often; may raise to break off.

        Returns:
            -log p, the number of right predictions, the number of all, and the number of unknown labels beside them.
        """
        sums = [0.0] * 4
        for _, rows in world.shard_items(self.batches):
            check_interrupt()
            with raise_oom_as_data_error(partial(self._too_large_message, rows)):
                counts = self.task.evaluate(model, self.task.batch(self.split, rows).to(world.device))
            values: tuple[Tensor | int, ...] = (counts.nll, counts.correct, counts.count, counts.unknown)
            for index, value in enumerate(values):
                sums[index] += float(value)
        parts = world.all_gather_object(sums)
        nll, correct, count, unknown = (math.fsum(part[index] for part in parts) for index in range(4))
        return nll, correct, count, unknown

    def _too_large_message(self, rows: Rows) -> str:
        return too_large_message(self.task.describe_batch(self.split, rows), "validation")


class DirectionsValidator:
    """Computes the figures of a model on validation data of several directions: of each, and their means."""

    def __init__(self, validators: Mapping[str, Validator]) -> None:
        self.validators = validators

    def compute_metrics(
        self, model: Any, world: World, check_interrupt: Callable[[], None] = lambda: None
    ) -> dict[str, Any]:
        """Compute the figures of `Validator.figures` in the mean; `directions`: of each direction by its name.

        Every direction counts the same, whatever its number of sentences. perplexity: e^(mean loss), which is the
        geometric mean. There is a mean BLEU where each direction has one.

        Args:
            model: the network.
            world: this process among those of the training.
            check_interrupt: called often; may raise to break off.
        """
        directions = {
            name: each.compute_metrics(model, world, check_interrupt) for name, each in self.validators.items()
        }
        loss, accuracy = (
            math.fsum(each[name] for each in directions.values()) / len(directions) for name in ("loss", "accuracy")
        )
        scores = {name: _scores_from_metrics(each) for name, each in directions.items()}
        shared = [metric for metric in next(iter(scores.values())) if all(metric in each for each in scores.values())]
        means = {metric: mean_of_directions({name: each[metric] for name, each in scores.items()}) for metric in shared}
        return {
            "loss": loss,
            "perplexity": None if any(each["perplexity"] is None for each in directions.values()) else exp_or_inf(loss),
            "accuracy": accuracy,
            **_validation_metrics(means),
            "directions": directions,
        }


def _validation_metrics(scores: Mapping[str, Score]) -> dict[str, Any]:
    """Scores as validation figures: BLEU, which may be None, and the others."""
    entries = {name: {"score": each.score, "signature": each.signature} for name, each in scores.items()}
    bleu = entries.pop("bleu", {"score": None, "signature": None})
    return {"bleu": bleu["score"], "bleu_signature": bleu["signature"], "scores": entries}


def _scores_from_metrics(metrics: Mapping[str, Any]) -> dict[str, Score]:
    """The scores among figures of validation."""
    scores = {} if metrics["bleu"] is None else {"bleu": Score(metrics["bleu"], metrics["bleu_signature"])}
    return scores | {name: Score(**each) for name, each in metrics.get("scores", {}).items()}
