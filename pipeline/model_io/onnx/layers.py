"""The layers of a network as nodes of a graph, each beside the equation of the PyTorch layer that it mirrors.

Legend: B sentences · T rows a sentence · D width · F feed-forward width. All rows are (B, T, D), padding among them.
"""

from collections.abc import Callable
from typing import Any

from torch import nn

from tfm.model.attention.positions import LearnedPositions, NoPositionEmbedding, SinusoidalPositions
from tfm.model.layers.embedding import Embedding
from tfm.model.layers.feed_forward import FeedForward
from tfm.model.layers.normalization import BatchNorm, LayerNorm
from tfm.model.layers.residual import PreNorm, Residual
from tfm.pipeline.model_io.onnx.graph import Graph

Sublayer = Callable[[str], str]


def add_linear(graph: Graph, layer: Any, rows: str) -> str:
    """Add nodes for x W^T + b; x where the layer is the identity.

    Args:
        graph: the graph.
        layer: nn.Linear or nn.Identity.
        rows: the name of x.

    Returns:
        The name of the output.
    """
    if isinstance(layer, nn.Identity):
        return rows
    product = graph.add_node("MatMul", rows, graph.add_transposed_weight(layer.weight))
    return product if layer.bias is None else graph.add_node("Add", product, graph.add_weight(layer.bias))


def add_norm(graph: Graph, module: nn.Module, rows: str) -> str:
    """Add nodes for a norm of rows, or of each head if they are (B, H, T, K).

    Args:
        graph: the graph.
        module: the norm, of a class in NORMS.
        rows: the name of its input.

    Returns:
        The name of the output.
    """
    return NORM_BUILDERS[type(module)](graph, module, rows)


def _layer_norm(graph: Graph, module: Any, rows: str) -> str:
    scale, shift = graph.add_weight(module.weight), graph.add_weight(module.bias)
    return graph.add_node("LayerNormalization", rows, scale, shift, axis=-1, epsilon=module.eps)


def _rms_norm(graph: Graph, module: Any, rows: str) -> str:
    mean = graph.add_node("ReduceMean", graph.add_node("Mul", rows, rows), axes=[-1], keepdims=1)
    root = graph.add_node("Sqrt", graph.add_node("Add", mean, graph.add_float_constant(module.eps)))
    return graph.add_node("Mul", graph.add_node("Div", rows, root), graph.add_weight(module.weight))


def _batch_norm(graph: Graph, module: Any, rows: str) -> str:
    centred = graph.add_node("Sub", rows, graph.add_weight(module.mean))
    variance = graph.add_node("Add", graph.add_weight(module.variance), graph.add_float_constant(module.eps))
    normed = graph.add_node("Div", centred, graph.add_node("Sqrt", variance))
    return graph.add_node(
        "Add", graph.add_node("Mul", normed, graph.add_weight(module.weight)), graph.add_weight(module.bias)
    )


NORM_BUILDERS: dict[type[nn.Module], Callable[[Graph, nn.Module, str], str]] = {
    nn.Identity: lambda graph, module, rows: rows,
    LayerNorm: _layer_norm,
    nn.RMSNorm: _rms_norm,
    BatchNorm: _batch_norm,
}


def add_residual(graph: Graph, residual: Residual, rows: str, sublayer: Sublayer) -> str:
    """Add nodes for x + f(norm(x)), or norm(x + f(x)).

    Args:
        graph: the graph.
        residual: pre-norm or post-norm.
        rows: the name of x.
        sublayer: f, from the name of its input to that of its output.

    Returns:
        The name of the output.
    """
    if isinstance(residual, PreNorm):
        return graph.add_node("Add", rows, sublayer(add_norm(graph, residual.norm, rows)))
    return add_norm(graph, residual.norm, graph.add_node("Add", rows, sublayer(rows)))


