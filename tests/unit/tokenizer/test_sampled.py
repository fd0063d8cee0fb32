"""Segmentations drawn at random: the text stays, the probabilities are those of the papers, and rows do not mix."""

import json
from collections import Counter, defaultdict
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfm.tokenizer.config import Kind, TokenizerConfig
from tfm.tokenizer.sampled import BpeDropout, SegmentationSampler, UnigramSampling
from tfm.tokenizer.special import UNK_ID
from tfm.tokenizer.tokenizer import Tokenizer
from tfm.tokenizer.train import train

TEXTS = [
    *["lower newest widest low, low lower!", "Der Hund; die HUNDE: 12 345 ÄRGER...", "שלום עולם! שלום 12"] * 3,
    *["नमस्ते दुनिया नमस्ते", "世界 世界您好世界", "Ὀδυσσεύς e\u0301x", ""] * 2,
]
RARE = ["lo\u0416wer \u0416", "\u0416\u0416 newest世\u0416 low", "\u2603", "", "世界low 12low"]
DRAWS = 20_000


def learned(kind: Kind, texts: list[str] = TEXTS, **more: Any) -> Tokenizer:
    return train(texts, TokenizerConfig.model_validate({"kind": kind, "vocab_size": 150, **more}))


def drawn(sampler: SegmentationSampler, made: Tokenizer, texts: list[str], key: int = 0) -> list[list[int]]:
    """The pieces of texts whose rows have the numbers from `key` on."""
    ids, lengths = made.encode_flat(texts)
    new, new_lengths = sampler(ids, lengths, np.arange(key, key + len(texts)).astype(np.uint64))
    assert new.dtype == np.int32
    assert len(new_lengths) == len(texts)
    return [part.tolist() for part in np.split(new, np.cumsum(new_lengths)[:-1])]


def frequencies(sampler: SegmentationSampler, made: Tokenizer, text: str) -> dict[tuple[str, ...], float]:
    found = Counter(tuple(map(made.piece, ids)) for ids in drawn(sampler, made, [text] * DRAWS))
    return {pieces: count / DRAWS for pieces, count in found.items()}


def assert_drawn_by(found: dict[tuple[str, ...], float], expected: dict[tuple[str, ...], float]) -> None:
    """Every share within five standard deviations."""
    assert found.keys() <= expected.keys()
    assert sum(expected.values()) == pytest.approx(1)
    for pieces, p in expected.items():
        assert abs(found.get(pieces, 0) - p) <= 5 * (p * (1 - p) / DRAWS) ** 0.5 + 1e-9, pieces


def by_algorithm_1(word: tuple[str, ...], merges: list[tuple[str, str]], drop: float) -> dict[tuple[str, ...], float]:
    """All that the algorithm of Provilkov et al. may make of a word, by trying every set of merges that is left out."""
    possible = [place for place in range(len(word) - 1) if word[place : place + 2] in merges]
    found: defaultdict[tuple[str, ...], float] = defaultdict(float)
    for kept in product([False, True], repeat=len(possible)):
        p = prod(1 - drop if each else drop for each in kept)
        left = [place for place, each in zip(possible, kept, strict=True) if each]
        if not left:
            found[word] += p
            continue
        place = min(left, key=lambda each: (merges.index(word[each : each + 2]), each))
        after = (*word[:place], word[place] + word[place + 1], *word[place + 2 :])
        for pieces, share in by_algorithm_1(after, merges, drop).items():
            found[pieces] += p * share
    return found


@pytest.mark.parametrize("drop", [0.1, 0.4])
@pytest.mark.parametrize("text", ["lower", "aaaaa"])
def test_bpe_dropout_is_algorithm_1(drop: float, text: str) -> None:
    made = learned("bpe", ["lower low lowest newer wer aaaa aa aaaaa"] * 3)
    model = made.sampler(bpe_dropout=drop)
    assert isinstance(model, BpeDropout)
    merges = [(a, b) for a, b in _model(made)["merges"]]
    expected = by_algorithm_1(tuple(" " + text), merges, drop)
    assert len(expected) > 3
    assert_drawn_by(frequencies(model, made, text), expected)


