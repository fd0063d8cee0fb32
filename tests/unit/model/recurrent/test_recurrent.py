"""Recurrent layers are torch's, the models are their papers' equations, and the laws of every model hold for them."""

from itertools import product
from pathlib import Path
from typing import Any, get_args

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from tests.rounding import assert_rounds_like
from tfm.data.batching.batches import pair_batch_from_ids
from tfm.model.attention.explicit_attention import ExplicitAttention
from tfm.model.build import build
from tfm.model.config import (
    AttentionScore,
    DropoutConfig,
    ModelConfig,
    RecurrentAttention,
    RecurrentCell,
    RecurrentConfig,
    StackConfig,
)
from tfm.model.layers.linear import Linear
from tfm.model.layout import FlatLayout, Layout
from tfm.model.recurrent.cells import CELLS, Gru, GruResetBefore, Lstm, RecurrentLayer, Ssru, TanhRnn
from tfm.model.recurrent.decoder import BahdanauDecoder, Decoder, LuongDecoder
from tfm.model.recurrent.encoder_decoder import Encoder, IdentityBridge, ProjectionBridge, RecurrentEncoderDecoder
from tfm.model.recurrent.steps import TimeMajorPacking
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.decoding.decode import decode
from tfm.pipeline.errors import DataError
from tfm.pipeline.model_io.model_weights import drop_shared_tensors, load_weights
from tfm.pipeline.tasks.criteria import CrossEntropy
from tfm.pipeline.tasks.translation import Translation

V, LENGTHS = 23, [3, 5, 1, 5]
F64 = torch.float64
NO_DROPOUT = DropoutConfig(residual=0, embedding=0)
VARIANTS: list[dict[str, Any]] = [
    {"cell": "lstm"},
    {"cell": "gru", "reverse_source": True},
    {"cell": "lstm", "attention": "luong", "bidirectional": True},
    {"cell": "gru", "attention": "luong"},
    {"cell": "gru", "attention": "bahdanau", "bidirectional": True},
    {"cell": "lstm", "attention": "bahdanau", "reverse_source": True},
    {"cell": "tanh", "bidirectional": True},
    {"cell": "tanh", "attention": "luong"},
    {"cell": "gru_reset_before", "attention": "bahdanau", "bidirectional": True},
    {"cell": "gru_reset_before"},
    {"cell": "ssru"},
    {"cell": "ssru", "attention": "bahdanau", "bidirectional": True},
]
TORCHS: tuple[RecurrentCell, ...] = ("lstm", "gru", "tanh")
"""The cells that torch has."""
variants = pytest.mark.parametrize("variant", VARIANTS, ids=lambda each: " ".join(map(str, each.values())))


def network(
    variant: dict[str, Any], *, layers: tuple[int, int] = (2, 2), dims: tuple[int, int] = (16, 16), **changes: Any
) -> RecurrentEncoderDecoder:
    encoder, decoder = (
        StackConfig(layers=each, dim=dim, heads=heads)
        for each, dim, heads in zip(layers, dims, (1, changes.pop("heads", 1)), strict=True)
    )
    config = ModelConfig.model_validate(
        {
            "architecture": "recurrent",
            "recurrent": variant,
            "encoder": encoder,
            "decoder": decoder,
            "score": "additive",
            "dropout": NO_DROPOUT,
            "max_length": 32,
            **changes,
        }
    )
    model = build(config, source_vocab=V, target_vocab=V, seed=3).double().eval()
    assert isinstance(model, RecurrentEncoderDecoder)
    with torch.no_grad():  # biases that are zero would hide whether they are there
        for name, each in model.named_parameters():
            if name.endswith("bias"):
                each.add_(torch.linspace(-0.5, 0.5, each.numel()).view_as(each))
    return model


def tokens(lengths: list[int], seed: int) -> tuple[Tensor, Layout]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(4, V, (sum(lengths),), generator=generator), Layout.from_lengths(torch.tensor(lengths))


def close(ours: Tensor, theirs: Tensor, atol: float = 1e-10) -> None:
    torch.testing.assert_close(ours, theirs, rtol=0, atol=atol)


# The layers


