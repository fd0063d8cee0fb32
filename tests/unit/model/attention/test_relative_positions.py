"""Relative positions: each scheme is its paper's equation in float64, and depends on distances alone."""

import cmath
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from tfm.model.attention import relative_positions
from tfm.model.attention.inner_attention import choose_inner_attention
from tfm.model.attention.positions import POSITIONS, NoPositionEmbedding
from tfm.model.attention.relative_positions import MAX_RELATIVE_DISTANCE, AttentionPositions, Rotary
from tfm.model.attention.scores import ScaledDotScore
from tfm.model.config import RotaryConfig
from tfm.model.layers.dropout import DropoutRng
from tfm.model.masks import Mask

HEADS, WIDTH, LENGTH = 2, 4, 5
RELATIVE = [name for name, scheme in POSITIONS.items() if scheme.input is NoPositionEmbedding and name != "none"]


def sines(distance: int, dim: int) -> Tensor:
    angles = torch.tensor([distance / 10_000 ** (2 * i / dim) for i in range(dim // 2)], dtype=torch.float64)
    return torch.cat([angles.sin(), angles.cos()])


def turned(x: Tensor, position: int) -> Tensor:
    """R_pos x, a matrix of turns in planes."""
    matrix = torch.zeros(WIDTH, WIDTH, dtype=torch.float64)
    for i in range(WIDTH // 2):
        angle = torch.tensor(position / 10_000 ** (2 * i / WIDTH), dtype=torch.float64)
        plane = torch.stack([torch.stack([angle.cos(), -angle.sin()]), torch.stack([angle.sin(), angle.cos()])])
        matrix[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = plane
    return matrix @ x


def cut(distance: int) -> int:
    return max(-MAX_RELATIVE_DISTANCE, min(MAX_RELATIVE_DISTANCE, distance)) + MAX_RELATIVE_DISTANCE


def xl(scheme: Any, h: int, q: Tensor, k: Tensor, i: int, j: int) -> Tensor:
    own = (scheme.weight @ sines(i - j, HEADS * WIDTH)).view(HEADS, WIDTH)[h]
    u, v = scheme.u[h, 0], scheme.v[h, 0]
    return (q @ k + q @ own + u @ k + v @ own) / WIDTH**0.5


LOGITS: dict[str, Callable[[Any, int, Tensor, Tensor, int, int], Tensor]] = {
    "rotary": lambda scheme, h, q, k, i, j: turned(q, i) @ turned(k, j) / WIDTH**0.5,
    "alibi": lambda scheme, h, q, k, i, j: q @ k / WIDTH**0.5 - 2 ** (-8 * (h + 1) / HEADS) * abs(i - j),
    "shaw": lambda scheme, h, q, k, i, j: q @ (k + scheme.for_keys[cut(j - i)]) / WIDTH**0.5,
    "transformer_xl": xl,
}


def made(name: str) -> tuple[AttentionPositions, Tensor, Tensor, Tensor]:
    torch.manual_seed(2)
    scheme = POSITIONS[name].attention(HEADS, WIDTH, WIDTH).double()
    for weight in scheme.parameters():
        torch.nn.init.normal_(weight)
    return scheme, *torch.randn(3, 2, HEADS, LENGTH, WIDTH, dtype=torch.float64).unbind()


def mixed(scheme: AttentionPositions, heads: tuple[Tensor, Tensor, Tensor], at: Tensor) -> Tensor:
    query, key, value = heads
    turned_query, turned_key = scheme.rotate(query, at), scheme.rotate(key, at)
    return choose_inner_attention(ScaledDotScore(), scheme, 0.0, DropoutRng())(
        turned_query, turned_key, value, Mask(), at, at
    )


@pytest.mark.parametrize("reach", [2, 16])
@pytest.mark.parametrize("name", RELATIVE)
def test_it_is_its_equation(name: str, reach: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relative_positions, "MAX_RELATIVE_DISTANCE", reach)
    monkeypatch.setattr(f"{__name__}.MAX_RELATIVE_DISTANCE", reach)
    scheme, query, key, value = made(name)
    got = mixed(scheme, (query, key, value), torch.arange(LENGTH))
    for b, h, i in torch.cartesian_prod(torch.arange(2), torch.arange(HEADS), torch.arange(LENGTH)).tolist():
        logits = torch.stack([LOGITS[name](scheme, h, query[b, h, i], key[b, h, j], i, j) for j in range(LENGTH)])
        added: Any = scheme.for_values if name == "shaw" else torch.zeros(2 * reach + 1, WIDTH, dtype=torch.float64)
        weights = logits.softmax(-1)
        want = sum(weights[j] * (value[b, h, j] + added[cut(j - i)]) for j in range(LENGTH))
        torch.testing.assert_close(got[b, h, i], want, rtol=0, atol=1e-11)


@pytest.mark.parametrize("name", RELATIVE)
@given(shift=st.integers(0, 500))
def test_only_distances_count(name: str, shift: int) -> None:
    scheme, *heads = made(name)
    at = torch.arange(LENGTH)
    here, there = (mixed(scheme, (heads[0], heads[1], heads[2]), at + by) for by in (0, shift))
    torch.testing.assert_close(here, there, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", RELATIVE)
def test_places_count(name: str) -> None:
    scheme, query, key, value = made(name)
    order = torch.tensor([1, 0, 2, 3, 4])
    at = torch.arange(LENGTH)
    plain = mixed(scheme, (query, key, value), at)
    swapped = mixed(scheme, (query, key[:, :, order], value[:, :, order]), at)
    assert (plain - swapped).abs().max() > 1e-3


@pytest.mark.parametrize("name", RELATIVE)
def test_sentences_may_stand_at_positions_of_their_own(name: str) -> None:
    scheme, query, key, value = made(name)
    at = torch.tensor([[0, 1, 2, 3, 4], [7, 3, 0, 0, 9]])
    together = mixed(scheme, (query, key, value), at)
    for b in range(2):
        alone = mixed(scheme, (query[b : b + 1], key[b : b + 1], value[b : b + 1]), at[b : b + 1])
        torch.testing.assert_close(together[b : b + 1], alone, rtol=0, atol=1e-12)


@given(st.integers(0, 10_000), st.integers(0, 2**32))
def test_turning_keeps_norms(position: int, seed: int) -> None:
    x = torch.randn(1, HEADS, 1, WIDTH, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    after = Rotary(HEADS, WIDTH, WIDTH).rotate(x, torch.tensor([position]))
    torch.testing.assert_close(after.norm(dim=-1), x.norm(dim=-1), rtol=1e-12, atol=0)


@pytest.mark.parametrize(("width", "first"), [(3, 0), (5, 0), (4, 1), (4, 2)])
def test_turning_asks_nothing_of_how_heads_lie_in_memory(width: int, first: int) -> None:
    """Beside values of another width, queries lie at odd places; and a transposed matrix has its pairs apart."""
    rotary, at = Rotary(HEADS, 4, width), torch.arange(6)
    row = torch.randn(1, 6, first + 4 + width, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
    heads = row[:, None, :, first : first + 4].requires_grad_()
    want = rotary.rotate(heads.detach().clone(), at)
    for found in (rotary.rotate(heads, at), rotary.rotate(heads.detach().mT.contiguous().mT, at)):
        torch.testing.assert_close(found, want, rtol=0, atol=1e-14)
    (gradient,) = torch.autograd.grad((rotary.rotate(heads, at) * want).sum(), heads)
    torch.testing.assert_close(gradient, heads.detach(), rtol=1e-12, atol=1e-12)  # turned there and back


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_low_precision_is_turned_in_full_and_rounded_once(dtype: torch.dtype) -> None:
    rotary, at = Rotary(HEADS, WIDTH, WIDTH), torch.arange(300, 300 + LENGTH)
    heads = torch.randn(2, HEADS, LENGTH, WIDTH, generator=torch.Generator().manual_seed(6)).to(dtype)
    assert rotary.rotate(heads, at).equal(rotary.rotate(heads.float(), at).to(dtype))


def slowed(frequency: float, rotary: RotaryConfig) -> float:
    """As Llama 3.1 has it: by cases, of wavelengths."""
    length, wave = rotary.original_length, 2 * math.pi / frequency
    if length is None or wave > length / rotary.low_frequency_factor:
        return frequency / rotary.factor
    if wave < length / rotary.high_frequency_factor:
        return frequency
    low, high = rotary.low_frequency_factor, rotary.high_frequency_factor
    smooth = (length / wave - low) / (high - low)
    return (1 - smooth) * frequency / rotary.factor + smooth * frequency


@pytest.mark.parametrize(
    "rotary",
    [
        {"base": 500_000.0},
        {"factor": 2.5},
        {"base": 50.0, "factor": 8.0, "original_length": 60},
        {"factor": 3.0, "original_length": 40, "low_frequency_factor": 0.5, "high_frequency_factor": 5.0},
    ],
)
def test_pairs_turn_as_fast_as_model_rotary_says(rotary: dict[str, Any]) -> None:
    """Each component as complex numbers say it: a pair is x + i y, and a turn is a factor e^(i angle)."""
    config, width = RotaryConfig(**rotary), 12
    x = torch.randn(1, 1, 3, width, dtype=torch.float64, generator=torch.Generator().manual_seed(4))
    at = torch.tensor([0, 3, 50])
    found = Rotary(1, width, width, config).rotate(x, at)[0, 0]
    kinds = set()
    for i in range(width // 2):
        plain = config.base ** (-2 * i / width)
        frequency = slowed(plain, config)
        kinds.add("kept" if frequency == plain else "slowed" if frequency == plain / config.factor else "between")
        for row, position in enumerate(at.tolist()):
            turned = complex(*x[0, 0, row, 2 * i : 2 * i + 2].tolist()) * cmath.exp(1j * position * frequency)
            torch.testing.assert_close(
                found[row, 2 * i : 2 * i + 2],
                torch.tensor([turned.real, turned.imag], dtype=torch.float64),
                rtol=0,
                atol=1e-12,
            )
    assert len(kinds) == (3 if "original_length" in rotary else 1)


@pytest.mark.parametrize(
    ("rotary", "reason"),
    [
        ({"original_length": 9}, "has no effect while `factor` is 1"),
        ({"factor": 2.0, "low_frequency_factor": 0.5}, "low_frequency_factor is counted within original_length"),
        ({"factor": 2.0, "high_frequency_factor": 5.0}, "high_frequency_factor is counted within original_length"),
        ({"factor": 2.0, "original_length": 9, "low_frequency_factor": 4.0}, "must be less than high_frequency_factor"),
    ],
)
def test_what_of_model_rotary_does_nothing_is_refused(rotary: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        RotaryConfig(**rotary)
    written = RotaryConfig(factor=2.0).model_dump()
    assert RotaryConfig(**written).model_dump() == written


@pytest.mark.parametrize("name", RELATIVE)
def test_gradients_are_those_of_the_values(name: str) -> None:
    scheme, *heads = made(name)
    at, weights = torch.arange(3), list(scheme.parameters())
    short = [each[:1, :, :3].clone().requires_grad_() for each in heads]

    def of(*given: Tensor) -> Tensor:
        return mixed(scheme, (given[0], given[1], given[2]), at)

    assert torch.autograd.gradcheck(of, (*short, *weights))
