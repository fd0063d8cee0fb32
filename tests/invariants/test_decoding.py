"""Laws of decoding that hold for every model with start, step and select.

In float64 the same tokens; in float32 (slow) scores within 1e-4 and at least 99.9 % of 1,000 hypotheses the same, each
difference a near tie that the test shows.
"""

import math
from dataclasses import dataclass
from functools import partial
from itertools import chain, pairwise, product

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.quick import mostly_slow
from tests.rounding import assert_rounds_like
from tfm.model.build import build
from tfm.model.config import DropoutConfig, ModelConfig, StackConfig
from tfm.model.cpu_kernels import dispatch
from tfm.model.layout import Layout
from tfm.model.transformer.encoder_decoder import EncoderDecoder
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.decoding import decode as decoding
from tfm.pipeline.decoding.constraints.logits_processor import LogitsProcessor
from tfm.pipeline.decoding.constraints.phrases import PhraseConstraints
from tfm.pipeline.decoding.decode import decode
from tfm.pipeline.decoding.limits import LENGTH_NORMS
from tfm.pipeline.decoding.search.beam import beam_search
from tfm.pipeline.decoding.search.hypothesis import Hypothesis
from tfm.pipeline.decoding.teacher_forcing import stepped_log_probs, target_log_probs
from tfm.pipeline.model_io.ensemble import Ensemble
from tfm.tokenizer.special import BOS_ID, EOS_ID, PAD_ID, UNK_ID

VOCAB = 40


class HashModel:
    """log p(next | source, all pieces before) drawn by hashing: any history matters, nothing is alike by chance."""

    @dataclass
    class State:
        hashes: Tensor

        def select(self, rows):
            return HashModel.State(self.hashes[rows])

        def replace(self, rows, other):
            return HashModel.State(self.hashes.index_copy(0, rows, other.hashes))

    def __init__(self, vocab=VOCAB, seed=0, sharpness=8.0, max_length=64, coarse=False):
        self.vocab, self.seed, self.sharpness, self.max_length, self.coarse = vocab, seed, sharpness, max_length, coarse

    def source_layout(self, source, lengths):
        return Layout.from_lengths(lengths)

    def start(self, source, layout):
        padded = layout.pad(source + 1)
        hashes = torch.full((layout.batch,), 77 + self.seed)
        for column, real in zip(padded.T, layout.mask.T, strict=True):
            hashes = torch.where(real, self._mix(hashes, column), hashes)
        return HashModel.State(hashes)

    def step(self, tokens, state):
        hashes = self._mix(state.hashes, tokens)
        drawn = self._mix(hashes.unsqueeze(1), torch.arange(1, self.vocab + 1)) >> 17 & 0xFFFF
        logits = drawn.double() / 0xFFFF
        # coarse: exact ties everywhere
        log_probs = torch.round(logits * 3) - 4 if self.coarse else (self.sharpness * logits).log_softmax(-1)
        return lambda some: log_probs[some], HashModel.State(hashes)

    @staticmethod
    def _mix(hashes, tokens):
        mixed = (hashes ^ (tokens * 0x9E3779B97F4A7C1)) * 0x5851F42D4C957F2D
        return mixed ^ mixed >> 29


class Uncached:
    """The same model, which reads source and all pieces anew at each step."""

    @dataclass
    class State:
        sources: list
        pieces: list

        def select(self, rows):
            return Uncached.State([self.sources[row] for row in rows], [self.pieces[row] for row in rows])

        def replace(self, rows, other):
            sources, pieces = list(self.sources), list(self.pieces)
            for row, source, read in zip(rows.tolist(), other.sources, other.pieces, strict=True):
                sources[row], pieces[row] = source, read
            return Uncached.State(sources, pieces)

    def __init__(self, model):
        self.model, self.max_length = model, model.max_length

    def source_layout(self, source, lengths):
        return Layout.from_lengths(lengths)

    def start(self, source, layout):
        return Uncached.State(
            list(source.split(layout.lengths.tolist())), [torch.empty(0, dtype=torch.int64)] * layout.batch
        )

    def step(self, tokens, state):
        pieces = [torch.cat([read, token.view(1)]) for read, token in zip(state.pieces, tokens, strict=True)]
        layouts = [Layout.from_lengths(torch.tensor([len(each) for each in side])) for side in (state.sources, pieces)]
        hidden = self.model(torch.cat(state.sources), layouts[0], torch.cat(pieces), layouts[1])
        last = layouts[1].lengths.cumsum(0) - 1
        return lambda some: self.model.log_probs(hidden[last][some]), Uncached.State(state.sources, pieces)


