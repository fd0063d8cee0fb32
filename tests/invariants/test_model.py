"""Laws of the network: fused = explicit, cached = uncached, no padding anywhere, sentences do not mix."""

from typing import get_args

import pytest
import torch
from torch import Tensor

from tfm.model.attention import explicit_attention, inner_attention
from tfm.model.attention.explicit_attention import ExplicitAttention
from tfm.model.attention.inner_attention import FusedAttention
from tfm.model.attention.relative_positions import AttentionPositions
from tfm.model.attention.scores import ScaledDotScore
from tfm.model.build import build
from tfm.model.config import DropoutConfig, ModelConfig, NormPlacement, PositionsName, StackConfig, WeightTying
from tfm.model.layers.dropout import Dropout, DropoutRng
from tfm.model.layers.linear import Linear
from tfm.model.layout import Layout
from tfm.model.masks import Mask
from tfm.model.transformer.encoder_decoder import EncoderDecoder

V = 23


def network(
    norm: NormPlacement = "pre", positions: PositionsName = "sinusoidal", tie: WeightTying = "all", **changes: object
) -> EncoderDecoder:
    config = ModelConfig(
        encoder=StackConfig(layers=2, dim=16, heads=2, feed_forward_dim=24),
        decoder=StackConfig(layers=2, dim=16, heads=4, feed_forward_dim=24),
        norm=norm,
        positions=positions,
        tie=tie,
        max_length=32,
    ).model_copy(update=changes)
    return build(config, source_vocab=V, target_vocab=V, seed=3).double().eval()


def tokens(lengths: list[int], seed: int) -> tuple[Tensor, Layout]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(4, V, (sum(lengths),), generator=generator), Layout.from_lengths(torch.tensor(lengths))


