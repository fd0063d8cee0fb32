"""Training: deterministic, canonical ids, sizes and frequencies kept, and no text held."""

import json
import random
from collections import Counter
from typing import get_args

import pytest
import tokenizers
from pydantic import ValidationError
from tokenizers import models, trainers

from tfm.tokenizer import train as training
from tfm.tokenizer.config import Kind, TokenizerConfig
from tfm.tokenizer.kinds import TOKENIZER_METHODS
from tfm.tokenizer.normalization import make_normalizer
from tfm.tokenizer.special import CONTINUATION_PREFIX, SPECIAL_TOKENS, UNK_ID
from tfm.tokenizer.tokenizer import Tokenizer
from tfm.tokenizer.train import TokenizerTrainer, train

ALL = get_args(Kind)
# Unigram's expectation maximisation sums floats in whatever order its threads end.
LEARNED = [kind for kind in ALL if TOKENIZER_METHODS[kind].learn is not None]
REPEATABLE = [kind for kind in ALL if kind != "unigram"]


def lines(num: int = 400, seed: int = 0) -> list[str]:
    """Sentences of words made from syllables, some words far more frequent than others."""
    draw = random.Random(seed)
    words = ["".join(draw.choices(["ka", "to", "mi", "re", "ßu", "n"], k=draw.randint(1, 4))) for _ in range(200)]
    weights = [1 / rank for rank in range(1, 201)]
    return [" ".join(draw.choices(words, weights, k=draw.randint(1, 12))) + draw.choice(".?! ") for _ in range(num)]


def vocabulary(made: Tokenizer) -> list[str]:
    return [made.piece(number) for number in range(made.vocab_size)]


def test_there_is_a_row_for_every_kind() -> None:
    assert tuple(TOKENIZER_METHODS) == ALL


@pytest.mark.parametrize("kind", REPEATABLE)
def test_the_same_text_gives_the_same_tokenizer(kind: Kind) -> None:
    config = TokenizerConfig(kind=kind, vocab_size=400)
    one, other = train(lines(), config), train(reversed(lines()), config)
    assert one._backend.to_str() == other._backend.to_str()


@pytest.mark.parametrize("kind", LEARNED)
@pytest.mark.parametrize("vocab_size", [8, 20, 60, 120])
def test_vocabulary_size_is_a_limit_and_is_reached(kind: Kind, vocab_size: int) -> None:
    vocab_size += 260 if kind == "byte" else 0
    made = train(lines(), TokenizerConfig(kind=kind, vocab_size=vocab_size, min_frequency=1))
    assert made.vocab_size <= vocab_size
    assert len(set(vocabulary(made))) == made.vocab_size
    assert vocabulary(made)[:4] == list(SPECIAL_TOKENS)
    num_words = len({word for line in lines() for word in line.split()})
    num_characters = len(set("".join(lines())))
    possible = {"char": num_characters + 4, "word": num_words + 4}.get(kind, vocab_size)
    if kind != "unigram":  # pruning ends somewhat below
        slack = 1 if kind == "wordpiece" else 0  # two forms of a letter fit or none
        assert made.vocab_size >= min(possible, vocab_size) - slack


def test_bytes_are_known_whatever_was_seen() -> None:
    made = train(["aa aa"], TokenizerConfig(kind="byte", vocab_size=260))
    assert made.vocab_size == 260
    text = "Grüße, 世界 \U0001f600"
    assert len(made.encode(text)) == len(text.encode())
    with pytest.raises(ValidationError, match="at least 260"):
        TokenizerConfig(kind="byte", vocab_size=259)


@pytest.mark.parametrize("kind", [kind for kind in LEARNED if kind != "byte"])
@pytest.mark.parametrize("least", [1, 2, 5])
def test_pieces_seen_less_often_are_not_learned(kind: Kind, least: int) -> None:
    texts = [*["often often."] * 5, *["twice q"] * 2, "once z \u1234"]
    made = train(texts, TokenizerConfig(kind=kind, vocab_size=300, min_frequency=least))
    seen = Counter[str]()
    for text in texts:
        spaced = text if kind == "char" else " " + text
        seen.update(spaced[i:j] for i in range(len(spaced)) for j in range(i + 1, len(spaced) + 1))
    learned = [piece.removeprefix(CONTINUATION_PREFIX) for piece in vocabulary(made)[4:]]
    assert learned
    assert {piece: seen[piece] for piece in learned if seen[piece] < least} == {}
    assert (UNK_ID in made.encode("q")) == (least > 2)
    assert (UNK_ID in made.encode("z")) == (least > 1)


