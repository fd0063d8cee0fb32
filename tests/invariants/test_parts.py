"""Laws of every part a layer may be made of: who sees whom, the order of words, cached = uncached, batched = alone."""

from contextlib import nullcontext
from typing import Any, get_args

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from tests.invariants.test_decoding import Uncached, assert_same, draw_sources
from tests.quick import mostly_slow
from tfm.model.attention import inner_attention
from tfm.model.build import build
from tfm.model.config import (
    ActivationName,
    AttentionScore,
    ModelConfig,
    Normalization,
    NormPlacement,
    PositionsName,
    RecurrentConfig,
    StackConfig,
)
from tfm.model.layout import Layout
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.decoding.decode import decode
from tfm.pipeline.model_io.model_weights import SkipWeightInit, drop_shared_tensors, model_weight_shapes

V = 30
RELATIVE = ("rotary", "alibi", "shaw", "transformer_xl")
OF_HEADS = ("key_value_heads", "key_dim", "value_dim")
PARTS: dict[str, dict[str, Any]] = {
    "window": {"window": 2},
    "shared keys": {"key_value_heads": 2},
    "one key": {"key_value_heads": 1},
    "values of another width": {"value_dim": 3},
    "normed queries and keys": {"qk_norm": True},
    "lstm": {"mixing": "recurrent"},
    "gru": {"mixing": "recurrent", "recurrent": RecurrentConfig(cell="gru")},
    "convolution": {"mixing": "convolution"},
    "narrow convolution": {"mixing": "convolution", "window": 1},
    "concatenated": {"positions_join": "concatenate"},
    "concatenated learned": {"positions_join": "concatenate", "positions": "learned"},
    "tanh": {"mixing": "recurrent", "recurrent": RecurrentConfig(cell="tanh")},
    "no residuals": {"residual": "none"},
    "no norms": {"normalization": "none", "activation": "none"},
    "no feed-forward": {"feed_forward": "none"},
    "no feed-forward, post": {"feed_forward": "none", "norm": "post"},
    "no projections": {"attention_projections": False, "window": 2},
    "no projections, rotary": {"attention_projections": False, "positions": "rotary", "output_projection": False},
    "keys as values": {"values": "keys", "key_value_heads": 2},
    "no output projection": {"output_projection": False, "qk_norm": True},
    "hard": {"lookup": "hard", "key_value_heads": 2},
    "hard, window, shaw": {"lookup": "hard", "window": 2, "positions": "shaw"},
    "strict": {"mask": "strict"},
    "strict, window, rotary": {"mask": "strict", "window": 2, "positions": "rotary", "key_value_heads": 2},
    "strict, dot": {"mask": "strict", "score": "dot"},
    "from one": {"positions": "sinusoidal_from_one"},
    "positions in attention": {"positions_join": "attention", "attention_projections": False},
    "positions in attention, learned, window": {"positions_join": "attention", "positions": "learned", "window": 2},
    "gru, reset before": {"mixing": "recurrent", "recurrent": RecurrentConfig(cell="gru_reset_before")},
    "ssru in the decoder alone": {
        "decoder_mixing": "recurrent",
        "recurrent": RecurrentConfig(cell="ssru"),
    },
    "attention in the decoder alone": {"mixing": "convolution", "decoder_mixing": "attention"},
    "ssru": {"mixing": "recurrent", "recurrent": RecurrentConfig(cell="ssru")},
    "wide convolution": {"mixing": "convolution", "convolution": {"width": 4, "filters": 5}},
    "dilated convolution": {"mixing": "convolution", "convolution": {"width": 3, "dilation": 3}},
    "gain": {"normalization": "layer_gain"},
    "deviation": {"normalization": "layer_std", "norm": "post"},
    "batch norm": {"normalization": "batch"},
    "normed embeddings": {"embedding_norm": True, "normalization": "rms"},
    **{f"{name}, window, shared keys": {"positions": name, "window": 2, "key_value_heads": 2} for name in RELATIVE},
    **{f"{name}, window": {"score": name, "window": 2, "key_value_heads": 2} for name in get_args(AttentionScore)},
    "all of it": {
        "window": 3,
        "key_value_heads": 2,
        "key_dim": 6,
        "value_dim": 5,
        "qk_norm": True,
        "normalization": "batch",
        "positions": "rotary",
        "norm": "post",
    },
}
CAUSAL = {"transformer": "translation", "decoder_only": "translation"}


def configured(architecture: str = "transformer", **changes: Any) -> ModelConfig:
    heads = {name: changes.pop(name) for name in OF_HEADS if name in changes}
    stack = StackConfig(layers=2, dim=16, heads=4, feed_forward_dim=24, **heads)
    own, stacks = changes.pop("decoder_mixing", None), {"encoder": stack, "decoder": stack}
    if architecture == "transformer":
        stacks["decoder"] = stack.model_copy(update={"mixing": own})
    elif own is not None:
        changes["mixing"] = own
    return ModelConfig.model_validate(
        {"architecture": architecture, **stacks, "max_length": 64, "tie": "none", **changes}
    )


