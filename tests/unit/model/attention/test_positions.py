import math
from typing import Any

import pytest
import torch
from torch import nn

from tfm.model.attention.positions import POSITION_JOINS, POSITIONS, NoPositionEmbedding, fairseq_sinusoids, sinusoids
from tfm.model.build import build
from tfm.model.config import ModelConfig, StackConfig


def test_sinusoids_are_the_papers_equation() -> None:
    table = sinusoids(10, 50)
    for position in (0, 1, 7, 49):
        for i in range(5):
            angle = position / 10_000 ** (2 * i / 10)
            assert math.isclose(table[position, 2 * i], math.sin(angle), abs_tol=1e-12)
            assert math.isclose(table[position, 2 * i + 1], math.cos(angle), abs_tol=1e-12)


def test_odd_widths_have_one_sine_more() -> None:
    assert sinusoids(5, 4).shape == (4, 5)
    want = (torch.arange(4, dtype=torch.float64) / 10_000 ** (4 / 5)).sin()
    torch.testing.assert_close(sinusoids(5, 4)[:, 4], want, rtol=0, atol=1e-12)


@pytest.mark.parametrize("dim", [10, 11])
def test_those_of_fairseq_are_its_equation(dim: int) -> None:
    table = fairseq_sinusoids(dim, 50)
    assert table.shape == (50, dim)
    assert not table[:, 10:].any()
    for position in (0, 1, 7, 49):
        for i in range(5):
            angle = (position + 2) / 10_000 ** (i / 4)
            assert math.isclose(table[position, 2 * i], math.sin(angle), abs_tol=1e-12)
            assert math.isclose(table[position, 2 * i + 1], math.cos(angle), abs_tol=1e-12)


@pytest.mark.parametrize("name", ["sinusoidal", "learned"])
@pytest.mark.parametrize("dim", [6, 7])
def test_beside_a_row_stands_the_vector_of_its_position(name: str, dim: int) -> None:
    rows, positions = torch.randn(4, dim - 3), torch.tensor([0, 1, 0, 5])
    joined = POSITION_JOINS["concatenate"](POSITIONS[name].input, dim, 8)
    found = joined(rows, positions)
    assert found.shape == (4, dim)
    assert torch.equal(found[:, : dim - 3], rows)
    table = joined.scheme.table  # type: ignore[union-attr]
    vectors = table.weight if name == "learned" else sinusoids(3, 8).float()  # type: ignore[union-attr]
    assert torch.equal(found[:, dim - 3 :], vectors[positions])  # type: ignore[index]


@pytest.mark.parametrize("embedding_dim", [None, 4, 6])
def test_embedding_and_position_share_the_width_of_a_stack(embedding_dim: int | None) -> None:
    stack = StackConfig(layers=1, dim=8, heads=2, feed_forward_dim=4)
    config = ModelConfig(encoder=stack, decoder=stack, embedding_dim=embedding_dim, positions_join="concatenate")
    embedding: Any = build(config, source_vocab=9, target_vocab=9).source_embedding  # type: ignore[union-attr]
    tokens, positions = torch.tensor([5, 5, 6]), torch.tensor([0, 3, 3])
    rows = embedding.eval().double()(tokens, positions)
    assert rows.shape == (3, 8)
    own = embedding.widen(embedding.table(tokens) * (embedding_dim or 8) ** 0.5)
    assert isinstance(embedding.widen, nn.Identity) == (embedding_dim == 4)
    torch.testing.assert_close(rows, torch.cat([own, sinusoids(4, 4).float()[positions]], 1))


@pytest.mark.parametrize("name", ["none", "rotary", "alibi", "shaw", "transformer_xl"])
def test_what_adds_nothing_cannot_stand_beside(name: str) -> None:
    with pytest.raises(ValueError, match=f'needs a vector for each position.*not "{name}"'):
        ModelConfig.model_validate({"positions": name, "positions_join": "concatenate"})


def test_each_scheme_adds_by_position_alone() -> None:
    rows, positions = torch.randn(4, 6, dtype=torch.float64), torch.tensor([0, 1, 0, 1])
    for name, scheme in POSITIONS.items():
        added = scheme.input(6, 8).double()(rows, positions) - rows
        torch.testing.assert_close(added[0], added[2], msg=name)
        assert torch.allclose(added[0], added[1]) == (scheme.input is NoPositionEmbedding)
