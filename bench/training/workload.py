"""The workload of `python -m bench train`: a dataset, a model's size, a number of updates. Does not import torch."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count, islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pydantic import BaseModel

from bench.kernels.flops import TokenCounts, training_flops
from tfm.data.arrays import Ints
from tfm.data.artifact_tokenizers import load_tokenizer_pair
from tfm.data.batching.buckets import make_batches, padding_share
from tfm.data.dataset.split import Dataset
from tfm.data.dataset.store import load_dataset
from tfm.model.config import ModelConfig
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.recipes.recipe import load_recipe
from tfm.pipeline.recipes.section_validation import section_from_flags
from tfm.pipeline.recipes.unused_keys.check import find_unused_keys
from tfm.pipeline.recipes.unused_keys.table import UNUSED_KEYS_RULES
from tfm.pipeline.training_config import TrainingConfig

SEED = 1


@dataclass(frozen=True)
class ModelSize:
    """The size of the model that a peer builds: as many encoder as decoder layers, one width, one dropout."""

    layers: int
    dim: int
    heads: int
    inner: int
    norm_first: bool
    dropout: float
    smoothing: float
    vocab: int

    @classmethod
    def from_config(cls, model: ModelConfig, config: TrainingConfig, vocab: int) -> "ModelSize":
        """Raises RecipeError for a model that peers do not have."""
        stack = model.encoder
        if model.architecture != "transformer":
            raise RecipeError(
                f"peers train Transformers and recurrent models, not model.architecture = {model.architecture}"
            )
        if model.decoder != stack or model.tie != "all" or model.embedding_dim not in (None, stack.dim):
            raise RecipeError(
                "peers train models of equal encoder and decoder, with one table of embeddings (tie = all)"
            )
        norm_first, dropout = model.norm == "pre", model.dropout.residual
        sizes = (stack.layers, stack.dim, stack.heads, stack.feed_forward_dim)
        return cls(*sizes, norm_first, dropout, config.label_smoothing, vocab)


@dataclass(frozen=True)
class RecurrentSize:
    """The size of a recurrent model that peers train: an LSTM on each side, in one direction, Luong's attention."""

    layers: int
    dim: int
    embedding_dim: int
    dropout: float
    smoothing: float
    vocab: int

    @classmethod
    def from_config(cls, model: ModelConfig, config: TrainingConfig, vocab: int) -> "RecurrentSize":
        """Raises RecipeError for a model that peers do not have."""
        stack, recurrent = model.encoder, model.recurrent
        sides = {(each.layers, each.dim) for each in (stack, model.decoder)}
        parts = recurrent.cell, recurrent.normalization, recurrent.attention, model.score, model.decoder.heads
        if (
            len(sides) > 1
            or model.tie != "all"
            or recurrent.bidirectional
            or parts != ("lstm", "none", "luong", "general", 1)
        ):
            raise RecipeError(
                "peers train LSTMs of equal encoder and decoder, in one direction, with Luong's attention, its score "
                "`general` and one head, and one table of embeddings (tie = all)"
            )
        width = model.embedding_dim or stack.dim
        return cls(stack.layers, stack.dim, width, model.dropout.residual, config.label_smoothing, vocab)


@dataclass(frozen=True)
class Workload:
    """One dataset and one number of updates for all contestants; the first `warmup` of them do not count."""

    dataset: Path
    model: ModelConfig
    config: TrainingConfig
    warmup: int
    steps: int
    device: str = "cpu"

    @cached_property
    def data(self) -> Dataset:
        return load_dataset(self.dataset)

    @cached_property
    def vocab(self) -> int:
        """Pieces of the target's vocabulary, control tokens counted."""
        return load_tokenizer_pair(self.data.tokenizer_folder)[1].vocab_size

    @cached_property
    def source_vocab(self) -> int:
        """Pieces of the vocabulary that is read: the source's, or the target's if there is no source."""
        side = int(self.model.task == "language_model")
        return load_tokenizer_pair(self.data.tokenizer_folder)[side].vocab_size

    @cached_property
    def lengths(self) -> list[tuple[int, int]]:
        """(source, target) tokens of each training pair, end tokens counted."""
        train = self.data.train
        return list(zip((train.source_lengths + 1).tolist(), (train.target_lengths + 1).tolist(), strict=True))

    def flops_a_token(self, model: ModelConfig) -> float:
        """FLOP of training for each target token. Raises RecipeError for a model whose FLOP are not counted."""
        work = TokenCounts.from_lengths(self.lengths)
        return training_flops(model, self.vocab, work) / work.target

    @cached_property
    def has_flops(self) -> bool:
        """Whether the FLOP of this model are counted."""
        try:
            self.flops_a_token(self.model)
        except RecipeError:
            return False
        return True

    def padding(self) -> float:
        """Share of padded positions in our batches that count, were they padded."""
        lengths = self.data.train.source_lengths + 1, self.data.train.target_lengths + 1
        batches = islice(rows_of_batches(self.data), self.warmup, self.warmup + self.steps)
        return padding_share(list(batches), *lengths)

    def sentences_a_batch(self) -> int:
        """For who counts sentences: so many as fill the budget on average."""
        longer = [max(pair) for pair in self.lengths]
        return max(self.data.batch_tokens * len(longer) // sum(longer), 1)


def venv_python(venv: Path | None) -> Path:
    """The Python of a virtual environment, or our own."""
    return Path(sys.executable) if venv is None else venv.absolute() / "bin" / "python"


def rows_of_batches(data: Dataset) -> Iterator[Ints]:
    """The batches of `tfm train`, epoch after epoch."""
    lengths = data.train.source_lengths + 1, data.train.target_lengths + 1
    for epoch in count():
        yield from make_batches(*lengths, budget=data.batch_tokens, seed=SEED, epoch=epoch)


def read_configs(recipe: Path | None, sets: Sequence[str]) -> tuple[ModelConfig, TrainingConfig]:
    """[model] and [training] of a recipe, or of the defaults, with `sets` over them."""
    if recipe is not None:
        full_recipe = load_recipe(recipe, sets)
        model, training = full_recipe.model, full_recipe.training
    else:
        model = section_from_flags(ModelConfig, {}, sets, other_sections=("training",))
        training = section_from_flags(TrainingConfig, {}, sets, other_sections=("model",))
    if training.batch_tokens is not None:
        raise RecipeError("training.batch_tokens: all contestants have the dataset's, so omit it")
    return model, training


def set_options(parts: Mapping[str, BaseModel]) -> list[str]:
    """Parts of a recipe, by name, as the words of `--set` options, but for keys from a parent that change nothing."""
    unused = {key for key, _ in find_unused_keys(SimpleNamespace(**parts), UNUSED_KEYS_RULES)}
    content = {part: config.model_dump(mode="json", exclude_defaults=True) for part, config in parts.items()}
    return [word for key, value in _leaves(content) if key not in unused for word in ("--set", f"{key}={_text(value)}")]


def _leaves(content: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in content.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _text(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_text, value))}]"
    return str(value).lower() if isinstance(value, bool) else str(value)