def network(seed=0, dtype=torch.float64, width=16, **changes):
    """A small network with random weights, sure of what it says."""
    stack = StackConfig(layers=2, dim=width, heads=2, feed_forward_dim=2 * width)
    rates = DropoutConfig(residual=0.3, embedding=0.3)
    config = ModelConfig(encoder=stack, decoder=stack, tie="none", max_length=64, dropout=rates, **changes)
    model = build(config, source_vocab=VOCAB, target_vocab=VOCAB, seed=seed).to(dtype).eval()
    with torch.no_grad():
        model.output.weight.mul_(2.5)
        model.output.weight[EOS_ID].mul_(1.5)
    return model


def transformer(seed=0, dtype=torch.float64, norm="pre", width=16) -> EncoderDecoder:
    return network(seed, dtype, width, norm=norm)


def decoder_only(seed=0):
    return network(seed, architecture="decoder_only")


def recurrent(seed=0):
    attends = {"cell": "gru", "attention": "luong"}
    return network(seed, architecture="recurrent", positions="none", recurrent=attends, norm="post")


MODELS = {
    "hash": HashModel,
    "transformer": transformer,
    "post-norm": lambda: transformer(norm="post"),
    "decoder-only": decoder_only,
    "recurrent": recurrent,
    "told languages": lambda: network(languages="m2m100", positions="fairseq"),
    "told languages otherwise": lambda: network(languages="mbart", positions="learned", embedding_norm=True),
    "ensemble": lambda: Ensemble([transformer(1), transformer(2, width=24)]),
    "mixed ensemble": lambda: Ensemble([HashModel(sharpness=3), transformer(3)]),
}
KINDS = {"hash": HashModel, "ensemble of kinds": lambda: Ensemble([transformer(3), decoder_only(4), recurrent(5)])}


IN_THE_SLOW_SUITE = ("mixed ensemble",)  # what is of an ensemble is seen with the other one


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=[pytest.mark.slow] * (name in IN_THE_SLOW_SUITE)) for name in MODELS],
)
def model(request):
    return MODELS[request.param]()


@pytest.fixture(scope="module", params=KINDS)
def kinds(request):
    return KINDS[request.param]()


def draw_sources(num=24, longest=9, seed=0, vocab=VOCAB):
    rng = np.random.default_rng(seed)
    return [rng.integers(4, vocab, size=rng.integers(1, longest + 1)).tolist() for _ in range(num)]


def assert_same(some, others, tolerance=1e-9):
    assert [[each.ids for each in n_best] for n_best in some] == [[each.ids for each in n_best] for n_best in others]
    for each, other in zip(chain.from_iterable(some), chain.from_iterable(others), strict=True):
        assert each.score == pytest.approx(other.score, abs=tolerance)
        assert each.log_prob == pytest.approx(other.log_prob, abs=tolerance)


def log_probs_after(model, source, pieces) -> Tensor:
    """log p(. | source, pieces) (T + 1, V), stepping through one sentence."""
    with torch.inference_mode():
        state = model.start(torch.tensor([*source, EOS_ID]), Layout.from_lengths(torch.tensor([len(source) + 1])))
        rows = []
        for token in (BOS_ID, *pieces):
            predict, state = model.step(torch.tensor([token]), state)
            rows.append(predict(slice(None))[0])
    return torch.stack(rows)


def divide(config, log_prob, num_tokens):
    return log_prob / LENGTH_NORMS[config.length_norm](torch.tensor(float(num_tokens)).double(), config.alpha).item()


