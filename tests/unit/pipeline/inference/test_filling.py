"""Masks are filled by the probabilities of the network, asked one reading at a time."""

import itertools
import math

import pytest
import torch

from tests.tiny_model import TEXTS, tiny_model
from tfm.model.layout import Layout
from tfm.pipeline.errors import DataError
from tfm.pipeline.inference.filling import fill_masks
from tfm.pipeline.inference.masked_text import encode_masked
from tfm.tokenizer.config import TokenizerConfig
from tfm.tokenizer.special import EOS_ID, PAD_ID, SPECIAL_TOKENS
from tfm.tokenizer.tokenizer import Tokenizer
from tfm.tokenizer.train import train

KINDS = ("word", "char", "byte", "bpe", "unigram", "wordpiece", "codepoint")
MASKED = {"architecture": "encoder_only", "task": "masked_language_model"}


def tokenizer_of(kind: str) -> Tokenizer:
    sizes = {} if kind == "codepoint" else {"vocab_size": 300 if kind == "byte" else 70, "min_frequency": 1}
    return train(TEXTS, TokenizerConfig.model_validate({"kind": kind, **sizes}))


@pytest.fixture(scope="module")
def model():
    return tiny_model(dtype=torch.float64, **MASKED)


def probabilities(loaded, ids: list[int], place: int) -> list[float]:
    """p of each piece at one place, from one text alone."""
    with torch.no_grad():
        hidden = loaded.model(torch.tensor([*ids, EOS_ID]), Layout.from_lengths(torch.tensor([len(ids) + 1]), "cpu"))
        logits = loaded.model.output(hidden)[place].tolist()
    exps = [math.exp(each) for each in logits]
    return [each / sum(exps) for each in exps]


@pytest.mark.parametrize("kind", KINDS)
def test_a_mask_in_place_of_a_piece_hides_that_piece(kind: str) -> None:
    """By spelling: each word of a text that is one piece, replaced, leaves all other ids as they were."""
    tokenizer, text = tokenizer_of(kind), "two dogs and a cat sit by the sea ."
    whole, words = tokenizer.encode(text), text.split()
    hidden = 0
    for number, word in enumerate(words):
        before, beside = " ".join(words[:number]), " ".join(words[: number + 1])
        one = len(tokenizer.encode(beside)) - len(tokenizer.encode(before))
        spaces = kind in ("char", "codepoint") and number > 0  # a space is a piece of its own
        if one - spaces != 1:
            continue
        hidden += 1
        shown = encode_masked(tokenizer, " ".join([*words[:number], "[MASK]", *words[number + 1 :]]))
        place = len(tokenizer.encode(before)) + spaces
        assert shown.runs == [[place]], word
        assert shown.ids == [*whole[:place], PAD_ID, *whole[place + 1 :]]
    assert hidden > 0


@pytest.mark.parametrize("text", ["[MASK]", "a [MASK] [MASK][MASK] . [MASK]", "[MASK][MASK] a[MASK]"])
def test_masks_side_by_side_are_one_run(text: str) -> None:
    for kind in ("char", "byte", "bpe", "unigram"):
        shown = encode_masked(tokenizer_of(kind), text)
        assert [len(run) for run in shown.runs] == [
            each.count("[MASK]") for each in text.replace("a[", "a [").split() if "[MASK]" in each
        ]
        assert [shown.ids[place] for run in shown.runs for place in run] == [PAD_ID] * text.count("[MASK]")


def test_pieces_have_the_probabilities_of_the_network(model) -> None:
    text = "two [MASK] and a [MASK] ."
    shown, tokenizer = encode_masked(model.source_tokenizer, text), model.source_tokenizer
    found = fill_masks(model, text, 1000, "piece")
    assert len(found) == 2
    for (place,), candidates in zip(shown.runs, found, strict=True):
        wanted = probabilities(model, shown.ids, place)
        ranked = sorted(range(len(SPECIAL_TOKENS), len(wanted)), key=lambda piece: -wanted[piece])
        assert [each.text for each in candidates] == [tokenizer.surface(piece) for piece in ranked]
        assert [each.probability for each in candidates] == pytest.approx([wanted[piece] for piece in ranked])
    assert [each[:3] for each in found] == fill_masks(model, text, 3, "piece")


def test_words_have_the_probability_of_their_pieces_one_after_the_other(model) -> None:
    """All words of two pieces, without a beam; the other mask stays hidden."""
    text, tokenizer = "two [MASK][MASK] and a [MASK] .", model.source_tokenizer
    shown, begins = encode_masked(tokenizer, text), tokenizer.word_start_mask()
    first, second = shown.runs[0]
    letters = [n for n in range(len(SPECIAL_TOKENS), len(begins)) if any(map(str.isalnum, tokenizer.surface(n)))]
    words = {}
    alone = probabilities(model, shown.ids, first)
    for head in (piece for piece in letters if begins[piece]):
        ids = [head if place == first else each for place, each in enumerate(shown.ids)]
        after = probabilities(model, ids, second)
        words |= {(head, tail): alone[head] * after[tail] for tail in letters if not begins[tail]}
    ranked = sorted(words.items(), key=lambda each: -each[1])[:5]
    found = fill_masks(model, text, 5, "word")
    assert [each.text for each in found[0]] == [tokenizer.decode(list(pieces)).strip() for pieces, _ in ranked]
    assert [each.probability for each in found[0]] == pytest.approx([probability for _, probability in ranked])
    assert all(begins[tokenizer.encode(each.text)[0]] for each in found[1])


@pytest.mark.parametrize(
    ("kind", "text", "problem"),
    [
        ("bpe", "a dog", r'the text "a dog" has no \[MASK\]: write'),
        ("word", "the [MASK]s .", r'\[MASK\] is part of "s", which the model reads as one piece: put a space'),
        ("bpe", "[MASK] " * 96, "the model reads at most 95"),
    ],
)
def test_texts_without_a_prediction_are_refused(kind: str, text: str, problem: str) -> None:
    loaded = tiny_model(tokenizer=tokenizer_of(kind), **MASKED)
    with pytest.raises(DataError, match=problem):
        fill_masks(loaded, text, 1, "piece")


def test_a_word_that_no_pieces_make_is_refused_and_not_answered_by_nothing() -> None:
    loaded = tiny_model(tokenizer=tokenizer_of("word"), **MASKED)
    assert len(fill_masks(loaded, "the [MASK] [MASK] .", 2, "word")) == 2
    with pytest.raises(DataError, match=r"\[MASK\] is after another, .* put a space between masks"):
        fill_masks(loaded, "the [MASK][MASK] .", 2, "word")


def test_only_a_masked_language_model_fills(model) -> None:
    for task, unit in itertools.product(("classification", "tagging"), ("piece", "word")):
        with pytest.raises(DataError, match="it fills no masks"):
            fill_masks(tiny_model(architecture="encoder_only", task=task), "a [MASK]", 1, unit)  # type: ignore[arg-type]
