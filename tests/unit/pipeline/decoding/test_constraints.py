"""What may not come up and what must: against the same written out for one hypothesis."""

import math
from dataclasses import dataclass

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.invariants.test_decoding import HashModel
from tfm.data.errors import DataError
from tfm.model.layout import Layout
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.decoding.constraints.lexical import BannedPieces, ForcedPhrases
from tfm.pipeline.decoding.constraints.logits_processor import LogitsProcessor
from tfm.pipeline.decoding.constraints.phrases import (
    PhraseConstraints,
    forbidden_pieces,
    forced_pieces,
    word_continuation_pieces,
)
from tfm.pipeline.decoding.decode import decode
from tfm.pipeline.decoding.search.beam_allocation import select_round_robin
from tfm.tokenizer.config import TokenizerConfig
from tfm.tokenizer.special import BOS_ID, EOS_ID, PAD_ID, UNK_ID
from tfm.tokenizer.train import train

VOCAB = 8
PIECES = st.integers(4, VOCAB - 1)
PIECES_AND_ENDS = st.integers(EOS_ID, VOCAB - 1)  # running text goes on after the end of a line
TEXTS = ["a cat sat on the mat", "the dog sat , on the cat .", "dogs and cats"]


def banned_of_one(history, ngram, phrases):
    """What may not come after these pieces, as it is said."""
    found = set()
    for token in range(VOCAB):
        grown = [*history, token]
        if ngram is not None and len(grown) >= ngram:
            last = grown[-ngram:]
            if any(history[place : place + ngram] == last for place in range(len(history) - ngram + 1)):
                found.add(token)
        begun = [BOS_ID, *(BOS_ID if piece == EOS_ID else piece for piece in history), token]
        if any(begun[-len(phrase) :] == list(phrase) for phrase in phrases):
            found.add(token)
    return found


@settings(max_examples=80)
@given(
    histories=st.lists(st.lists(PIECES_AND_ENDS, max_size=9), min_size=1, max_size=4),
    width=st.integers(1, 3),
    ngram=st.none() | st.integers(1, 4),
    phrases=st.lists(st.lists(PIECES, min_size=1, max_size=4), max_size=3),
    at_beginning=st.booleans(),
    before=st.lists(PIECES_AND_ENDS, max_size=4),
)
def test_bans_are_what_they_say(histories, width, ngram, phrases, at_beginning, before):
    phrases = [(BOS_ID, *phrase) if at_beginning and not i else tuple(phrase) for i, phrase in enumerate(phrases)]
    bans = BannedPieces.from_config(ngram, phrases, before)
    if bans is None:
        assert ngram is None
        assert not phrases
        return
    longest = max(map(len, histories)) + 2
    # whatever lies beyond the pieces that are there
    pieces = torch.randint(0, VOCAB, (len(histories), width, longest))
    each = [[history[shift:] + history[:shift] for shift in range(width)] for history in histories]
    for row, hypotheses in enumerate(each):
        for column, history in enumerate(hypotheses):
            pieces[row, column, : len(history)] = torch.tensor(history)
    log_probs = torch.zeros(len(histories), width, VOCAB)
    bans.apply(log_probs, torch.tensor([len(history) for history in histories]), pieces)
    for row, hypotheses in enumerate(each):
        for column, history in enumerate(hypotheses):
            found = set((log_probs[row, column] == -math.inf).nonzero().flatten().tolist())
            assert found - {PAD_ID} == banned_of_one([*before, *history], ngram, phrases)