def plain_beam(model, source, config, prefix=()):
    """Beam search of one sentence as it would be written on paper, and the smallest margin by which it decided."""
    limit = config.max_length or int(config.max_ratio * (len(source) + 1)) + 20
    limit = max(min(limit, model.max_length - 1), len(prefix))
    beam, finished, margin = [((), 0.0)], [], math.inf
    while beam:
        candidates = []
        for rank, (ids, log_prob) in enumerate(beam):
            for token, step in enumerate(log_probs_after(model, source, ids)[-1].tolist()):
                position = len(ids)
                forbidden = (
                    token in (PAD_ID, BOS_ID)
                    or (token == EOS_ID and position < min(config.min_length, limit))
                    or (token != EOS_ID and position == limit)
                    or (position < len(prefix) and token != prefix[position])
                )
                if not forbidden:
                    candidates.append((-(log_prob + step), rank, token, ids))
        candidates = sorted(candidates)[: 2 * config.beam + 1]
        values = [-value for value, *_ in candidates]
        margin = min([margin, *(a - b for a, b in pairwise(values))])
        beam = []
        for place, (value, _, token, ids) in enumerate(candidates[: 2 * config.beam]):
            if token == EOS_ID:
                if place < config.beam:
                    finished.append(Hypothesis(ids, divide(config, -value, len(ids) + 1), -value))
            elif len(beam) < config.beam:
                beam.append(((*ids, token), -value))
        if beam and len(finished) >= config.beam:
            rival = sorted((each.score for each in finished), reverse=True)[config.n_best - 1]
            leading = divide(config, beam[0][1], len(beam[0][0]))
            margin = min(margin, abs(leading - rival))
            if leading <= rival:
                break
    finished.sort(key=lambda each: -each.score)
    scores = [each.score for each in finished]
    margin = min([margin, *(a - b for a, b in pairwise(scores))])
    return finished[: config.n_best], margin


def plain_greedy(model, source, config):
    with torch.inference_mode():
        ids, log_prob, token = (), 0.0, BOS_ID
        state = model.start(torch.tensor([*source, EOS_ID]), Layout.from_lengths(torch.tensor([len(source) + 1])))
        limit = int(config.max_ratio * (len(source) + 1)) + 20
        while True:
            predict, state = model.step(torch.tensor([token]), state)
            (row,) = predict(slice(None))
            row[[PAD_ID, BOS_ID]] = -math.inf
            token = EOS_ID if len(ids) == limit else int(row.argmax())
            log_prob += row[token].item()
            if token == EOS_ID:
                return Hypothesis(ids, divide(config, log_prob, len(ids) + 1), log_prob)
            ids += (token,)


@pytest.mark.few(1)
@pytest.mark.parametrize("beam", [*(pytest.param(beam, marks=pytest.mark.slow) for beam in (1, 2)), 5])
def test_a_hypothesis_does_not_depend_on_its_batch(model, beam):
    sources = draw_sources(12)
    alone = decode(model, sources, DecodingConfig(beam=beam, n_best=beam, batch_sentences=1))
    lengths = {len(each[0].ids) for each in alone}
    assert len(lengths) > 2, "the law says nothing of hypotheses of one length"

    together = decode(model, sources, DecodingConfig(beam=beam, n_best=beam, batch_sentences=64))
    assert_same(together, alone)

    order = np.random.default_rng(1).permutation(len(sources)).tolist()
    shuffled = decode(model, [sources[i] for i in order], DecodingConfig(beam=beam, n_best=beam, batch_sentences=7))
    assert_same(shuffled, [alone[i] for i in order])


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.few(2)
def test_the_cache_changes_nothing(seed, beam):
    model, sources = transformer(seed), draw_sources(16, seed=seed)
    config = DecodingConfig(beam=beam, n_best=beam)
    assert_same(decode(model, sources, config), decode(Uncached(model), sources, config))


