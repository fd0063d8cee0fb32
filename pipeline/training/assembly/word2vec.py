"""Training of word vectors as word2vec has it: each prediction takes a step of SGD by itself, in a compiled loop.

The equations are in `model/cpu_kernels/word2vec.py`. An update is the steps of a batch, all with the update's learning
rate; draws follow from (seed, step, row), as those of every update.

Each of several processes takes the steps of its own batches, from the same weights. Then each row of the weights moves
by the mean d of the ways that it went in the P processes, c times:

    W <- W + c d,    c = (1 - exp(-P s)) / (1 - exp(-s)),    s = rate * CURVATURE * k

with k the steps that a process takes on the row, on average. One process after the other would go so: a step leaves
exp(-rate * CURVATURE) of a row's way to its minimum, so that the second process finds exp(-s) of the way of the first.
For a rare word c is P, and all ways are added up; a frequent one has arrived in each process, and c is 1, as P times
its way would be too far.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from tfm.data.batching.example_keys import count_earlier_occurrences, example_rng_keys
from tfm.data.dataset.split import Split
from tfm.data.errors import format_count
from tfm.model.config import ModelConfig
from tfm.model.cpu_kernels.dispatch import load_kernel_module
from tfm.model.layers.counter_rng import counter_hash
from tfm.model.word_vectors import PREDICTION_RULES
from tfm.pipeline.distribution import install_command
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.runtime.distributed import World
from tfm.pipeline.tasks.task import Rows
from tfm.pipeline.tasks.word_vector_objectives import NOISE_POWER
from tfm.pipeline.tasks.word_vectors import keep_probability
from tfm.pipeline.training.checkpoints.train_state import ExecutionSettings
from tfm.pipeline.training.update import GradientComputer, PendingGradient
from tfm.pipeline.training_config import TrainingConfig
from tfm.tokenizer.special import SPECIAL_TOKENS

KERNEL_MODULE = "tfm.model.cpu_kernels.word2vec"
KERNEL_DTYPES = {torch.float32: "f4", torch.float64: "f8"}
CURVATURE = 0.1
"""Second derivative of the loss along a row of the weights: s(x) (1 - s(x)) times the square of the other vector's
length, as it is in the midst of a training."""


def trains_like_word2vec(model: ModelConfig, config: TrainingConfig) -> bool:
    """Return whether a recipe trains word vectors with noise words by SGD."""
    has_noise = model.architecture in PREDICTION_RULES and model.word_vectors.negatives is not None
    return has_noise and config.optimizer.name == "sgd"


def no_online_updates_reason(model: ModelConfig, config: TrainingConfig, settings: ExecutionSettings) -> str | None:
    """Return why such a training takes one step an update, along its mean gradient; None if it takes one for each
    prediction.

    Args:
        model: the [model] part of a recipe.
        config: the [training] part of a recipe.
        settings: the decisions of the first start.
    """
    optimizer = config.optimizer
    required_values = {
        "training.optimizer.momentum": (optimizer.momentum, 0.0),
        "training.optimizer.weight_decay": (optimizer.weight_decay, 0.0),
        "training.clip_norm": (config.clip_norm, None),
        "training.l1": (config.l1, 0.0),
        "training.l2": (config.l2, 0.0),
        "model.freeze_vectors": (model.freeze_vectors, False),
    }
    conflicts = [
        f"{key} = {'none' if required is None else required}"
        for key, (value, required) in required_values.items()
        if value != required
    ]
    if conflicts:
        return f"set {', '.join(conflicts)}"
    if settings.device != "cpu":
        return f"the loop is for CPUs, not for {settings.device}"
    if settings.num_gradient_workers:
        return 'set training.parallel = "threads": processes that share the loop are those of torchrun'
    return None


def uses_online_updates(model: ModelConfig, config: TrainingConfig, settings: ExecutionSettings) -> bool:
    """Return whether a training takes a step for each prediction.

    Args:
        model: the [model] part of a recipe.
        config: the [training] part of a recipe.
        settings: the decisions of the first start.
    """
    return trains_like_word2vec(model, config) and no_online_updates_reason(model, config, settings) is None


def other_updates_problem(
    model: ModelConfig,
    config: TrainingConfig,
    earlier: ExecutionSettings,
    settings: ExecutionSettings,
    num_processes: int,
) -> str | None:
    """Why a training of word vectors cannot go on so: it would take other steps; None if it can.

    Args:
        model: the [model] part of a recipe.
        config: the [training] part of a recipe.
        earlier: the decisions up to the checkpoint.
        settings: the decisions from now on.
        num_processes: the number of processes from now on.
    """
    was_online, is_online = (uses_online_updates(model, config, each) for each in (earlier, settings))
    if was_online == is_online and (not was_online or num_processes == earlier.world_size):
        return None
    kinds = "one step for each prediction", "one step an update"
    old_kind, new_kind = kinds if was_online else kinds[::-1]
    number = format_count(earlier.world_size, "process", "processes")
    remedy = f'resume it with {number} on {earlier.device}, with training.parallel = "{earlier.parallel}"'
    if was_online == is_online:
        return f"training of these word vectors merges the steps of {number}, and would merge others: {remedy}"
    return f"training of these word vectors began with {old_kind}, and would go on with {new_kind}: {remedy}"


@torch.no_grad()
def initialize_as_word2vec(model: Any) -> None:
    """Give word vectors such first weights as in gensim: v with the variance of numbers in (-1, 1) / D, all v' 0."""
    model.table.weight.div_((3 * model.table.embedding_dim) ** 0.5)  # from a variance of 1 / D to 1 / 3 D^2
    model.output.weight.zero_()