def feed_forward(graph: Graph, module: FeedForward, activation: str, rows: str) -> str:
    """Add nodes for activation(x W1 + b1) W2 + b2.

    Args:
        graph: the graph.
        module: the layer.
        activation: its name.
        rows: the name of x.

    Returns:
        The name of the output.
    """
    return add_linear(graph, module.outer, ACTIVATIONS[activation](graph, add_linear(graph, module.inner, rows)))


def add_embedding(graph: Graph, module: Embedding, ids: str, positions: str) -> str:
    """Add nodes for an embedding: ids at positions -> rows (B, T, D).

    Args:
        graph: the graph.
        module: the embedding.
        ids: the name of the ids (B, T).
        positions: the name of the positions (B, T) or (1, T).

    Returns:
        The name of the rows.
    """
    table: Any = module.table
    rows = graph.add_node("Gather", graph.add_weight(table.weight), ids)
    if module.scale != 1:
        rows = graph.add_node("Mul", rows, graph.add_float_constant(module.scale))
    rows = add_linear(graph, module.widen, rows)
    added = POSITION_TABLE_GETTERS[type(module.positions)](module.positions)
    if added is not None:
        rows = graph.add_node("Add", rows, graph.add_node("Gather", graph.add_weight(added), positions))
    return add_norm(graph, module.norm, rows)


POSITION_TABLE_GETTERS: dict[type[nn.Module], Callable[[Any], Any]] = {
    NoPositionEmbedding: lambda module: None,
    SinusoidalPositions: lambda module: module.table,
    LearnedPositions: lambda module: module.table.weight,
}
"""The table that is added to the rows, by the scheme of positions of the input."""


def _unary_node(op: str) -> Callable[[Graph, str], str]:
    return lambda graph, x: graph.add_node(op, x)


def _gelu(graph: Graph, x: str) -> str:
    """x / 2 * (1 + erf(x / sqrt(2)))."""
    erf = graph.add_node("Erf", graph.add_node("Div", x, graph.add_float_constant(2**0.5)))
    return graph.add_node(
        "Mul",
        graph.add_node("Mul", x, graph.add_node("Add", erf, graph.add_float_constant(1.0))),
        graph.add_float_constant(0.5),
    )


def _gelu_tanh(graph: Graph, x: str) -> str:
    """x / 2 * (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))."""
    cube = graph.add_node("Mul", graph.add_node("Mul", x, x), x)
    inner = graph.add_node("Add", x, graph.add_node("Mul", cube, graph.add_float_constant(0.044715)))
    tanh = graph.add_node(
        "Tanh", graph.add_node("Mul", inner, graph.add_float_constant((2 / 3.141592653589793) ** 0.5))
    )
    return graph.add_node(
        "Mul",
        graph.add_node("Mul", x, graph.add_node("Add", tanh, graph.add_float_constant(1.0))),
        graph.add_float_constant(0.5),
    )


def _silu(graph: Graph, x: str) -> str:
    """x sigmoid(x)."""
    return graph.add_node("Mul", x, graph.add_node("Sigmoid", x))


def _glu(graph: Graph, x: str) -> str:
    """a * sigmoid(b) of the halves a, b."""
    value, gate = graph.add_multi_output_node("Split", 2, x, axis=-1)
    return graph.add_node("Mul", value, graph.add_node("Sigmoid", gate))


def _swiglu(graph: Graph, x: str) -> str:
    """silu(a) * b of the halves a, b."""
    gate, value = graph.add_multi_output_node("Split", 2, x, axis=-1)
    return graph.add_node("Mul", _silu(graph, gate), value)


ACTIVATIONS: dict[str, Callable[[Graph, str], str]] = {
    "relu": _unary_node("Relu"),
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
    "tanh": _unary_node("Tanh"),
    "silu": _silu,
    "glu": _glu,
    "swiglu": _swiglu,
}
"""Activations by name, as in a recipe: (graph, output of the first matrix) -> input of the second."""
