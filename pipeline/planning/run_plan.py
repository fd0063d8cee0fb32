"""Prediction of the costs of a run: sizes of data and model, memory, operations, time, disk, energy, money."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from tfm.pipeline.artifacts.artifact import open_artifact
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.model_io.model_folder import resolve_model_folder
from tfm.pipeline.model_io.model_weights import model_parameter_shapes
from tfm.pipeline.planning.corpus_size import (
    ASSUMED_PADDING_SHARE,
    CorpusSize,
    batches_and_epochs,
    num_validations,
    recipe_image_shape,
    translates_in_validation,
)
from tfm.pipeline.planning.costs import (
    FLOAT_BYTES,
    memory_by_use,
    num_optimizer_numbers,
    num_parameters,
    num_trained_parameters,
)
from tfm.pipeline.planning.devices import ASSUMED_PEAK_SHARES, DeviceSpec
from tfm.pipeline.planning.measurement import ShortTrainingMeasurement
from tfm.pipeline.planning.operations import UpdateSizes, flop_of_update
from tfm.pipeline.recipes.recipe import Recipe
from tfm.pipeline.runtime.devices import resolve_device
from tfm.pipeline.tasks.abilities import TASK_SPECS
from tfm.pipeline.tasks.translation import num_flat_rows
from tfm.pipeline.training.assembly.word2vec import uses_online_updates
from tfm.pipeline.training.checkpoints.train_state import ExecutionSettings
from tfm.pipeline.training.init_from import config_from_pretrained
from tfm.pipeline.training_config import TrainingConfig

SPARE_MEMORY_SHARE = 0.1
"""Share of a device's memory that its driver and buffers take."""
JOULES_PER_KWH = 3.6e6


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
        remedies: keys that would make it fit; empty if it does.
        stale_data: which artifact of the data `tfm run` would make again, and why; None if all are up to date.
        energy_kwh: of the devices; None if their power is not known.
        cost: in the currency of the price; None if none was given.
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
    stale_data: str | None = None
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


def with_starting_model(recipe: Recipe) -> Recipe:
    """Return the recipe with the model that its training has: where that starts from another, with the shape of that.

    Raises:
        DataError: there is no such model.
        RecipeError: the recipe names another shape.
    """
    if recipe.training.init_from is None:
        return recipe
    first = open_artifact(resolve_model_folder(Path(recipe.training.init_from)), "train")
    return recipe.model_copy(update={"model": config_from_pretrained(first, recipe.model)})


def make_plan(
    recipe: Recipe,
    corpus: CorpusSize,
    vocabularies: tuple[int, int],
    devices: tuple[int, DeviceSpec] | None,
    measurement: ShortTrainingMeasurement | None,
    *,
    price: float | None,
    stale_data: str | None = None,
) -> RunPlan:
    """Make the plan of a run.

    Args:
        recipe: the recipe.
        corpus: its training data.
        vocabularies: the number of pieces of source and target.
        devices: their number and kind; None for this machine.
        measurement: of a short training on this machine; None for another machine.
        price: of a device and hour; None for none.
        stale_data: as `RunPlan` has it.

    Raises:
        RecipeError: the model is too large for any machine.
    """
    config, model, image = recipe.training, recipe.model, recipe_image_shape(recipe)
    try:
        source, target = vocabularies
        shapes = model_parameter_shapes(model, source_vocab=source, target_vocab=target, image=image)
    except ValueError as error:
        raise RecipeError(f"the model cannot be built: {error}") from None
    parameters, number = num_parameters(shapes), 1 if devices is None else devices[0]
    sizes = update_sizes(corpus, config)
    flop = flop_of_update(shapes, model, config, sizes, vocabularies[1], image)
    low_precision = devices is not None and config.precision != "fp32" and devices[1].precision != "fp32"
    counted_memory = memory_by_use(
        shapes, model, config, sizes, vocabularies[1], low_precision=low_precision, num_devices=number, image=image
    )
    if measurement is not None:
        resources = _measured_resources(measurement, recipe, corpus, counted_memory, number)
    else:
        assert devices is not None
        resources = _assumed_resources(devices[1], config, counted_memory, corpus.updates * flop / number)
    memory, limit, seconds, basis = resources
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
        _disk_bytes(recipe, corpus, shapes),
        (*_assumptions_about_data(recipe, corpus), *basis),
        _memory_saving_keys(recipe, corpus, memory, limit, number),
        stale_data,
        None if watts is None else watts * hours * 3600 / JOULES_PER_KWH,
        None if price is None else price * hours * number,
    )


