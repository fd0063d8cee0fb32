"""The parts of decoding one by one; the laws of the whole are in tests/invariants/test_decoding.py."""

import math
from dataclasses import dataclass, field

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.rounding import assert_rounds_like
from tfm.data.errors import DataError
from tfm.model.build import build
from tfm.model.config import ModelConfig, StackConfig
from tfm.model.layout import Layout
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.decoding import decode as decoding
from tfm.pipeline.decoding.constraints.logits_processor import LogitsProcessor
from tfm.pipeline.decoding.decode import decode, is_source_truncated
from tfm.pipeline.decoding.limits import LENGTH_NORMS
from tfm.pipeline.decoding.search.top_k import best_candidates
from tfm.pipeline.decoding.teacher_forcing import target_log_probs
from tfm.tokenizer.special import BOS_ID, EOS_ID, PAD_ID, UNK_ID

VOCAB = 8


@dataclass
class Countdown:
    """Says ids from the source's first down to 4, then the end; counts what is asked of it."""

    certainty: float = 10.0
    max_length: int = 20
    rows: list[int] = field(default_factory=list)
    selected: list[list[int]] = field(default_factory=list)
    read: list[list[int]] = field(default_factory=list)

    def source_layout(self, source, lengths):
        return Layout.from_lengths(lengths)

    def start(self, source, layout):
        self.read += [row[mask].tolist() for row, mask in zip(layout.pad(source), layout.mask, strict=True)]
        return _State(self, layout.pad(source)[:, 0])

    def step(self, tokens, state):
        self.rows.append(len(tokens))
        wanted = torch.where(tokens == BOS_ID, state.first, tokens - 1)
        logits = torch.zeros(len(tokens), VOCAB, dtype=torch.float64)
        logits -= 0.1 * torch.arange(VOCAB)
        logits[torch.arange(len(tokens)), wanted.clamp(min=EOS_ID)] += self.certainty
        log_probs = logits.log_softmax(-1)
        return lambda some: log_probs[some], state


@dataclass
class _State:
    model: Countdown
    first: torch.Tensor

    def select(self, rows):
        self.model.selected.append(rows.tolist())
        return _State(self.model, self.first[rows])

    def replace(self, rows, other):
        return _State(self.model, self.first.index_copy(0, rows, other.first))


@pytest.fixture(autouse=True)
def _in_this_process(monkeypatch):
    """What a model here counts, it must count here."""
    monkeypatch.setattr(decoding, "num_workers", lambda *_: 0)


def small_transformer(dtype=torch.float64):
    stack = StackConfig(layers=1, dim=8, heads=2, feed_forward_dim=16)
    config = ModelConfig(encoder=stack, decoder=stack, max_length=12)
    return build(config, source_vocab=VOCAB, target_vocab=VOCAB, seed=3).to(dtype).eval()


