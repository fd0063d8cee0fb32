"""Validation: loss, perplexity and token accuracy of the references, and BLEU with the same code as `tfm translate`.

Of several directions each has its own figures, and the means of them are what training is judged by.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tfm.data.errors import DataError
from tfm.data.images.row_images import RowImages
from tfm.pipeline.config import DecodingConfig, EvaluationConfig
from tfm.pipeline.decoding.decode import decode
from tfm.pipeline.inference.translation import one_line
from tfm.pipeline.runtime.distributed import World
from tfm.pipeline.runtime.out_of_memory import oom_as_data_error, too_large
from tfm.pipeline.scoring.metrics.bleu_tokenizer import resolved, tokenizer_of
from tfm.pipeline.scoring.metrics.inapplicable_metrics import inapplicable_metrics, too_long_reasons
from tfm.pipeline.scoring.metrics.registry import Score, bleu
from tfm.pipeline.scoring.metrics.score import exp_or_inf, mean_of_directions
from tfm.pipeline.tasks.task import Rows, Task
from tfm.tokenizer.tokenizer import Tokenizer


class Translator:
    """Translates the validation source and scores it against the validation target, as `tfm evaluate` scores tests.

    before: the signature of an earlier validation of the same training. What "auto" chose then is kept, whatever has
    been installed since, so that its figures can be compared. why_not: why there is no BLEU of these references, where
    there is none.
    """

    def __init__(
        self,
        split: Any,
        target_tokenizer: Tokenizer,
        decoding: DecodingConfig,
        evaluation: EvaluationConfig,
        *,
        before: str | None = None,
    ) -> None:
        self.sources: list[list[int]] | RowImages = split.source.lists()
        columns = [split.texts()[1]]
        if split.images is not None:
            each = split.group_by_image()
            self.sources, columns = each.images, [each.texts()[1], *each.further_references()]
        self.references = [[one_line(text) for text in column] for column in columns]
        if before is not None:
            evaluation = evaluation.model_copy(update={"bleu_tokenize": tokenizer_of(before)})
        self.evaluation = resolved(evaluation, self.references).model_copy(update={"metrics": ("bleu",)})
        for reason in too_long_reasons([], self.references, self.evaluation).values():
            raise DataError(f"validation target: {reason} for BLEU; shorten it, or set validation.bleu = false")
        self.no_bleu_reason = inapplicable_metrics([], self.references, self.evaluation).get("bleu")
        self.target_tokenizer, self.decoding = target_tokenizer, decoding

    def bleu(self, model: Any, world: World, pause: Callable[[], None]) -> Score:
        """BLEU of the best hypotheses; every process translates its share of the sentences."""
        rows = [row for row, _ in world.share(range(len(self.sources)))]
        sources = self.sources
        share = (
            sources.select(np.array(rows, np.int64))
            if isinstance(sources, RowImages)
            else [sources[row] for row in rows]
        )
        with oom_as_data_error(
            lambda: "validation: translating does not fit in memory; lower decoding.batch_sentences"
        ):
            found = decode(model, share, self.decoding, device=world.device, on_done=lambda _: pause())
        texts = self.target_tokenizer.decode_batch([list(hypotheses[0].ids) for hypotheses in found])
        hypotheses = [""] * len(self.sources)
        for rank, part in enumerate(world.all_gather_object(texts)):
            hypotheses[rank :: world.size] = map(one_line, part)
        return bleu(hypotheses, self.references, self.evaluation)


class Validator:
    """Computes the figures of a model on the validation split."""

    def __init__(self, task: Task, split: Any, batches: Sequence[Rows], translator: Translator | None) -> None:
        self.task, self.split, self.batches, self.translator = task, split, batches, translator

    @torch.no_grad()
    def figures(self, model: Any, world: World, pause: Callable[[], None] = lambda: None) -> dict[str, Any]:
        """loss (-log p a prediction), perplexity, accuracy, bleu and its signature.

        Sums are divided once. A prediction is a target token, or what else the task predicts.

        pause: called often; may raise to break off.
        """
        was_training = model.training
        model.eval()
        try:
            nll, correct, count, unknown = self.sums(model, world, pause)
            score = self.translator.bleu(model, world, pause) if self.translator is not None else None
        finally:
            model.train(was_training)
        loss = nll / count
        return {
            "loss": loss,
            "perplexity": exp_or_inf(loss) if self.task.has_perplexity else None,
            "accuracy": correct / (count + unknown),
            "bleu": None if score is None else score.score,
            "bleu_signature": None if score is None else score.signature,
        }

    def sums(self, model: Any, world: World, pause: Callable[[], None]) -> tuple[float, float, float, float]:
        """-log p, how many predictions are right, how many there are, and unknown labels beside them, over all
        processes; of a model in eval()."""
        sums = [0.0] * 4
        for _, rows in world.share(self.batches):
            pause()
            with oom_as_data_error(partial(self._too_large, rows)):
                counts = self.task.evaluate(model, self.task.batch(self.split, rows).to(world.device))
            found: tuple[Tensor | int, ...] = (counts.nll, counts.correct, counts.count, counts.unknown)
            for place, value in enumerate(found):
                sums[place] += float(value)
        parts = world.all_gather_object(sums)
        nll, correct, count, unknown = (math.fsum(part[place] for part in parts) for place in range(4))
        return nll, correct, count, unknown

    def _too_large(self, rows: Rows) -> str:
        return too_large(self.task.what(self.split, rows), "validation")


class DirectionsValidator:
    """Computes the figures of a model on validation data of several directions: of each, and their means."""

    def __init__(self, validators: Mapping[str, Validator]) -> None:
        self.validators = validators

    def figures(self, model: Any, world: World, pause: Callable[[], None] = lambda: None) -> dict[str, Any]:
        """What `Validator.figures` gives, in the mean; `directions`: of each direction by its name.

        Every direction counts the same, however many sentences it has. perplexity: e^(mean loss), which is the
        geometric mean. There is a mean BLEU where each direction has one.
        """
        found = {name: each.figures(model, world, pause) for name, each in self.validators.items()}
        loss, accuracy = (
            math.fsum(each[name] for each in found.values()) / len(found) for name in ("loss", "accuracy")
        )
        scores = {
            name: Score(each["bleu"], each["bleu_signature"])
            for name, each in found.items()
            if each["bleu"] is not None
        }
        bleu = mean_of_directions(scores) if len(scores) == len(found) else None
        return {
            "loss": loss,
            "perplexity": None if any(each["perplexity"] is None for each in found.values()) else exp_or_inf(loss),
            "accuracy": accuracy,
            "bleu": None if bleu is None else bleu.score,
            "bleu_signature": None if bleu is None else bleu.signature,
            "directions": found,
        }