@pytest.mark.few(1)
def test_beam_1_is_greedy(model):
    sources = draw_sources(16, seed=2)
    config = DecodingConfig(beam=1)
    plain = [[plain_greedy(model, source, config)] for source in sources]
    assert_same(decode(model, sources, config), plain)

    lengths = [len(source) + 1 for source in sources]
    flat = torch.tensor([token for source in sources for token in (*source, EOS_ID)])
    with torch.inference_mode():
        rules = LogitsProcessor.from_config(lengths, config, model.max_length)
        searched = beam_search(
            model, flat, Layout.from_lengths(torch.tensor(lengths)), rules, beam=1, n_best=1, batch_size=5
        )
    assert_same(searched, plain)


@pytest.mark.few(3)
@pytest.mark.parametrize("limits", [pytest.param({}, marks=pytest.mark.slow), {"max_length": 3}, {"min_length": 5}])
def test_the_reported_score_is_the_forced_score(model, limits):
    sources = draw_sources(5, seed=3)
    config = DecodingConfig(beam=3, n_best=3, length_norm="wu", alpha=0.6, **limits)
    for source, n_best in zip(sources, decode(model, sources, config), strict=True):
        for each in n_best:
            rows = log_probs_after(model, source, each.ids)
            forced = rows[torch.arange(len(rows)), torch.tensor([*each.ids, EOS_ID])].sum().item()
            assert each.log_prob == pytest.approx(forced, abs=1e-9)
            assert each.score == pytest.approx(forced / ((5 + len(each.ids) + 1) / 6) ** 0.6, abs=1e-9)


def test_forced_log_probs_are_those_of_the_search():
    model = transformer(5)
    sources = draw_sources(30, seed=4)
    found = decode(model, sources, DecodingConfig(beam=4, n_best=4))
    pairs = [(source, each) for source, n_best in zip(sources, found, strict=True) for each in n_best]
    forced = target_log_probs(model, [source for source, _ in pairs], [each.ids for _, each in pairs])
    np.testing.assert_allclose(forced, [each.log_prob for _, each in pairs], atol=1e-9, rtol=0)


@settings(deadline=None, max_examples=20)
@given(
    seed=st.integers(0, 10_000),
    norm=st.sampled_from(sorted(LENGTH_NORMS)),
    alpha=st.sampled_from([0.0, 0.6, 1.0, 2.0]),
    longest=st.integers(1, 4),
    shortest=st.integers(0, 4),
)
@pytest.mark.slow
def test_a_beam_as_wide_as_the_space_finds_the_best_of_all(seed, norm, alpha, longest, shortest):
    model, sources = HashModel(6, seed, sharpness=4), draw_sources(3, seed=seed, vocab=6)
    free, shortest = (1, 4, 5), min(shortest, longest)
    config = {"length_norm": norm, "alpha": alpha, "max_length": longest, "min_length": shortest}
    space = [ids for length in range(shortest, longest + 1) for ids in product(free, repeat=length)]
    width = sum(3**length for length in range(longest + 1))
    every = decode(model, sources, DecodingConfig(beam=width, n_best=width, **config))
    best = decode(model, sources, DecodingConfig(beam=width, n_best=1, **config))
    for source, n_best, (first,) in zip(sources, every, best, strict=True):
        forced = {}
        for ids in space:
            rows = log_probs_after(model, source, ids)
            log_prob = sum(row[token].item() for row, token in zip(rows, (*ids, EOS_ID), strict=True))
            forced[ids] = divide(DecodingConfig(**config), log_prob, len(ids) + 1)
        assert {each.ids for each in n_best} == set(space)
        assert [each.score for each in n_best] == pytest.approx(sorted(forced.values(), reverse=True), abs=1e-9)
        assert first.ids == max(space, key=forced.__getitem__)


