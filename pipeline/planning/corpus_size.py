"""The training data of a run: rows, tokens, padding and updates, counted as training counts them, or assumed.

The number of updates is exact where the dataset is made. Elsewhere rows and lengths are given, and padding is assumed.
"""

import math
from dataclasses import dataclass

import numpy as np

from tfm.data.artifact_tokenizers import load_tokenizer_pair
from tfm.data.dataset.store import load_dataset
from tfm.pipeline.artifacts.artifact import read_artifact, stale_reason
from tfm.pipeline.errors import DataError, TfmError
from tfm.pipeline.recipes.chain import SHARED_STAGES
from tfm.pipeline.recipes.recipe import Recipe
from tfm.pipeline.recipes.recipe_batch import plan_stage
from tfm.pipeline.recipes.run_paths import get_run_paths
from tfm.pipeline.tasks.abilities import TASK_SPECS
from tfm.pipeline.tasks.registry import make_task
from tfm.pipeline.tasks.task import TaskContext
from tfm.pipeline.training.assembly.num_updates import last_step, step_after_epoch

ASSUMED_PADDING_SHARE = 0.03


@dataclass(frozen=True)
class CorpusSize:
    """The training data of a run.

    Args:
        rows: in an epoch.
        source_tokens: in an epoch, with end tokens.
        target_tokens: the same of the targets.
        padding: the share of positions that are padding; None where a model has no batches of texts.
        updates: of the whole training.
        updates_per_epoch: of the first epoch.
        batch_tokens: padded tokens of a batch on its larger side, at most.
        is_exact: whether all of it was counted, not assumed.
    """

    rows: int
    source_tokens: int
    target_tokens: int
    padding: float
    updates: int
    updates_per_epoch: int
    batch_tokens: int
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
        made = "make it with `tfm tokenize` and `tfm preprocess` with the same recipe"
        remedy = f"{made}, or give --on DEVICE, --pairs and --tokens"
        raise DataError(f"there is no dataset to count yet: {remedy}", file=folder)
    data = read_artifact(folder, lambda _: load_dataset(folder))
    source, target = load_tokenizer_pair(data.tokenizer_folder)
    batch_tokens = batch_tokens_of_training(recipe, data.batch_tokens)
    task = make_task(TaskContext(recipe.training, recipe.model, source, target, batch_tokens))
    epochs = task.epochs(data.train, batch_tokens, recipe.seed)
    updates = last_step(recipe.training, epochs.num_batches, num_processes)
    per_epoch = step_after_epoch(epochs.num_batches(0), 0, recipe.training, num_processes)
    if recipe.model.block is not None:  # windows of a running text are filled, but for a few tokens at its ends
        windows = sum(map(len, epochs(0)))
        tokens = windows * recipe.model.block
        found = CorpusSize(windows, tokens, tokens, 0.0, updates, per_epoch, batch_tokens, is_exact=True)
        return found, source.vocab_size, target.vocab_size
    rows = np.concatenate([np.asarray(batch) for batch in epochs(0)])
    positions = 0
    columns = data.train.source_lengths, data.train.target_lengths
    for batch in epochs(0):
        positions += sum(int((column[batch] + 1).max()) * len(batch) for column in columns)
    sources, targets = (int((column[rows] + 1).sum()) for column in columns)
    padding = 1 - (sources + targets) / positions if positions else 0.0
    found = CorpusSize(len(rows), sources, targets, padding, updates, per_epoch, batch_tokens, is_exact=True)
    return found, source.vocab_size, target.vocab_size


def stale_data_reason(recipe: Recipe) -> str | None:
    """Return which artifact that a dataset is made of, or the dataset itself, `tfm run` would make anew, and why; None
    where the dataset is up to date, or where its corpora are not here to be compared.
    """
    paths = get_run_paths(recipe)
    for stage in SHARED_STAGES:
        try:
            made = plan_stage(recipe, stage, paths)
        except (TfmError, OSError):
            return None
        if made is not None and (reason := stale_reason(made)) is not None:
            return f"{made.folder}: {reason}"
    return None


def translates_in_validation(recipe: Recipe) -> bool:
    """Return whether validations of a run translate: to score translations, and not labels."""
    abilities = TASK_SPECS[recipe.model.task]
    return abilities.translates and bool(recipe.training.select_validation_scores(labels=abilities.labels is not None))


def mean_reference_length(recipe: Recipe) -> int | None:
    """Return the tokens of a reference of the validation data, on average and with its end; None where validations of
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
    given = recipe.training.batch_tokens
    return given if isinstance(given, int) else of_dataset


def assume_corpus_and_vocabularies(
    recipe: Recipe, pairs: int, tokens: float, num_processes: int
) -> tuple[CorpusSize, int, int]:
    """Return a corpus of so many rows, with sides of so many tokens on average, and the sizes of its vocabularies."""
    total = round(pairs * (tokens + 1))
    batch_tokens = batch_tokens_of_training(recipe, recipe.data.batch_tokens)
    batches = math.ceil(total / (batch_tokens * (1 - ASSUMED_PADDING_SHARE)))
    updates = last_step(recipe.training, lambda _: batches, num_processes)
    per_epoch = step_after_epoch(batches, 0, recipe.training, num_processes)
    padding = ASSUMED_PADDING_SHARE
    corpus = CorpusSize(pairs, total, total, padding, updates, per_epoch, batch_tokens, is_exact=False)
    return corpus, recipe.tokenizer.vocab_size, recipe.tokenizer.vocab_size


def num_validations(recipe: Recipe, corpus: CorpusSize) -> int:
    """The number of validations of a training that does not stop early."""
    validation = recipe.training.validation
    if validation.every_steps is not None:
        return max(1, math.ceil(corpus.updates / validation.every_steps))
    return max(1, math.ceil(corpus.updates / ((validation.every_epochs or 1) * max(corpus.updates_per_epoch, 1))))
