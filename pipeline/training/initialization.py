"""Initial weights that are not random: those of another model, of the task, and of pretrained word vectors."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from tfm.data.dataset.split import Dataset
from tfm.data.errors import DataError, format_share
from tfm.model.config import ModelConfig
from tfm.model.layers.lora import split_adapters
from tfm.model.word_vectors import embedding_table
from tfm.pipeline.model_io.loaded_model import LoadedModel, load_model
from tfm.pipeline.model_io.model_weights import check_shapes_match, drop_shared_tensors
from tfm.pipeline.model_io.pretrained_vectors import read_wanted_vectors, vector_paths
from tfm.pipeline.runtime.progress import Reporter
from tfm.pipeline.tasks.task import Task, TaskContext
from tfm.pipeline.training.checkpoints.train_state import TrainState
from tfm.pipeline.training.init_from import loads_all_weights
from tfm.tokenizer.growth.extension import segment_new_pieces_by_old
from tfm.tokenizer.special import SPECIAL_TOKENS
from tfm.tokenizer.tokenizer import Tokenizer

ENCODER_MODULES = ("embedding", "encoder", "encoder_norm")


def initialize_for_task(state: TrainState, task: Task, context: TaskContext, data: Dataset, reporter: Reporter) -> None:
    """Set the initial weights of a new training that the task or pretrained word vectors give.

    Args:
        state: changed in place.
        task: the task.
        context: the facts from which the task was made.
        data: the dataset.
        reporter: receives messages.

    Raises:
        DataError: the word vectors do not fit.
    """
    task.prepare_model(state.model, data)
    for side, path in vector_paths(context.model).items():
        tokenizer = context.source if side == "source" else context.target
        table = embedding_table(state.model, side)
        assert isinstance(table, nn.Embedding)  # adaptive inputs are refused when the recipe is read
        num_found = load_word_vectors(
            table, tokenizer, read_wanted_vectors(path, side, table.embedding_dim, piece_spellings(tokenizer))
        )
        if not num_found:
            raise DataError(f"has a vector for no piece of the {side}: is it of another language or case?", file=path)
        note = ", without training" if side in context.model.frozen_vector_sides else ""
        num_pieces = tokenizer.vocab_size - len(SPECIAL_TOKENS)
        start = format_share(num_found, num_pieces, f"{side} piece", "starts", "start")
        reporter.line(f"training: {start} from {path}{note}")
    if state.ema is not None:
        state.ema.load(drop_shared_tensors(state.model.state_dict()))


def load_pretrained(
    state: TrainState, model: ModelConfig, pretrained: Path, tokenizers: tuple[Tokenizer, Tokenizer], reporter: Reporter
) -> None:
    """Give a new training the weights of a published model: all, or of another task's all but its head.

    Args:
        state: changed in place.
        model: the [model] part of a recipe.
        pretrained: the folder of the published model.
        tokenizers: of source and target, those of that model or extended ones; a row of a new piece is the mean of the
            rows of the pieces whose place it takes.
        reporter: receives messages.
    """
    loaded, (state_dict, adapters) = load_model(pretrained, "cpu"), split_adapters(state.model.state_dict())
    body, pretrained_weights = drop_shared_tensors(state_dict), drop_shared_tensors(loaded.model.state_dict())
    all_weights = loads_all_weights(loaded.config, model)
    if not all_weights:
        body, pretrained_weights = encoder_weights(body), encoder_weights(pretrained_weights)
    num_new = resize_embeddings(pretrained_weights, body, loaded, tokenizers, model, all_weights=all_weights)
    shapes, pretrained_shapes = ({n: tuple(w.shape) for n, w in each.items()} for each in (body, pretrained_weights))
    check_shapes_match(shapes, pretrained_shapes, pretrained)
    with torch.no_grad():
        for name, tensor in body.items():
            tensor.copy_(pretrained_weights[name])
    description = f"all weights of {pretrained}" if all_weights else f"the encoder of {pretrained}"
    head_note = "" if all_weights else "; its head is initialized at random"
    reporter.line(f"training: begins with {description} ({loaded.config.task}){head_note}")
    if num_new:
        begin = "1 new piece begins" if num_new == 1 else f"{num_new:,} new pieces begin"
        reporter.line(f"training: {begin} as the mean of the old pieces that it replaces")
    if adapters:
        num_trained, count = (sum(each.numel() for each in group.values()) for group in (adapters, body))
        share = f"{100 * num_trained / count:.1f} % of the {count:,} that stay"
        reporter.line(f"training: {num_trained:,} weights of adapters are trained, {share}")
    if state.ema is not None:
        state.ema.load(drop_shared_tensors(state.model.state_dict()))


def resize_embeddings(
    pretrained_weights: dict[str, Tensor],
    network_weights: Mapping[str, Tensor],
    loaded: LoadedModel,
    tokenizers: tuple[Tokenizer, Tokenizer],
    model: ModelConfig,
    *,
    all_weights: bool,
) -> int:
    """Give the weights of a model rows for the new pieces of the network `network_weights`.

    Args:
        pretrained_weights: the weights of the model, changed in place.
        network_weights: the weights of the network.
        loaded: the model.
        tokenizers: of source and target of the network.
        model: the [model] part of a recipe.
        all_weights: whether all weights are used, or those of the encoder alone.

    Returns:
        The number of new pieces of the side with most of them.
    """
    sides = (("source", loaded.source_tokenizer, tokenizers[0]), ("target", loaded.target_tokenizer, tokenizers[1]))
    embedded_sides = () if loaded.images is not None and not all_weights else sides[: 2 if all_weights else 1]
    new_pieces = {
        side: segment_new_pieces_by_old(new, old)
        for side, old, new in embedded_sides
        if new.vocab_size > old.vocab_size
    }
    only_source = not all_weights or model.only_stack == "encoder"
    for name, weight in pretrained_weights.items():
        if (
            name in network_weights and network_weights[name].shape[:1] != weight.shape[:1]
        ):  # what has a row for each piece
            is_source = name.startswith("source_") or (only_source and name.startswith("embedding"))
            pretrained_weights[name] = append_mean_rows(
                weight.to(network_weights[name]), new_pieces.get("source" if is_source else "target", [])
            )
    return max(map(len, new_pieces.values()), default=0)


def append_mean_rows(table: Tensor, pieces: Sequence[Sequence[int]]) -> Tensor:
    """Append to (V, ...) a row for each new piece: the mean of the rows of the old pieces that it replaces."""
    new = [table[list(ids)].double().mean(0) for ids in pieces]
    return torch.cat([table, torch.stack(new).to(table)]) if new else table


def encoder_weights(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights of a model's encoder and of the embedding that it reads, as a model with an encoder alone names them;
    a decoder's and a head's are left out."""
    encoder_names = {name.removeprefix("source_"): weight for name, weight in weights.items()}
    return {name: weight for name, weight in encoder_names.items() if name.partition(".")[0] in ENCODER_MODULES}


def piece_spellings(tokenizer: Tokenizer) -> set[str]:
    """Return the spellings of a vocabulary's pieces, without the space before a word."""
    return {tokenizer.surface(number).strip() for number in range(len(SPECIAL_TOKENS), tokenizer.vocab_size)}


@torch.no_grad()
def load_word_vectors(table: nn.Embedding, tokenizer: Tokenizer, vectors: Any) -> int:
    """Set the rows of pieces that spell a word which has a vector.

    Args:
        table: the embeddings, changed in place.
        tokenizer: the tokenizer of its side.
        vectors: the vectors by word.

    Returns:
        The number of rows set.
    """
    num_found = 0
    for number in range(len(SPECIAL_TOKENS), tokenizer.vocab_size):
        vector = vectors.get(tokenizer.surface(number).strip())
        if vector is not None:
            table.weight[number] = torch.from_numpy(vector)
            num_found += 1
    return num_found