@settings(deadline=None, max_examples=40)
@given(data=st.data())
@pytest.mark.slow
def test_the_search_is_beam_search_as_written_on_paper(data):
    vocab = data.draw(st.integers(5, 90))
    seed, sharpness, coarse = data.draw(st.tuples(st.integers(0, 1000), st.floats(0.5, 12), st.booleans()))
    model = HashModel(vocab, seed, sharpness, max_length=14, coarse=coarse)
    beam = data.draw(st.integers(1, 7))
    config = DecodingConfig(
        beam=beam,
        n_best=data.draw(st.integers(1, beam)),
        length_norm=data.draw(st.sampled_from(sorted(LENGTH_NORMS))),
        alpha=data.draw(st.sampled_from([0.0, 0.6, 1.0])),
        min_length=(shortest := data.draw(st.integers(0, 4))),
        max_length=data.draw(st.none() | st.integers(max(shortest, 1), 8)),
        max_ratio=data.draw(st.sampled_from([0.1, 2.0])),
    )
    sources = draw_sources(3, longest=4, seed=data.draw(st.integers(0, 100)), vocab=vocab)
    free = st.integers(4, vocab - 1)
    prefixes = (
        data.draw(st.lists(st.lists(free, max_size=4), min_size=3, max_size=3)) if data.draw(st.booleans()) else None
    )
    found = decode(model, sources, config, prefixes=prefixes)
    plain = [plain_beam(model, source, config, prefixes[i] if prefixes else ())[0] for i, source in enumerate(sources)]
    assert_same(found, plain)


@pytest.mark.few(1)
@pytest.mark.parametrize("make", [transformer, partial(transformer, norm="post"), decoder_only, recurrent])
@pytest.mark.parametrize(
    "how",
    [
        {"beam": 4, "n_best": 4},
        pytest.param({"beam": 1}, marks=pytest.mark.slow),
        pytest.param({"beam": 3, "min_length": 4, "max_length": 6}, marks=pytest.mark.slow),
    ],
)
def test_compiled_loops_find_the_same(make, how, monkeypatch):
    pytest.importorskip("numba", reason="numba is not installed (extra: fast)")
    model, sources, config = make(2).float(), draw_sources(36), DecodingConfig(batch_sentences=16, **how)
    found = []
    for many in (1, 1 << 60):
        monkeypatch.setattr(decoding, "MIN_SENTENCES_TO_COMPILE", many)
        found.append([each for n_best in decode(model, sources, config) for each in n_best])
    exact = [each for n_best in decode(model.double(), sources, config) for each in n_best]
    assert [each.ids for each in found[0]] == [each.ids for each in found[1]] == [each.ids for each in exact]
    for figure in ("score", "log_prob"):
        in_fp32 = (torch.tensor([getattr(each, figure) for each in hypotheses]) for hypotheses in found)
        in_float64 = torch.tensor([getattr(each, figure) for each in exact], dtype=torch.float64)
        assert_rounds_like(*in_fp32, in_float64)


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["bf16", "fp32"])
def test_hypotheses_do_not_depend_on_how_many_sentences_there_are(precision, monkeypatch):
    """In fp32 the compiled loops round as torch does; in bf16 they do not, so that few sentences take them too."""
    pytest.importorskip("numba", reason="numba is not installed (extra: fast)")
    monkeypatch.setattr(decoding, "MIN_SENTENCES_TO_COMPILE", 30)
    model, sources = transformer(3, torch.float32), draw_sources(40, seed=9)
    config = DecodingConfig(beam=4, precision=precision, max_length=12)
    whole, is_taken = decode(model, sources, config), []
    monkeypatch.setattr(
        decoding,
        "use_compiled_kernels",
        lambda wanted: is_taken.append(wanted) or dispatch.use_compiled_kernels(wanted),
    )
    for size in (1, 9):
        portions = (sources[begin : begin + size] for begin in range(0, len(sources), size))
        found = [each for portion in portions for (each,) in decode(model, portion, config)]
        for (one,), other in zip(whole, found, strict=True):
            assert one.score == pytest.approx(other.score, abs=0.05 if precision == "bf16" else 1e-4)
            assert one.ids == other.ids or precision == "bf16"  # a near tie, then
    assert set(is_taken) == {precision == "bf16"}


