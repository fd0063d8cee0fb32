"""Pooling of the rows of a text as nodes of a graph: (rows (B, S, D), mask (B, S)) -> (B, D)."""

from collections.abc import Callable

from tfm.pipeline.model_io.onnx.attention import MASK_BIAS
from tfm.pipeline.model_io.onnx.graph import Graph


def _mean_pooling(graph: Graph, rows: str, mask: str) -> str:
    kept = _mask_column(graph, mask)
    total = graph.node("ReduceSum", graph.node("Mul", rows, kept), graph.add_int_vector(1), keepdims=0)
    return graph.node("Div", total, graph.node("ReduceSum", kept, graph.add_int_vector(1), keepdims=0))


def _max_pooling(graph: Graph, rows: str, mask: str) -> str:
    kept = _mask_column(graph, mask)
    hidden = graph.node(
        "Mul", graph.node("Sub", graph.add_float_constant(1.0), kept), graph.add_float_constant(MASK_BIAS)
    )
    shown = graph.node("Add", graph.node("Mul", rows, kept), hidden)
    return graph.node("ReduceMax", shown, axes=[1], keepdims=0)


def _first_pooling(graph: Graph, rows: str, mask: str) -> str:
    """The row where the mask has its first 1."""
    place = graph.node("ArgMax", mask, axis=1, keepdims=0)
    first = graph.node("Unsqueeze", place, graph.add_int_vector(1))
    return graph.node("GatherND", rows, first, batch_dims=1)


def _mask_column(graph: Graph, mask: str) -> str:
    """(B, S) -> (B, S, 1), as floats."""
    return graph.node("Unsqueeze", graph.node("Cast", mask, to=1), graph.add_int_vector(2))


POOLINGS: dict[str, Callable[[Graph, str, str], str]] = {
    "mean": _mean_pooling,
    "max": _max_pooling,
    "first": _first_pooling,
}
"""Poolings by name, as in a recipe."""
