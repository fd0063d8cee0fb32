"""The compiled loops equal their equations in torch, and stand aside where they do not apply."""

import gc
import math
import sys
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.rounding import assert_rounds_like
from tfm.model.attention.kv_cache import CacheSlots, LayerKVCache
from tfm.model.attention.memory import Memory
from tfm.model.cpu_kernels import dispatch
from tfm.model.masks import Mask
from tfm.model.transformer.decoder_state import TransformerState
from tfm.pipeline.decoding.search.top_k import best_candidates

pytest.importorskip("tfm.model.cpu_kernels.library", reason="no numba (extra: fast)", exc_type=ImportError)

sizes = st.integers(1, 6)


def _without(call: Any) -> Any:
    with dispatch.use_compiled_kernels(False):
        return call()


@pytest.fixture(autouse=True)
def _in_use():
    with torch.inference_mode(), dispatch.use_compiled_kernels(True):
        yield


@settings(max_examples=60, deadline=None)
@given(
    batch=sizes,
    queries=sizes,
    groups=st.integers(1, 3),
    sharing=st.integers(1, 3),
    keys=st.integers(1, 21),
    spare=st.integers(0, 9),
    key_dim=st.integers(1, 70),
    value_dim=st.integers(1, 70),
    kind=st.sampled_from(["all", "sentence", "query"]),
    spread=st.sampled_from([3.0, 300.0]),
    seed=st.integers(0, 2**31),
)
def test_attention_equals_its_equation(
    batch, queries, groups, sharing, keys, spare, key_dim, value_dim, kind, spread, seed
) -> None:
    draw = torch.Generator().manual_seed(seed)
    query = spread * torch.randn(batch, queries, groups * sharing, key_dim, generator=draw).transpose(1, 2)
    key = torch.randn(batch, groups, keys + spare, key_dim, generator=draw)[:, :, :keys]
    value = torch.randn(batch, groups, keys + spare, value_dim, generator=draw)[:, :, :keys]
    allowed = torch.rand(batch, 1, queries if kind == "query" else 1, keys, generator=draw) < 0.5
    allowed[..., seed % keys] = True
    mask = Mask() if kind == "all" else Mask(allowed=allowed)

    for _ in range(2):  # what the mask lists is kept
        mixed = dispatch.attend(query, key, value, mask, 0.3)
        assert mixed is not None
        exact_key, exact_value = (each.double().repeat_interleave(sharing, 1) for each in (key, value))
        logits = query.double() @ exact_key.transpose(2, 3) * 0.3
        if kind != "all":
            logits = logits.masked_fill(~allowed, -math.inf)
        shared_key, shared_value = (each.repeat_interleave(sharing, 1) for each in (key, value))
        plain_logits = query @ shared_key.transpose(2, 3) * 0.3
        if kind != "all":
            plain_logits = plain_logits.masked_fill(~allowed, -math.inf)
        magnitude = float((query.abs() @ shared_key.abs().transpose(2, 3)).max() * 0.3 * value.abs().max())
        plain = plain_logits.softmax(-1) @ shared_value
        assert_rounds_like(mixed, plain, logits.softmax(-1) @ exact_value, magnitude=magnitude)


def test_what_is_listed_of_a_mask_is_kept_as_long_as_the_mask() -> None:
    heads, allowed = torch.randn(2, 3, 4, 5), torch.rand(2, 1, 1, 4) < 0.5
    allowed[..., 0] = True
    mask, same = Mask(allowed=allowed), Mask(allowed=allowed)
    assert dispatch.attend(heads, heads, heads, mask, 1.0) is not None
    listed = dispatch.allowed_keys(mask, 2, 4)
    assert dispatch.allowed_keys(mask, 2, 4) is listed
    other = dispatch.allowed_keys(same, 2, 4)
    assert other is not listed
    assert torch.equal(other[1], allowed[:, 0].sum(2))
    alive = weakref.ref(mask), weakref.ref(listed[0])
    del mask, listed
    gc.collect()
    assert [each() for each in alive] == [None, None]


