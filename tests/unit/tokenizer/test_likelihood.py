"""WordPiece by likelihood: equal to plain counting, in any script; the threshold, ties and the least frequency."""

from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tfm.tokenizer.config import TokenizerConfig
from tfm.tokenizer.learn import learn_wordpiece
from tfm.tokenizer.likelihood import PieceCounts, best_joins
from tfm.tokenizer.special import SPECIALS, UNK_ID
from tfm.tokenizer.tokenizer import Tokenizer
from tfm.tokenizer.train import train

Segmented = dict[tuple[str, ...], int]


def units(word: str) -> tuple[str, ...]:
    return word[0], *("##" + letter for letter in word[1:])


def plainly(words: Segmented, least: int, min_score: float = 0.0) -> list[str]:
    """Every count made anew after each join, every score a fraction."""
    made = []
    while True:
        pieces, pairs = Counter[str](), Counter[tuple[str, str]]()
        for word, count in words.items():
            for piece in word:
                pieces[piece] += count
            for place in range(len(word) - 1):
                pairs[word[place], word[place + 1]] += count
        score = {(a, b): Fraction(pairs[a, b], pieces[a] * pieces[b]) for a, b in pairs if pairs[a, b] >= least}
        best = min(score, key=lambda pair: (-score[pair], -pairs[pair], pair), default=None)
        if best is None or score[best] < Fraction(str(min_score)):
            return made
        new = best[0] + best[1][2:]
        made.append(new)
        after: Counter[tuple[str, ...]] = Counter()
        for word, count in words.items():
            left, whole = list(word), []
            while left:
                found = tuple(left[:2]) == best
                whole.append(new if found else left[0])
                del left[: 2 if found else 1]
            after[tuple(whole)] += count
        words = after


alphabets = st.sampled_from(["ab", "abc ", "aAβς", "각나다", "של ם", "कि\u0301", "#a", "\U0001f469\u200dx"])
texts = alphabets.flatmap(
    lambda letters: st.dictionaries(st.text(letters, min_size=1, max_size=9), st.integers(1, 5), max_size=12)
)


@settings(max_examples=120, deadline=None)
@given(texts, st.integers(1, 4), st.sampled_from([0.0, 0.02, 0.1, 0.5]))
@example({"aaaa": 2, "aaaaaaa": 1, "ababa": 3}, 1, 0.0)
@example({"#####": 2, "##a": 1}, 1, 0.0)
def test_joins_are_those_of_plain_counting(words: dict[str, int], least: int, min_score: float) -> None:
    split = {units(word): count for word, count in words.items()}
    assert list(best_joins(PieceCounts(split), least, min_score)) == plainly(split, least, min_score)


def test_the_pair_that_is_surer_comes_before_the_one_that_is_more_frequent() -> None:
    """hug 10, pug 5, pun 12, bun 4, hugs 5: by frequency ##u ##g is first (20 times), by likelihood ##g ##s, which is
    5 / (20 * 5) = 1/20, where ##u ##g is 20 / (36 * 20) = 1/36."""
    words = {units(word): count for word, count in {"hug": 10, "pug": 5, "pun": 12, "bun": 4, "hugs": 5}.items()}
    assert next(best_joins(PieceCounts(words), 1, 0)) == "##gs"
    assert next(best_joins(PieceCounts(words), 1, 1 / 20)) == "##gs"
    assert list(best_joins(PieceCounts(words), 1, 0.051)) == []
    assert next(best_joins(PieceCounts(words), 6, 0)) != "##gs"


def learned(texts: list[str], **settings: object) -> Tokenizer:
    given = {"kind": "wordpiece", "criterion": "likelihood", "min_frequency": 1, **settings}
    return train(texts, TokenizerConfig.model_validate(given))


def pieces(made: Tokenizer) -> list[str]:
    return [made.piece(number) for number in range(made.vocab_size)]


TEXTS = ["der Hund, die Hunde; ÄRGER ÄRGER!", "שלום עולם שלום", "नमस्ते दुनिया नमस्ते", "世界 世界您好", "", "Ὀδυσσεύς 12"]


def test_any_script_is_given_back_and_the_same_text_gives_the_same_pieces() -> None:
    made = learned(TEXTS * 2, vocab_size=400)
    for text in TEXTS:
        ids = made.encode(text)
        assert UNK_ID not in ids
        assert made.decode(ids) == made.normalize(text)
    assert pieces(made) == pieces(learned(TEXTS[::-1] * 2, vocab_size=400))
    assert made.pieces("שלום नमस्ते 世界") == [" שלום", " नमस्ते", " 世界"]


def test_a_space_and_the_letter_after_it_are_one_from_the_beginning() -> None:
    # a space, a comma and three letters, those that continue a word, then as many pieces as there is room for
    letters = [*SPECIALS, *" ,abc", "##,", "##a", "##b", "##c"]
    assert pieces(learned(["ab cb, ab"], vocab_size=14)) == [*letters, " a"]
    assert pieces(learned(["ab cb, ab"], vocab_size=15)) == [*letters, " a", " c"]
    # " c" is there once and "##b" three times, so " c" "##b" is 1/3, as is " a" "##b", which is there twice
    assert pieces(learned(["ab cb, ab"], vocab_size=99)) == [*letters, " a", " c", " ab", " cb"]


@pytest.mark.parametrize("min_score", [0.0, 0.05, 1.0])
def test_the_threshold_ends_it(min_score: float) -> None:
    words = {" katze": 9, " katzen": 5, " matte": 4, " matten": 2}
    settings = {"kind": "wordpiece", "criterion": "likelihood", "vocab_size": 99, "min_score": min_score}
    model = learn_wordpiece(words, TokenizerConfig.model_validate(settings))
    begun = {(word[:2], *units(word)[2:]): count for word, count in words.items()}
    known = {"<pad>", "<unk>", "<s>", "</s>", " ", *"aekmntz", *(f"##{letter}" for letter in "aekmntz"), " k", " m"}
    after = plainly(begun, 2, min_score)
    assert bool(after) == (min_score < 1)
    assert {model.id_to_token(number) for number in range(len(known | set(after)))} == known | set(after)
    assert model.id_to_token(len(known | set(after))) is None
