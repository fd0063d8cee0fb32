"""The place of each weight's numbers in a model of another library: a table that is read in both directions.

Legend: D model width · N rows of a weight (its outputs) · columns of a weight: its inputs.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class WeightMapping:
    """A tensor of tfm, and those of a class of transformers that hold the same numbers.

    Args:
        tfm_name: its name in tfm.
        hf_names: the names there; several are stacked in tfm, one below the other.
        sizes: the number of rows of each of several.
        rows: the index in tfm of each row there, before the tensor is cut in parts; None: the order is the same.
        columns: the same of columns.
        transposed: whether the rows there are the inputs.
        as_row: whether the tensor is (1, N) there and (N,) in tfm.
    """

    tfm_name: str
    hf_names: tuple[str, ...]
    sizes: tuple[int, ...] = ()
    rows: Tensor | None = None
    columns: Tensor | None = None
    transposed: bool = False
    as_row: bool = False

    def export_tensors(self, tensor: Tensor) -> dict[str, Tensor]:
        """Return the tensors there, by name, from that of tfm."""
        if self.as_row:
            tensor = tensor.unsqueeze(0)
        if self.rows is not None:
            tensor = tensor[self.rows]
        if self.columns is not None:
            tensor = tensor[:, self.columns]
        parts = torch.split(tensor, [*self.sizes]) if self.sizes else (tensor,)
        transposed_parts = [part.t() if self.transposed and part.dim() == 2 else part for part in parts]
        memory_format = torch.contiguous_format
        return {
            name: part.clone(memory_format=memory_format)
            for name, part in zip(self.hf_names, transposed_parts, strict=True)
        }

    def import_tensor(self, hf_tensors: Mapping[str, Tensor]) -> Tensor:
        """Return the tensor of tfm from those there. Raises KeyError if one is missing, ValueError at another shape."""
        parts = [hf_tensors[name] for name in self.hf_names]
        parts = [part.t() if self.transposed and part.dim() == 2 else part for part in parts]
        self._check_shapes(parts)
        tensor = torch.cat(parts)
        if self.columns is not None:
            tensor = tensor[:, self.columns.argsort()]
        if self.rows is not None:
            tensor = tensor[self.rows.argsort()]
        return tensor.squeeze(0) if self.as_row else tensor.contiguous()

    def _check_shapes(self, parts: Sequence[Tensor]) -> None:
        """Raise ValueError for a part with more or fewer numbers than have a place: an index would leave the rest."""
        num_rows = self.sizes if self.sizes else (None,) if self.rows is None else (len(self.rows),)
        num_columns = None if self.columns is None else len(self.columns)
        for name, part, rows in zip(self.hf_names, parts, num_rows, strict=True):
            for axis, found, expected in zip(("rows", "columns"), part.shape, (rows, num_columns), strict=False):
                if expected is not None and found != expected:
                    shape = f"{tuple(part.t().shape if self.transposed else part.shape)}"
                    raise ValueError(f"its {name} is {shape}: by config.json it has {expected} {axis}, not {found}")


def linear_weights(
    tfm_layer: str,
    *hf_layers: str,
    sizes: Sequence[int] = (),
    rows: Tensor | None = None,
    columns: Tensor | None = None,
    transposed: bool = False,
) -> Iterable[WeightMapping]:
    """Return the weight and the bias of a linear layer; several layers of Hugging Face may be stacked in one of tfm.

    Args:
        tfm_layer: the name of the layer in tfm.
        *hf_layers: the names of the layers of Hugging Face's model.
        sizes: the rows of each of several layers.
        rows: the order of the rows.
        columns: the order of the columns.
        transposed: whether Hugging Face's weight is transposed.
    """
    for part, part_columns in ("weight", columns), ("bias", None):
        names = tuple(f"{name}.{part}" for name in hf_layers)
        yield WeightMapping(f"{tfm_layer}.{part}", names, tuple(sizes), rows, part_columns, transposed)


def norm_weights(tfm_layer: str, hf_layer: str, rows: Tensor | None = None) -> Iterable[WeightMapping]:
    """Return the gain and the bias of a layer norm.

    Args:
        tfm_layer: the name of the norm in tfm.
        hf_layer: the name there.
        rows: the order of the features.
    """
    return linear_weights(tfm_layer, hf_layer, rows=rows)


def deinterleaving_permutation(dim: int) -> Tensor:
    """(D,) 0, 2, 4 .., 1, 3, 5 ..: of pairs that lie side by side, first all first ones and then all second ones."""
    return torch.cat([torch.arange(0, dim, 2), torch.arange(1, dim, 2)])