@settings(max_examples=80)
@given(
    histories=st.lists(st.lists(st.integers(4, 6), max_size=9), min_size=1, max_size=3),
    phrases=st.lists(st.lists(st.lists(st.integers(4, 6), min_size=1, max_size=4), max_size=3), min_size=3, max_size=3),
)
def test_how_far_a_hypothesis_has_come(histories, phrases):
    phrases = [[tuple(phrase) for phrase in each] for each in phrases[: len(histories)]]
    forced = ForcedPhrases.from_phrases(phrases)
    if forced is None:
        assert not any(phrases)
        return
    pieces = torch.randint(4, 7, (len(histories), 1, max(map(len, histories)) + 1))
    for row, history in enumerate(histories):
        pieces[row, 0, : len(history)] = torch.tensor(history)
    found = forced.progress(torch.tensor([len(history) for history in histories]), pieces)
    for row, (history, wanted) in enumerate(zip(histories, phrases, strict=True)):
        wanted = list(dict.fromkeys(wanted))

        def places(phrase, history=history):
            return [at for at in range(len(history)) if tuple(history[at : at + len(phrase)]) == phrase]

        unmet = [phrase for phrase in wanted if not places(phrase)]
        depths = {
            phrase: max(k for k in range(len(phrase)) if not k or tuple(history[-k:]) == phrase[:k]) for phrase in unmet
        }
        assert found.lacking[row].item() == sum(map(len, unmet))
        assert found.remaining[row].item() == sum(map(len, unmet)) - max(depths.values(), default=0)
        following = {token for token in found.following[row, 0].tolist() if token != PAD_ID}
        assert following == {phrase[depth] for phrase, depth in depths.items()}
        if unmet:
            furthest = max(unmet, key=depths.__getitem__)
            assert found.nearest[row].item() == furthest[depths[furthest]]
        assert found.just_met[row].item() == any(
            places(phrase) == [len(history) - len(phrase)] for phrase in wanted if len(phrase) <= len(history)
        )


def allowed(rules, pieces, log_probs=None):
    """What may follow these pieces of one hypothesis."""
    log_probs = torch.zeros(1, 1, VOCAB) if log_probs is None else log_probs
    rules.apply(log_probs, torch.tensor([len(pieces)]), torch.tensor([[pieces]], dtype=torch.int64).view(1, 1, -1))
    return set((log_probs[0, 0] > -math.inf).nonzero().flatten().tolist())


ALL = {UNK_ID, EOS_ID, 4, 5, 6, 7}


def test_no_end_before_all_has_come_up_and_none_but_it_when_there_is_no_more_room():
    rules = LogitsProcessor.from_config([2], DecodingConfig(max_length=4), 60, forced=[[(5, 6), (7,)]])
    assert allowed(rules, []) == ALL - {EOS_ID}
    assert allowed(rules, [4]) == {5}  # three places, three pieces
    assert allowed(rules, [4, 5]) == {6}
    assert allowed(rules, [4, 5, 6]) == {7}
    assert allowed(rules, [4, 5, 6, 7]) == {EOS_ID}
    assert allowed(rules, [5, 6, 7]) == ALL
    assert allowed(rules, [7]) == ALL - {EOS_ID}


def test_a_limit_too_short_for_what_must_come_up_moves():
    rules = LogitsProcessor.from_config(
        [2, 2], DecodingConfig(max_length=2), 60, [[], [4, 4]], forced=[[(5, 6), (7,), (7,)], [(5,)]]
    )
    assert rules.longest.tolist() == [3, 3]
    with pytest.raises(ValueError, match="a prefix and forced phrases of 7 pieces; the model reads at most 6"):
        LogitsProcessor.from_config([2], DecodingConfig(), 7, [[4] * 5], forced=[[(5, 6)]])


def test_a_phrase_that_came_up_stays_a_word():
    rules = LogitsProcessor.from_config(
        [2], DecodingConfig(max_length=9), 60, forced=[[(5,)]], word_continuations=[6, 7]
    )
    assert allowed(rules, [4]) == ALL - {EOS_ID}
    assert allowed(rules, [4, 5]) == ALL - {6, 7}
    assert allowed(rules, [4, 5, 5]) == ALL  # which is not the first time


