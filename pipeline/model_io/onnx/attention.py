"""Attention as nodes of a graph, with keys and values of what came before as inputs and outputs.

Legend: B sentences · T queries · P rows before them · S keys · D width · H heads · G heads of keys and values · K width
of a head's queries and keys · V width of its values.
"""

from dataclasses import dataclass
from typing import Self

import torch

from tfm.model.attention.multi_head import CrossAttention, HeadShapes, SelfAttention
from tfm.model.attention.relative_positions import Rotary
from tfm.pipeline.model_io.onnx.graph import Graph
from tfm.pipeline.model_io.onnx.layers import add_linear, add_norm

MASK_BIAS = -1e9
"""Added to a logit whose weight shall be 0. Finite, so that a query of padding, which sees nothing, gives numbers."""


@dataclass(frozen=True)
class KeysValues:
    """Names of keys (B, G, S, K) and values (B, G, S, V)."""

    key: str
    value: str

    @classmethod
    def add_graph_inputs(cls, graph: Graph, name: str, heads: HeadShapes, length: str) -> Self:
        """Add keys and values to the inputs of a graph.

        Args:
            graph: the graph.
            name: the beginning of the names of the two inputs.
            heads: the numbers of heads and their widths.
            length: the name of S.
        """
        key = graph.add_input(f"{name}.key", "float", "batch", heads.num_kv_heads, length, heads.key_dim)
        return cls(key, graph.add_input(f"{name}.value", "float", "batch", heads.num_kv_heads, length, heads.value_dim))

    def add_graph_outputs(self, graph: Graph, name: str, heads: HeadShapes, length: str) -> None:
        """Add the keys and values to the outputs of a graph.

        Args:
            graph: the graph.
            name: the beginning of the names of the two outputs.
            heads: the numbers of heads and their widths.
            length: the name of S.
        """
        graph.add_output(f"{name}.key", self.key, "batch", heads.num_kv_heads, length, heads.key_dim)
        graph.add_output(f"{name}.value", self.value, "batch", heads.num_kv_heads, length, heads.value_dim)

    def append_to(self, graph: Graph, past: "KeysValues | None") -> "KeysValues":
        """Append these keys and values to those of the past."""
        if past is None:
            return self
        key, value = ((past.key, self.key), (past.value, self.value))
        return KeysValues(graph.add_node("Concat", *key, axis=2), graph.add_node("Concat", *value, axis=2))


@dataclass(frozen=True)
class PositionsAndMask:
    """Positions and mask of the rows of a batch in self-attention.

    positions: of the queries (B or 1, T). bias: the term that is added to the logits, broadcastable to (B, H, T,
    S).
    """

    positions: str
    bias: str


def padding_bias(graph: Graph, mask: str) -> str:
    """Add nodes for the mask of padding as a term that is added to the logits (B, 1, 1, S).

    mask: (B, S) of 1 for a token and 0 for padding.
    """
    padding = graph.add_node("Sub", graph.add_float_constant(1.0), graph.add_node("Cast", mask, to=1))
    return graph.add_node(
        "Unsqueeze", graph.add_node("Mul", padding, graph.add_float_constant(MASK_BIAS)), graph.add_int_vector(1, 2)
    )


def causal_bias(graph: Graph, rows: str, queries: str) -> str:
    """Add nodes for the causal mask as a term that is added to the logits (T, S).

    Args:
        graph: the graph.
        rows: the place of each key (S,).
        queries: the place of each query (T,).
    """
    is_later = graph.add_node("Greater", rows, graph.add_node("Unsqueeze", queries, graph.add_int_vector(1)))
    return graph.add_node("Mul", graph.add_node("Cast", is_later, to=1), graph.add_float_constant(MASK_BIAS))


def self_attention(
    graph: Graph, module: SelfAttention, rows: str, positions_and_mask: PositionsAndMask, past: KeysValues | None = None
) -> tuple[str, KeysValues]:
    """Add nodes for self-attention: (B, T, D) -> (B, T, D).

    Args:
        graph: the graph.
        module: the layer.
        rows: the name of its input.
        positions_and_mask: positions and mask of the rows.
        past: keys and values of earlier rows.

    Returns:
        The name of the output; the keys and values of past and rows, for the rows after them.
    """
    heads = module.heads
    projections = add_linear(graph, module.query_key_value, rows)
    query, key, value = _split_heads(graph, projections, heads.query, heads.key, heads.value)
    query, key = add_norm(graph, module.query_norm, query), add_norm(graph, module.key_norm, key)
    if isinstance(module.positions, Rotary):
        frequencies = module.positions.frequencies(torch.empty(heads.key_dim, dtype=torch.float64)).tolist()
        query, key = (_apply_rotary(graph, each, positions_and_mask.positions, frequencies) for each in (query, key))
    keys_values = KeysValues(key, value).append_to(graph, past)
    return add_linear(
        graph, module.output, _scaled_dot_product_attention(graph, heads, query, keys_values, positions_and_mask.bias)
    ), keys_values


