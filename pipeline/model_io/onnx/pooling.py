"""Pooling of the rows of a text as nodes of a graph: (rows (B, S, D), mask (B, S)) -> (B, D)."""

from collections.abc import Callable

from tfm.pipeline.model_io.onnx.attention import MASK_BIAS
from tfm.pipeline.model_io.onnx.graph import Graph


def _mean_pooling(graph: Graph, rows: str, mask: str) -> str:
    column = _mask_column(graph, mask)
    total = graph.add_node("ReduceSum", graph.add_node("Mul", rows, column), graph.add_int_vector(1), keepdims=0)
    return graph.add_node("Div", total, graph.add_node("ReduceSum", column, graph.add_int_vector(1), keepdims=0))


def _max_pooling(graph: Graph, rows: str, mask: str) -> str:
    column = _mask_column(graph, mask)
    hidden = graph.add_node(
        "Mul", graph.add_node("Sub", graph.add_float_constant(1.0), column), graph.add_float_constant(MASK_BIAS)
    )
    masked_rows = graph.add_node("Add", graph.add_node("Mul", rows, column), hidden)
    return graph.add_node("ReduceMax", masked_rows, axes=[1], keepdims=0)


def _first_pooling(graph: Graph, rows: str, mask: str) -> str:
    """The row where the mask has its first 1."""
    index = graph.add_node("ArgMax", mask, axis=1, keepdims=0)
    first = graph.add_node("Unsqueeze", index, graph.add_int_vector(1))
    return graph.add_node("GatherND", rows, first, batch_dims=1)


def _mask_column(graph: Graph, mask: str) -> str:
    """(B, S) -> (B, S, 1), as floats."""
    return graph.add_node("Unsqueeze", graph.add_node("Cast", mask, to=1), graph.add_int_vector(2))


POOLINGS: dict[str, Callable[[Graph, str, str], str]] = {
    "mean": _mean_pooling,
    "max": _max_pooling,
    "first": _first_pooling,
}
"""Poolings by name, as in a recipe."""
