"""An ONNX graph while it is written: inputs, nodes in order, weights, outputs.

A value is known by its name. Weights keep the names that they have in model.safetensors.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import TensorProto, checker, helper, numpy_helper
from torch import Tensor, nn

from tfm.pipeline.errors import RecipeError

OPSET = 17
"""The operator set, of 2022: the first with LayerNormalization; every onnxruntime from 1.12 on reads it."""
IR_VERSION = 8
"""The version of the file format that came with it."""
MAX_MODEL_BYTES = 2**31 - 2**20
"""Protocol buffers are no larger than 2 GiB."""
TENSOR_TYPES = {"int64": TensorProto.INT64, "float": TensorProto.FLOAT}
Dimension = int | str
"""A dimension: a number, or the name of one that is known only when the graph is run."""


class Graph:
    """The graph of a part of a network. names: of the network's tensors, by where in memory they are."""

    def __init__(self, name: str, names: Mapping[int, str]) -> None:
        self._name, self._names = name, names
        self._nodes: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []
        self._stored: dict[str, NDArray[Any]] = {}
        self._constants: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self._made: dict[str, tuple[str, ...]] = {}

    def add_input(self, name: str, dtype: str, *shape: Dimension) -> str:
        """Add an input to the graph, and return its name.

        Args:
            name: of the input.
            dtype: one of TYPES.
            *shape: its sizes, numbers or names.
        """
        self._inputs.append(helper.make_tensor_value_info(name, TENSOR_TYPES[dtype], shape))
        return name

    def add_output(self, name: str, value: str, *shape: Dimension) -> None:
        """Add a value of floats to the outputs.

        Args:
            name: of the output.
            value: the name of the value.
            *shape: its sizes, numbers or names.
        """
        self._nodes.append(helper.make_node("Identity", [value], [name]))
        self._outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))

    def add_node(self, op: str, *inputs: str, **attributes: Any) -> str:
        """Add an operator with one output, and return the output's name.

        Args:
            op: the name of the operator.
            *inputs: names of values.
            **attributes: of the operator.
        """
        return self.add_multi_output_node(op, 1, *inputs, **attributes)[0]

    def add_multi_output_node(self, op: str, count: int, *inputs: str, **attributes: Any) -> tuple[str, ...]:
        """Add an operator with several outputs; one that was added already is not computed again.

        Args:
            op: the name of the operator.
            count: the number of outputs.
            *inputs: names of values.
            **attributes: of the operator.

        Returns:
            The names of the outputs.
        """
        key = f"{op} {inputs} {sorted(attributes.items())}"
        if key not in self._made:
            name = f"{op}_{len(self._nodes)}"
            self._made[key] = tuple(name if count == 1 else f"{name}_{number}" for number in range(count))
            self._nodes.append(helper.make_node(op, inputs, self._made[key], name, **attributes))
        return self._made[key]

    def add_weight(self, tensor: Tensor) -> str:
        """A tensor of the network, as it is."""
        return self._store_initializer(self._parameter_name(tensor), tensor)

    def add_transposed_weight(self, weight: Tensor) -> str:
        """W^T (in, out) of a matrix W (out, in) of the network.

        Stored so, unless the graph has W as a table already: then it is the table, transposed when the graph is loaded.
        """
        name = self._parameter_name(weight)
        if name in self._stored:
            return self.add_node("Transpose", name, perm=[1, 0])
        return self._store_initializer(f"{name}.T", weight.T)

    def add_float_constant(self, *values: float) -> str:
        """Add a vector of constants, or a scalar for a single value."""
        return self._add_constant(np.array(values if len(values) > 1 else values[0], np.float32))

    def add_int_vector(self, *values: int) -> str:
        """Add a vector of constants, even for a single value."""
        return self._add_constant(np.array(values, np.int64))

    def add_index_scalar(self, value: int) -> str:
        """Add a scalar constant."""
        return self._add_constant(np.array(value, np.int64))

    def build_model_proto(self) -> Any:
        """The whole as a checked ModelProto. Raises RecipeError if it would be too large for a file."""
        size = sum(array.nbytes for array in self._stored.values())
        if size > MAX_MODEL_BYTES:
            problem = f"the weights of the {self._name} take {size / 2**30:.1f} GiB"
            raise RecipeError(f"{problem}, and an .onnx file holds 2 GiB at most: it cannot be exported so")
        weights = [numpy_helper.from_array(array, name) for name, array in self._stored.items()]
        graph = helper.make_graph(self._nodes, self._name, self._inputs, self._outputs, weights)
        opsets = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(graph, producer_name="tfm", opset_imports=opsets, ir_version=IR_VERSION)
        checker.check_model(model, full_check=True)
        return onnx.shape_inference.infer_shapes(model)

    def _parameter_name(self, tensor: Tensor) -> str:
        return self._names[tensor.data_ptr()]

    def _store_initializer(self, name: str, tensor: Tensor) -> str:
        if name not in self._stored:
            self._stored[name] = np.ascontiguousarray(tensor.detach().float().cpu().numpy())
        return name

    def _add_constant(self, array: NDArray[Any]) -> str:
        key = (str(array.dtype), array.shape, array.tobytes())
        if key not in self._constants:
            self._constants[key] = name = f"constant_{len(self._constants)}"
            self._stored[name] = array
        return self._constants[key]


def parameter_names_by_id(model: nn.Module) -> dict[int, str]:
    """The names of a network's tensors by address; of tied tensors, the first name."""
    names: dict[int, str] = {}
    with torch.no_grad():
        for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
            names.setdefault(tensor.data_ptr(), name)
    return names
