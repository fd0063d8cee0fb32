"""WordPiece by likelihood and by a ratio: equal to plain counting, in any script; thresholds, ties, least frequency."""

from collections import Counter
from fractions import Fraction
from math import fsum, log

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tfm.tokenizer.config import TokenizerConfig
from tfm.tokenizer.learn import learn_wordpiece
from tfm.tokenizer.merges.likelihood import best_merges_by_likelihood, best_merges_by_ratio, likelihood_gain
from tfm.tokenizer.merges.piece_counts import Pair, PieceCounts, best_merges
from tfm.tokenizer.special import SPECIAL_TOKENS, UNK_ID
from tfm.tokenizer.tokenizer import Tokenizer
from tfm.tokenizer.train import train

Segmented = dict[tuple[str, ...], int]


def units(word: str) -> tuple[str, ...]:
    return word[0], *("##" + letter for letter in word[1:])


def counted(words: Segmented) -> tuple[Counter[str], Counter[Pair]]:
    """The counts of pieces, and of neighbors."""
    pieces, pairs = Counter[str](), Counter[Pair]()
    for word, count in words.items():
        for piece in word:
            pieces[piece] += count
        for place in range(len(word) - 1):
            pairs[word[place], word[place + 1]] += count
    return pieces, pairs


def joined(words: Segmented, pair: Pair) -> Segmented:
    """The words with one piece wherever there were the two, from the left."""
    after: Counter[tuple[str, ...]] = Counter()
    for word, count in words.items():
        left, whole = list(word), []
        while left:
            found = tuple(left[:2]) == pair
            whole.append(pair[0] + pair[1][2:] if found else left[0])
            del left[: 2 if found else 1]
        after[tuple(whole)] += count
    return after


def log_likelihood(words: Segmented) -> float:
    """Log L of a text by a unigram model of its pieces."""
    pieces, _ = counted(words)
    total = sum(pieces.values())
    return fsum(count * log(count / total) for count in pieces.values())


def plainly(words: Segmented, least: int, min_score: float = 0.0) -> list[str]:
    """Every count made anew after each join, every ratio a fraction."""
    made = []
    while True:
        pieces, pairs = counted(words)
        score = {(a, b): Fraction(pairs[a, b], pieces[a] * pieces[b]) for a, b in pairs if pairs[a, b] >= least}
        best = min(score, key=lambda pair: (-score[pair], -pairs[pair], pair), default=None)
        if best is None or score[best] < Fraction(str(min_score)):
            return made
        made.append(best[0] + best[1][2:])
        words = joined(words, best)


alphabets = st.sampled_from(["ab", "abc ", "aAβς", "각나다", "של ם", "कि\u0301", "#a", "\U0001f469\u200dx"])
texts = alphabets.flatmap(
    lambda letters: st.dictionaries(st.text(letters, min_size=1, max_size=9), st.integers(1, 5), max_size=12)
)


@settings(max_examples=120, deadline=None)
@given(texts, st.integers(1, 4), st.sampled_from([0.0, 0.02, 0.1, 0.5]))
@example({"aaaa": 2, "aaaaaaa": 1, "ababa": 3}, 1, 0.0)
@example({"#####": 2, "##a": 1}, 1, 0.0)
def test_joins_by_ratio_are_those_of_plain_counting(words: dict[str, int], least: int, min_score: float) -> None:
    split = {units(word): count for word, count in words.items()}
    assert list(best_merges_by_ratio(PieceCounts(split), least, min_score)) == plainly(split, least, min_score)


@settings(max_examples=25, deadline=None)
@given(texts, st.integers(1, 4), st.sampled_from([0.0, 0.5, 3.0]))
@example({"aaaa": 2, "aaaaaaa": 1, "ababa": 3}, 1, 0.0)
@example({"#####": 2, "##a": 1}, 1, 0.0)
@example({"abc": 3, "bcd": 2, "abcabc": 1, "bc": 4}, 1, 0.0)
def test_each_join_by_likelihood_raises_log_l_most(words: dict[str, int], least: int, min_gain: float) -> None:
    """Log L of the whole text is counted anew with each pair joined, and no pair gains more than the chosen one."""
    now = {units(word): count for word, count in words.items()}
    counts = PieceCounts(now)

    def gain(pair: Pair) -> float:
        return likelihood_gain(counts, pair)

    merges = best_merges(counts, gain, least, max(min_gain, 1e-12))
    while True:
        before, (_, pairs) = log_likelihood(now), counted(now)
        gains = {pair: log_likelihood(joined(now, pair)) - before for pair in pairs if pairs[pair] >= least}
        anew = PieceCounts(now)
        assert {pair: likelihood_gain(anew, pair) for pair in gains} == pytest.approx(gains, rel=1e-9, abs=1e-9)
        chosen = next(merges, None)
        if chosen is None:
            assert max(gains.values(), default=0) <= max(min_gain, 1e-9)
            return
        assert gains[chosen] >= max(*gains.values(), min_gain, 0) - 1e-9
        now = joined(now, chosen)