@pytest.mark.parametrize("few_keys", [0, 6])
@pytest.mark.parametrize("masked", [Mask(), Mask(causal=True), "padding"])
@pytest.mark.parametrize("num_queries", [6, 17])
def test_fused_equals_explicit(
    masked: Mask | str, few_keys: int, num_queries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By torch's kernel, and by the gradients written out for short sentences."""
    monkeypatch.setattr(inner_attention, "MAX_KEYS_FOR_SHORT_ATTENTION", few_keys)
    torch.manual_seed(0)
    query = torch.randn(3, 2, num_queries, 4, dtype=torch.float64, requires_grad=True)
    key, value = (torch.randn(3, 2, 6, 4, dtype=torch.float64, requires_grad=True) for _ in range(2))
    real = torch.arange(6) < torch.tensor([6, 2, 5])[:, None]
    mask = Mask(allowed=real[:, None, None, :]) if isinstance(masked, str) else masked
    at, results = torch.arange(6), []
    equation = ExplicitAttention(ScaledDotScore(), AttentionPositions(), Dropout(0, DropoutRng()))
    for way in (FusedAttention(equation), equation):
        mixed = way(query, key, value, mask, torch.arange(num_queries), at)
        results.append([mixed, *torch.autograd.grad(mixed.square().sum(), [query, key, value])])
    for fused, explicit in zip(*results, strict=True):
        torch.testing.assert_close(fused, explicit, rtol=0, atol=1e-12)


@pytest.mark.parametrize("bias", [(1, 1, 1, 5), (2, 1, 3, 5), (3, 5), None])
def test_the_gradients_written_out_are_those_of_the_equation(bias: tuple[int, ...] | None) -> None:
    torch.manual_seed(0)
    query, key, value = (torch.randn(2, 2, n, 4, dtype=torch.float64, requires_grad=True) for n in (3, 5, 5))
    added = None if bias is None else torch.randn(bias, dtype=torch.float64)
    if added is not None:
        added[..., 1] = float("-inf")
    assert torch.autograd.gradcheck(explicit_attention.ShortSequenceAttention.apply, (query, key, value, added))


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("positions", get_args(PositionsName))
@pytest.mark.few(9)
def test_cached_equals_uncached_through_any_reordering(norm: NormPlacement, positions: PositionsName) -> None:
    model = network(norm, positions)
    source, layout = tokens([4, 7, 1], 1)
    memory = model.encode(source, layout)
    state = model.start(source, layout)
    generator = torch.Generator().manual_seed(5)
    histories: list[list[int]] = [[] for _ in range(3)]
    sentence = torch.arange(3)
    moves = [[0, 0, 1, 1, 2, 2], [1, 0, 2, 2, 5, 4], [1, 1, 4, 5], [0, 0, 0, 2, 3, 3], [5, 4, 3]]
    for move in moves:
        state, sentence = state.select(torch.tensor(move)), sentence[move]
        histories = [list(histories[row]) for row in move]
        new = torch.randint(4, V, (len(move),), generator=generator)
        for history, token in zip(histories, new.tolist(), strict=True):
            history.append(token)
        predict, state = model.step(new, state)
        log_probs = predict(slice(None))
        assert state.num_rows == len(move)
        starts = layout.lengths.cumsum(0) - layout.lengths
        for row, history in enumerate(histories):
            begin, length = int(starts[sentence[row]]), int(layout.lengths[sentence[row]])
            hidden = model.decode(
                torch.tensor(history),
                Layout.from_lengths(torch.tensor([len(history)])),
                memory[begin : begin + length],
                Layout.from_lengths(torch.tensor([length])),
            )
            want = model.output(hidden[-1:]).log_softmax(-1)[0]
            torch.testing.assert_close(log_probs[row], want, rtol=0, atol=1e-10)


def test_a_sentence_may_take_the_place_of_another() -> None:
    model = network()
    source, layout = tokens([4, 3, 5], 1)
    late, late_layout = tokens([7, 2], 2)
    state = model.start(source, layout)
    generator = torch.Generator().manual_seed(5)
    pieces: list[list[int]] = [[] for _ in range(6)]
    sources = [source.split([4, 3, 5])[row // 2] for row in range(6)]
    state = state.select(torch.arange(3).repeat_interleave(2))
    for step in range(9):
        if step in (2, 5):  # the sentences of rows 4, 5 and 0, 1 leave
            rows = torch.tensor([4, 5, 0, 1])
            state = state.replace(rows, model.start(late, late_layout).select(torch.tensor([0, 0, 1, 1])))
            for row, new in zip(rows.tolist(), (0, 0, 1, 1), strict=True):
                pieces[row], sources[row] = [], late.split([7, 2])[new]
        new_tokens = torch.randint(4, V, (6,), generator=generator)
        for row, token in enumerate(new_tokens.tolist()):
            pieces[row] = [*pieces[row], token]
        predict, state = model.step(new_tokens, state)
        for row, (read, own) in enumerate(zip(pieces, sources, strict=True)):
            hidden = model(
                own,
                Layout.from_lengths(torch.tensor([len(own)])),
                torch.tensor(read),
                Layout.from_lengths(torch.tensor([len(read)])),
            )
            want = model.output(hidden[-1:]).log_softmax(-1)
            torch.testing.assert_close(predict(slice(row, row + 1)), want, rtol=0, atol=1e-10)
        swapped = torch.tensor([1, 0, 2, 2, 5, 5])  # rows descend from their neighbours
        state, pieces = state.select(swapped), [pieces[row] for row in swapped.tolist()]
    assert state.ancestor_mask is not None
    assert state.ancestor_mask.shape[2] < 9 * 2, "slots that nobody descends from are taken again"
    assert state.memory.keys_values[0][0].shape[2] == 7, (
        "what is remembered is as wide as the longest source that is there"
    )


def test_a_sentence_does_not_see_its_batch() -> None:
    model = network()
    (source, sources), (target, targets) = tokens([5, 2, 9], 1), tokens([3, 8, 2], 2)
    together = model(source, sources, target, targets)
    at_source = at_target = 0
    for s, t in zip([5, 2, 9], [3, 8, 2], strict=True):
        alone = model(
            source[at_source : at_source + s],
            Layout.from_lengths(torch.tensor([s])),
            target[at_target : at_target + t],
            Layout.from_lengths(torch.tensor([t])),
        )
        torch.testing.assert_close(together[at_target : at_target + t], alone, rtol=0, atol=1e-12)
        at_source, at_target = at_source + s, at_target + t


def test_the_decoder_does_not_see_the_future() -> None:
    model = network()
    (source, sources), (target, targets) = tokens([5], 1), tokens([8], 2)
    changed = target.clone()
    changed[5] = (changed[5] + 1 - 4) % (V - 4) + 4
    before, after = (model(source, sources, ids, targets) for ids in (target, changed))
    torch.testing.assert_close(before[:5], after[:5], rtol=0, atol=1e-12)
    assert not torch.allclose(before[5:], after[5:])


def test_no_padded_row_reaches_a_linear_layer() -> None:
    model, seen = network(), set[int]()
    for module in model.modules():
        if isinstance(module, Linear):
            module.register_forward_hook(lambda _, inputs, __: seen.add(len(inputs[0])))
    (source, sources), (target, targets) = tokens([5, 2, 9], 1), tokens([3, 8, 2], 2)
    model.output(model(source, sources, target, targets))
    assert seen == {16, 13}


@pytest.mark.parametrize("tie", ["none", "embeddings", "output", "all"])
def test_ties_share_one_tensor(tie: WeightTying) -> None:
    model = network(tie=tie)
    source, target = model.source_embedding.table.weight, model.target_embedding.table.weight
    assert (source is target) == (tie in ("embeddings", "all"))
    assert (target is model.output.weight) == (tie in ("output", "all"))


def test_widths_may_differ() -> None:
    stacks = {
        "encoder": StackConfig(layers=1, dim=24, heads=3, feed_forward_dim=8),
        "decoder": StackConfig(layers=2, dim=16, heads=2, feed_forward_dim=8),
    }
    for embedding_dim, tie in ((12, "all"), (None, "output"), (None, "none")):
        model = network(tie=tie, embedding_dim=embedding_dim, **stacks)  # type: ignore[arg-type]
        (source, sources), (target, targets) = tokens([5, 2], 1), tokens([3, 8], 2)
        hidden = model(source, sources, target, targets)
        assert model.output(hidden).shape == (11, V)


def test_each_dropout_rate_acts_on_its_own() -> None:
    (source, sources), (target, targets) = tokens([5, 2], 1), tokens([3, 8], 2)
    for name in ("residual", "embedding", "attention", "feed_forward"):
        rates = dict.fromkeys(("residual", "embedding", "attention", "feed_forward"), 0.0) | {name: 0.5}
        model = network(dropout=DropoutConfig(**rates)).train()
        model.dropout_rng.seed_batch(1, 1)
        first = model(source, sources, target, targets)
        model.dropout_rng.seed_batch(1, 1)
        assert torch.equal(first, model(source, sources, target, targets))
        model.dropout_rng.seed_batch(1, 2)
        assert not torch.allclose(first, model(source, sources, target, targets)), name
        model.eval()
        assert not torch.allclose(first, model(source, sources, target, targets)), name


def test_initial_weights_are_a_function_of_the_seed() -> None:
    config = ModelConfig(encoder=StackConfig(layers=1, dim=8, heads=2), decoder=StackConfig(layers=1, dim=8, heads=2))
    first, again, other = (build(config, source_vocab=9, target_vocab=9, seed=seed) for seed in (1, 1, 2))
    for name, weight in first.state_dict().items():
        assert torch.equal(weight, again.state_dict()[name])
    assert not torch.equal(first.output.weight, other.output.weight)
