"""The compiled greedy search finds what the equations in float64 find, and stands aside for what it does not know."""

import copy
import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.image_models import DECODERS as IMAGE_DECODERS
from tests.image_models import network as image_network
from tests.plain_model import VOCAB, network
from tests.rounding import assert_rounds_like
from tfm.model.config import DropoutConfig, StackConfig
from tfm.model.cpu_kernels import dispatch
from tfm.model.fused import greedy_search
from tfm.model.layers.linear import inference_precision
from tfm.model.layout import Layout
from tfm.model.transformer.encoder_decoder import EncoderDecoder
from tfm.pipeline.decoding.shortlist import Shortlist

pytestmark = pytest.mark.slow  # the loops of whole searches are compiled

pytest.importorskip("numba", reason="no numba (extra: fast)")

PAD, BEGIN, END = SPECIAL = 0, 2, 3
SSRU = StackConfig(layers=2, dim=24, heads=4, feed_forward_dim=36, mixing="recurrent")
LESS = StackConfig(layers=1, dim=24, heads=2, feed_forward_dim=20)
TABLE = np.random.default_rng(1).integers(-1, VOCAB, (VOCAB, 3)).astype(np.int32)
SOURCES = ([5, END], [7, 4, 9, 11, END], [4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, END])


@pytest.fixture(autouse=True)
def _without_gradients() -> Iterator[None]:
    with torch.no_grad(), dispatch.use_compiled_kernels(True):
        yield


def prefer(model: EncoderDecoder, *tokens: int) -> EncoderDecoder:
    """Make these pieces, all alike, likelier than any other."""
    model.decoder_norm.bias[0] = 30.0
    model.output.weight[:, 0] = 0.0
    for token in tokens:
        model.output.weight[token] = 0.0
        model.output.weight[token, 0] = 3.0
    return model


def expected(model: EncoderDecoder, source: list[int], shortest: int, longest: int) -> tuple[list[int], float]:
    """Greedy search in float64 by reading all anew at every step."""
    exact = copy.deepcopy(model).double()
    read, found, total = Layout.from_lengths(torch.tensor([len(source)])), [BEGIN], 0.0
    memory = exact.encode(torch.tensor(source), read)
    while found[-1] != END:
        layout = Layout.from_lengths(torch.tensor([len(found)]))
        hidden = exact.decode(torch.tensor(found), layout, memory, read)
        log_probs = exact.output(hidden)[-1].log_softmax(-1)
        may = log_probs.clone()
        may[[PAD, BEGIN]] = -torch.inf
        if len(found) - 1 < shortest:
            may[END] = -torch.inf
        if len(found) - 1 >= longest:
            may[torch.arange(VOCAB) != END] = -torch.inf
        found.append(int(may.argmax()))
        total += float(log_probs[found[-1]])
    return found[1:], total


def forced(model: EncoderDecoder, source: list[int], ids: list[int]) -> Tensor:
    """log p of whatever may come at each place of a hypothesis (len(ids), V), by the model in its own precision."""
    read, layout = Layout.from_lengths(torch.tensor([len(source)])), Layout.from_lengths(torch.tensor([len(ids)]))
    hidden = model.decode(torch.tensor([BEGIN, *ids[:-1]]), layout, model.encode(torch.tensor(source), read), read)
    return model.output(hidden).log_softmax(-1)


def searched(model: EncoderDecoder, source: list[int], shortest: int = 0, longest: int = 20) -> tuple[list[int], float]:
    search = greedy_search.make_greedy_search(model, SPECIAL)
    assert search is not None
    (found,) = search([source], [(shortest, longest)], None)
    return found


def check(model: EncoderDecoder, shortest: int = 0, longest: int = 20) -> None:
    """The hypotheses are those of float64; log p errs by no more than plain torch, at its worst, in so many tokens."""
    fast, plain, exact = [], [], []
    for source in SOURCES:
        ids, log_prob = searched(model, source, shortest, longest)
        best_ids, best_log_prob = expected(model, source, shortest, longest)
        assert ids == best_ids
        single, double = (forced(each, source, ids) for each in (model, copy.deepcopy(model).double()))
        assert best_log_prob == pytest.approx(double[torch.arange(len(ids)), ids].sum().item(), abs=1e-10)
        fast.append(log_prob)
        exact.append(best_log_prob)
        plain.append(best_log_prob + len(ids) * (single - double).abs().max().item())
    magnitude = float(model.output.weight.abs().sum(1).max())  # of a logit, before the largest one is taken away
    tensors = torch.tensor(fast), torch.tensor(plain), torch.tensor(exact, dtype=torch.float64)
    assert_rounds_like(*tensors, magnitude=magnitude)


