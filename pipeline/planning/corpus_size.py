"""The training data of a run: rows, tokens, padding and updates, counted as training counts them, or assumed.

The number of updates is exact where the dataset is made. Elsewhere rows and lengths are given, and padding is assumed.
"""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from tfm.data.artifact_tokenizers import load_tokenizer_pair
from tfm.data.dataset.store import load_dataset
from tfm.model.vision.image_shape import ImageShape
from tfm.pipeline.artifacts.artifact import open_artifact, read_artifact, stale_reason
from tfm.pipeline.errors import DataError, TfmError
from tfm.pipeline.model_io.loaded_model import image_shape
from tfm.pipeline.recipes.chain import SHARED_STAGES
from tfm.pipeline.recipes.recipe import Recipe
from tfm.pipeline.recipes.recipe_batch import plan_stage
from tfm.pipeline.recipes.run_paths import get_run_paths
from tfm.pipeline.tasks.abilities import TASK_SPECS
from tfm.pipeline.tasks.masked_language_model import expected_masked_tokens
from tfm.pipeline.tasks.registry import make_task
from tfm.pipeline.tasks.span_corruption import num_noise_tokens_and_spans
from tfm.pipeline.tasks.task import TaskContext
from tfm.pipeline.tasks.translation import num_flat_rows
from tfm.pipeline.tasks.word_vectors import NUM_PREDICTIONS
from tfm.pipeline.training.assembly.num_updates import NumBatches, last_step, step_after_epoch
from tfm.pipeline.training.checks import num_source_image_tokens
from tfm.pipeline.training_config import TrainingConfig

ASSUMED_PADDING_SHARE = 0.03
ASSUMED_TOKEN_WEIGHTED_LENGTH = 1.3
"""The mean length of the sentence that a token is in, in mean lengths: long sentences have more of the tokens."""


@dataclass(frozen=True)
class CorpusSize:
    """The training data of a run.

    Args:
        rows: in an epoch.
        source_tokens: in an epoch, with end tokens.
        target_tokens: the same of the targets.
        predictions: that the loss of an epoch has.
        source_length: tokens that a source token is computed with, on average: those of its row, and padding.
        target_length: the same of a target token.
        padding: the share of positions that are padding.
        updates: of the whole training.
        updates_per_epoch: of the first epoch.
        batches_per_epoch: of the first epoch.
        batches_per_update: of all processes, on average over the training.
        epochs: of the whole training, the last one perhaps in part.
        batch_tokens: padded tokens of a batch on its larger side, at most.
        dataset_bytes: of the files of the dataset; None if there is none.
        is_exact: whether all of it was counted, not assumed.
    """

    rows: int
    source_tokens: int
    target_tokens: int
    predictions: float
    source_length: float
    target_length: float
    padding: float
    updates: int
    updates_per_epoch: int
    batches_per_epoch: int
    batches_per_update: float
    epochs: float
    batch_tokens: int
    dataset_bytes: int | None
    is_exact: bool