@pytest.mark.few(1)
@pytest.mark.parametrize("beam", [pytest.param(1, marks=pytest.mark.slow), 4])
def test_lengths_and_prefixes_are_kept(model, beam):
    sources = draw_sources(8, seed=6)
    free = decode(model, sources, DecodingConfig(beam=beam))
    for shortest, longest in ((0, 3), (6, 9), (4, 4)):
        config = DecodingConfig(beam=beam, n_best=beam, min_length=shortest, max_length=longest)
        for n_best in decode(model, sources, config):
            assert len(n_best) == beam
            assert all(shortest <= len(each.ids) <= longest for each in n_best)
            assert not any({PAD_ID, BOS_ID, EOS_ID} & set(each.ids) for each in n_best)

    # a search that must begin as it would anyway changes nothing; other prefixes are obeyed, each sentence its own
    own = [each.ids[: number % 4] for number, (each,) in enumerate(free)]
    if beam == 1:
        assert_same(decode(model, sources, DecodingConfig(beam=1), prefixes=own), free)
    prefixes = draw_sources(8, longest=5, seed=7)
    for prefix, n_best in zip(
        prefixes, decode(model, sources, DecodingConfig(beam=beam), prefixes=prefixes), strict=True
    ):
        assert n_best[0].ids[: len(prefix)] == tuple(prefix)
    # a prefix beyond the limit is the whole hypothesis
    for prefix, (each,) in zip(
        prefixes, decode(model, sources, DecodingConfig(beam=beam, max_length=1), prefixes=prefixes), strict=True
    ):
        assert each.ids == tuple(prefix)


@pytest.mark.parametrize(
    "cut", mostly_slow([{}, {"top_k": 9}, {"top_p": 0.9, "temperature": 0.7}], {"top_p": 0.9, "temperature": 0.7})
)
@pytest.mark.few(1)
def test_a_sample_follows_from_its_sentence_and_its_number(kinds, cut):
    model, sources = kinds, draw_sources(8, seed=8)
    config = DecodingConfig(strategy="sample", n_best=3, batch_sentences=1, max_length=12, seed=5, **cut)
    alone = decode(model, sources, config)
    assert any(len({each.ids for each in n_best}) == 3 for n_best in alone), "all draws are the same"
    order = np.random.default_rng(2).permutation(len(sources)).tolist()
    shuffled = decode(model, [sources[i] for i in order], config.model_copy(update={"batch_sentences": 5}))
    assert_same(shuffled, [alone[i] for i in order])
    twice = decode(model, [sources[0], *sources], config.model_copy(update={"batch_sentences": 64}))
    assert_same(twice, [alone[0], *alone])
    assert decode(model, sources, config.model_copy(update={"seed": 6})) != alone
    for source, n_best in zip(sources, alone, strict=True):
        for each in n_best:
            rows = log_probs_after(model, source, each.ids)
            forced = rows[torch.arange(len(rows)), torch.tensor([*each.ids, EOS_ID])].sum().item()
            assert each.log_prob == pytest.approx(forced, abs=1e-9)
        assert [each.score for each in n_best] == sorted((each.score for each in n_best), reverse=True)


@pytest.mark.few(1)
@pytest.mark.parametrize("how", [{"temperature": 0.0}, {"top_k": 1}, {"temperature": 1e-7}])
def test_without_chance_a_sample_is_greedy(kinds, how):
    model, sources = kinds, draw_sources(8, seed=9)
    sampled = decode(model, sources, DecodingConfig(strategy="sample", **how))
    assert_same(sampled, decode(model, sources, DecodingConfig(beam=1)))


def holds(ids, phrase):
    return any(ids[place : place + len(phrase)] == phrase for place in range(len(ids)))


def draw_phrases(num, seed, most=3):
    """For some sentences none, for others up to `most` phrases of one to three pieces."""
    rng = np.random.default_rng(seed)
    return [
        [tuple(rng.integers(4, VOCAB, rng.integers(1, 4)).tolist()) for _ in range(rng.integers(0, most + 1))]
        for _ in range(num)
    ]