def test_what_prevails():
    bans = BannedPieces.from_config(1, [(4,), (5,)])
    prefixed = LogitsProcessor.from_config([2], DecodingConfig(), 60, [[4, 4]], bans=bans)
    assert allowed(prefixed, [4]) == {4}
    forced = LogitsProcessor.from_config([2], DecodingConfig(max_length=3), 60, bans=bans, forced=[[(5, 6)]])
    assert allowed(forced, []) == {UNK_ID, 6, 7}
    assert allowed(forced, [7]) == {5}, "there is room for it alone"
    short = LogitsProcessor.from_config([2], DecodingConfig(min_length=9), 60, bans=bans)
    assert allowed(short, [6]) == {UNK_ID, 7}
    assert allowed(short, [6, 7, UNK_ID]) == {EOS_ID}, "nothing else is left"
    ended = LogitsProcessor.from_config([2], DecodingConfig(), 60, bans=bans, forced=[[(5,)]])
    assert allowed(ended, [6, 7, UNK_ID]) == {5}, "nothing else is left"


def tokenizer(kind):
    return train(TEXTS * 20, TokenizerConfig(kind=kind, min_frequency=1, vocab_size=290 if kind == "byte" else 60))


@pytest.mark.parametrize("kind", ["bpe", "wordpiece", "unigram", "word"])
def test_a_phrase_is_cut_as_after_a_space(kind):
    cut = tokenizer(kind)
    ids = cut.encode("the cat sat")
    (phrase,) = forbidden_pieces(cut, ["cat sat"])
    assert tuple(ids[-len(phrase) :]) == phrase
    assert cut.decode(phrase) == "cat sat"
    assert forced_pieces(cut, ["cat sat"]) == [phrase]


@pytest.mark.parametrize("kind", ["char", "byte"])
def test_where_the_beginning_is_cut_otherwise_both_are_forbidden(kind):
    cut = tokenizer(kind)
    inside, first = forbidden_pieces(cut, ["cat"])
    assert inside == tuple(cut.encode("the cat")[-len(inside) :])
    assert first == (BOS_ID, *cut.encode("cat"))
    assert forced_pieces(cut, ["cat"]) == [inside]


def test_phrases_that_cannot_be():
    cut = tokenizer("word")
    assert forbidden_pieces(cut, ["zebra"]) == []
    for phrases, reason in (
        (["zebra"], 'the forced "zebra" cannot be spelled'),
        (["the cat sat"], 'the forced "the cat sat" contains a forbidden phrase'),
        ([" "], "has no pieces"),
    ):
        with pytest.raises(DataError, match=reason):
            forced_pieces(cut, phrases, forbidden_pieces(cut, ["cat"]))


@pytest.mark.parametrize(
    ("settings", "phrase", "written"),
    [({"lowercase": True}, "The cat", "the cat"), ({"normalization": "nfkc"}, "ﬁt", "fit")],
)
def test_forced_words_are_written_letter_by_letter_or_refused(settings, phrase, written):
    cut = train([*TEXTS, "fit"] * 9, TokenizerConfig.model_validate({"kind": "bpe", "vocab_size": 60, **settings}))
    with pytest.raises(DataError, match=f'the forced "{phrase}" would be written as "{written}"'):
        forced_pieces(cut, [phrase])
    assert forced_pieces(cut, [written])
    assert forbidden_pieces(cut, [phrase]) == forbidden_pieces(cut, [written])


def test_pieces_that_go_on_with_a_word():
    cut = tokenizer("bpe")
    found = {cut.piece(number) for number in word_continuation_pieces(cut)}
    assert {"a", "s"} <= found
    assert not any(piece.startswith((" ", ",", "<")) for piece in found)