def _model(made: Tokenizer) -> dict[str, Any]:
    model: dict[str, Any] = json.loads(made._backend.to_str())["model"]
    return model


@pytest.mark.parametrize("alpha", [0.1, 1.0])
def test_unigram_sampling_is_by_probability(alpha: float) -> None:
    made = learned("unigram", ["lower low slow slower we were ow er lo wet lot owl"] * 5)
    scores = dict(_model(made)["vocab"])
    weights = {}
    word = " lower"
    for cuts in product([False, True], repeat=len(word) - 1):
        places = [0, *(place for place, cut in enumerate(cuts, 1) if cut), len(word)]
        pieces = tuple(word[a:b] for a, b in zip(places, places[1:], strict=False))
        if all(piece in scores for piece in pieces):
            weights[pieces] = np.exp(alpha * sum(scores[piece] for piece in pieces))
    expected = {pieces: float(weight / sum(weights.values())) for pieces, weight in weights.items()}
    assert len(expected) > 3
    sampler = made.sampler(unigram_alpha=alpha)
    assert isinstance(sampler, UnigramSampling)
    assert_drawn_by(frequencies(sampler, made, "lower"), expected)


BPE, UNIGRAM = learned("bpe"), learned("unigram")
SAMPLERS = [
    (BPE, BPE.sampler(bpe_dropout=0.0), BPE.sampler(bpe_dropout=0.3)),
    (UNIGRAM, None, UNIGRAM.sampler(unigram_alpha=0.1)),
]
nasty = st.lists(st.sampled_from([*"low世שנÄ1 .#", "e\u0301", "नि", "\u0416", "12", "  "]), max_size=14).map("".join)


@settings(max_examples=60, deadline=None)
@given(st.lists(nasty, min_size=1, max_size=4))
def test_nothing_left_out_is_the_tokenizer_itself_and_whatever_is_drawn_spells_the_text(texts: list[str]) -> None:
    for made, least, sampler in SAMPLERS:
        plain = made.encode_batch(texts)
        if least is not None:
            assert drawn(least, made, texts) == plain
        new = drawn(sampler, made, texts)
        assert made.decode_batch(new) == made.decode_batch(plain)
        assert [ids.count(UNK_ID) for ids in new] == [ids.count(UNK_ID) for ids in plain]


@pytest.mark.parametrize("made", [BPE, UNIGRAM], ids=["bpe", "unigram"])
def test_a_word_that_a_row_has_again_is_drawn_again(made: Tokenizer) -> None:
    sampler = made.sampler(bpe_dropout=0.3, unigram_alpha=0.1)
    assert sampler is not None
    (row,) = drawn(sampler, made, ["low" + " lower" * 20])
    _, *words = "|".join(map(made.piece, row)).split(" ")
    drawn_words = [word.strip("|") for word in words]
    assert [word.replace("|", "") for word in drawn_words] == ["low", *["lower"] * 20]
    assert len({*drawn_words[1:]}) > 1


@pytest.mark.parametrize("made", [BPE, UNIGRAM], ids=["bpe", "unigram"])
def test_what_a_row_becomes_is_its_key_alone(made: Tokenizer) -> None:
    def sampler() -> SegmentationSampler:
        found = made.sampler(bpe_dropout=0.3, unigram_alpha=0.1)
        assert found is not None
        return found

    one, texts = sampler(), [*TEXTS, *RARE]
    together = drawn(one, made, texts)
    assert [drawn(sampler(), made, [text], key)[0] for key, text in enumerate(texts)] == together
    assert drawn(one, made, texts) == together
    assert drawn(one, made, texts, 1000) != together
    assert drawn(one, made, [""]) == [[]]


@pytest.mark.parametrize("kind", ["char", "byte", "word", "wordpiece"])
def test_other_kinds_have_none(kind: Kind) -> None:
    assert learned(kind, vocab_size=300).sampler(bpe_dropout=0.1, unigram_alpha=0.1) is None
    assert BPE.sampler(unigram_alpha=0.1) is None
    assert UNIGRAM.sampler(bpe_dropout=0.1) is None