@pytest.mark.few(1)
@pytest.mark.parametrize("how", [{"beam": 1}, {"beam": 4, "n_best": 4}, {"strategy": "sample", "n_best": 2}])
def test_nothing_forbidden_comes_up(kinds, how):
    model, sources = kinds, draw_sources(10, seed=10)
    free = decode(model, sources, DecodingConfig(**how))
    forbidden = tuple({each.ids[place : place + 2] for ((each, *_), place) in zip(free, range(10), strict=True)})
    forbidden = [phrase for phrase in forbidden if phrase]
    config = DecodingConfig(no_repeat_ngram=2, batch_sentences=1, max_length=12, **how)
    alone = decode(model, sources, config, phrases=PhraseConstraints(forbidden))
    for n_best in alone:
        for each in n_best:
            assert not any(holds(each.ids, phrase) for phrase in forbidden)
            assert len(set(pairwise(each.ids))) == len(each.ids[1:])
    together = decode(
        model, sources, config.model_copy(update={"batch_sentences": 64}), phrases=PhraseConstraints(forbidden)
    )
    assert_same(together, alone)


@pytest.mark.few(1)
@pytest.mark.parametrize("beam", mostly_slow([2, 5], 2))
def test_what_must_come_up_comes_up_whatever_the_batch(kinds, beam):
    model, sources, forced = kinds, draw_sources(6, seed=11), draw_phrases(6, seed=11)
    config = DecodingConfig(beam=beam, n_best=beam, max_length=14, batch_sentences=1)
    alone = decode(model, sources, config, phrases=PhraseConstraints(forced=forced))
    free = decode(model, sources, config)
    for source, n_best, wanted, without in zip(sources, alone, forced, free, strict=True):
        assert n_best
        assert wanted or n_best == without
        for each in n_best:
            assert all(holds(each.ids, phrase) for phrase in wanted)
            assert len(each.ids) <= 14
            rows = log_probs_after(model, source, each.ids)
            total = rows[torch.arange(len(rows)), torch.tensor([*each.ids, EOS_ID])].sum().item()
            assert each.log_prob == pytest.approx(total, abs=1e-9)
    order = np.random.default_rng(3).permutation(len(sources)).tolist()
    shuffled = decode(
        model,
        [sources[i] for i in order],
        config.model_copy(update={"batch_sentences": 4}),
        phrases=PhraseConstraints(forced=[forced[i] for i in order]),
    )
    assert_same(shuffled, [alone[i] for i in order])


@settings(deadline=None, max_examples=20)
@given(
    seed=st.integers(0, 10_000),
    longest=st.integers(1, 4),
    ngram=st.none() | st.integers(1, 2),
    forced=st.lists(st.lists(st.sampled_from([4, 5]), min_size=1, max_size=2), max_size=2),
    forbidden=st.lists(st.lists(st.sampled_from([1, 4, 5]), min_size=1, max_size=2), max_size=2),
)
def test_a_beam_as_wide_as_the_space_finds_the_best_of_all_that_may_be(seed, longest, ngram, forced, forbidden):
    model, (source,) = HashModel(6, seed, sharpness=4), draw_sources(1, seed=seed, vocab=6)
    forced, forbidden = ([tuple(phrase) for phrase in each] for each in (forced, forbidden))
    forced = list(dict.fromkeys(forced))

    def has_room(ids):
        """Whether, where there is no more room than for what is lacking, that is what comes."""
        for place, token in enumerate(ids):
            lacking = [phrase for phrase in forced if not holds(ids[:place], phrase)]
            if lacking and sum(map(len, lacking)) >= longest - place:
                depth, due = max(
                    ((k, -number) for number, phrase in enumerate(lacking) for k in range(len(phrase))
                     if ids[place - k : place] == phrase[:k]),
                )  # fmt: skip
                if token != lacking[-due][depth]:
                    return False
        return True

    def may_be(ids):
        grams = [ids[place : place + ngram] for place in range(len(ids) - ngram + 1)] if ngram else []
        # an unknown piece is in no text, so that what stands around it stands in a row there
        in_text = ids if UNK_ID in chain(*forbidden) else tuple(token for token in ids if token != UNK_ID)
        return (
            len(set(grams)) == len(grams)
            and not any(holds(in_text, phrase) for phrase in forbidden)
            and all(holds(ids, phrase) for phrase in forced)
            and has_room(ids)
        )

    longest = max(longest, sum(map(len, forced)))
    space = [ids for length in range(longest + 1) for ids in product((1, 4, 5), repeat=length) if may_be(ids)]
    assume(space)
    width = 3 ** (longest + 1)
    config = DecodingConfig(beam=width, n_best=width, max_length=longest, no_repeat_ngram=ngram)
    (found,) = decode(model, [source], config, phrases=PhraseConstraints(forbidden, [forced]))
    scores = {}
    for ids in space:
        rows = log_probs_after(model, source, ids)
        log_prob = sum(row[token].item() for row, token in zip(rows, (*ids, EOS_ID), strict=True))
        scores[ids] = divide(config, log_prob, len(ids) + 1)
    # where there is no more room what must come up does so even if it is forbidden
    kept = [each for each in found if may_be(each.ids)]
    assert {each.ids for each in kept} == set(space)
    assert [each.score for each in kept] == pytest.approx(sorted(scores.values(), reverse=True), abs=1e-9)