def add_memory_keys_values(graph: Graph, module: CrossAttention, memory: str) -> KeysValues:
    """Add nodes for keys and values of the memory (B, S, D), which are the same in every step.

    Args:
        graph: the graph.
        module: the layer.
        memory: the name of the memory.
    """
    key, value = _split_heads(graph, add_linear(graph, module.key_value, memory), module.heads.key, module.heads.value)
    return KeysValues(add_norm(graph, module.key_norm, key), value)


def cross_attention(graph: Graph, module: CrossAttention, rows: str, memory: KeysValues, bias: str) -> str:
    """Add nodes for cross-attention: (B, T, D) -> (B, T, D).

    Args:
        graph: the graph.
        module: the layer.
        rows: the name of its input.
        memory: keys and values of the source.
        bias: the term that is added to the logits.

    Returns:
        The name of the output.
    """
    (query,) = _split_heads(graph, add_linear(graph, module.query, rows), module.heads.query)
    query = add_norm(graph, module.query_norm, query)
    return add_linear(graph, module.output, _scaled_dot_product_attention(graph, module.heads, query, memory, bias))


def _scaled_dot_product_attention(
    graph: Graph, heads: HeadShapes, query: str, keys_values: KeysValues, bias: str
) -> str:
    """softmax(Q K^T / sqrt(K) + bias) V, (B, H, T, K) -> (B, T, H V)."""
    key, value = (
        _repeat_kv(graph, heads, keys_values.key, heads.key_dim),
        _repeat_kv(graph, heads, keys_values.value, heads.value_dim),
    )
    query = graph.add_node("Mul", query, graph.add_float_constant(heads.key_dim**-0.5))
    logits = graph.add_node("MatMul", query, graph.add_node("Transpose", key, perm=[0, 1, 3, 2]))
    weights = graph.add_node("Softmax", graph.add_node("Add", logits, bias), axis=-1)
    output = graph.add_node("Transpose", graph.add_node("MatMul", weights, value), perm=[0, 2, 1, 3])
    return graph.add_node("Reshape", output, graph.add_int_vector(0, 0, heads.num_heads * heads.value_dim))


def _repeat_kv(graph: Graph, heads: HeadShapes, keys_or_values: str, width: int) -> str:
    """Keys or values (B, G, S, K) for every head of the query: (B, H, S, K)."""
    if heads.num_kv_heads == heads.num_heads:
        return keys_or_values
    times = graph.add_int_vector(1, 1, heads.num_heads // heads.num_kv_heads, 1, 1)
    copies = graph.add_node("Expand", graph.add_node("Unsqueeze", keys_or_values, graph.add_int_vector(2)), times)
    return graph.add_node("Reshape", copies, graph.add_int_vector(0, heads.num_heads, -1, width))


def _split_heads(graph: Graph, projections: str, *heads: tuple[int, int]) -> list[str]:
    """(B, T, the sum of H K) -> for each of the (H, K) a tensor (B, H, T, K)."""
    parts: tuple[str, ...] = (projections,)
    if len(heads) > 1:
        sizes = graph.add_int_vector(*(number * width for number, width in heads))
        parts = graph.add_multi_output_node("Split", len(heads), projections, sizes, axis=-1)
    split = [
        graph.add_node("Reshape", part, graph.add_int_vector(0, 0, number, width))
        for part, (number, width) in zip(parts, heads, strict=True)
    ]
    return [graph.add_node("Transpose", each, perm=[0, 2, 1, 3]) for each in split]


def _apply_rotary(graph: Graph, heads: str, positions: str, frequencies: list[float]) -> str:
    """Pairs x_2i, x_2i+1 of (B, H, T, K) turned by the angle pos f_i."""
    width = 2 * len(frequencies)
    position = graph.add_node("Unsqueeze", graph.add_node("Cast", positions, to=1), graph.add_int_vector(1, 3, 4))
    column = graph.add_node("Reshape", graph.add_float_constant(*frequencies), graph.add_int_vector(-1, 1))
    angles = graph.add_node("Mul", position, column)
    cos, sin = graph.add_node("Cos", angles), graph.add_node("Sin", angles)
    pairs = graph.add_node("Reshape", heads, graph.add_int_vector(0, 0, 0, width // 2, 2))
    even, odd = graph.add_multi_output_node("Split", 2, pairs, axis=-1)
    first = graph.add_node("Sub", graph.add_node("Mul", even, cos), graph.add_node("Mul", odd, sin))
    second = graph.add_node("Add", graph.add_node("Mul", even, sin), graph.add_node("Mul", odd, cos))
    return graph.add_node(
        "Reshape", graph.add_node("Concat", first, second, axis=-1), graph.add_int_vector(0, 0, 0, width)
    )