def network(architecture: str = "transformer", **changes: Any) -> Any:
    model: Any = build(configured(architecture, **changes), source_vocab=V, target_vocab=V, seed=3).double().eval()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, buffer in model.named_buffers():
            if name.endswith((".mean", ".variance")):  # as if it had been trained
                buffer.add_(torch.rand(buffer.shape, generator=generator).to(buffer))
        model.output.weight.mul_(2.5)
    return model


def tokens(lengths: list[int], seed: int) -> tuple[Tensor, Layout]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(4, V, (sum(lengths),), generator=generator), Layout.from_lengths(torch.tensor(lengths))


def close(found: Tensor, want: Tensor) -> None:
    torch.testing.assert_close(found, want, rtol=0, atol=1e-10)


@pytest.mark.few(6)
@pytest.mark.parametrize("architecture", CAUSAL)
@pytest.mark.parametrize("part", PARTS)
def test_cached_equals_uncached_through_any_reordering(
    part: str, architecture: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inner_attention, "MIN_BLOCK_SIZE", 1)  # also where what is read at once goes by blocks
    monkeypatch.setattr(inner_attention, "MIN_BLOCKS_FOR_BLOCKED_ATTENTION", 1)
    model = network(architecture, **PARTS[part])
    source, layout = tokens([4, 7, 1], 1)
    sources = torch.split(source, layout.lengths.tolist())
    state, sentence, generator = model.start(source, layout), torch.arange(3), torch.Generator().manual_seed(5)
    histories: list[list[int]] = [[] for _ in range(3)]
    for move in [[0, 0, 1, 1, 2, 2], [1, 0, 2, 2, 5, 4], [1, 1, 4, 5], [0, 0, 0, 2, 3, 3], [5, 4, 3]]:
        state, sentence = state.select(torch.tensor(move)), sentence[move]
        new = torch.randint(4, V, (len(move),), generator=generator)
        histories = [[*histories[row], int(token)] for row, token in zip(move, new, strict=True)]
        predict, state = model.step(new, state)
        for row, history in enumerate(histories):
            own = sources[int(sentence[row])]
            layouts = (Layout.from_lengths(torch.tensor([len(each)])) for each in (own, history))
            hidden = model(own, next(layouts), torch.tensor(history), next(layouts))
            close(predict(slice(row, row + 1)), model.log_probs(hidden[-1:]))


@pytest.mark.few(3)
@pytest.mark.parametrize("architecture", mostly_slow(CAUSAL, "transformer"))
@pytest.mark.parametrize("part", PARTS)
def test_the_cache_changes_nothing_in_beam_search(part: str, architecture: str) -> None:
    """Sentences come and go: finished ones free their slots, and the cache there, for others."""
    model, sources = network(architecture, **PARTS[part]), draw_sources(7, vocab=V)
    config = DecodingConfig(beam=3, n_best=3, batch_sentences=3, max_length=6)
    assert_same(decode(model, sources, config), decode(Uncached(model), sources, config))


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.few(23)
def test_a_sentence_does_not_see_its_batch(part: str) -> None:
    model = network(**PARTS[part])
    (source, sources), (target, targets) = tokens([5, 2, 9], 1), tokens([3, 8, 2], 2)
    together = torch.split(model(source, sources, target, targets), targets.lengths.tolist())
    alone = zip(torch.split(source, [5, 2, 9]), torch.split(target, [3, 8, 2]), together, strict=True)
    for own, read, found in alone:
        close(
            found,
            model(
                own, Layout.from_lengths(torch.tensor([len(own)])), read, Layout.from_lengths(torch.tensor([len(read)]))
            ),
        )


@pytest.mark.parametrize("architecture", CAUSAL)
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.few(20)
def test_changing_a_token_changes_nothing_before_it(part: str, architecture: str) -> None:
    model = network(architecture, **PARTS[part])
    (source, sources), (target, targets) = tokens([5], 1), tokens([12], 2)
    before = model(source, sources, target, targets)
    for j in (0, 4, 11):
        changed = target.clone()
        changed[j] = (changed[j] + 1 - 4) % (V - 4) + 4
        after = model(source, sources, changed, targets)
        close(after[:j], before[:j])
        # without residuals only the weights of attention to the source tell what was read
        assert (after[j] - before[j]).abs().max() > (1e-14 if part == "no residuals" else 1e-6)


@pytest.mark.parametrize(
    ("part", "reach"),
    [
        ({"window": 2}, 2),
        ({"window": 2, "positions": "alibi"}, 2),
        ({"window": 3, "positions": "shaw", "key_value_heads": 1}, 3),
        ({"mixing": "convolution"}, 3),
        ({"mixing": "convolution", "window": 1}, 1),
        ({"mixing": "convolution", "convolution": {"width": 5}}, 2),
        ({"mixing": "recurrent"}, None),
        ({}, None),
    ],
)
@pytest.mark.parametrize("layers", [1, 2])
def test_a_token_is_seen_as_far_as_layers_reach(part: dict[str, Any], reach: int | None, layers: int) -> None:
    heads = {"key_value_heads": part["key_value_heads"]} if "key_value_heads" in part else {}
    stack = StackConfig(layers=layers, dim=16, heads=4, feed_forward_dim=24, **heads)
    others = {name: value for name, value in part.items() if name not in heads}
    config = ModelConfig.model_validate({"encoder": stack, "decoder": stack, **others})
    model: Any = build(config, source_vocab=V, target_vocab=V, seed=3).double().eval()
    source, layout = tokens([21], 1)
    changed = source.clone()
    changed[10] = (changed[10] + 1 - 4) % (V - 4) + 4
    difference = (model.encode(changed, layout) - model.encode(source, layout)).abs().amax(1)
    seen = (difference > 1e-12).nonzero().flatten().tolist()
    far = 10 if reach is None else reach * layers
    assert seen == list(range(10 - far, 10 + far + 1))


