import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tfm.model.attention.explicit_attention import ExplicitAttention
from tfm.model.attention.relative_positions import AttentionPositions
from tfm.model.attention.scores import ScaledDotScore
from tfm.model.layers.dropout import POOL_SIZES, Dropout, DropoutRng
from tfm.model.layers.feed_forward import ACTIVATIONS, FeedForward
from tfm.model.masks import Mask


def masks(seed: int, step: int, place: int = 0, part: int = 0, noise: DropoutRng | None = None) -> list[torch.Tensor]:
    noise = noise or DropoutRng()
    noise.seed_batch(seed, step, place, part)
    like = torch.empty(100, 30)
    return [noise.mask(like, 0.3), noise.mask(like, 0.3), noise.mask(like, 0.5)]


@settings(max_examples=8)  # each fills pools of random numbers
@given(st.integers(0, 2**31), st.integers(0, 10**6))
def test_masks_are_a_function_of_seed_and_step_whatever_came_before(seed: int, step: int) -> None:
    used = DropoutRng()
    masks(seed + 1, step + 99, noise=used)
    for fresh, again in zip(masks(seed, step), masks(seed, step, noise=used), strict=True):
        assert torch.equal(fresh, again)


def test_every_coordinate_changes_the_masks() -> None:
    drawn = [masks(1, 5), masks(2, 5), masks(1, 6), masks(1, 5, place=1), masks(1, 5, part=1), masks(1, 5 + 64)]
    first = [all_masks[0] for all_masks in drawn] + [drawn[0][1]]
    for i, left in enumerate(first):
        for right in first[i + 1 :]:
            agreement = (left == right).float().mean().item()
            assert 0.5 < agreement < 0.66  # independent: 0.3^2 + 0.7^2 = 0.58


def test_rate_and_scale() -> None:
    for like in (torch.empty(1000, 1000), torch.empty(POOL_SIZES["cpu"] // 2 + 1)):
        noise = DropoutRng()
        mask = noise.mask(like, 0.3)
        assert set(mask.unique().tolist()) == {0.0, torch.tensor(1 / 0.7).item()}
        assert abs((mask == 0).float().mean().item() - 0.3) < 0.003


def test_dropout_is_off_in_eval() -> None:
    dropout, x = Dropout(0.5, DropoutRng()), torch.randn(40, 5)
    assert torch.equal(dropout.eval()(x), x)
    assert not torch.equal(dropout.train()(x), x)


def test_float64_drops_the_same_elements() -> None:
    noise = DropoutRng()
    single = noise.mask(torch.empty(1000), 0.2)
    noise.seed_batch(0, 0)
    assert torch.equal(single == 0, noise.mask(torch.empty(1000, dtype=torch.float64), 0.2) == 0)


def test_a_mask_too_large_for_the_pool_is_drawn_for_itself() -> None:
    noise, like = DropoutRng(), torch.ones(POOL_SIZES["cpu"] // 2 + 1)
    noise.seed_batch(1, 1)
    first, second = noise.mask(like, 0.3), noise.mask(like, 0.3)
    assert abs((first == second).float().mean() - (0.7**2 + 0.3**2)) < 0.01
    noise.seed_batch(1, 1)
    assert torch.equal(noise.mask(like, 0.3), first)


def test_another_seed_has_another_pool() -> None:
    noise, like = DropoutRng(), torch.ones(POOL_SIZES["cpu"] // 2)
    found = []
    for seed in (1, 2):
        noise.seed_batch(seed, 1)
        noise.mask(like, 0.3)
        (((_, pool),)) = noise._pools.values()
        found.append(pool)
    assert abs((found[0] == found[1]).float().mean() - (0.7**2 + 0.3**2)) < 0.01


def recorded(noise: DropoutRng) -> list[torch.Tensor]:
    """Every mask that is drawn from here on."""
    drawn: list[torch.Tensor] = []
    real = noise.mask
    noise.mask = lambda like, rate: drawn.append(real(like, rate)) or drawn[-1]  # type: ignore[method-assign, func-returns-value]
    return drawn


def test_activations_are_dropped_between_the_matrices() -> None:
    """W2 (m * relu(W1 x + b1)) + b2, in expectation over m the same without m, inside the second product."""
    noise, rows = DropoutRng(), torch.randn(200, 3, dtype=torch.float64)
    layer = FeedForward(
        3, 50, activation=ACTIVATIONS["relu"], dropout=Dropout(0.3, noise), compute_dtype=torch.float32
    ).double()
    masks, found = recorded(noise), layer(rows)
    (mask,) = masks
    assert mask.shape == (200, 50)
    assert abs(mask.mean().item() - 1) < 4 * (0.3 / 0.7 / mask.numel()) ** 0.5
    inner = (rows @ layer.inner.weight.T + layer.inner.bias).relu()
    torch.testing.assert_close(found, (inner * mask) @ layer.outer.weight.T + layer.outer.bias, rtol=0, atol=1e-12)
    torch.testing.assert_close(layer.eval()(rows), inner @ layer.outer.weight.T + layer.outer.bias, rtol=0, atol=1e-12)


def test_attention_weights_are_dropped_after_the_softmax() -> None:
    """(m * softmax(q k / sqrt(K))) v: what is left of a row's weights no longer adds up to 1."""
    noise = DropoutRng()
    query, key, value = (torch.randn(2, 3, 40, 4, dtype=torch.float64) for _ in range(3))
    way = ExplicitAttention(ScaledDotScore(), AttentionPositions(), Dropout(0.3, noise)).train()
    masks, found = recorded(noise), way(query, key, value, Mask(), torch.arange(40), torch.arange(40))
    (mask,) = masks
    assert mask.shape == (2, 3, 40, 40)
    assert abs(mask.mean().item() - 1) < 4 * (0.3 / 0.7 / mask.numel()) ** 0.5
    weights = (query @ key.transpose(-1, -2) / 2).softmax(-1)
    torch.testing.assert_close(found, (weights * mask) @ value, rtol=0, atol=1e-12)
    whole = way.eval()(query, key, value, Mask(), torch.arange(40), torch.arange(40))
    torch.testing.assert_close(whole, weights @ value, rtol=0, atol=1e-12)


def test_a_rate_of_nothing_draws_nothing() -> None:
    noise, x = DropoutRng(), torch.randn(40, 5)
    masks = recorded(noise)
    assert Dropout(0.0, noise).train()(x) is x
    assert not masks
    assert noise._draws == 0