def torchs(ours: RecurrentLayer, reverse: RecurrentLayer | None = None) -> nn.RNNBase:
    """torch's own layer with these weights; `reverse` reads from the end."""
    kinds: dict[type, tuple[type[nn.RNNBase], tuple[int, ...]]]
    kinds = {Lstm: (nn.LSTM, (1, 2, 3, 0)), Gru: (nn.GRU, (0, 1, 2)), TanhRnn: (nn.RNN, (0,))}
    kind, order = kinds[type(ours)]
    in_dim = ours.input.weight.shape[1]
    theirs = kind(in_dim, ours.dim, batch_first=True, bidirectional=reverse is not None, dtype=F64)
    with torch.no_grad():
        for name, each in (("", ours), ("_reverse", reverse)):
            if each is None:
                continue
            for theirs_is, ours_is in (
                ("weight_ih", each.input.weight),
                ("bias_ih", each.input.bias),
                ("weight_hh", each.recurrent.weight),
            ):
                assert ours_is is not None
                parts = ours_is.chunk(each.num_gates)
                getattr(theirs, f"{theirs_is}_l0{name}").copy_(torch.cat([parts[part] for part in order]))
            getattr(theirs, f"bias_hh_l0{name}").zero_()
    return theirs


def layer(cell: str, in_dim: int = 3, dim: int = 4, dtype: torch.dtype = torch.float32) -> RecurrentLayer:
    torch.manual_seed(5)
    made = CELLS[cell](in_dim, dim, compute_dtype=dtype)
    for name, each in made.named_parameters():
        if name.endswith("bias"):
            nn.init.normal_(each)
    return made


@pytest.mark.parametrize("cell", TORCHS)
def test_a_layer_is_torchs_in_values_and_gradients(cell: RecurrentCell) -> None:
    ours, layout = layer(cell).double(), Layout.from_lengths(torch.tensor(LENGTHS))
    theirs, steps = torchs(ours), TimeMajorPacking(layout)
    rows = torch.randn(layout.num_rows, 3, dtype=F64, requires_grad=True)
    start = tuple(torch.randn(4, 4, dtype=F64, requires_grad=True) for _ in range(ours.num_states))
    hidden, ends = ours(steps.pack(rows), steps, tuple(steps.sort_states(each) for each in start))
    packed = nn.utils.rnn.pack_padded_sequence(layout.pad(rows), layout.lengths, batch_first=True, enforce_sorted=False)
    first = tuple(each[None] for each in start)
    want, last = theirs(packed, first if len(first) > 1 else first[0])
    want = layout.unpad(nn.utils.rnn.pad_packed_sequence(want, batch_first=True)[0])
    close(steps.unpack(hidden), want)
    last = last if isinstance(last, tuple) else (last,)
    for our_end, their_end in zip(ends, last, strict=True):
        close(steps.unsort_states(our_end), their_end[0])

    def loss(rows_said: Tensor, ends_said: list[Tensor]) -> Tensor:
        return sum((each.sin().sum() for each in ends_said), rows_said.square().sum())

    ours_loss = loss(steps.unpack(hidden), [steps.unsort_states(each) for each in ends])
    theirs_loss = loss(want, [each[0] for each in last])
    for a, b in zip(
        torch.autograd.grad(ours_loss, [rows, *start], retain_graph=True),
        torch.autograd.grad(theirs_loss, [rows, *start], retain_graph=True),
        strict=True,
    ):
        close(a, b)
    order = {"lstm": (1, 2, 3, 0), "gru": (0, 1, 2), "tanh": (0,)}[cell]
    assert ours.input.bias is not None
    weights = [ours.input.weight, ours.recurrent.weight, ours.input.bias]
    for a, b in zip(
        torch.autograd.grad(ours_loss, weights),
        torch.autograd.grad(theirs_loss, [theirs.weight_ih_l0, theirs.weight_hh_l0, theirs.bias_ih_l0]),
        strict=True,
    ):
        close(torch.cat([a.chunk(ours.num_gates)[part] for part in order]), b)


@pytest.mark.parametrize("cell", get_args(RecurrentCell))
def test_gradients_written_out_are_those_of_the_equations(cell: RecurrentCell) -> None:
    ours, steps = layer(cell, 2, 2).double(), TimeMajorPacking(Layout.from_lengths(torch.tensor([2, 3, 1])))
    rows = torch.randn(6, 2, dtype=F64, requires_grad=True)
    start = [torch.randn(3, 2, dtype=F64, requires_grad=True) for _ in range(ours.num_states)]
    weights = list(ours.parameters())
    assert torch.autograd.gradcheck(
        lambda rows, *rest: (lambda said, ends: (said, *ends))(*ours(rows, steps, rest[: len(start)])),
        (rows, *start, *weights),
    )