class Resources(NamedTuple):
    """Memory and time of a run on one kind of machine.

    Args:
        memory: bytes on one device by holder.
        limit: bytes that one device has.
        seconds: by stage.
        basis: how these were found, in words.
    """

    memory: Mapping[str, float]
    limit: float
    seconds: Mapping[str, float]
    basis: list[str]


def _measured_resources(
    measurement: ShortTrainingMeasurement, recipe: Recipe, corpus: CorpusSize, memory: dict[str, float], number: int
) -> Resources:
    """The resources of a run on this machine, by a short training.

    Args:
        measurement: of the short training.
        recipe: the recipe.
        corpus: its training data.
        memory: counted bytes on one device by holder.
        number: of devices.
    """
    if _takes_steps_without_gradient(recipe, corpus):
        memory = memory | {"gradients": 0.0, "activations": 0.0}
    batches, _ = batches_and_epochs(recipe.training, lambda _: corpus.batches_per_epoch, measurement.updates, number)
    updates = corpus.updates * corpus.batches_per_update * measurement.updates / batches
    seconds = measurement.training_seconds(updates, num_validations(recipe, corpus))
    translations_note = ", whose translations are as long as the references" if translates_in_validation(recipe) else ""
    basis = f"training from {measurement.updates} measured updates and a validation{translations_note}"
    memory = measurement.split_peak_memory(memory)
    return Resources(memory, measurement.memory_limit, seconds, [f"{basis}; {measurement.uncounted_costs_note}"])


def _assumed_resources(
    device: DeviceSpec, config: TrainingConfig, memory: dict[str, float], flop_per_device: float
) -> Resources:
    """The resources of a run on devices that are not here.

    Args:
        device: their kind.
        config: the [training] part of a recipe.
        memory: counted bytes on one device by holder.
        flop_per_device: floating-point operations of the whole training on each of them.
    """
    share = ASSUMED_PEAK_SHARES[device.precision]
    basis = [
        f"{share:.0%} of {device.name}'s peak of {device.peak / 1e12:g} TFLOP/s ({device.precision}; "
        f"{device.source}); memory of activations by a count of what layers keep; the other stages are not planned"
    ]
    if config.precision not in ("auto", device.precision):
        time_note = f"the time is that of {device.precision}, the only peak known of {device.name}"
        basis.append(f"training.precision = {config.precision} takes another time: {time_note}")
    limit = device.memory * (1 - SPARE_MEMORY_SHARE)
    return Resources(memory, limit, {"train": flop_per_device / (device.peak * share)}, basis)


def _assumptions_about_data(recipe: Recipe, corpus: CorpusSize) -> list[str]:
    """Assumptions in place of what is not counted of the data, in words."""
    config, model, words = recipe.training, recipe.model, recipe.model.word_vectors
    assumptions = [] if corpus.is_exact else [f"rows and lengths as given, {ASSUMED_PADDING_SHARE:.0%} padding"]
    if config.bpe_dropout is not None or config.unigram_alpha is not None:
        assumptions.append("tokens of the dataset: sampled pieces are more, and take more operations and memory")
    if config.batch_tokens == "auto":
        assumptions.append(f"batches of {corpus.batch_tokens:,} tokens: what fits is found when the training begins")
    if model.has_adaptive_tails:
        assumptions.append("each prediction takes all clusters of the adaptive softmax: it takes the first and its own")
    if TASK_SPECS[model.task].within_window and words.subsample is not None and not corpus.is_exact:
        assumptions.append("no word is dropped: model.word_vectors.subsample leaves fewer predictions")
    return assumptions


