"""Attention on given numbers: the equation of the network's attention, without a network.

    e_ts = score(q_t, k_s)      a_ts = exp(e_ts) m_ts / sum_r exp(e_tr) m_tr      o_t = sum_s a_ts v_s

m_ts is 1 where query t may attend to key s, and 0 elsewhere; E * M + c M - c for c to infinity says the same of all
scores E before the softmax: they stay where M is 1, and are -infinity elsewhere.
Legend: T queries · S keys · K width of queries and keys · V width of values.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from tfm.model.attention.explicit_attention import softmax_weights
from tfm.model.attention.scores import SCORES
from tfm.model.masks import Mask
from tfm.pipeline.api.arguments import check_choice
from tfm.pipeline.errors import DataError

Floats = NDArray[np.float64]
AttentionScoreFunction = Callable[[Floats, Floats], ArrayLike]
PARAMETER_FREE_SCORES = ("scaled_dot", "dot", "distance")
"""The scores that have no weights of their own to learn."""


class AttentionOutput(NamedTuple):
    """The result of attention.

    Attributes:
        values: (T, V) the mixture that each query gets.
        weights: (T, S) the share of each key in it; each row sums to 1.
    """

    values: Floats
    weights: Floats


def attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    *,
    score: Literal["scaled_dot", "dot", "distance"] | AttentionScoreFunction = "scaled_dot",
    mask: ArrayLike | Literal["causal", "strict"] | None = None,
) -> AttentionOutput:
    """Mix the values by how well their keys match each query.

    Three weather stations stand at 0, 10 and 30 km of a road. How warm is it at 9 km? The nearest tells most:

    Examples:
        >>> found = attention([[9.0]], [[0.0], [10.0], [30.0]], [[12.0], [14.0], [20.0]], score="distance")
        >>> found.weights.round(3).tolist()
        [[0.229, 0.557, 0.215]]
        >>> found.values.round(2).tolist()
        [[14.83]]

    Args:
        query: (T, K), or (K,) of one query, whose results have no T either.
        key: (S, K).
        value: (S, V), or (S,), whose mixtures have no V either.
        score: "scaled_dot" (q . k / sqrt(K)), "dot" (q . k), "distance" (1 / |q - k|, at most 1,000), or a function of
            queries (T, K) and keys (S, K) that returns (T, S).
        mask: (T, S), true or 1 where a query may attend to a key, else false or 0; "causal": query t to keys 0 to t;
            "strict": to those before t, the first query to itself; None: all to all.

    Returns:
        The mixtures, and the weights.

    Raises:
        DataError: shapes do not fit, a mask has other numbers than 0 and 1, or a query may attend to no key.
        RecipeError: there is no score of that name without weights.
        TypeError: query, key, value, mask or what the score returned is no array of numbers.
    """
    query_array, keys, values = (
        _to_float_array(query, "query"),
        _to_float_array(key, "key"),
        _to_float_array(value, "value"),
    )
    queries = query_array[None] if query_array.ndim == 1 else query_array
    has_matching_shapes = queries.ndim == keys.ndim == 2 and queries.shape[1] == keys.shape[1] > 0
    if not has_matching_shapes or values.ndim not in (1, 2) or len(keys) != len(values):
        shapes = f"query {query_array.shape}, key {keys.shape}, value {values.shape}"
        raise DataError(f"attention: shapes do not fit ({shapes}): give (T, K), (S, K) and (S, V)")
    if len(keys) == 0:
        raise DataError("attention: there are no keys: give one at least")
    logits = _attention_logits(queries, keys, score)
    if logits.shape != (len(queries), len(keys)):
        raise DataError(f"attention: the score returned {logits.shape}: return {(len(queries), len(keys))}")
    bias = _broadcast_mask(mask, query_array, logits.shape).bias(*logits.shape, torch.from_numpy(logits))
    biased = (
        torch.from_numpy(logits) if bias is None else torch.from_numpy(logits) + bias.expand(1, 1, *logits.shape)[0, 0]
    )
    weights: Floats = softmax_weights(biased).numpy()
    if (empty_rows := np.flatnonzero(np.isneginf(biased.numpy()).all(1))).size:
        raise DataError(f"attention: all scores of query {empty_rows[0]} are -infinity: give one key a number")
    one_query = query_array.ndim == 1
    mixed: Floats = weights @ values
    return AttentionOutput(mixed[0], weights[0]) if one_query else AttentionOutput(mixed, weights)


def _to_float_array(values: ArrayLike, argument_name: str) -> Floats:
    """The argument as an array. Raises TypeError for what is no numbers, or rows of several lengths."""
    try:
        return np.asarray(values, np.float64)
    except (TypeError, ValueError, RuntimeError) as error:  # RuntimeError: of a tensor that needs a gradient
        raise TypeError(f"attention: {argument_name} is no array of numbers: {error}") from error


def _attention_logits(queries: Floats, keys: Floats, score: str | AttentionScoreFunction) -> Floats:
    """The scores (T, S) before the softmax."""
    if callable(score):
        return _to_float_array(score(queries, keys), "what the score returned")
    module = SCORES[check_choice(score, PARAMETER_FREE_SCORES, "score")](1, keys.shape[1])
    logits: Floats = module(torch.from_numpy(queries)[None, None], torch.from_numpy(keys)[None, None])[0, 0].numpy()
    return logits


def _broadcast_mask(mask: ArrayLike | None, query: Floats, shape: tuple[int, ...]) -> Mask:
    """The mask in the form of the network's."""
    if mask is None:
        return Mask()
    if isinstance(mask, str):
        return Mask(causal=True, strict=check_choice(mask, ("causal", "strict"), "mask") == "strict")
    numbers = _to_float_array(mask, "mask")
    if not np.isin(numbers, (0, 1)).all():
        value = numbers[~np.isin(numbers, (0, 1))][0]
        raise DataError(f"attention: the mask has {value}: give 1 where a query may attend to a key, and 0 elsewhere")
    allowed = numbers.astype(np.bool_)
    allowed = allowed[None] if query.ndim == 1 and allowed.ndim == 1 else allowed
    if allowed.shape != shape:
        raise DataError(f"attention: the mask has the shape {allowed.shape}: give {shape}")
    if not allowed.any(1).all():
        empty_row = int(np.flatnonzero(~allowed.any(1))[0])
        raise DataError(f"attention: query {empty_row} may attend to no key: set one of its row of the mask to True")
    return Mask(allowed=torch.from_numpy(allowed)[None, None])