ABSOLUTE_OR_ROTARY = ("none", "sinusoidal", "learned", "rotary")
SHARED_KEYS = StackConfig(layers=2, dim=24, heads=4, key_value_heads=2, value_dim=5, feed_forward_dim=36)


@pytest.mark.few(8)
@pytest.mark.parametrize(
    "changes",
    [
        *({"norm": norm, "positions": each} for norm in ("pre", "post") for each in ABSOLUTE_OR_ROTARY),
        {"positions": "rotary", "rotary": {"base": 50.0, "factor": 2.0}},
        {"positions": "rotary", "decoder": SHARED_KEYS, "encoder": SHARED_KEYS},
        {"tie": "none"},
        {"positions": "fairseq"},
        {"tie": "output", "scale_embedding": False},
        {"encoder": LESS},
        {"decoder": LESS, "norm": "post"},
        {"decoder": StackConfig(layers=3, dim=24, heads=4, key_value_heads=2, feed_forward_dim=36)},
        {"encoder": StackConfig(layers=2, dim=24, heads=4, key_value_heads=1, feed_forward_dim=36)},
        {"decoder": StackConfig(layers=2, dim=24, heads=3, key_dim=5, value_dim=7, feed_forward_dim=36)},
        {"encoder": StackConfig(layers=2, dim=24, heads=3, key_dim=7, value_dim=5, feed_forward_dim=36)},
        {"dropout": DropoutConfig(residual=0.5, embedding=0.5, attention=0.5, feed_forward=0.5)},
        {"activation": "gelu"},
        {"activation": "gelu_tanh", "norm": "post"},
        {"decoder": SSRU, "recurrent": {"cell": "ssru"}},
        {"decoder": SSRU, "recurrent": {"cell": "ssru"}, "norm": "post", "positions": "rotary"},
    ],
    ids=str,
)
def test_it_finds_what_the_equations_give(changes: dict[str, Any]) -> None:
    check(network(**changes))


def test_models_for_it_say_different_things_and_end() -> None:
    found = [tuple(searched(network(), source)[0]) for source in SOURCES]
    assert len(set(found)) == len(found)
    assert any(len(ids) > 3 for ids in found)


@pytest.mark.parametrize(("shortest", "longest"), [(0, 3), (0, 1), (4, 20), (5, 5), (0, 31)])
def test_it_keeps_to_the_limits(shortest: int, longest: int) -> None:
    check(network(), shortest, longest)
    check(prefer(network(tie="none"), END), shortest, longest)
    check(prefer(network(tie="none"), 9), shortest, longest)


def test_the_end_token_may_come_at_once() -> None:
    model = prefer(network(tie="none"), END)
    assert searched(model, SOURCES[1])[0] == [END]
    check(model)


@pytest.mark.parametrize("never", [PAD, BEGIN])
def test_padding_and_begin_token_never_come_but_take_their_share(never: int) -> None:
    model = prefer(network(tie="none"), never)
    ids, log_prob = searched(model, SOURCES[1])
    assert never not in ids
    assert log_prob < -30 * len(ids)
    check(model)


def test_the_lowest_of_equals_comes() -> None:
    ids, _ = searched(prefer(network(tie="none"), 17, 9, 12), SOURCES[1], longest=4)
    assert ids == [9, 9, 9, 9, END]


def test_a_long_source_is_read_by_the_model_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, model = [], network(decoder=LESS)
    start = model.start
    monkeypatch.setattr(model, "start", lambda *given: (calls.append(1), start(*given))[1])
    check(model)
    assert not calls
    monkeypatch.setattr(greedy_search, "MAX_FLOPS_FOR_COMPILED_SEARCH", 0)
    check(model)
    assert len(calls) == len(SOURCES)


