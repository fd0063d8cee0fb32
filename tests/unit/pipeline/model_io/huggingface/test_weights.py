"""The table of weights, read in both directions."""

import pytest
import torch

from tests.huggingface_models import KINDS
from tests.tiny_model import STACK
from tfm.model.build import build
from tfm.model.config import ModelConfig, StackConfig
from tfm.pipeline.model_io.huggingface.llama import rotary_permutation
from tfm.pipeline.model_io.huggingface.registry import find_export_class
from tfm.pipeline.model_io.huggingface.weights import WeightMapping, deinterleaving_permutation
from tfm.pipeline.model_io.model_weights import drop_shared_tensors


def test_importing_undoes_exporting() -> None:
    draw = torch.Generator().manual_seed(1)
    ours = torch.randn(9, 6, generator=draw)
    for weight in (
        WeightMapping("w", ("a",)),
        WeightMapping("w", ("a",), transposed=True),
        WeightMapping("w", ("a", "b"), (3, 6), columns=deinterleaving_permutation(6)),
        WeightMapping(
            "w", ("a", "b", "c"), (2, 3, 4), torch.randperm(9, generator=draw), torch.randperm(6, generator=draw), True
        ),
    ):
        theirs = weight.export_tensors(ours)
        assert [*theirs] == [*weight.hf_names]
        assert torch.equal(weight.import_tensor(theirs), ours)
    both = WeightMapping("w", ("a", "b"), (4, 5), transposed=True).export_tensors(ours)
    assert torch.equal(both["b"], ours[4:].t())


def test_a_tensor_of_another_shape_is_refused_and_never_cut() -> None:
    """Rows beyond those of a permutation were left out in silence."""
    draw = torch.Generator().manual_seed(1)
    rows, columns = torch.randperm(9, generator=draw), torch.randperm(6, generator=draw)
    for weight in (
        WeightMapping("w", ("a",), rows=rows, columns=columns),
        WeightMapping("w", ("a",), rows=rows, columns=columns, transposed=True),
        WeightMapping("w", ("a", "b"), (3, 6), rows, columns),
    ):
        theirs = weight.export_tensors(torch.randn(9, 6, generator=draw))
        for name, tensor in theirs.items():
            for axis in 0, 1:
                for changed in (torch.cat([tensor, tensor], axis), tensor.narrow(axis, 0, 1)):
                    with pytest.raises(ValueError, match=rf"its {name} is \({changed.shape[0]}, {changed.shape[1]}\)"):
                        weight.import_tensor(theirs | {name: changed})


def test_halves_are_apart() -> None:
    assert deinterleaving_permutation(6).tolist() == [0, 2, 4, 1, 3, 5]
    assert deinterleaving_permutation(5).tolist() == [0, 2, 4, 1, 3]
    rows = rotary_permutation(StackConfig(dim=8, heads=2, key_value_heads=1))
    assert rows.tolist() == [0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 13, 14, 15]


def test_every_weight_of_a_model_has_one_place_there() -> None:
    for name, changes in KINDS.values():
        config = ModelConfig.model_validate({"encoder": STACK, "decoder": STACK, **changes})
        model_class = find_export_class(config)
        assert model_class is not None
        assert model_class.name == name
        table = list(model_class.weights(config))
        model = build(config, source_vocab=20, target_vocab=20)
        assert (
            {*drop_shared_tensors(model.state_dict())} <= {weight.tfm_name for weight in table} <= {*model.state_dict()}
        )
        placed = [name for weight in table for name in weight.hf_names]
        assert len(placed) == len({*placed})