def test_phrases_of_scripts_that_put_no_spaces_between_words():
    texts = ["我看猫。", "猫看狗。", "น้ำดี ทำดี", "घर घरों"]
    cut = train(texts, TokenizerConfig(kind="char", vocab_size=60, min_frequency=1))
    without = train(texts[:2], TokenizerConfig(kind="char", vocab_size=60, min_frequency=1))
    for made in (cut, without):
        cat = tuple(made.encode("猫"))
        assert forced_pieces(made, ["猫"]) == [cat]
        assert cat in forbidden_pieces(made, ["猫"])
    goes_on = {cut.piece(number) for number in word_continuation_pieces(cut)}
    assert {"घ", "ो", "ำ", "้"} <= goes_on
    assert not goes_on & {"猫", "狗", "ท", "ด", "。", " "}


def test_phrases_of_a_config_and_of_lines():
    cut = tokenizer("word")
    config = DecodingConfig(forced=("cat",), forbidden=("dog",))
    found = PhraseConstraints.from_config(cut, config, 2, forced=[["mat"], []])
    cat, mat, dog = (tuple(cut.encode(word)) for word in ("cat", "mat", "dog"))
    assert found.forced == [[cat, mat], [cat]]
    assert found.forbidden == [dog]
    assert PhraseConstraints.from_config(cut, DecodingConfig(), 2).forced is None


def test_banks_take_turns_the_furthest_first():
    live = torch.tensor([[True, True, True, True, True, False], [True, True, True, True, True, True]])
    needed = torch.tensor([[2, 2, 2, 1, 0, 0], [1, 1, 1, 1, 1, 1]])
    taken = [
        [row.nonzero().flatten().tolist() for row in select_round_robin(live, needed, beam)]
        for beam in (1, 2, 3, 4, 5, 6)
    ]
    assert [first for first, _ in taken] == [[4], [3, 4], [0, 3, 4], [0, 1, 3, 4], [0, 1, 2, 3, 4], [0, 1, 2, 3, 4]]
    assert [second for _, second in taken] == [list(range(beam)) for beam in (1, 2, 3, 4, 5, 6)]


@dataclass
class Driven:
    """Says 7 again and again, for a price; but after 5 it is sure of the end. Counts its steps."""

    price: float
    max_length: int = 20
    steps: int = 0

    @dataclass
    class State:
        ends: torch.Tensor

        def select(self, rows):
            return Driven.State(self.ends[rows])

    def source_layout(self, source, lengths):
        return Layout.from_lengths(lengths)

    def start(self, source, layout):
        return Driven.State(torch.zeros(layout.batch, dtype=torch.bool))

    def step(self, tokens, state):
        self.steps += 1
        ends = state.ends | (tokens == 5)
        log_probs = torch.full((len(tokens), VOCAB), -6.0, dtype=torch.float64)
        log_probs[ends, EOS_ID], log_probs[~ends, 7] = -0.1, -self.price
        return lambda some: log_probs[some].clone(), Driven.State(ends)


@pytest.mark.parametrize(("price", "most_steps"), [(0.01, 20), (0.2, 5)])
def test_a_search_does_not_wait_for_what_may_not_end_yet(price, most_steps):
    model, config = Driven(price), DecodingConfig(beam=2, n_best=2, length_norm="none")
    ((best, second),) = decode(model, [[4]], config, phrases=PhraseConstraints(forced=[[(5,)]]))
    assert (best.ids, second.ids) == ((5,), (7, 5))
    assert model.steps <= most_steps


@pytest.mark.parametrize("beam", [1, 2, 5])
def test_what_must_come_up_does_so_however_narrow_the_beam(beam):
    model, sources = HashModel(30, sharpness=12), [[4, 5], [6], [7, 8, 9]]
    forced = [[(10, 11, 12), (13,)], [], [(11,), (12, 11), (14, 15, 16, 17)]]
    config = DecodingConfig(beam=beam, n_best=beam, max_length=9)
    for n_best, wanted in zip(
        decode(model, sources, config, phrases=PhraseConstraints(forced=forced)), forced, strict=True
    ):
        for each in n_best:
            text = ",".join(map(str, each.ids)) + ","
            assert len(each.ids) <= 9
            assert all(f",{','.join(map(str, phrase))}," in f",{text}" for phrase in wanted)