def _takes_steps_without_gradient(recipe: Recipe, corpus: CorpusSize) -> bool:
    """Whether word vectors take a step for each prediction on this machine, as word2vec does."""
    device = resolve_device(recipe.training.device).type
    settings = ExecutionSettings(
        device=device, precision="fp32", threads=1, world_size=1, batch_tokens=corpus.batch_tokens
    )
    return uses_online_updates(recipe.model, recipe.training, settings)


def update_sizes(corpus: CorpusSize, config: TrainingConfig) -> UpdateSizes:
    """Return the sizes of an update: tokens of all batches that it takes, and lengths. Flat batches have filler, which
    takes every product of a token, and attends to nothing.

    Args:
        corpus: the training data.
        config: the [training] part of a recipe.
    """
    share = corpus.epochs / corpus.updates
    sizes = UpdateSizes(
        corpus.source_tokens * share,
        corpus.target_tokens * share,
        corpus.predictions * share,
        corpus.source_length,
        corpus.target_length,
        corpus.batch_tokens,
        corpus.rows * share,
    )
    if config.layout != "flat":
        return sizes
    flat_tokens = num_flat_rows(corpus.batch_tokens) * corpus.batches_per_update
    return replace(
        sizes,
        source_tokens=flat_tokens,
        target_tokens=flat_tokens,
        predictions=flat_tokens,
        source_length=sizes.source_length * sizes.source_tokens / flat_tokens,
        target_length=sizes.target_length * sizes.target_tokens / flat_tokens,
    )


def _disk_bytes(recipe: Recipe, corpus: CorpusSize, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, float]:
    """Bytes that the artifacts of a run take, by name."""
    config, parameters = recipe.training, num_parameters(shapes)
    averages = num_trained_parameters(shapes, config) if config.ema is not None else 0
    checkpoint = FLOAT_BYTES * (parameters + num_optimizer_numbers(shapes, config) + averages)
    image = recipe_image_shape(recipe)
    pixels = None if image is None else image.height * image.width * image.channels
    sources = FLOAT_BYTES * corpus.source_tokens if pixels is None else pixels * corpus.rows
    assumed = float(sources + FLOAT_BYTES * corpus.target_tokens + 16 * corpus.rows)
    return {
        "dataset": assumed if corpus.dataset_bytes is None else float(corpus.dataset_bytes),
        "checkpoints": float(checkpoint * (config.keep.last + config.keep.best)),
        "model": 4.0 * parameters,
    }


def _memory_saving_keys(
    recipe: Recipe, corpus: CorpusSize, memory: Mapping[str, float], limit: float, num_devices: int
) -> tuple[str, ...]:
    """Keys that would make a run fit into the memory of a device; empty if it does."""
    excess = sum(memory.values()) - limit
    if excess <= 0:
        return ()
    config, activations = recipe.training, memory["activations"]
    if excess < activations:
        parts = math.ceil(activations / (activations - excess))
        batch_tokens = max(1, corpus.batch_tokens // parts)
        key = "data.batch_tokens" if config.batch_tokens is None else "training.batch_tokens"
        return (f"{key} = {batch_tokens}, training.accumulate = {config.accumulate * parts}",)
    keys = ['training.optimizer.name = "sgd", momentum = 0 (frees the optimizer\'s memory)']
    if num_devices > 1 and config.shard == "none":
        keys.insert(0, 'training.shard = "full" (each device keeps a part of weights, gradients and optimizer)')
    return (*keys, "model.encoder.dim, model.decoder.dim, layers, tokenizer.vocab_size: smaller")