@pytest.mark.parametrize("cell", get_args(RecurrentCell))
def test_step_by_step_is_all_at_once(cell: RecurrentCell) -> None:
    ours, steps = layer(cell).double(), TimeMajorPacking(Layout.from_lengths(torch.tensor([5, 5])))
    rows = torch.randn(10, 3, dtype=F64)
    hidden, ends = ours(rows, steps)
    states = ours.zero_states(rows, 2)
    for read, want in zip(rows.split(2), hidden.split(2), strict=True):
        states = ours.step(ours.input(read), states)
        close(states[0], want)
    for state, end in zip(states, ends, strict=True):
        close(state, end)


@pytest.mark.parametrize("cell", get_args(RecurrentCell))
def test_products_in_bf16_round_as_torchs_do(cell: RecurrentCell) -> None:
    """Beside the same layer of fp32 under autocast."""
    lengths = torch.randint(1, 9, (140,), generator=torch.Generator().manual_seed(1))
    layout, results = Layout.from_lengths(lengths), []
    rows = torch.randn(layout.num_rows, 8, generator=torch.Generator().manual_seed(2))
    for dtype, autocast in ((torch.bfloat16, False), (torch.float32, True), (F64, False)):
        ours, steps = layer(cell, 8, 16, dtype).train(), TimeMajorPacking(layout)
        if dtype is F64:
            ours, rows = ours.double(), rows.double()
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            hidden, ends = ours(steps.pack(rows), steps)
            loss = hidden.square().sum(dtype=rows.dtype) + ends[-1].sum(dtype=rows.dtype)
            results.append([hidden, *torch.autograd.grad(loss, [each for each in ours.parameters() if each.ndim == 2])])
    for low, plain, exact in zip(*results, strict=True):
        assert_rounds_like(low, plain.float(), exact, products=torch.bfloat16)
        assert (low - exact).norm() > 1e-4 * exact.norm()


@given(lengths=st.lists(st.integers(1, 7), min_size=1, max_size=6), backward=st.booleans())
@settings(max_examples=50, deadline=None)
def test_steps_are_a_reordering(lengths: list[int], backward: bool) -> None:
    layout = Layout.from_lengths(torch.tensor(lengths))
    steps, rows = TimeMajorPacking(layout, backward=backward), torch.arange(sum(lengths))
    arranged = steps.pack(rows)
    assert torch.equal(steps.unpack(arranged), rows)
    assert steps.batch_sizes == sorted(steps.batch_sizes, reverse=True)
    for step, read in enumerate(arranged.split(steps.batch_sizes)):
        for sentence, row in zip(steps.order.tolist(), read.tolist(), strict=False):
            place = lengths[sentence] - 1 - step if backward else step
            assert row == sum(lengths[:sentence]) + place


@pytest.mark.parametrize("cell", get_args(RecurrentCell))
def test_a_layer_is_its_equation(cell: RecurrentCell) -> None:
    ours, steps = layer(cell).double(), TimeMajorPacking(Layout.from_lengths(torch.tensor([6])))
    rows = torch.randn(6, 3, dtype=F64)
    hidden, _ = ours(rows, steps)
    close(hidden, torch.stack([states[0] for states in read_by_hand(ours, rows)]), 1e-12)


def test_where_nothing_is_reset_both_orders_of_the_gru_are_one() -> None:
    """With r = 1 U (r * h) is r * U h."""
    before, after = layer("gru_reset_before").double(), layer("gru").double()
    steps, rows = TimeMajorPacking(Layout.from_lengths(torch.tensor([6]))), torch.randn(6, 3, dtype=F64)
    with torch.no_grad():
        after.recurrent.weight.copy_(torch.cat([before.recurrent.weight, before.candidate.weight]))  # type: ignore[union-attr]
        after.input.weight.copy_(before.input.weight)
        after.input.bias.copy_(before.input.bias)
        close(before(rows, steps)[0], after(rows, steps)[0], 1.0)
        assert (before(rows, steps)[0] - after(rows, steps)[0]).abs().max() > 1e-3
        for each in (before, after):
            each.input.bias[:4] = 60.0
        close(before(rows, steps)[0], after(rows, steps)[0], 1e-12)


# The models