@pytest.mark.few(1)
@pytest.mark.parametrize("how", [{"beam": 1}, {"beam": 3, "n_best": 3}, {"strategy": "sample", "n_best": 2}])
@pytest.mark.parametrize("make", [transformer, decoder_only, recurrent])
def test_an_ensemble_of_a_model_with_itself_is_the_model(make, how):
    model, sources, config = make(6), draw_sources(8, seed=12), DecodingConfig(**how)
    assert_same(decode(Ensemble([model, model]), sources, config), decode(model, sources, config))


@pytest.mark.slow
def test_an_ensemble_says_the_mean_of_the_probabilities_step_by_step():
    members = [transformer(1), transformer(2, width=24), decoder_only(3), recurrent(4)]
    ensemble, sources = Ensemble(members), draw_sources(3, seed=13)
    for source, n_best in zip(sources, decode(ensemble, sources, DecodingConfig(beam=2, n_best=2)), strict=True):
        ids = torch.tensor([*source, EOS_ID])
        for each in n_best:
            targets = [*each.ids, EOS_ID]
            own = torch.stack([log_probs_after(member, source, each.ids) for member in members]).exp().mean(0).log()
            wanted = own[torch.arange(len(targets)), torch.tensor(targets)]
            with torch.inference_mode():
                state = ensemble.start(ids, Layout.from_lengths(torch.tensor([len(ids)])))
            (stepped,) = stepped_log_probs(ensemble, state, torch.tensor([BOS_ID]), [targets])
            np.testing.assert_allclose(stepped, wanted, atol=1e-9, rtol=0)
            assert each.log_prob == pytest.approx(sum(stepped), abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("beam", [1, 5])
@pytest.mark.parametrize("law", ["batch", "cache"])
def test_float32_differs_only_in_near_ties(law, beam):
    single, double = transformer(8, torch.float32), transformer(8)
    sources = draw_sources(1000, longest=20, seed=8)
    config = DecodingConfig(beam=beam, batch_sentences=64)
    found = decode(single, sources, config)
    if law == "batch":
        others = decode(single, sources, DecodingConfig(beam=beam, batch_sentences=1))
    else:
        others = decode(Uncached(single), sources, config)
    different = [row for row in range(1000) if found[row][0].ids != others[row][0].ids]
    for row in different:
        _, margin = plain_beam(double, sources[row], config)
        assert margin < 1e-4, f"source {row}: {found[row]} or {others[row]}"
    assert len(different) <= 1
    for hypotheses in (found, others):
        best = [each for (each,) in hypotheses]
        plain, exact = (target_log_probs(model, sources, [each.ids for each in best]) for model in (single, double))
        in_float64 = torch.from_numpy(exact)
        assert_rounds_like(torch.tensor([each.log_prob for each in best]), torch.from_numpy(plain).float(), in_float64)
        assert [each.score for each in best] == [divide(config, each.log_prob, each.num_tokens) for each in best]