@settings(max_examples=40, deadline=None)
@given(
    rows=sizes,
    vocab=st.integers(1, 600),
    spread=st.sampled_from([0.1, 3.0, 60.0]),
    shift=st.sampled_from([0.0, 1e3, -1e3]),
    seed=st.integers(0, 2**31),
)
def test_log_probabilities_equal_torchs(rows, vocab, spread, shift, seed) -> None:
    logits = spread * torch.randn(rows, vocab, generator=torch.Generator().manual_seed(seed)) + shift
    logits[0, : vocab // 2] = -math.inf
    exact, plain = logits.double().log_softmax(-1), logits.log_softmax(-1)
    magnitude = float(logits[logits.isfinite()].abs().max()) if logits.isfinite().any() else 0.0
    assert dispatch.try_log_softmax_in_place(logits)
    assert_rounds_like(logits, plain, exact, magnitude=magnitude)


def test_what_is_not_a_number_stays_none() -> None:
    logits = torch.zeros(2, 100)
    logits[0, 70] = math.nan
    assert dispatch.try_log_softmax_in_place(logits)
    assert logits[0].isnan().all()
    torch.testing.assert_close(logits[1], torch.full((100,), -math.log(100)))


def test_the_exponential_is_exact_to_one_unit_in_the_last_place() -> None:
    from numba import njit

    from tfm.model.cpu_kernels.softmax import exp
    from tfm.model.cpu_kernels.vectors import LANES, load, store

    @njit
    def exponentials(numbers, found):
        for i in range(0, len(numbers), LANES):
            store(found, i, exp(load(numbers, i)))

    x = torch.linspace(-87, 0, 100_000)
    found, exact = torch.empty_like(x), x.double().exp()
    exponentials(x.numpy(), found.numpy())
    assert ((found.double() - exact).abs() <= 2**-23 * exact).all()


@settings(max_examples=60, deadline=None)
@given(
    batch=sizes,
    beam=sizes,
    vocab=st.integers(3, 600),
    k=st.integers(1, 20),
    levels=st.sampled_from([2, 5, 10**6]),
    dtype=st.sampled_from([torch.float32, torch.bfloat16]),
    seed=st.integers(0, 2**31),
)
def test_the_best_of_logits_are_the_best_of_their_log_probabilities(batch, beam, vocab, k, levels, dtype, seed) -> None:
    """Also where many are equal, where hypotheses are none, and where some never come."""
    from tfm.model.cpu_kernels import library

    draw = torch.Generator().manual_seed(seed)
    logits = -torch.randint(0, levels, (batch, beam, vocab), generator=draw).float() / 8
    logits[torch.rand(batch, beam, vocab, generator=draw) < 0.2] = -math.inf
    logits[..., 1] = 0.5
    sums = -torch.randint(0, levels, (batch, beam), generator=draw).double() / 8
    sums[torch.rand(batch, beam, generator=draw) < 0.3] = -math.inf
    logits = logits.to(dtype)
    log_probs = logits.float().clone()
    assert dispatch.try_log_softmax_in_place(log_probs.view(-1, vocab))
    log_probs[..., [0, 2]] = -math.inf

    values = torch.full((batch, k), -math.inf, dtype=torch.float64)
    places = torch.zeros(batch, k, dtype=torch.int64), torch.zeros(batch, k, dtype=torch.int64)
    rows = torch.randperm(batch * beam, generator=draw)  # a row may come in any order, and in several calls
    for some in rows.chunk(2):
        given = logits.view(-1, vocab)[some]
        loop, given = (
            (library.topk_of_logits, given.numpy())
            if dtype is torch.float32
            else (library.topk_of_bf16_logits, dispatch.view_bf16_as_uint16(given))
        )
        loop(given, *(each.numpy() for each in (some, torch.tensor([0, 2]), sums, values, *places)))
    expected, *in_places = best_candidates(log_probs, sums, k)
    assert torch.equal(values, expected)
    for one, other in zip(places, in_places, strict=True):
        assert torch.equal(one[values > -math.inf], other[values > -math.inf])


@settings(max_examples=60, deadline=None)
@given(rows=sizes, dim=st.integers(1, 70), is_pre_norm=st.booleans(), seed=st.integers(0, 2**31))
def test_sums_are_normed_for_products_in_bf16_as_in_fp32(rows: int, dim: int, is_pre_norm: bool, seed: int) -> None:
    from tfm.model.cpu_kernels import library

    draw = torch.Generator().manual_seed(seed)
    before, added = torch.randn(rows, dim, generator=draw), torch.randn(rows, dim, generator=draw).bfloat16()
    norm = [torch.randn(dim, generator=draw).numpy() for _ in range(2)]
    summed, normed = before.clone(), torch.empty(rows, dim)
    library.add_and_norm(summed.numpy(), added.float().numpy(), *norm, 1e-5, is_pre_norm, normed.numpy())
    low_summed, low_normed = before.clone(), torch.empty(rows, dim, dtype=torch.bfloat16)
    about = (*norm, 1e-5, is_pre_norm, dispatch.view_bf16_as_uint16(low_normed))
    library.add_and_norm_bf16(low_summed.numpy(), dispatch.view_bf16_as_uint16(added), *about)
    assert torch.equal(low_normed, normed.bfloat16())
    assert torch.equal(low_summed, summed)
    total = before + added.float()
    plain = torch.nn.functional.layer_norm(total, (dim,), *map(torch.from_numpy, norm))
    exact = torch.nn.functional.layer_norm(total.double(), (dim,), *(torch.from_numpy(each).double() for each in norm))
    spread = (total.double().var(1, correction=0) + 1e-5).rsqrt().max() * total.abs().max()
    assert_rounds_like(normed, plain, exact, magnitude=float(spread) * float(np.abs(norm[0]).max()))
    assert torch.equal(summed, total if is_pre_norm else normed)


def test_new_keys_and_values_go_where_they_would_without_kernels() -> None:
    batch, groups, beam = 3, 2, 4
    caches = LayerKVCache(), LayerKVCache()
    for step in range(5):
        key, value = torch.randn(batch, groups, beam, 7), torch.randn(batch, groups, beam, 5)
        own = torch.stack([torch.randperm(4 * (step + 1))[:beam] for _ in range(batch)])
        slots = CacheSlots(own, own, torch.zeros(batch, 4 * (step + 1), dtype=torch.int64), Mask())
        found = caches[0].write(key, value, slots)
        with dispatch.use_compiled_kernels(False):
            expected = caches[1].write(key, value, slots)
        assert torch.equal(found[0], expected[0])
        assert torch.equal(found[1], expected[1])


@settings(max_examples=60, deadline=None)
@given(batch=sizes, width=sizes, slots=st.integers(0, 12), share=st.sampled_from([0.0, 0.2, 1.0]), seed=sizes)
def test_the_same_slots_are_taken(batch: int, width: int, slots: int, share: float, seed: int) -> None:
    draw = torch.Generator().manual_seed(seed)
    state = TransformerState(
        caches=(),
        memory=Memory(),
        lengths=torch.randint(0, 9, (batch,), generator=draw),
        positions=torch.randint(0, 9, (batch, slots), generator=draw),
        ancestor_mask=torch.rand(batch, width, slots, generator=draw) < share,
    )
    (one, ours), (other, theirs) = state.advance(), _without(state.advance)
    assert torch.equal(one.ancestor_mask, other.ancestor_mask)
    assert torch.equal(one.positions, other.positions)
    assert torch.equal(ours.new_slots, theirs.new_slots)


@pytest.mark.parametrize("rows", [1, 37])
def test_layer_norm_equals_torchs(rows: int) -> None:
    x, gain, bias = 5 * torch.randn(rows, 96) + 3, torch.randn(96), torch.randn(96)
    normed = dispatch.layer_norm(x, gain, bias, 1e-5)
    assert normed is not None
    exact = torch.nn.functional.layer_norm(x.double(), (96,), gain.double(), bias.double())
    plain = torch.nn.functional.layer_norm(x, (96,), gain, bias)
    assert_rounds_like(normed, plain, exact)


def test_they_stand_aside_for_other_types_gradients_and_masks() -> None:
    heads = torch.randn(1, 1, 2, 4)
    assert dispatch.attend(heads, heads, heads, Mask(causal=True), 1.0) is None
    assert dispatch.attend(heads, heads, heads, Mask(window=1), 1.0) is None
    assert dispatch.attend(*[heads.double()] * 3, Mask(), 1.0) is None
    assert not dispatch.try_log_softmax_in_place(torch.randn(2, 9).double())
    assert not dispatch.try_log_softmax_in_place(torch.randn(9, 2).t())
    with torch.inference_mode(False), torch.enable_grad():
        assert not dispatch.try_log_softmax_in_place(torch.randn(2, 9))


def test_they_are_used_where_they_are_asked_for_alone() -> None:
    with dispatch.use_compiled_kernels(False):
        assert not dispatch.are_kernels_enabled()
        assert not dispatch.try_log_softmax_in_place(torch.randn(2, 9))
        assert dispatch.attend(*[torch.randn(1, 1, 2, 4)] * 3, Mask(), 1.0) is None
    assert dispatch.are_kernels_enabled()


def test_without_numba_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tfm.model.cpu_kernels.library", None)
    monkeypatch.delattr("tfm.model.cpu_kernels.library", raising=False)
    with dispatch.use_compiled_kernels(True):
        assert not dispatch.are_kernels_enabled()


def test_a_search_that_is_stopped_while_the_loops_are_imported_can_be_repeated(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As in a notebook, where the first translation is interrupted and asked for again."""
    stops = "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(0.1)\n"
    (tmp_path / "loops_that_are_stopped.py").write_text(stops + "whole = True\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(dispatch, "LIBRARY_MODULE", "loops_that_are_stopped")
    with pytest.raises(KeyboardInterrupt), dispatch.use_compiled_kernels(True):
        pass
    with dispatch.use_compiled_kernels(True):
        assert dispatch._library.whole, "the import went on, and was waited for"
    del sys.modules["loops_that_are_stopped"]