def count_corpus_and_vocabularies(recipe: Recipe, num_processes: int) -> tuple[CorpusSize, int, int]:
    """Count the dataset of a run, and return it with the sizes of its vocabularies.

    Args:
        recipe: the recipe.
        num_processes: that share the batches of an update.

    Raises:
        DataError: the dataset is not made yet.
    """
    folder = get_run_paths(recipe).dataset
    if not folder.exists():
        advice = "make it with `tfm tokenize` and `tfm preprocess` with the same recipe"
        remedy = f"{advice}, or give --on DEVICE, --pairs and --tokens"
        raise DataError(f"there is no dataset to count yet: {remedy}", file=folder)
    data = read_artifact(folder, lambda _: load_dataset(folder))
    size = sum(each.size for each in open_artifact(folder, "preprocess").files.values())
    source, target = load_tokenizer_pair(data.tokenizer_folder)
    batch_tokens = batch_tokens_of_training(recipe, data.batch_tokens)
    image_tokens = num_source_image_tokens(image_shape(data.preparation), recipe.model.vision, recipe.training)
    task = make_task(TaskContext(recipe.training, recipe.model, source, target, batch_tokens, image_tokens))
    epochs = task.epochs(data.train, batch_tokens, recipe.seed)
    updates = _count_updates(recipe.training, epochs.num_batches, num_processes)
    if recipe.model.block is not None:  # windows of a running text are filled, but for a few tokens at its ends
        windows, block = sum(map(len, epochs(0))), recipe.model.block
        tokens = windows * block
        corpus = CorpusSize(
            windows, tokens, tokens, tokens, block, block, 0.0, *updates, batch_tokens, size, is_exact=True
        )
        return corpus, source.vocab_size, target.vocab_size
    num_rows, sums, padded_tokens, squared_lengths = 0, np.zeros(3), np.zeros(2), np.zeros(2)
    columns, predictions = task.lengths(data.train), task.expected_predictions(data.train)
    is_flat = recipe.training.layout == "flat"  # each row is computed without padding
    for batch in epochs(0):
        lengths = np.stack([column[batch] for column in columns])
        longest = lengths.max(axis=1)
        num_rows += len(batch)
        padded_tokens += longest * len(batch)
        squared_lengths += (
            (lengths.astype(np.float64) ** 2).sum(axis=1) if is_flat else longest.astype(np.float64) ** 2 * len(batch)
        )
        sums += [*lengths.sum(axis=1), predictions[batch].sum()]
    sources, targets, num_predictions = int(sums[0]), int(sums[1]), float(sums[2])
    positions = 2 * num_flat_rows(batch_tokens) * updates[2] if is_flat else padded_tokens.sum()
    padding = 1 - (sources + targets) / positions if positions else 0.0
    source_length, target_length = (squared_lengths / np.maximum(sums[:2], 1)).tolist()
    corpus = CorpusSize(
        num_rows,
        sources,
        targets,
        num_predictions,
        source_length,
        target_length,
        padding,
        *updates,
        batch_tokens,
        size,
        is_exact=True,
    )
    return corpus, source.vocab_size, target.vocab_size


def _count_updates(
    config: TrainingConfig, num_batches: NumBatches, num_processes: int
) -> tuple[int, int, int, float, float]:
    """The updates of a training and of its first epoch, the batches of that, those of an update on average, and the
    epochs of the training."""
    num_batches = cache(num_batches)
    updates, batches = last_step(config, num_batches, num_processes), num_batches(0)
    # where updates say when to end, epochs may be very many, and each is taken to be as the first
    of_epoch = num_batches if config.max_epochs is not None else lambda _: batches
    total, epochs = batches_and_epochs(config, of_epoch, updates, num_processes)
    return updates, step_after_epoch(batches, 0, config, num_processes), batches, total / updates, epochs


def batches_and_epochs(
    config: TrainingConfig, num_batches: NumBatches, updates: int, num_processes: int
) -> tuple[int, float]:
    """Return the batches of the first updates of a training, and the epochs. An update has fewer than `accumulate`
    batches at the end of an epoch, and more with `batch_growth`.

    Args:
        config: the [training] part of a recipe.
        num_batches: (number of an epoch) -> the number of its batches.
        updates: the number of updates.
        num_processes: that share the batches of an update.
    """
    step = batches = epochs = 0
    while (next_step := step_after_epoch(num_batches(epochs), step, config, num_processes)) <= updates:
        step, batches, epochs = next_step, batches + num_batches(epochs), epochs + 1
    rest = num_processes * sum(map(config.accumulation_steps_at, range(step + 1, updates + 1)))
    return batches + rest, epochs + rest / num_batches(epochs)


def recipe_image_shape(recipe: Recipe) -> ImageShape | None:
    """Return the shape of a recipe's images; None if its sources are texts."""
    images = recipe.data.images
    return None if images is None else ImageShape(images.height, images.width, 3 if images.colour else 1)