@pytest.mark.parametrize(
    "shortlist", [None, Shortlist(TABLE, np.array([0, 1, 2, 3, VOCAB - 1], np.int32), VOCAB)], ids=["", "few"]
)
def test_many_sources_find_what_each_finds_alone(shortlist: Shortlist | None, monkeypatch: pytest.MonkeyPatch) -> None:
    model, limits = network(decoder=LESS), [(0, 20), (3, 4), (2, 9)]
    search = greedy_search.make_greedy_search(model, SPECIAL)
    assert search is not None
    alone = [search([each], [limit], shortlist)[0] for each, limit in zip(SOURCES, limits, strict=True)]
    assert search(SOURCES, limits, shortlist) == alone
    for source, (ids, _) in zip(SOURCES, alone, strict=True):
        assert shortlist is None or set(ids) <= set(shortlist.candidates(source).tolist())
    middle = sum(each.numel() for each in model.encoder.parameters()) * len(SOURCES[1])
    monkeypatch.setattr(greedy_search, "MAX_FLOPS_FOR_COMPILED_SEARCH", 2 * middle)  # the last is read by the model
    for (ids, log_prob), (wanted, exact) in zip(search(SOURCES, limits, shortlist), alone, strict=True):
        assert ids == wanted
        assert log_prob == pytest.approx(exact, abs=1e-4)


def test_several_threads_read_many_weights_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(greedy_search, "MAX_WEIGHTS_FOR_SINGLE_THREAD", 0)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    assert greedy_search.make_greedy_search(network(), SPECIAL) is None
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    assert greedy_search.make_greedy_search(network(), SPECIAL) is not None


def _add(model: EncoderDecoder) -> None:
    model.decoder[1].feed_forward.inner.weight.add_(0.5)


def _add_to_encoder(model: EncoderDecoder) -> None:
    model.encoder[0].around_attention.norm.bias.add_(2.0)


def _put_another(model: EncoderDecoder) -> None:
    linear = model.decoder[0].cross_attention.query
    linear.weight = nn.Parameter(linear.weight * -3)


def _put_other_data(model: EncoderDecoder) -> None:
    model.decoder[0].attention.output.weight.data = torch.flip(model.decoder[0].attention.output.weight, [0])


def _put_another_part(model: EncoderDecoder) -> None:
    model.decoder[0].feed_forward = network(norm="post").encoder[1].feed_forward


def _step_unseen(model: EncoderDecoder) -> None:
    for each in model.parameters():
        each.grad = torch.randn(each.shape, generator=torch.Generator().manual_seed(each.numel()))
    torch.optim.AdamW(model.parameters(), lr=0.1, fused=True).step()


def _load(model: EncoderDecoder) -> None:
    state = {name: tensor.flip(0) for name, tensor in model.state_dict().items()}
    model.load_state_dict(state, assign=True)


@pytest.mark.parametrize(
    "change", [_add, _add_to_encoder, _put_another, _put_other_data, _put_another_part, _step_unseen, _load]
)
def test_changed_weights_are_seen(change: Callable[[EncoderDecoder], None]) -> None:
    model = network()
    before = [searched(model, source)[1] for source in SOURCES]
    change(model)
    assert all(abs(searched(model, source)[1] - was) > 1e-3 for source, was in zip(SOURCES, before, strict=True))
    check(model)


def test_weights_are_laid_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made, weights, model = [], greedy_search._SearchWeights, network()
    monkeypatch.setattr(greedy_search, "_SearchWeights", lambda model: (made.append(model), weights(model))[1])
    searched(model, SOURCES[0])
    searched(model, SOURCES[1])
    assert made == [model]
    _add(model)
    searched(model, SOURCES[1])
    assert made == [model, model]
    searched(network(), SOURCES[0])
    searched(model, SOURCES[0])
    assert len(made) == 3


@pytest.mark.few(1)
@pytest.mark.parametrize("has_hook", [False, True])
def test_a_model_that_was_searched_with_is_freed(has_hook: bool) -> None:
    model = network()
    searched(model, SOURCES[0])
    if has_hook:
        model.encoder[0].register_forward_hook(model.forward)  # which holds the model
        assert greedy_search.make_greedy_search(model, SPECIAL) is None
    alive = weakref.ref(model), weakref.ref(model.output.weight)
    del model
    gc.collect()
    assert [each() for each in alive] == [None, None]