def test_bpe_learns_the_merges_that_hugging_face_learns_from_the_lines() -> None:
    config = TokenizerConfig(kind="bpe", vocab_size=200, min_frequency=2)
    parts = TOKENIZER_METHODS["bpe"]
    theirs = tokenizers.Tokenizer(models.BPE(unk_token="<unk>"))
    theirs.normalizer = make_normalizer(config)
    assert parts.pre_tokenizer is not None
    theirs.pre_tokenizer = parts.pre_tokenizer
    trainer = trainers.BpeTrainer(
        vocab_size=200, min_frequency=2, special_tokens=list(SPECIAL_TOKENS), show_progress=False
    )
    theirs.train_from_iterator(lines(), trainer)
    ours = train(lines(), config)
    assert theirs.get_vocab() == {piece: number for number, piece in enumerate(vocabulary(ours))}
    assert [each.ids for each in theirs.encode_batch(lines())] == ours.encode_batch(lines())


def test_unigram_keeps_frequent_words_whole_and_the_probable_first() -> None:
    """Hugging Face's trainer alone never takes as a piece a word that only ever stands between spaces."""
    texts = [f"{word} {other}" for word in ("katze", "matte") for other in ("hund", "mund")] * 50
    made = train(texts, TokenizerConfig(kind="unigram", vocab_size=60))
    assert made.pieces("katze hund") == [" katze", " hund"]
    model = json.loads(made._backend.to_str())["model"]
    scores = [score for _, score in model["vocab"][4:]]
    assert model["unk_id"] == UNK_ID
    assert scores == sorted(scores, reverse=True)
    assert not any(space in piece for piece in vocabulary(made) for space in "\t\n")


def test_wordpiece_knows_every_letter_at_the_beginning_and_inside_of_a_word() -> None:
    made = train(["ab ab.c"] * 3, TokenizerConfig(kind="wordpiece", vocab_size=100))
    assert made.decode(made.encode("cba.b")) == "cba.b"
    assert UNK_ID not in made.encode("cba.b")
    assert UNK_ID not in made.encode("ab" * 400)


@pytest.mark.parametrize("kind", ["bpe", "wordpiece", "unigram"])
def test_words_with_a_rare_letter_still_teach_the_rest(kind: Kind) -> None:
    rare = [f"katze{chr(number)}katze" for number in range(0x4E00, 0x4E20)]
    made = train(rare, TokenizerConfig(kind=kind, vocab_size=40))
    assert [made.surface(number) for number in made.encode("katze")] == [" katze"]
    assert not any(len(piece) > 1 and any(letter >= "\u4e00" for letter in piece) for piece in vocabulary(made))
    assert made.encode("\u4e01")[-1] == UNK_ID


def test_text_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often the waiting words are worked off, the result is the same."""
    config = TokenizerConfig(vocab_size=200)
    whole = train(lines(), config)
    monkeypatch.setattr(training, "MAX_PENDING_WORDS", 3)
    trainer = TokenizerTrainer(config)
    for line in lines():
        trainer.add(line)
        assert len(trainer._first) + len(trainer._later) <= 3
    assert trainer.learn()._backend.to_str() == whole._backend.to_str()


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("texts", [[], ["", "  "], ["a"], ["\ud800"]])
def test_hardly_any_text(kind: Kind, texts: list[str]) -> None:
    made = train(texts, TokenizerConfig(kind=kind, vocab_size=300, min_frequency=1))
    assert made.encode("") == made.encode(" \n\t\x85\u2028 ") == []
    assert made.decode([]) == ""


def test_punctuation_is_apart_from_words() -> None:
    made = train(['He said: "go (now)!"'] * 9, TokenizerConfig(vocab_size=300))
    assert made.pieces('said: "go (now)') == [" said", ":", ' "', "go", " (", "now", ")"]
