"""Weights in 8 bits: the products of a graph with int8 matrices (dynamic quantization of onnxruntime).

    W is round(W / s) with a scale s for each column, x is round(x / t) with a scale t for the whole tensor

t is found when the graph is run, over all sentences of a batch: what is computed of one depends a little on the others.
"""

from pathlib import Path
from typing import Any

import numpy as np
from onnx import helper, numpy_helper

MATMUL_OP, GATHER_OP = "MatMul", "Gather"
POSITION_EMBEDDINGS = ".positions."
PREPROCESSED_METADATA = {"onnx.quant.pre_process": "onnxruntime.quant"}
"""The mark by which onnxruntime knows that shapes are known and constants folded, which else it advises to do first."""


def write_int8(model: Any, file: Path) -> None:
    """Write a ModelProto with matrices and the table of pieces in 8 bits. Tables of positions stay as they are.

    Matrices use 7 of the 8 bits: CPUs without VNNI add two products of 8 bits in 16, which else overflow.
    """
    from onnxruntime.quantization import QuantType, quantize_dynamic

    untie_weights(model)
    helper.set_model_props(model, PREPROCESSED_METADATA)
    weight_names = {each.name for each in model.graph.initializer}
    excluded_nodes = [
        node.name
        for node in model.graph.node
        if node.op_type == GATHER_OP and (node.input[0] not in weight_names or POSITION_EMBEDDINGS in node.input[0])
    ]
    quantize_dynamic(
        model,
        str(file),
        op_types_to_quantize=[MATMUL_OP, GATHER_OP],
        nodes_to_exclude=excluded_nodes,
        per_channel=True,
        reduce_range=True,
        weight_type=QuantType.QInt8,
    )


def untie_weights(model: Any) -> None:
    """Give a table that is also a matrix of products a copy for these, transposed: each is rounded in its own way."""
    weights_by_name = {each.name: each for each in model.graph.initializer}
    for node in [each for each in model.graph.node if each.op_type == "Transpose" and each.input[0] in weights_by_name]:
        matrix = np.ascontiguousarray(numpy_helper.to_array(weights_by_name[node.input[0]]).T)
        model.graph.initializer.append(numpy_helper.from_array(matrix, node.output[0]))
        model.graph.node.remove(node)