def test_a_ratio_takes_the_pair_that_is_surer_a_likelihood_the_one_that_gains() -> None:
    """hug 10, pug 5, pun 12, bun 4, hugs 5: by frequency ##u ##g is first (20 times), by ratio ##g ##s, which is
    5 / (20 * 5) = 1/20, where ##u ##g is 20 / (36 * 20) = 1/36. By likelihood the pair is first that raises log L
    most, and it ends where none raises it enough."""
    words = {units(word): count for word, count in {"hug": 10, "pug": 5, "pun": 12, "bun": 4, "hugs": 5}.items()}
    assert next(best_merges_by_ratio(PieceCounts(words), 1, 0)) == "##gs"
    assert next(best_merges_by_ratio(PieceCounts(words), 1, 1 / 20)) == "##gs"
    assert list(best_merges_by_ratio(PieceCounts(words), 1, 0.051)) == []
    assert next(best_merges_by_ratio(PieceCounts(words), 6, 0)) != "##gs"
    gains = {pair: likelihood_gain(PieceCounts(words), pair) for pair in counted(words)[1]}
    best = max(gains, key=lambda pair: gains[pair])
    first = next(best_merges_by_likelihood(PieceCounts(words), 1, 0))
    assert first == best[0] + best[1][2:] != "##gs"
    assert next(best_merges_by_likelihood(PieceCounts(words), 1, gains[best] - 1e-9)) == first
    assert list(best_merges_by_likelihood(PieceCounts(words), 1, gains[best] + 1e-9)) == []


def test_a_pair_that_only_seems_to_gain_is_not_joined() -> None:
    """c(ab) log(N c(ab) / (c(a) c(b))) leaves out that N, c(a) and c(b) fall."""
    spread = {("a", "##b"): 300, ("a", "##c"): 700, ("d", "##b"): 700, ("d", "##c"): 300}
    counts = PieceCounts(spread)
    assert 300 * log(4000 * 300 / 1000**2) > 50
    gain = log_likelihood(joined(spread, ("a", "##b"))) - log_likelihood(spread)
    assert likelihood_gain(counts, ("a", "##b")) == pytest.approx(gain)
    assert gain < 0


def learned(texts: list[str], **settings: object) -> Tokenizer:
    given = {"kind": "wordpiece", "criterion": "ratio", "min_frequency": 1, **settings}
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
    letters = [*SPECIAL_TOKENS, *" ,abc", "##,", "##a", "##b", "##c"]
    assert pieces(learned(["ab cb, ab"], vocab_size=14)) == [*letters, " a"]
    assert pieces(learned(["ab cb, ab"], vocab_size=15)) == [*letters, " a", " c"]
    # " c" is there once and "##b" three times, so " c" "##b" is 1/3, as is " a" "##b", which is there twice
    assert pieces(learned(["ab cb, ab"], vocab_size=99)) == [*letters, " a", " c", " ab", " cb"]


@pytest.mark.parametrize("min_score", [0.0, 0.05, 1.0])
def test_the_threshold_ends_it(min_score: float) -> None:
    words = {" katze": 9, " katzen": 5, " matte": 4, " matten": 2}
    settings = {"kind": "wordpiece", "criterion": "ratio", "vocab_size": 99, "min_score": min_score}
    model = learn_wordpiece(words, TokenizerConfig.model_validate(settings))
    begun = {(word[:2], *units(word)[2:]): count for word, count in words.items()}
    known = {"<pad>", "<unk>", "<s>", "</s>", " ", *"aekmntz", *(f"##{letter}" for letter in "aekmntz"), " k", " m"}
    after = plainly(begun, 2, min_score)
    assert bool(after) == (min_score < 1)
    assert {model.id_to_token(number) for number in range(len(known | set(after)))} == known | set(after)
    assert model.id_to_token(len(known | set(after))) is None