def test_a_copy_has_weights_of_its_own() -> None:
    model = network()
    before = searched(model, SOURCES[1])
    other = copy.deepcopy(model)
    _add(other)
    check(other)
    assert searched(model, SOURCES[1]) == before


@pytest.mark.parametrize(
    "changes",
    [
        *({"positions": each} for each in ("alibi", "shaw", "transformer_xl")),
        {"positions": "sinusoidal", "positions_join": "concatenate"},
        *({"score": each} for each in ("dot", "general", "additive", "linear_additive", "distance")),
        *({"activation": each} for each in ("silu", "swiglu", "none")),
        *({"normalization": each} for each in ("rms", "batch", "none")),
        {"window": 3},
        {"qk_norm": True},
        {"residual": "none"},
        {"feed_forward": "none"},
        {"attention_projections": False},
        {"values": "keys"},
        {"output_projection": False},
        {"lookup": "hard"},
        {"mask": "strict"},
        {"mask": "none"},
        {"positions_join": "attention"},
        {"normalization": "layer_std"},
        {"residual": "none", "norm": "post"},
        {"mixing": "recurrent", "positions": "none"},
        {"mixing": "convolution", "positions": "none"},
        {"embedding_dim": 16},
        {"embedding_norm": True},
        {"canine": {"hashes": 4, "buckets": 20}, "tie": "output"},
        {"adaptive": {"cutoffs": [8], "inputs": True}},
        {"adaptive": {"cutoffs": [8], "inputs": False}, "tie": "none"},
    ],
    ids=str,
)
def test_other_parts_are_left_to_the_model(changes: dict[str, Any]) -> None:
    assert greedy_search.make_greedy_search(network(**changes), SPECIAL) is None


@pytest.mark.parametrize("part", ["encoder.0", "decoder.1.attention", "output"])
def test_a_hook_is_not_passed_over(part: str) -> None:
    model = network()
    assert greedy_search.make_greedy_search(model, SPECIAL) is not None
    hook = model.get_submodule(part).register_forward_hook(lambda *given: None)
    assert greedy_search.make_greedy_search(model, SPECIAL) is None
    hook.remove()
    assert greedy_search.make_greedy_search(model, SPECIAL) is not None


def test_another_state_is_left_to_the_model() -> None:
    model = network()
    assert greedy_search.make_greedy_search(model, SPECIAL) is not None
    for dtype in (torch.bfloat16, torch.int8):
        with inference_precision(model, dtype):
            assert greedy_search.make_greedy_search(model, SPECIAL) is None
    with inference_precision(model, torch.float32):
        assert greedy_search.make_greedy_search(model, SPECIAL) is not None
    with torch.enable_grad():
        assert greedy_search.make_greedy_search(model, SPECIAL) is None
    assert greedy_search.make_greedy_search(model.train(), SPECIAL) is None
    assert greedy_search.make_greedy_search(model.eval().double(), SPECIAL) is None
    assert greedy_search.make_greedy_search(nn.Identity(), SPECIAL) is None


def test_without_numba_the_model_does_it() -> None:
    with dispatch.use_compiled_kernels(False):
        assert greedy_search.make_greedy_search(network(), SPECIAL) is None


def test_a_piece_beyond_the_vocabulary_is_an_error() -> None:
    with pytest.raises(IndexError, match="piece 23 of a vocabulary of 23"):
        searched(network(), [5, VOCAB, END])


def test_weights_that_are_no_numbers_give_no_number_and_no_endless_loop() -> None:
    model = network()
    model.decoder[0].feed_forward.inner.weight.fill_(torch.nan)
    ids, log_prob = searched(model, SOURCES[0])
    assert len(ids) <= 21
    assert log_prob != log_prob


def test_models_that_read_images_are_left_to_the_steps() -> None:
    model = image_network("patches", IMAGE_DECODERS["transformer"]).float()
    assert greedy_search.make_greedy_search(model, (0, 1, 2)) is None