def sigmoid(x: Tensor) -> Tensor:
    return 1 / (1 + (-x).exp())


def by_hand(cell: RecurrentLayer, gates: Tensor, states: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """One step of one hypothesis: W x + b is `gates`."""
    x = gates.chunk(cell.num_gates)
    if isinstance(cell, Ssru):
        f = sigmoid(x[0] + cell.forget_bias)
        c = f * states[1] + (1 - f) * x[1]
        return c.clamp_min(0), c
    if isinstance(cell, GruResetBefore):
        for_reset, for_keep = cell.recurrent.weight.chunk(2)
        r, z = sigmoid(x[0] + for_reset @ states[0]), sigmoid(x[1] + for_keep @ states[0])
        return ((1 - z) * (x[2] + cell.candidate.weight @ (r * states[0])).tanh() + z * states[0],)
    h = (cell.recurrent.weight @ states[0]).chunk(cell.num_gates)
    if isinstance(cell, Lstm):
        o, i, f = (sigmoid(x[part] + h[part]) for part in range(3))
        c = f * states[1] + i * (x[3] + h[3]).tanh()
        return o * c.tanh(), c
    if isinstance(cell, TanhRnn):
        return ((x[0] + h[0]).tanh(),)
    assert isinstance(cell, Gru)
    r, z = (sigmoid(x[part] + h[part]) for part in range(2))
    return ((1 - z) * (x[2] + r * h[2]).tanh() + z * states[0],)


def read_by_hand(
    cell: RecurrentLayer, rows: Tensor, start: tuple[Tensor, ...] | None = None
) -> list[tuple[Tensor, ...]]:
    """The states after each row of one sentence."""
    states = start or tuple(rows.new_zeros(cell.dim) for _ in range(cell.num_states))
    said = []
    for row in rows:
        bias = 0.0 if cell.input.bias is None else cell.input.bias
        states = by_hand(cell, cell.input.weight @ row + bias, states)
        said.append(states)
    return said


def encode_by_hand(encoder: Encoder, rows: Tensor) -> tuple[Tensor, list[tuple[Tensor, ...]]]:
    ends = []
    for parts in encoder.layers:
        said = []
        for part, backward in zip(parts.children(), encoder.backward, strict=True):
            assert isinstance(part, RecurrentLayer)
            read = read_by_hand(part, rows.flip(0) if backward else rows)
            hidden = torch.stack([states[0] for states in read])
            said.append((hidden.flip(0) if backward else hidden, read[-1]))
        rows = torch.cat([hidden for hidden, _ in said], -1)
        ends.append(tuple(torch.cat(states) for states in zip(*(last for _, last in said), strict=True)))
    return rows, ends


def score_by_hand(mix: ExplicitAttention, name: AttentionScore, query: Tensor, key: Tensor) -> Tensor:
    p = {name: each.squeeze(0) for name, each in mix.score.named_parameters()}
    width = torch.tensor(float(len(query)), dtype=F64)
    return {
        "scaled_dot": lambda: query @ key / width.sqrt(),
        "dot": lambda: query @ key,
        "distance": lambda: 1 / ((query - key).square().sum() + 1e-6).sqrt(),
        "general": lambda: query @ p["weight"] @ key,
        "additive": lambda: (query @ p["for_query"] + key @ p["for_key"]).tanh() @ p["weight"].squeeze(1),
        "linear_additive": lambda: (query @ p["for_query"] + key @ p["for_key"]).squeeze(),
    }[name]()


def context_by_hand(mix: ExplicitAttention, name: AttentionScore, query: Tensor, memory: Tensor) -> Tensor:
    logits = torch.stack([score_by_hand(mix, name, query, key) for key in memory])
    weights = logits.exp() / logits.exp().sum()
    return weights @ memory


def decode_by_hand(decoder: Decoder, name: AttentionScore, rows: Tensor, start: list[Any], memory: Tensor) -> Tensor:
    """What the decoder says at each row of one sentence."""
    layers = [each for each in decoder.layers if isinstance(each, RecurrentLayer)]
    if isinstance(decoder, BahdanauDecoder):
        first, states, said, contexts = decoder.first, start[0], [], []
        for row in rows:
            context = context_by_hand(decoder.attention.mix, name, states[0], memory)
            bias = 0.0 if first.input.bias is None else first.input.bias
            gates = first.input.weight @ row + decoder.context_gates.weight @ context + bias
            states = by_hand(first, gates, states)
            said.append(states[0])
            contexts.append(context)
        top = torch.stack(said)
        for each, begin in zip(layers, start[1:], strict=True):
            top = torch.stack([states[0] for states in read_by_hand(each, top, begin)])
        assert decoder.combine.bias is not None
        pairs = torch.cat([top, torch.stack(contexts), rows], -1) @ decoder.combine.weight.t() + decoder.combine.bias
        return torch.maximum(pairs[:, 0::2], pairs[:, 1::2])
    for each, begin in zip(layers, start, strict=True):
        rows = torch.stack([states[0] for states in read_by_hand(each, rows, begin)])
    if not isinstance(decoder, LuongDecoder):
        return rows
    contexts = [context_by_hand(decoder.attention.mix, name, h, memory) for h in rows]
    return (torch.cat([torch.stack(contexts), rows], -1) @ decoder.combine.weight.t()).tanh()


@pytest.mark.parametrize("score", get_args(AttentionScore))
@variants
@pytest.mark.few(36)
def test_the_model_is_its_papers_equations(variant: dict[str, Any], score: AttentionScore) -> None:
    if variant.get("attention", "none") == "none" and score != "dot":
        return  # it has none
    model = network(variant, score=score)
    (source, sources), (target, targets) = tokens([5], 1), tokens([4], 2)
    rows = [table.table(ids) * 4 for table, ids in ((model.source_embedding, source), (model.target_embedding, target))]
    memory, ends = encode_by_hand(model.encoder, rows[0])
    close(model(source, sources, target, targets), decode_by_hand(model.decoder, score, rows[1], ends, memory))


def test_a_bidirectional_encoder_is_torchs() -> None:
    model = network({"cell": "lstm", "bidirectional": True}, layers=(1, 1))
    source, layout = tokens(LENGTHS, 1)
    rows = model.source_embedding(source, layout.positions)
    said, (ends,) = model.encoder(rows, layout)
    parts = [each for each in model.encoder.layers[0].children() if isinstance(each, RecurrentLayer)]
    packed = nn.utils.rnn.pack_padded_sequence(layout.pad(rows), layout.lengths, batch_first=True, enforce_sorted=False)
    want, last = torchs(*parts)(packed)
    close(said, layout.unpad(nn.utils.rnn.pad_packed_sequence(want, batch_first=True)[0]))
    for our_end, their_end in zip(ends, last, strict=True):
        close(our_end, their_end.transpose(0, 1).flatten(1))


def test_a_reversed_source_is_the_same_rows_in_another_order() -> None:
    plain, backward = (network({"reverse_source": each}) for each in (False, True))
    source, layout = tokens(LENGTHS, 1)
    reordered = torch.cat([each.flip(0) for each in source.split(LENGTHS)])
    target, targets = tokens([2, 3, 4, 1], 2)
    close(backward(source, layout, target, targets), plain(reordered, layout, target, targets), 1e-12)
    assert not torch.allclose(backward(source, layout, target, targets), plain(source, layout, target, targets))


def test_an_encoder_sees_what_it_has_read() -> None:
    source, layout = tokens([6], 1)
    changed = source.clone()
    changed[-1] = (changed[-1] + 1 - 4) % (V - 4) + 4
    for variant, sees in (({}, [5]), ({"bidirectional": True}, range(6)), ({"reverse_source": True}, range(6))):
        model = network(variant)
        before, after = (
            model.encoder(model.source_embedding(ids, layout.positions), layout)[0] for ids in (source, changed)
        )
        moved = (before - after).abs().amax(1) > 1e-12
        assert moved.nonzero().flatten().tolist() == list(sees), variant


def test_states_are_handed_over_or_projected() -> None:
    ends = [(torch.zeros(2, 16, dtype=F64), torch.ones(2, 16, dtype=F64))] * 2
    assert isinstance(network({}).bridge, IdentityBridge)
    bridge = network({}, layers=(2, 3), dims=(16, 12), tie="none").bridge
    assert isinstance(bridge, ProjectionBridge)
    ends[-1] = (torch.randn(2, 16, dtype=F64), ends[-1][1])
    made = bridge(ends)
    assert bridge.project.bias is not None
    want = (ends[-1][0] @ bridge.project.weight.t() + bridge.project.bias).tanh()
    close(torch.cat([torch.cat(states, -1) for states in made], -1), want)
    assert [[each.shape for each in states] for states in made] == [[(2, 12)] * 2] * 3


@pytest.mark.parametrize("attention", get_args(RecurrentAttention))
def test_layers_widths_and_heads_may_differ(attention: RecurrentAttention) -> None:
    for cell, embedding_dim in product(get_args(RecurrentCell), (None, 10)):
        variant = {"cell": cell, "attention": attention, "bidirectional": True}
        changes: dict[str, Any] = {"embedding_dim": embedding_dim, "tie": "output", "heads": 3}
        model = network(variant, layers=(1, 2), dims=(8, 12), **changes)
        (source, sources), (target, targets) = tokens([5, 2], 1), tokens([3, 8], 2)
        hidden = model(source, sources, target, targets)
        assert hidden.shape == (11, embedding_dim or 12)
        model.output(hidden).sum().backward()
        assert all(each.grad is not None for each in model.parameters())


@pytest.mark.parametrize("attention", get_args(RecurrentAttention))
@pytest.mark.parametrize("cell", get_args(RecurrentCell))
def test_every_weight_has_a_gradient(cell: RecurrentCell, attention: RecurrentAttention) -> None:
    model = network({"cell": cell, "attention": attention}, layers=(1, 2), dims=(8, 16), tie="none")
    (source, sources), (target, targets) = tokens([7, 5], 1), tokens([9, 8], 2)
    model.output(model(source, sources, target, targets)).square().sum().backward()
    for name, each in model.named_parameters():
        assert each.grad is not None, name
        parts = [each.grad] if "embedding" in name else each.grad.split(8)  # a part of 8 rows is of one gate or state
        assert all(part.any() for part in parts), name


def test_a_state_that_no_step_reads_is_not_projected() -> None:
    ends = [(torch.randn(2, 8, dtype=F64), torch.randn(2, 8, dtype=F64))]
    for attention, expected in (("none", [0, 1, 0, 1]), ("luong", [0, 1, 0, 1]), ("bahdanau", [1, 1, 0, 1])):
        bridge = network({"cell": "ssru", "attention": attention}, layers=(1, 2), dims=(8, 12), tie="none").bridge
        assert isinstance(bridge, ProjectionBridge)
        assert bridge.project.weight.shape == (12 * sum(expected), 8)
        assert [int(bool(state.any())) for states in bridge(ends) for state in states] == expected


def test_weights_with_a_projection_that_nothing_reads_are_refused_by_name(tmp_path: Path) -> None:
    model = network({"cell": "ssru"}, layers=(1, 2), dims=(8, 12), tie="none")
    weights = drop_shared_tensors(model.state_dict())
    weights["bridge.project.weight"] = weights["bridge.project.weight"].repeat(2, 1)
    with pytest.raises(DataError, match=r"do not match the model: bridge.project.weight is \(48, 8\), not \(24, 8\)"):
        load_weights(model, weights, tmp_path)


# Laws


def one_by_one(model: RecurrentEncoderDecoder, source: Tensor, target: Tensor) -> Tensor:
    return model(
        source,
        Layout.from_lengths(torch.tensor([len(source)])),
        target,
        Layout.from_lengths(torch.tensor([len(target)])),
    )  # type: ignore[no-any-return]


@variants
def test_a_sentence_does_not_see_its_batch(variant: dict[str, Any]) -> None:
    model = network(variant, heads=2)
    (source, sources), (target, targets) = tokens([5, 2, 9], 1), tokens([3, 8, 2], 2)
    together = model(source, sources, target, targets).split([3, 8, 2])
    for said, s, t in zip(together, source.split([5, 2, 9]), target.split([3, 8, 2]), strict=True):
        close(said, one_by_one(model, s, t), 1e-12)


@variants
def test_the_decoder_does_not_see_the_future(variant: dict[str, Any]) -> None:
    model = network(variant)
    (source, sources), (target, targets) = tokens([5], 1), tokens([8], 2)
    changed = target.clone()
    changed[5] = (changed[5] + 1 - 4) % (V - 4) + 4
    before, after = (model(source, sources, ids, targets) for ids in (target, changed))
    close(before[:5], after[:5], 1e-12)
    assert not torch.allclose(before[5], after[5])


@pytest.mark.few(4)
@variants
def test_cached_equals_uncached_through_any_reordering(variant: dict[str, Any]) -> None:
    model = network(variant)
    source, layout = tokens([4, 7, 1], 1)
    late, late_layout = tokens([9, 2], 2)
    sources = list(source.split([4, 7, 1]))
    state, histories = model.start(source, layout), [list[int]() for _ in range(3)]
    generator = torch.Generator().manual_seed(5)
    moves = [[0, 0, 1, 1, 2, 2], [1, 0, 2, 2, 5, 4], "replace", [0, 0, 2, 3, 5, 5], [2, 3, 4, 4], [0, 3]]
    for move in moves:
        if move == "replace":  # the sentences of rows 4, 5 and 0, 1 leave
            new = model.start(late, late_layout).select(torch.tensor([0, 0, 1, 1]))
            state = state.replace(torch.tensor([4, 5, 0, 1]), new)
            nine, two = late.split([9, 2])
            sources, histories = [two, two, *sources[2:4], nine, nine], [[], [], *histories[2:4], [], []]
        else:
            state = state.select(torch.tensor(move))
            sources, histories = ([each[row] for row in move] for each in (sources, histories))  # type: ignore[assignment]
            histories = [list(each) for each in histories]
        new_tokens = torch.randint(4, V, (len(sources),), generator=generator)
        for history, token in zip(histories, new_tokens.tolist(), strict=True):
            history.append(token)
        predict, state = model.step(new_tokens, state)
        assert state.num_rows == len(sources)
        for keys, _ in state.memory.keys_values:
            assert keys.shape[2] == max(map(len, sources)), "as wide as the longest that is there"
        for row, (of, history) in enumerate(zip(sources, histories, strict=True)):
            hidden = one_by_one(model, of, torch.tensor(history))
            close(predict(slice(row, row + 1)), model.output(hidden[-1:]).log_softmax(-1))


@pytest.mark.few(1)
@variants
def test_all_gradients_are_those_of_the_equations(variant: dict[str, Any]) -> None:
    model = network(variant, dims=(2, 2), layers=(1, 1)).train()
    (source, sources), (target, targets) = tokens([2, 3], 1), tokens([2, 1], 2)
    names, weights = zip(*model.named_parameters(), strict=True)

    def said(*given: Tensor) -> Tensor:
        hidden: Tensor = torch.func.functional_call(
            model, dict(zip(names, given, strict=True)), (source, sources, target, targets)
        )
        return hidden

    assert torch.autograd.gradcheck(said, weights)


@variants
def test_sentences_end_to_end_compute_what_padded_ones_do(variant: dict[str, Any]) -> None:
    model = network(variant)
    (source, sources), (target, targets) = tokens([4, 1, 6], 1), tokens([2, 5, 3], 2)
    want = model(source, sources, target, targets)
    for num_rows in (None, 12, 40):
        layouts = [FlatLayout(each.lengths, "cpu", num_rows) for each in (sources, targets)]
        padded = [nn.functional.pad(ids, (0, (num_rows or len(ids)) - len(ids)), value=2) for ids in (source, target)]
        hidden = model(padded[0], layouts[0], padded[1], layouts[1])
        assert len(hidden) == (num_rows or 10)
        assert torch.equal(hidden[:10], want)
        assert not hidden[10:].any()


def test_each_dropout_rate_acts_on_its_own() -> None:
    (source, sources), (target, targets) = tokens([5, 2], 1), tokens([3, 8], 2)
    for variant, name in product(VARIANTS[2:5], ("residual", "embedding", "attention")):
        rates = dict.fromkeys(("residual", "embedding", "attention"), 0.0) | {name: 0.5}
        model = network(variant, dropout=DropoutConfig(**rates)).train()
        model.dropout_rng.seed_batch(1, 1)
        first = model(source, sources, target, targets)
        model.dropout_rng.seed_batch(1, 1)
        assert torch.equal(first, model(source, sources, target, targets))
        model.dropout_rng.seed_batch(1, 2)
        assert not torch.allclose(first, model(source, sources, target, targets)), name
        model.eval()
        assert not torch.allclose(first, model(source, sources, target, targets)), name


@variants
def test_what_leaves_a_layer_is_dropped(variant: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    model, drawn = network(variant, dropout=DropoutConfig(residual=0.5, embedding=0)).train(), list[int]()
    monkeypatch.setattr(model.dropout_rng, "mask", lambda like, rate: drawn.append(len(like)) or torch.ones_like(like))
    (source, sources), (target, targets) = tokens([5, 2], 1), tokens([3, 8], 2)
    model(source, sources, target, targets)
    above = [11] if "attention" in variant else []  # what the last layer and the context make
    assert drawn == [7, 7, 11, 11, *above]


@variants
def test_no_padded_row_reaches_a_linear_layer(variant: dict[str, Any]) -> None:
    model, seen = network(variant), list[int]()
    for name, module in model.named_modules():
        owner = model.get_submodule(name.rpartition(".")[0])
        by_steps = isinstance(owner, GruResetBefore) and not name.endswith(".input")  # as many rows as go on
        by_steps |= name == "decoder.context_gates" or name.endswith("first.recurrent")
        if isinstance(module, Linear) and not by_steps:
            module.register_forward_hook(lambda _, inputs, __: seen.append(len(inputs[0])))
    (source, sources), (target, targets) = tokens([5, 2, 9], 1), tokens([3, 8, 2], 2)
    model.output(model(source, sources, target, targets))
    assert set(seen) == {16, 13}


@pytest.mark.parametrize("attention", ["bahdanau", "luong"])
def test_attention_weights_are_seen_in_one_place(attention: RecurrentAttention) -> None:
    model, seen = network({"attention": attention}, heads=2), list[Tensor]()
    (mix,) = (each for each in model.modules() if isinstance(each, ExplicitAttention))
    mix.dropout.register_forward_hook(lambda _, inputs, __: seen.append(inputs[0]))
    (source, sources), (target, targets) = tokens([5], 1), tokens([3], 2)
    model(source, sources, target, targets)
    weights = torch.cat(seen, dim=2)
    assert weights.shape == (1, 2, 3, 5)
    close(weights.sum(-1), torch.ones(1, 2, 3, dtype=F64))


@pytest.mark.slow
@pytest.mark.few(1)
@pytest.mark.parametrize("variant", [VARIANTS[0], VARIANTS[3], VARIANTS[4]], ids=str)
def test_hypotheses_do_not_depend_on_their_batch(variant: dict[str, Any]) -> None:
    model = network(variant, tie="none")
    with torch.no_grad():
        model.output.weight.mul_(4)  # sure of what it says
        model.output.weight[2].mul_(1.5)
    generator = torch.Generator().manual_seed(1)
    sources = [torch.randint(4, V, (length,), generator=generator).tolist() for length in [1, 9, 3, 7, 2, 8] * 3]
    for beam in (1, 3):
        alone, together = (
            decode(model, sources, DecodingConfig(beam=beam, n_best=beam, batch_sentences=size)) for size in (1, 7)
        )
        assert len({len(n_best[0].ids) for n_best in alone}) > 2, "the law says nothing of hypotheses of one length"
        for one, other in zip(alone, together, strict=True):
            assert [each.ids for each in one] == [each.ids for each in other]
            assert [each.log_prob for each in one] == pytest.approx([each.log_prob for each in other], abs=1e-9)


# What there is to choose


@pytest.mark.slow
def test_a_network_is_built_without_memory_for_it() -> None:
    with torch.device("meta"):
        for variant in VARIANTS:
            config = ModelConfig(architecture="recurrent", recurrent=RecurrentConfig(**variant))
            build(config, source_vocab=9, target_vocab=9)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"recurrent": {"bidirectional": True, "reverse_source": True}}, "reads in both directions"),
        ({"recurrent": {"bidirectional": True}, "encoder": {"dim": 7, "heads": 1}, "tie": "none"}, "7 is odd"),
        ({"task": "masked_language_model"}, "translation"),
        ({"recurrent": {"cell": "rnn"}}, "lstm"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_what_does_not_combine_is_refused(given: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        ModelConfig.model_validate({"architecture": "recurrent", **given})


def test_target_tokens_alone_enter_the_loss() -> None:
    model, batch = network(VARIANTS[2]).train(), pair_batch_from_ids([[4, 5, 6], [7]], [[8], [9, 10, 11, 12]])
    results = []
    for rows in (None, 30):
        model.zero_grad()
        loss = Translation(CrossEntropy(0.1), rows).loss(model, batch)
        loss.sum.backward()
        results.append([loss.sum, loss.nll, *(parameter.grad for parameter in model.parameters())])
    for plain, filled in zip(*results, strict=True):
        close(filled, plain)
