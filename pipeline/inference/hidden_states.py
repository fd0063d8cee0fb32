"""Hidden states: the vectors that the layers of a network make of a text, by piece, by word, or of the whole text.

    layer 0: the embedding with its positions      layer l: the output of layer l      by default: after the last norm

A recurrent layer in two directions gives [h forwards; h backwards], and has no norm after it.

Legend: n pieces, words or texts · N rows · D width.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tfm.data.errors import DataError
from tfm.model.layout import Layout
from tfm.model.recurrent.encoder_decoder import RecurrentEncoderDecoder
from tfm.model.transformer.language_prefix import LanguagePrefixModel
from tfm.pipeline.decoding.search.hypothesis import check_not_nan
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.model_io.loaded_model import LoadedModel
from tfm.pipeline.tasks.abilities import TASK_SPECS
from tfm.tokenizer.labels import split_words
from tfm.tokenizer.special import BOS_ID, EOS_ID

HiddenStateUnit = Literal["piece", "word", "text"]
HIDDEN_STATE_UNITS = get_args(HiddenStateUnit)
TEXTS_PER_BATCH = 32


@dataclass(frozen=True)
class HiddenStates:
    """The vectors of a text.

    Args:
        text: the text.
        tokens: its n pieces, as they stand inside of a text, or its words; or the text itself.
        vectors: (n, D), of each; that of a word, or of a text, is the mean of those of its pieces.
    """

    text: str
    tokens: list[str]
    vectors: NDArray[np.float32]


def encode_texts(
    loaded: LoadedModel, texts: Sequence[str], *, layer: int | None, unit: HiddenStateUnit
) -> list[HiddenStates]:
    """Compute the hidden states of texts in the encoder of a model, or in the layers of one that has a decoder alone.

    Tokens that stand before and after each text are read, and left out of the result.

    Args:
        loaded: a model that reads text.
        texts: the texts.
        layer: the number of the layer, 0 for the embedding; None: what the encoder or decoder gives at its end.
        unit: what has a vector: piece, word between spaces, or text.

    Raises:
        DataError: a text has no pieces, or is longer than the model reads.
        RecipeError: the model has no such layer, or no row for each piece.
    """
    _check_has_hidden_states(loaded)
    layers, last = _layer_stack(loaded)
    if layer is not None and layer > len(layers):
        raise RecipeError(f"layer ({layer}) is too large: this model has {len(layers)}")
    words = [_encode_words(loaded, text, unit) for text in texts]
    loaded.model.eval()
    states: list[HiddenStates] = []
    with torch.inference_mode(), _capture_hidden_states(layers, last, layer) as layer_outputs:
        for first in range(0, len(texts), TEXTS_PER_BATCH):
            batch = words[first : first + TEXTS_PER_BATCH]
            rows = _compute_hidden_states(loaded, [list(chain(*text_words)) for text_words in batch], layer_outputs)
            for text, text_words, text_rows in zip(texts[first:], batch, rows, strict=False):
                states.append(_pool_rows(loaded, text, text_words, text_rows, unit))
    return states


def _check_has_hidden_states(loaded: LoadedModel) -> None:
    """Raise RecipeError for a model that has no stack of layers with a row for each piece."""
    loaded.check_reads_text("hidden states are of texts")
    config = loaded.config
    if config.canine is not None or isinstance(loaded.model, LanguagePrefixModel):
        reason = "reads several characters as one row" if config.canine is not None else "reads tokens of languages"
        raise RecipeError(f"{loaded.folder}: this model {reason}: it has no row for each piece of a text alone")


def _layer_stack(loaded: LoadedModel) -> tuple[list[nn.Module], nn.Module]:
    """The layers, and the module that gives the final rows: a norm, or the recurrent encoder itself."""
    model: Any = loaded.model
    if isinstance(model, RecurrentEncoderDecoder):
        return list(model.encoder.layers), model.encoder
    if loaded.config.only_stack == "decoder":
        return list(model.layers), model.norm
    return list(model.encoder), model.encoder_norm


def _encode_words(loaded: LoadedModel, text: str, unit: HiddenStateUnit) -> list[list[int]]:
    """The ids of each word, or of the whole text as one."""
    side = TASK_SPECS[loaded.config.task].reads
    tokenizer = loaded.target_tokenizer if side == "target" else loaded.source_tokenizer
    words = tokenizer.encode_words([text])[0] if unit == "word" else [tokenizer.encode(text)]
    count, limit = sum(map(len, words)), loaded.model.max_length - 1
    if not count:
        raise DataError(f"the text {text[:40]!r} has no pieces: it has no vectors")
    if count > limit:
        raise DataError(f"a text has {count} pieces and the model reads at most {limit}: {text[:40]!r}...")
    return words


@contextmanager
def _capture_hidden_states(layers: Sequence[nn.Module], last: nn.Module, layer: int | None) -> Iterator[list[Tensor]]:
    """Keep the rows (N, D) of a layer in a list while the body runs; the last are those of the last reading."""
    layer_outputs: list[Tensor] = []

    def keep_output(_: nn.Module, __: object, output: Tensor | tuple[Tensor, object]) -> None:
        # a recurrent layer returns rows and states
        layer_outputs.append(output[0] if isinstance(output, tuple) else output)

    def keep_input(_: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        layer_outputs.append(inputs[0])

    if layer == 0:
        handle = (layers[0] if layers else last).register_forward_pre_hook(keep_input)
    else:
        handle = (last if layer is None else layers[layer - 1]).register_forward_hook(keep_output)
    try:
        yield layer_outputs
    finally:
        handle.remove()


def _compute_hidden_states(
    loaded: LoadedModel, texts: Sequence[Sequence[int]], layer_outputs: list[Tensor]
) -> list[Tensor]:
    """The rows (n, D) of the pieces of some texts, from one reading of all."""
    model: Any = loaded.model
    device = next(model.parameters()).device
    causal = loaded.config.only_stack == "decoder"
    # the source of a translation model has an end token and no begin token
    has_begin_token = causal and TASK_SPECS[loaded.config.task].continues_text
    sequences = [[BOS_ID, *each] if has_begin_token else [*each, EOS_ID] for each in texts]
    lengths = torch.tensor([len(each) for each in sequences])
    ids = torch.tensor(list(chain(*sequences)), device=device)
    layout = Layout.from_lengths(lengths, device)
    layer_outputs.clear()
    (model.hidden_states if causal else model.encode)(ids, layout)
    num_prefix = int(has_begin_token or loaded.config.begin_token)
    sizes = (lengths + (num_prefix and not has_begin_token)).tolist()
    return [
        rows[num_prefix : num_prefix + len(text_ids)]
        for rows, text_ids in zip(torch.split(layer_outputs[-1], sizes), texts, strict=True)
    ]


def _pool_rows(
    loaded: LoadedModel, text: str, words: Sequence[Sequence[int]], rows: Tensor, unit: HiddenStateUnit
) -> HiddenStates:
    """The vectors of a text by unit, from those of its pieces (n, D)."""
    if unit == "piece":
        side = TASK_SPECS[loaded.config.task].reads
        tokenizer = loaded.target_tokenizer if side == "target" else loaded.source_tokenizer
        return HiddenStates(text, [tokenizer.surface(piece) for piece in words[0]], _to_array(rows))
    means = torch.stack([each.double().mean(0) for each in torch.split(rows, [len(word) for word in words])])
    return HiddenStates(text, split_words(text) if unit == "word" else [text], _to_array(means))


def _to_array(rows: Tensor) -> NDArray[np.float32]:
    array: NDArray[np.float32] = rows.float().cpu().numpy()
    check_not_nan(array)
    return array


@dataclass(frozen=True)
class SimilarPair:
    """Two pieces, words or texts, and the cosine between their vectors.

    Args:
        first: a token or text.
        second: another.
        in_first: the number of the text of the first, from 1.
        in_second: that of the second.
        cosine: between their vectors.
    """

    first: str
    second: str
    in_first: int
    in_second: int
    cosine: float


def similar_pairs(states: Sequence[HiddenStates], unit: HiddenStateUnit, count: int) -> list[SimilarPair]:
    """Find the pairs with the largest cosine: of texts; of one word, or piece, in two texts; or within one text.

    Args:
        states: the hidden states of texts.
        unit: what has a vector.
        count: the most pairs.
    """
    tokens = [(number, token) for number, text_states in enumerate(states, 1) for token in text_states.tokens]
    vectors = np.concatenate([each.vectors for each in states]).astype(np.float64)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.finfo(np.float32).tiny)
    pairs = []
    for (first, (number, token)), (second, (second_number, second_token)) in combinations(enumerate(tokens), 2):
        same_token_elsewhere = number != second_number and token == second_token
        if unit == "text" or len(states) == 1 or same_token_elsewhere:
            pairs.append(
                SimilarPair(token, second_token, number, second_number, float(vectors[first] @ vectors[second]))
            )
    return sorted(pairs, key=lambda each: -each.cosine)[:count]