@pytest.mark.parametrize(("width", "layers"), [(3, 1), (3, 2), (3, 3), (5, 2)])
def test_dilated_layers_see_as_many_rows_as_their_width_to_the_power_of_their_number(width: int, layers: int) -> None:
    """k^L rows: the path between two words of n takes log_k n layers   (Vaswani et al. 2017, table 1)."""
    stack = StackConfig(layers=layers, dim=16, heads=4, feed_forward_dim=24)
    table = {"width": width, "dilation": width} if layers > 1 else {"width": width}
    config = ModelConfig.model_validate(
        {"encoder": stack, "decoder": stack, "mixing": "convolution", "convolution": table}
    )
    model: Any = build(config, source_vocab=V, target_vocab=V, seed=3).double().eval()
    source, layout = tokens([41], 1)
    changed = source.clone()
    changed[20] = (changed[20] + 1 - 4) % (V - 4) + 4
    difference = (model.encode(changed, layout) - model.encode(source, layout)).abs().amax(1)
    reach = width**layers // 2
    assert (difference > 1e-12).nonzero().flatten().tolist() == list(range(20 - reach, 20 + reach + 1))


def encoded(order: list[int], **changes: Any) -> Tensor:
    """What an encoder makes of words in an order, put back in the first one."""
    model = network(**changes)
    source, layout = tokens([5], 4)
    found: Tensor = model.encode(source[order], layout)
    return found[torch.tensor(order).argsort()]


WORDS, MOVED = [0, 1, 2, 3, 4], [3, 1, 4, 0, 2]
UNORDERED: dict[str, dict[str, Any]] = {
    **{name: {"score": name} for name in get_args(AttentionScore)},
    **{name: {"norm": name} for name in get_args(NormPlacement)},
    **{name: {"normalization": name} for name in get_args(Normalization)},
    **{name: {"activation": name} for name in get_args(ActivationName)},
    "shared keys": {"key_value_heads": 2, "value_dim": 3},
    "normed queries and keys": {"qk_norm": True},
}


@pytest.mark.parametrize("part", UNORDERED)
def test_without_positions_self_attention_knows_no_order(part: str) -> None:
    """John loves Mary as Mary loves John: moving words moves what is made of them, in stacked layers too."""
    moved = encoded(MOVED, positions="none", **UNORDERED[part])
    torch.testing.assert_close(moved, encoded(WORDS, positions="none", **UNORDERED[part]), rtol=0, atol=1e-12)


ORDERED: dict[str, dict[str, Any]] = {
    **{name: {"positions": name} for name in get_args(PositionsName) if name != "none"},
    "beside": {"positions_join": "concatenate"},
    "in attention": {"positions_join": "attention"},
    "window": {"positions": "none", "window": 1},
    "recurrent": {"positions": "none", "mixing": "recurrent"},
    "convolution": {"positions": "none", "mixing": "convolution"},
}


@pytest.mark.parametrize("part", ORDERED)
def test_with_anything_else_it_does(part: str) -> None:
    assert (encoded(MOVED, **ORDERED[part]) - encoded(WORDS, **ORDERED[part])).abs().max() > 1e-3


@pytest.mark.parametrize("architecture", CAUSAL)
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.few(20)
def test_the_shapes_of_a_model_are_those_of_what_is_saved(part: str, architecture: str) -> None:
    config, model = configured(architecture, **PARTS[part]), network(architecture, **PARTS[part])
    found = model_weight_shapes(config, source_vocab=V, target_vocab=V)
    assert found == {name: tuple(weight.shape) for name, weight in drop_shared_tensors(model.state_dict()).items()}


class Operations(TorchDispatchMode):
    """Names of the operations that reach a device while the body runs."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.add(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("architecture", CAUSAL)
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.few(12)
def test_a_network_to_be_filled_draws_no_weights(part: str, architecture: str) -> None:
    """The draws of a large model take half a second, and a file overwrites them."""
    config, used = configured(architecture, **PARTS[part]), {}
    for name, context in (("drawn", nullcontext()), ("skipped", SkipWeightInit())):
        with context, Operations() as used[name]:
            build(config, source_vocab=V, target_vocab=V)
    drawn, skipped = (used[name].names for name in ("drawn", "skipped"))
    assert drawn & {"normal_", "uniform_"}
    assert drawn - skipped <= {"normal_", "uniform_"}
    assert not skipped & {"normal_", "uniform_"}
