import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tfm.model.attention.positions import POSITION_JOINS, POSITIONS, NoPositionEmbedding, fairseq_sinusoids, sinusoids
from tfm.model.attention.relative_positions import AttentionPositions
from tfm.model.build import build
from tfm.model.config import ModelConfig, StackConfig
from tfm.model.config_checks.positions import INPUT_POSITIONS
from tfm.model.layout import Layout
from tfm.model.masks import Mask


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


@pytest.mark.parametrize("dim", [4, 7, 16])
def test_exponents_from_one_end_at_a_ten_thousandth(dim: int) -> None:
    """p_i = sin(i / 10000^(2 * 1/d)), cos(the same), ..., cos(i / 10000^(2 * (d/2)/d))."""
    table = sinusoids(dim, 50, first_pair=1)
    for pos in (0, 1, 49):
        for pair in range(1, (dim + 1) // 2 + 1):
            angle = pos / 10_000 ** (2 * pair / dim)
            assert float(table[pos, 2 * pair - 2]) == pytest.approx(math.sin(angle), abs=1e-12)
            if 2 * pair - 1 < dim:
                assert float(table[pos, 2 * pair - 1]) == pytest.approx(math.cos(angle), abs=1e-12)
    if dim % 2 == 0:
        assert float(table[1, dim - 2]) == pytest.approx(1e-4, rel=1e-8)


@pytest.mark.parametrize("name", INPUT_POSITIONS)
def test_in_attention_positions_are_added_to_queries_keys_and_values(name: str) -> None:
    """q + p, k + p, v + p of the first layer, by hand, of one head after the other; other layers have none."""
    stack = StackConfig(layers=2, dim=8, heads=2, feed_forward_dim=6)
    config = ModelConfig.model_validate(
        {"encoder": stack, "decoder": stack, "positions": name, "positions_join": "attention"}
    )
    model: Any = build(config, source_vocab=9, target_vocab=9, seed=1).double().eval()
    tokens, layout = torch.tensor([4, 5, 6, 7, 8]), Layout.from_lengths(torch.tensor([5]))
    first, second = model.encoder[0].attention, model.encoder[1].attention
    assert type(second.positions) is AttentionPositions
    with torch.no_grad():
        rows = model.source_embedding(tokens, layout.positions)
        assert torch.equal(rows, model.source_embedding.table(tokens) * 8**0.5)
        table = first.positions.scheme.table
        p = (table if isinstance(table, Tensor) else table.weight)[:5].double()
        query, key, value = (each + p for each in first.query_key_value(rows).split(8, 1))
        mixed = []
        for head in (slice(0, 4), slice(4, 8)):
            scores = (query[:, head] @ key[:, head].T / 2).exp()
            mixed.append(scores / scores.sum(1, keepdim=True) @ value[:, head])
        want = first.output(torch.cat(mixed, 1))
        torch.testing.assert_close(first(rows, layout, Mask()), want, rtol=0, atol=1e-12)