def merge_factors(rated_steps: Tensor, processes: int) -> Tensor:
    """Return how often each row of the weights moves by the mean of the ways that it went in several processes.

    Args:
        rated_steps: (V,) steps of a process on each row, times the learning rate.
        processes: their number, P.

    Returns:
        (V,) c, from 1 to P.
    """
    s = (CURVATURE * rated_steps).clamp(min=1e-12)
    return torch.expm1(-processes * s) / torch.expm1(-s)


class Word2vecGradientComputer(GradientComputer):
    """Object that takes the steps of an update when its gradient is asked for, with the optimizer's learning rate.

    Raises RecipeError if numba is not installed.
    """

    can_skip: ClassVar[bool] = False

    def __init__(
        self, model: Any, task: Any, split: Split, config: TrainingConfig, seed: int, world: World, optimizer: Any
    ) -> None:
        super().__init__(model, task, split, config, seed, world)
        loops, words, self.optimizer = load_kernel_module(KERNEL_MODULE), task.config, optimizer
        if loops is None:
            raise RecipeError(
                f'training.optimizer.name = "sgd": word vectors take their steps in loops of numba, which is not '
                f"installed: {install_command('fast')}, or set another optimizer"
            )
        architecture = "skip_gram" if model.reading is PREDICTION_RULES["skip_gram"] else "cbow"
        self.loop = loops.get_training_kernel(architecture, KERNEL_DTYPES[model.table.weight.dtype])
        self.table, shares = np.empty((len(model.frequencies), 2), np.uint32), model.frequencies.double().numpy()
        self.window = words.window, words.shrink, task.objective.negatives
        noise = shares**NOISE_POWER
        loops.get_alias_table_kernel()(noise / noise.sum(), self.table)
        self.every_word = (np.arange(len(shares)) >= len(SPECIAL_TOKENS)).astype(np.float64)
        self.keep = self.every_word
        if words.subsample is not None:
            self.keep = self.every_word * keep_probability(model.frequencies, words.subsample).double().numpy()
        kept_shares, negatives = torch.from_numpy(shares * self.keep), task.objective.negatives
        kept_shares, negative_shares = (
            kept_shares / kept_shares.sum().clamp(min=1e-300),
            torch.from_numpy(noise / noise.sum()),
        )
        self.steps_a_prediction = kept_shares * (1 + negatives), kept_shares + negatives * negative_shares

    def start_gradient(self, group: Sequence[Rows], step: int, *, stop: bool) -> PendingGradient:
        """Take the steps of an update, batch by batch.

        Args:
            group: the batches.
            step: number of the update.
            stop: whether this process wishes to stop.
        """
        total, count, update = 0.0, 0, counter_hash(self.seed, step)
        weights = [each.weight.detach() for each in (self.model.table, self.model.output)]
        starts = [each.clone() for each in weights] if self.world.size > 1 else []
        batches = list(zip(group, count_earlier_occurrences(group), strict=True))
        for _, (rows, repeats) in self.world.shard_items(batches):
            keys = example_rng_keys(update, rows, repeats)
            loss, num_losses = self._run_steps(rows, keys, self.keep)
            if not num_losses:  # an empty batch would teach nothing, so it is read whole
                loss, num_losses = self._run_steps(rows, keys, self.every_word)
            total, count = total + loss, count + num_losses
        sums = torch.tensor([total, total, count, float(stop), 0.0], dtype=torch.float64)
        if self.world.size > 1:
            self.world.all_reduce_sum(sums)
            self._merge_steps(weights, starts, sums[2], min(len(group), self.world.size))
        return PendingGradient(sums, sums.tolist, None, self.world)

    def _merge_steps(self, weights: Sequence[Tensor], starts: Sequence[Tensor], count: Tensor, processes: int) -> None:
        """Move the weights of all processes to the same place.

        Args:
            weights: (V, D) v and (V, D) v', where the steps of this process have led; changed.
            starts: the same before.
            count: () predictions of all processes.
            processes: number of those that had a batch.
        """
        movements = torch.stack([end - start for end, start in zip(weights, starts, strict=True)])
        self.world.all_reduce_sum(movements)
        for end, start, movement, steps in zip(weights, starts, movements, self.steps_a_prediction, strict=True):
            factors = merge_factors(self._learning_rate() * steps * count / processes, processes)
            torch.addcmul(start, movement, (factors / processes).to(movement.dtype)[:, None], out=end)

    def _learning_rate(self) -> float:
        rate: float = self.optimizer.param_groups[0]["lr"]
        return rate

    def _run_steps(self, rows: Rows, keys: Any, keep: Any) -> tuple[float, int]:
        """Take the steps of the texts of a batch; return the sum of the losses and their number."""
        ids, lengths = self.split.target.take(rows)
        weights = (each.weight.detach().numpy() for each in (self.model.table, self.model.output))
        rate = self._learning_rate()
        result: tuple[float, int] = self.loop(ids, lengths, keys, *weights, keep, self.table, *self.window, rate)
        return result