def assume_lengths(recipe: Recipe, tokens: float) -> tuple[float, float, float]:
    """Return the tokens of source and target and the predictions of a row, on average, whose sides have so many
    tokens, end tokens not counted.

    Args:
        recipe: the recipe.
        tokens: of a side.
    """
    abilities = TASK_SPECS[recipe.model.task]
    if (image := recipe_image_shape(recipe)) is not None:
        image_tokens = num_source_image_tokens(image, recipe.model.vision, recipe.training)
        return (image_tokens, *((2, 1.0) if abilities.labels == "label" else (tokens + 1, tokens + 1)))
    if abilities.within_window:
        rule = NUM_PREDICTIONS[recipe.model.architecture]
        return tokens + 1, tokens + 1, float(rule(np.array([tokens]), recipe.model.word_vectors)[0])
    if abilities.hides_spans:
        (hidden,), (spans,) = num_noise_tokens_and_spans(np.array([round(tokens)]), recipe.model.span_corruption)
        return tokens - hidden + spans + 1, hidden + spans + 1, hidden + spans + 1
    if abilities.labels == "label":
        return tokens + 1, tokens + 1, 1.0
    return tokens + 1, tokens + 1, expected_masked_tokens(tokens) if abilities.hides_pieces else tokens + 1


def stale_data_reason(recipe: Recipe) -> str | None:
    """Return which artifact that a dataset is made of, or the dataset itself, `tfm run` would make again, and why; None
    where the dataset is up to date, or where its corpora are not here to be compared.
    """
    paths = get_run_paths(recipe)
    for stage in SHARED_STAGES:
        try:
            plan = plan_stage(recipe, stage, paths)
        except (TfmError, OSError):
            return None
        if plan is not None and (reason := stale_reason(plan)) is not None:
            return f"{plan.folder}: {reason}"
    return None


def translates_in_validation(recipe: Recipe) -> bool:
    """Return whether validations of a run translate: to score translations, and not labels."""
    abilities = TASK_SPECS[recipe.model.task]
    return abilities.translates and bool(recipe.training.select_validation_scores(labels=abilities.labels is not None))


def mean_reference_length(recipe: Recipe) -> int | None:
    """Return the tokens of a reference of the validation data, on average and with its end; None if validations of
    the run do not translate.
    """
    if not translates_in_validation(recipe):
        return None
    folder = get_run_paths(recipe).dataset
    data = read_artifact(folder, lambda _: load_dataset(folder))
    mean, limit = math.ceil(float(np.mean(data.valid.target_lengths)) + 1), recipe.decoding.max_length
    return max(recipe.decoding.min_length, mean if limit is None else min(mean, limit))


def batch_tokens_of_training(recipe: Recipe, of_dataset: int) -> int:
    """Return the tokens of a batch: `training.batch_tokens`, or the dataset's, where the search of "auto" begins."""
    batch_tokens = recipe.training.batch_tokens
    return batch_tokens if isinstance(batch_tokens, int) else of_dataset


def assume_corpus_and_vocabularies(
    recipe: Recipe, pairs: int, tokens: float, num_processes: int
) -> tuple[CorpusSize, int, int]:
    """Return a corpus of so many rows, with sides of so many tokens on average, and the sizes of its vocabularies."""
    *sides, predictions = (pairs * each for each in assume_lengths(recipe, tokens))
    sources, targets = map(round, sides)
    batch_tokens = batch_tokens_of_training(recipe, recipe.data.batch_tokens)
    batches = math.ceil(max(sources, targets) / (batch_tokens * (1 - ASSUMED_PADDING_SHARE)))
    updates = _count_updates(recipe.training, lambda _: batches, num_processes)
    padding = ASSUMED_PADDING_SHARE
    means = [ASSUMED_TOKEN_WEIGHTED_LENGTH * each / pairs for each in sides]
    if recipe.data.images is not None:  # all of the same size
        means[0] = sides[0] / pairs
    corpus = CorpusSize(
        pairs, sources, targets, predictions, means[0], means[1], padding, *updates, batch_tokens, None, is_exact=False
    )
    return corpus, recipe.tokenizer.vocab_size, recipe.tokenizer.vocab_size


def num_validations(recipe: Recipe, corpus: CorpusSize) -> int:
    """The number of validations of a training that does not stop early."""
    validation = recipe.training.validation
    if validation.every_steps is not None:
        return max(1, math.ceil(corpus.updates / validation.every_steps))
    return max(1, math.ceil(corpus.updates / ((validation.every_epochs or 1) * max(corpus.updates_per_epoch, 1))))