@settings(deadline=None)
@given(
    num_sentences=st.integers(1, 3),
    beam=st.integers(1, 4),
    vocab=st.integers(1, 200),
    k=st.integers(1, 9),
    levels=st.sampled_from([1, 3, 1000]),
    seed=st.integers(0, 1000),
)
def test_candidates_are_the_largest_sums_with_ties_to_the_lowest(num_sentences, beam, vocab, k, levels, seed):
    rng = np.random.default_rng(seed)
    log_probs = torch.from_numpy(-rng.integers(0, levels, (num_sentences, beam, vocab)).astype(np.float32) / 8)
    sums = torch.from_numpy(-rng.integers(0, levels, (num_sentences, beam)).astype(np.float64) / 8)
    log_probs[torch.from_numpy(rng.random(log_probs.shape) < 0.2)] = -math.inf
    values, beams, tokens = best_candidates(log_probs, sums, k)
    every = (log_probs + sums.unsqueeze(-1)).flatten(1)
    for row in range(num_sentences):
        wanted = sorted(range(every.size(1)), key=lambda at: (-every[row, at].item(), at))[:k]
        wanted = [at for at in wanted if every[row, at] > -math.inf]
        found = list(zip(values[row].tolist(), beams[row].tolist(), tokens[row].tolist(), strict=True))
        assert found[: len(wanted)] == [(every[row, at].item(), at // vocab, at % vocab) for at in wanted]
        assert [value for value, _, _ in found[len(wanted) :]] == [-math.inf] * (k - len(wanted))


def test_length_norms_are_the_published_ones():
    lengths = torch.tensor([1.0, 7.0, 25.0], dtype=torch.float64)
    assert LENGTH_NORMS["none"](lengths, 0.6).tolist() == [1, 1, 1]
    assert LENGTH_NORMS["average"](lengths, 1.0).tolist() == [1, 7, 25]
    assert LENGTH_NORMS["average"](lengths, 0.5).tolist() == pytest.approx([1, math.sqrt(7), 5])
    assert LENGTH_NORMS["wu"](lengths, 1.0).tolist() == pytest.approx([1, 2, 5])
    assert LENGTH_NORMS["wu"](lengths, 2.0).tolist() == pytest.approx([1, 4, 25])


def test_limits_follow_from_the_sentence_alone():
    rules = LogitsProcessor.from_config(
        [3, 8, 100], DecodingConfig(max_ratio=1.5, min_length=30), max_length=60, prefixes=[[], [4] * 40, []]
    )
    assert rules.longest.tolist() == [24, 40, 59]
    assert rules.shortest.tolist() == [24, 30, 30]
    assert LogitsProcessor.from_config([3, 8], DecodingConfig(max_length=5), max_length=60).longest.tolist() == [5, 5]
    assert rules.select(torch.tensor([2])).longest.tolist() == [59]


def test_rules_forbid_what_may_not_come():
    rules = LogitsProcessor.from_config(
        [2, 2, 2], DecodingConfig(min_length=1, max_length=2), 60, prefixes=[[], [5, 6], []]
    )
    allowed = []
    for num_pieces in range(3):
        log_probs = torch.randn(3, 2, VOCAB)
        before = log_probs.clone()
        rules.apply(log_probs, torch.full((3,), num_pieces))
        kept = log_probs > -math.inf
        assert torch.equal(log_probs[kept], before[kept])
        assert torch.equal(kept[:, 0], kept[:, 1])
        allowed.append([set(row.nonzero().flatten().tolist()) for row in kept[:, 0]])
    free = set(range(VOCAB)) - {PAD_ID, BOS_ID}
    assert UNK_ID in free
    assert allowed == [[free - {EOS_ID}, {5}, free - {EOS_ID}], [free, {6}, free], [{EOS_ID}] * 3]


@pytest.mark.parametrize(("prefix", "reason"), [([4] * 20, "at most 19"), ([4, EOS_ID], "control token")])
def test_a_prefix_that_cannot_be_is_refused(prefix, reason):
    with pytest.raises(ValueError, match=reason):
        decode(Countdown(), [[4]], DecodingConfig(), prefixes=[prefix])


@pytest.mark.parametrize("beam", [1, 3])
def test_finished_sentences_leave_at_once(beam):
    model = Countdown(certainty=40)
    sources = [[5], [7], [4], [7], [6]]
    found = decode(model, sources, DecodingConfig(beam=beam, length_norm="none"))
    assert [list(each.ids) for (each,) in found] == [[5, 4], [7, 6, 5, 4], [4], [7, 6, 5, 4], [6, 5, 4]]
    # steps of 5 sentences: all are there for two (one piece, then its end), then one leaves a step, then two at last;
    # with these probabilities no other hypothesis can catch up, so a beam is done with its first
    assert model.rows == [5, 5 * beam, 4 * beam, 3 * beam, 2 * beam]


def test_a_long_hypothesis_may_overtake_a_finished_short_one():
    class Hesitant(Countdown):
        """Ends at once with probability 0.6; else begins with 7, and is then sure of all that follows."""

        def step(self, tokens, state):
            predict, state = super().step(tokens, state)
            first = torch.full((VOCAB,), -40.0, dtype=torch.float64)
            first[EOS_ID], first[7] = math.log(0.6), math.log(0.4)
            log_probs = torch.where((tokens == BOS_ID).unsqueeze(1), first, predict(slice(None)))
            return lambda some: log_probs[some], state

    model = Hesitant(certainty=40)
    assert decode(model, [[7]], DecodingConfig(beam=1))[0][0].ids == ()
    ((best,),) = decode(model, [[7]], DecodingConfig(beam=2))
    assert best.ids == (7, 6, 5, 4)
    assert best.score == pytest.approx(math.log(0.4) / 5)
    # where lengths are not normalised nothing can overtake, and the search is over
    model.rows.clear()
    assert decode(model, [[7]], DecodingConfig(beam=2, length_norm="none"))[0][0].ids == ()
    assert model.rows == [1]


def test_greedy_search_leaves_the_cache_where_it_is():
    model = Countdown()
    decode(model, [[7], [7], [6]], DecodingConfig(beam=1))
    assert model.selected == [[0, 1]]


def test_sources_come_back_in_order_and_are_read_longest_first():
    model = Countdown()
    done = []
    sources = [[4], [], [6, 4, 4], [5, 5], [7, 4, 4, 4]]
    found = decode(model, sources, DecodingConfig(beam=1, batch_sentences=2), on_done=done.append)
    assert [each.ids[:1] for (each,) in found] == [(4,), (), (6,), (5,), (7,)]
    assert model.read == [[7, 4, 4, 4, EOS_ID], [6, 4, 4, EOS_ID], [5, 5, EOS_ID], [4, EOS_ID]]
    assert sum(done) == len(sources)


@pytest.mark.parametrize("beam", [1, 3])
def test_one_that_goes_on_and_on_is_put_off_and_found_all_the_same(beam):
    class Babbler(Countdown):
        """Says 7 again and again, up to the limit, where the source begins with 7."""

        def step(self, tokens, state):
            predict, state = super().step(tokens, state)
            babble = torch.full((len(tokens), VOCAB), -9.0, dtype=torch.float64)
            babble[:, 7], babble[:, EOS_ID] = -0.001, -3.0  # so that a beam finishes others on its way
            log_probs = torch.where((state.first == 7).unsqueeze(1), babble, predict(slice(None)))
            return lambda some: log_probs[some], state

    sources = [[4], [7], [5], *[[6], [5], [4]] * 10]
    config = DecodingConfig(beam=beam, n_best=beam, max_length=19, batch_sentences=3, length_norm="none")
    done = []
    alone = [decode(Babbler(certainty=40), [source], config)[0] for source in sources]
    model = Babbler(certainty=40)
    assert decode(model, sources, config, on_done=done.append) == alone
    assert all(len({each.ids for each in n_best}) == beam for n_best in alone)
    assert sum(done) == len(sources)
    assert model.read.count([7, EOS_ID]) == 2, "it was not put off"


def test_a_source_without_pieces_is_not_shown_to_the_model():
    model = Countdown()
    ((empty,), (also,)) = decode(model, [[], []], DecodingConfig(beam=4, n_best=2))
    assert (empty.ids, empty.score, empty.log_prob) == ((), 0.0, 0.0)
    assert also == empty
    assert not model.rows
    assert decode(model, [], DecodingConfig()) == []


def test_a_source_beyond_the_model_is_cut():
    model = Countdown(max_length=4)
    long = [6, 5, 4, 7, 7]
    assert is_source_truncated(long, model)
    assert not is_source_truncated(long[:3], model)
    assert decode(model, [long], DecodingConfig()) == decode(model, [long[:3]], DecodingConfig())
    assert model.read == [[6, 5, 4, EOS_ID]] * 2
    assert len(decode(model, [[7, 7]], DecodingConfig(min_length=30))[0][0].ids) == 3, "no more than the model can read"


@pytest.mark.parametrize("beam", [1, 3])
def test_scores_in_lower_precision_err_as_torchs_do(beam):
    """Beside the same model under torch's autocast."""

    def log_probs(model, precision="fp32", *, autocast=False):
        config = DecodingConfig(beam=beam, max_length=1, precision=precision)
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            found = decode(model, [[4, 5, 6], [7, 5], [6, 6, 4, 7]], config)
        assert len({each[0].ids for each in found}) == 1
        return torch.tensor([each[0].log_prob for each in found])

    model = small_transformer(torch.float32)
    exact, low = log_probs(model.double()).double(), log_probs(model.float(), "bf16")
    assert_rounds_like(low, log_probs(model, autocast=True), exact, products=torch.bfloat16)
    assert (low - exact).abs().max() > 1e-4


@pytest.mark.parametrize("beam", [1, 2])
def test_a_broken_model_is_an_error_and_no_endless_loop(beam):
    with pytest.raises(DataError, match="no finite probabilities"):
        decode(Countdown(certainty=math.nan), [[5]], DecodingConfig(beam=beam))


def test_forced_log_probs_sum_over_pieces_and_end_token():
    model = small_transformer()
    rng = np.random.default_rng(0)
    sources, targets = ([rng.integers(4, VOCAB, rng.integers(0, 9)).tolist() for _ in range(40)] for _ in range(2))
    sources[3] = [4, 5] * 20
    found = target_log_probs(model, sources, targets)
    assert found.dtype == np.float64
    for source, target, total in zip(sources, targets, found, strict=True):
        source, out = [*source[:11], EOS_ID], torch.tensor([*target, EOS_ID])
        layouts = [Layout.from_lengths(torch.tensor([length])) for length in (len(source), len(out))]
        with torch.no_grad():
            hidden = model(torch.tensor(source), layouts[0], torch.tensor([BOS_ID, *target]), layouts[1])
            log_probs = model.output(hidden).log_softmax(-1)
        assert total == pytest.approx(log_probs[torch.arange(len(out)), out].sum().item(), abs=1e-10)
    assert target_log_probs(model, [], []).shape == (0,)


def test_a_target_beyond_the_model_has_no_probability():
    with pytest.raises(DataError, match="target 2 has 12 pieces and the model reads at most 11"):
        target_log_probs(small_transformer(), [[4], [4]], [[4], [4] * 12])


@pytest.mark.few(1)
@pytest.mark.parametrize("beam", [1, 2])
def test_a_free_seat_does_not_outrun_the_model(beam):
    model, rng = small_transformer(), np.random.default_rng(0)
    with torch.no_grad():  # ends come at all steps, so that some slots stay free while others run to the limit
        model.output.weight[EOS_ID].mul_(3)
    sources = [rng.integers(4, VOCAB, rng.integers(1, 9)).tolist() for _ in range(80)]
    config = DecodingConfig(beam=beam, max_ratio=30, batch_sentences=24)
    found = decode(model, sources, config)
    lengths = {len(each.ids) for (each,) in found}
    assert max(lengths) == model.max_length - 1
    assert min(lengths) < 4
    assert [n_best[0].ids for n_best in found] == [decode(model, [source], config)[0][0].ids for source in sources]
