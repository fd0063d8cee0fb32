"""Prediction of what a run takes: sizes of data and model, memory, operations, time, disk, energy, money.

The number of updates is exact where the dataset is made: batches are counted as training counts them. Elsewhere rows
and lengths are given, and padding is assumed.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from tfm.data.artifact_tokenizers import load_tokenizer_pair
from tfm.data.dataset.store import load_dataset
from tfm.pipeline.artifacts.artifact import read_artifact
from tfm.pipeline.errors import DataError, RecipeError
from tfm.pipeline.model_io.model_weights import model_weight_shapes
from tfm.pipeline.planning.costs import UpdateSizes, flop_of_update, memory_by_use, num_parameters
from tfm.pipeline.planning.devices import ASSUMED_PEAK_SHARES, DeviceSpec
from tfm.pipeline.planning.measurement import ShortTrainingMeasurement
from tfm.pipeline.recipes.recipe import Recipe
from tfm.pipeline.recipes.run_paths import get_run_paths
from tfm.pipeline.tasks.abilities import TASK_SPECS
from tfm.pipeline.tasks.registry import make_task
from tfm.pipeline.tasks.task import TaskContext
from tfm.pipeline.training.assembly.num_updates import last_step, step_after_epoch

ASSUMED_PADDING_SHARE = 0.03
ASSUMED_TOKEN_WEIGHTED_LENGTH = 1.3
"""The mean length of the sentence that a token is in, in mean lengths: long sentences have more of the tokens."""
SPARE_MEMORY_SHARE = 0.1
"""Share of a device's memory that its driver and buffers take."""
JOULES_PER_KWH = 3.6e6


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
        is_exact: whether all of it was counted, not assumed.
    """

    rows: int
    source_tokens: int
    target_tokens: int
    padding: float
    updates: int
    updates_per_epoch: int
    is_exact: bool


@dataclass(frozen=True)
class RunPlan:
    """A plan.

    Args:
        name: of the run.
        on: the devices.
        num_devices: their number.
        corpus: the training data.
        parameters: the number of weights.
        memory: bytes on one device by holder; measured where the device is this machine.
        memory_limit: bytes that one device has.
        flop_per_update: floating-point operations of an update.
        seconds: by stage.
        disk: bytes, by what is kept.
        assumptions: what is not measured or counted, in words.
        remedies: keys that would make it fit; empty where it does.
        energy_kwh: of the devices; None where their power is not known.
        cost: in the currency of the price; None where none was given.
    """

    name: str
    on: str
    num_devices: int
    corpus: CorpusSize
    parameters: int
    memory: Mapping[str, float]
    memory_limit: float
    flop_per_update: float
    seconds: Mapping[str, float]
    disk: Mapping[str, float]
    assumptions: tuple[str, ...]
    remedies: tuple[str, ...] = field(default=())
    energy_kwh: float | None = None
    cost: float | None = None

    @property
    def total_memory(self) -> float:
        """Bytes on one device."""
        return sum(self.memory.values())

    @property
    def total_seconds(self) -> float:
        """Seconds of all stages."""
        return sum(self.seconds.values())

    def as_json(self) -> dict[str, Any]:
        """Return all of it as JSON."""
        totals = {"total_memory": self.total_memory, "total_seconds": self.total_seconds}
        return {**asdict(self), **totals, "fits": not self.remedies}


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
        remedy = "make it with `tfm tokenize` and `tfm preprocess` with the same recipe, or give --pairs and --tokens"
        raise DataError(f"there is no dataset to count yet: {remedy}", file=folder)
    data = read_artifact(folder, lambda _: load_dataset(folder))
    source, target = load_tokenizer_pair(data.tokenizer_folder)
    context = TaskContext(recipe.training, recipe.model, source, target, data.batch_tokens)
    task = make_task(context)
    epochs = task.epochs(data.train, data.batch_tokens, recipe.seed)
    updates = last_step(recipe.training, epochs.num_batches, num_processes)
    per_epoch = step_after_epoch(epochs.num_batches(0), 0, recipe.training, num_processes)
    if recipe.model.block is not None:  # windows of a running text are filled, but for a few tokens at its ends
        windows = sum(map(len, epochs(0)))
        tokens = windows * recipe.model.block
        found = CorpusSize(windows, tokens, tokens, 0.0, updates, per_epoch, is_exact=True)
        return found, source.vocab_size, target.vocab_size
    rows = np.concatenate([np.asarray(batch) for batch in epochs(0)])
    positions = 0
    columns = data.train.source_lengths, data.train.target_lengths
    for batch in epochs(0):
        positions += sum(int((column[batch] + 1).max()) * len(batch) for column in columns)
    sources, targets = (int((column[rows] + 1).sum()) for column in columns)
    padding = 1 - (sources + targets) / positions if positions else 0.0
    found = CorpusSize(len(rows), sources, targets, padding, updates, per_epoch, is_exact=True)
    return found, source.vocab_size, target.vocab_size


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


def assume_corpus_and_vocabularies(
    recipe: Recipe, pairs: int, tokens: float, num_processes: int
) -> tuple[CorpusSize, int, int]:
    """Return a corpus of so many rows, with sides of so many tokens on average, and the sizes of its vocabularies."""
    total = round(pairs * (tokens + 1))
    batches = math.ceil(total / (recipe.data.batch_tokens * (1 - ASSUMED_PADDING_SHARE)))
    updates = last_step(recipe.training, lambda _: batches, num_processes)
    per_epoch = step_after_epoch(batches, 0, recipe.training, num_processes)
    corpus = CorpusSize(pairs, total, total, ASSUMED_PADDING_SHARE, updates, per_epoch, is_exact=False)
    return corpus, recipe.tokenizer.vocab_size, recipe.tokenizer.vocab_size


def make_plan(
    recipe: Recipe,
    corpus: CorpusSize,
    vocabularies: tuple[int, int],
    devices: tuple[int, DeviceSpec] | None,
    measured: ShortTrainingMeasurement | None,
    *,
    price: float | None,
) -> RunPlan:
    """Make the plan of a run.

    Args:
        recipe: the recipe.
        corpus: its training data.
        vocabularies: the number of pieces of source and target.
        devices: their number and kind; None for this machine.
        measured: what was measured on this machine; None for another one.
        price: of a device and hour; None for none.

    Raises:
        RecipeError: the model is too large for any machine, or reads images.
    """
    if recipe.data.images is not None or TASK_SPECS[recipe.model.task].within_window:
        raise RecipeError("tfm plan counts models of texts: images and word vectors have other costs")
    config, model = recipe.training, recipe.model
    try:
        shapes = model_weight_shapes(model, source_vocab=vocabularies[0], target_vocab=vocabularies[1])
    except ValueError as error:
        raise RecipeError(f"the model cannot be built: {error}") from None
    parameters, number = num_parameters(shapes), 1 if devices is None else devices[0]
    sizes = _update_sizes(recipe, corpus, number)
    flop = flop_of_update(shapes, model, sizes, vocabularies[1])
    half = devices is not None and devices[1].precision != "fp32"
    memory = memory_by_use(parameters, model, config, sizes, vocabularies[1], low_precision=half)
    assumptions = [] if corpus.is_exact else [f"rows and lengths as given, {ASSUMED_PADDING_SHARE:.0%} padding"]
    if measured is not None:
        memory = measured.split_peak_memory(memory)
        limit, seconds = (
            measured.memory_limit,
            measured.training_seconds(corpus.updates, num_validations(recipe, corpus)),
        )
        written = ", whose translations are as long as the references" if translates_in_validation(recipe) else ""
        timed = f"training from {measured.updates} measured updates and a validation{written}"
        assumptions.append(f"{timed}; {measured.uncounted_costs_note}")
    else:
        assert devices is not None
        device = devices[1]
        share = ASSUMED_PEAK_SHARES[device.precision]
        limit = device.memory * (1 - SPARE_MEMORY_SHARE)
        seconds = {"train": corpus.updates * flop / (number * device.peak * share)}
        assumptions.append(
            f"{share:.0%} of {device.name}'s peak of {device.peak / 1e12:g} TFLOP/s ({device.precision}; "
            f"{device.source}); memory of activations by a count of what layers keep; the other stages are not planned"
        )
    hours = sum(seconds.values()) / 3600
    watts = None if devices is None else devices[1].watts * number
    return RunPlan(
        recipe.name,
        "this" if devices is None else f"{number} x {devices[1].name}",
        number,
        corpus,
        parameters,
        memory,
        limit,
        flop,
        seconds,
        _disk_bytes(recipe, corpus, parameters),
        tuple(assumptions),
        _memory_saving_keys(recipe, memory, limit),
        None if watts is None else watts * hours * 3600 / JOULES_PER_KWH,
        None if price is None else price * hours * number,
    )


def _update_sizes(recipe: Recipe, corpus: CorpusSize, number: int) -> UpdateSizes:
    """The sizes of an update: real tokens of all batches that it takes, and lengths."""
    per_update = recipe.training.accumulate * number
    larger = max(corpus.source_tokens, corpus.target_tokens, 1)
    share = recipe.data.batch_tokens * (1 - corpus.padding) * per_update / larger
    rows = max(corpus.rows, 1)
    return UpdateSizes(
        corpus.source_tokens * share,
        corpus.target_tokens * share,
        ASSUMED_TOKEN_WEIGHTED_LENGTH * corpus.source_tokens / rows,
        ASSUMED_TOKEN_WEIGHTED_LENGTH * corpus.target_tokens / rows,
        recipe.data.batch_tokens,
    )


def num_validations(recipe: Recipe, corpus: CorpusSize) -> int:
    """The number of validations of a training that does not stop early."""
    validation = recipe.training.validation
    if validation.every_steps is not None:
        return max(1, math.ceil(corpus.updates / validation.every_steps))
    return max(1, math.ceil(corpus.updates / ((validation.every_epochs or 1) * max(corpus.updates_per_epoch, 1))))


def _disk_bytes(recipe: Recipe, corpus: CorpusSize, parameters: int) -> dict[str, float]:
    """Bytes that the artifacts of a run take, by name."""
    keep = recipe.training.keep
    checkpoints = keep.last + keep.best
    return {
        "dataset": 4.0 * (corpus.source_tokens + corpus.target_tokens) + 16.0 * corpus.rows,
        "checkpoints": 12.0 * parameters * checkpoints,
        "model": 4.0 * parameters,
    }


def _memory_saving_keys(recipe: Recipe, memory: Mapping[str, float], limit: float) -> tuple[str, ...]:
    """Keys that would make a run fit into the memory of a device; empty where it does."""
    excess = sum(memory.values()) - limit
    if excess <= 0:
        return ()
    activations = memory["activations"]
    if excess < activations:
        parts = math.ceil(activations / (activations - excess))
        smaller = max(1, recipe.data.batch_tokens // parts)
        return (f"data.batch_tokens = {smaller}, training.accumulate = {recipe.training.accumulate * parts}",)
    named = 'training.optimizer.name = "sgd", momentum = 0 (frees the optimizer\'s memory)'
    return (named, "model.encoder.dim, model.decoder.dim, layers, tokenizer.vocab_size: smaller")
