"""Each rule against its definition, computed pair by pair in plain Python."""

import math
import random
import re
import unicodedata
from collections import Counter
from collections.abc import Callable
from difflib import SequenceMatcher

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfm.pipeline.cleaning.decisions import count_pairs_with_equal_key, is_first_occurrence
from tfm.pipeline.cleaning.rules.corpora.boilerplate import boilerplate_keys
from tfm.pipeline.cleaning.rules.corpora.config import BoilerplateConfig, DuplicatesConfig, OverlapConfig
from tfm.pipeline.cleaning.rules.corpora.duplicates import duplicate_keys
from tfm.pipeline.cleaning.rules.corpora.overlap import HeldOutKeys, mark_shared_pairs
from tfm.pipeline.cleaning.rules.pairs import copies
from tfm.pipeline.cleaning.rules.pairs.config import (
    CopiesConfig,
    MarkupConfig,
    NumbersConfig,
    PunctuationConfig,
    RatioConfig,
)
from tfm.pipeline.cleaning.rules.pairs.copies import measure_side_similarity
from tfm.pipeline.cleaning.rules.pairs.markup import measure_markup_similarity
from tfm.pipeline.cleaning.rules.pairs.numbers import measure_digit_similarity
from tfm.pipeline.cleaning.rules.pairs.punctuation import measure_end_mark_similarity
from tfm.pipeline.cleaning.rules.pairs.ratio import measure_length_ratio
from tfm.pipeline.cleaning.rules.texts.config import EmptyConfig, LengthConfig, LettersConfig, ScriptConfig
from tfm.pipeline.cleaning.rules.texts.controls import count_controls, remove_controls
from tfm.pipeline.cleaning.rules.texts.empty import mark_pairs_with_words
from tfm.pipeline.cleaning.rules.texts.length import measure_lengths
from tfm.pipeline.cleaning.rules.texts.letters import measure_letter_share
from tfm.pipeline.cleaning.rules.texts.script import measure_script_share
from tfm.pipeline.cleaning.text_batch import TextPairBatch

Pair = tuple[str, str]
ALPHABET = "ab Zß1 205.?!…й漢 \t\u2028\u200b,-é٥２²。؟"
TEXT = st.text(st.sampled_from(ALPHABET), max_size=12) | st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
PAIRS = st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=8)


def batch(pairs: list[Pair]) -> TextPairBatch:
    return TextPairBatch([source for source, _ in pairs], [target for _, target in pairs])


def is_letter(character: str) -> bool:
    """Letters and their like, which is Alphabetic but for marks and symbols, of which ALPHABET has none."""
    return unicodedata.category(character) in ("Lu", "Ll", "Lt", "Lm", "Lo", "Nl")


def edits(one: str, other: str) -> int:
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        last, row[0] = row[0], i
        for j, b in enumerate(other, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (a != b))
    return row[-1]


def likeness(one: str, other: str) -> float:
    longer = max(len(one), len(other))
    return 1 - edits(one, other) / longer if longer else 1.0


def ratio(one: int, other: int) -> float:
    if min(one, other):
        return max(one, other) / min(one, other)
    return math.inf if max(one, other) else 0.0


def punctuation(source: str, target: str) -> float:
    s, t = (sum(text.count(mark) for mark in ".?!…。؟") for text in (source, target))
    return -math.log(1 + abs(s - t) + max(s - 1, 0) + max(t - 1, 0))


def digits(text: str) -> list[int]:
    return [int(each) for each in text if each in "123456789٥２"]


PLAIN: dict[str, tuple[Callable[[TextPairBatch], np.ndarray], Callable[[str, str], object]]] = {
    "empty": (
        lambda pairs: mark_pairs_with_words(pairs, EmptyConfig()),
        lambda s, t: bool(s.split()) and bool(t.split()),
    ),
    "words": (
        lambda pairs: measure_lengths(pairs, LengthConfig()),
        lambda s, t: sorted((len(s.split()), len(t.split()))),
    ),
    "characters": (
        lambda pairs: measure_lengths(pairs, LengthConfig(unit="character")),
        lambda s, t: sorted((len(s), len(t))),
    ),
    "ratio": (
        lambda pairs: measure_length_ratio(pairs, RatioConfig()),
        lambda s, t: ratio(len(s.split()), len(t.split())),
    ),
    "copies": (
        lambda pairs: measure_side_similarity(pairs, CopiesConfig()),
        lambda s, t: likeness(s.lower(), t.lower()),
    ),
    "exact copies": (lambda pairs: measure_side_similarity(pairs, CopiesConfig(fold_case=False)), likeness),
    "numbers": (
        lambda pairs: measure_digit_similarity(pairs, NumbersConfig()),
        lambda s, t: SequenceMatcher(None, digits(s), digits(t), autojunk=False).ratio(),
    ),
    "punctuation": (lambda pairs: measure_end_mark_similarity(pairs, PunctuationConfig()), punctuation),
}


@pytest.mark.parametrize("name", PLAIN)
@given(PAIRS)
@pytest.mark.few(4)
def test_scores_are_those_of_the_definition(name: str, pairs: list[Pair]) -> None:
    measure, plain = PLAIN[name]
    expected = [np.atleast_1d(np.asarray(plain(*each), np.float64)) for each in pairs]
    np.testing.assert_allclose(measure(batch(pairs)), expected, atol=1e-12)


@pytest.mark.parametrize("text", ["abcdefgh ij", "漢字かな交じり文"])
def test_copies_in_long_lines_take_time_in_proportion_to_their_length(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Likeness by pieces is at most that of the whole, and the same where one stretch is missing or other."""
    compared: list[int] = []

    def distance(one: str, other: str) -> int:
        compared.append(len(one) * len(other))
        return edits(one, other)

    monkeypatch.setattr(copies, "MAX_PIECE_CHARACTERS", 25)
    monkeypatch.setattr(copies.Levenshtein, "distance", distance)
    random_text = random.Random(7)
    source = "".join(random_text.choices(text, k=200))
    other = "".join(random_text.choices(text, k=185))
    fewer = "".join(each for each in source if random_text.random() < 0.97)
    cut, changed = source[:60] + source[90:], source[:100] + text[:5] + source[105:]
    scores = measure_side_similarity(
        batch([(source, each) for each in (source, cut, changed, fewer, other)]), CopiesConfig()
    )
    assert compared
    assert max(compared) <= 25 * 25
    assert sum(compared) <= 5 * 25 * 200
    exact = [likeness(source, each) for each in (source, cut, changed, fewer, other)]
    assert scores[:3, 0] == pytest.approx(exact[:3])
    assert (scores[:, 0] <= np.array(exact) + 1e-12).all()
    assert scores[3, 0] > 0.85 > 0.5 > scores[4, 0]


@given(st.lists(st.tuples(*[st.text(st.sampled_from(ALPHABET), max_size=9)] * 2), min_size=1, max_size=6))
def test_letters_and_scripts_are_counted_over_all_characters_and_over_letters(pairs: list[Pair]) -> None:
    def share(text: str, wanted: Callable[[str], bool], among: Callable[[str], bool]) -> float:
        some = [each for each in text if among(each)]
        return sum(map(wanted, some)) / len(some) if some else 1.0

    letters = [min(share(text, is_letter, lambda _: True) for text in pair) for pair in pairs]
    np.testing.assert_allclose(measure_letter_share(batch(pairs), LettersConfig())[:, 0], letters)

    def in_script(name: str) -> Callable[[str], bool]:
        return lambda character: unicodedata.name(character, "").startswith(name)

    script = [
        min(share(s, in_script("LATIN"), is_letter), share(t, in_script("CYRILLIC"), is_letter)) for s, t in pairs
    ]
    found = measure_script_share(batch(pairs), ScriptConfig(source="Latin", target="Cyrillic"))
    np.testing.assert_allclose(found[:, 0], script)


@given(PAIRS)
def test_duplicates_are_pairs_that_came_before(pairs: list[Pair]) -> None:
    def fold(text: str) -> str:
        visible = "".join(each for each in text if each.isspace() or unicodedata.category(each) not in ("Cc", "Cf"))
        return unicodedata.normalize("NFC", " ".join(visible.split())).casefold()

    for config, key in (
        (DuplicatesConfig(), lambda pair: pair),
        (DuplicatesConfig(sides="source"), lambda pair: pair[0]),
        (DuplicatesConfig(sides="target", ignore="case"), lambda pair: fold(pair[1])),
    ):
        keys = [key(pair) for pair in pairs]
        expected = [key not in keys[:row] for row, key in enumerate(keys)]
        assert is_first_occurrence(duplicate_keys(batch(pairs), config).T, len(pairs)).tolist() == expected


def test_marks_and_digits_make_no_difference_where_they_are_to_be_ignored() -> None:
    pairs = [("A dog.", "Ein Hund!"), ("a Dog", "EIN HUND 3")]
    one, other = duplicate_keys(batch(pairs), DuplicatesConfig(ignore="marks"))[:, 0]
    assert one == other
    assert len(set(duplicate_keys(batch(pairs), DuplicatesConfig(ignore="case"))[:, 0].tolist())) == 2


@pytest.mark.parametrize(
    ("one", "other", "are_same"),
    [
        ("लड़की", "लड़का", False),  # girl, boy
        ("มา", "มี", False),  # come, have
        ("كَتَبَ", "كتب", True),
        ("שָׁלוֹם", "שלום", True),
        ("e\u0301a", "ea", True),
        ("a-b, 1", "AB", True),
    ],
)
def test_vowels_that_are_signs_are_no_marks(one: str, other: str, are_same: bool) -> None:
    keys = duplicate_keys(batch([(one, "x"), (other, "x")]), DuplicatesConfig(ignore="marks"))
    assert bool(keys[0] == keys[1]) == are_same


@pytest.mark.parametrize("count", [150, 199, 200, 400, 1000])
def test_one_digit_makes_no_long_list_of_numbers_unlike(count: int) -> None:
    """2 M / T: all digits but one are in two blocks."""
    one = "".join(random.Random(count).choices("123456789", k=count))
    other = one[:7] + ("1" if one[7] != "1" else "2") + one[8:]
    found = measure_digit_similarity(batch([(one, other), (one, one)]), NumbersConfig())
    assert found[:, 0] == pytest.approx([(count - 1) / count, 1.0])


def test_digits_beyond_those_that_are_ordered_are_compared_as_a_multiset_in_no_time() -> None:
    draw = random.Random(1)
    one, other = ("".join(draw.choices("123456789", k=50_000)) for _ in range(2))
    found = measure_digit_similarity(batch([(one, other), (one, one[:25_000])]), NumbersConfig())
    shared = (Counter(one) & Counter(other)).total()
    assert found[:, 0] == pytest.approx([shared / 50_000, 2 / 3])


def test_boilerplate_is_counted_by_side_with_numbers_apart() -> None:
    pairs = [("Page 3 of 12", "x"), ("page 4 of 9", "y"), ("z", "Seite"), ("u", "seite"), ("v", "SEITE"), ("w", "q")]
    assert count_pairs_with_equal_key(boilerplate_keys(batch(pairs), BoilerplateConfig()).T, 6).tolist() == [
        2,
        2,
        3,
        3,
        3,
        1,
    ]


def test_markup_is_compared_as_a_multiset() -> None:
    pairs = {
        ("See https://a.org/x.", "Siehe https://a.org/x"): 1,
        ("no tags", "keine"): 1,
        ("<b>one</b> a@b.de", "<b>eins a@b.de"): 2 / 3,
        ("{name} is %(x)s", "{name}"): 1 / 2,
        ("www.a.org", "www.b.org"): 0,
        ("a < b", "a > b"): 1,
        ("Get it at https://a.org/x today.", "今天访问https://a.org/x获取。"): 1,
        ("Write to info@a.org.", "联系info@a.org。"): 1,
        ("The page “https://a.org”", "Die Seite „https://a.org“"): 1,
        ("Is it www.a.org?", "هل هو www.a.org؟"): 1,
        ("a@müller.de", "a@müller.de b@müller.de"): 1 / 2,
    }
    assert measure_markup_similarity(batch([*pairs]), MarkupConfig())[:, 0].tolist() == pytest.approx([*pairs.values()])


def test_a_tag_without_end_takes_no_time() -> None:
    long = "<a " * 100_000
    assert measure_markup_similarity(batch([(long, long)]), MarkupConfig())[0, 0] == 1


def test_controls_are_counted_and_removed() -> None:
    text, config = "a\x00b\x1b[0m\u061c c\u202ed\tе\u200d\ufeff", _controls("remove")
    assert remove_controls([text, "plain"], config) == ["ab[0m cd\tе\u200d", "plain"]
    assert count_controls(batch([(text, "plain"), ("x", "y")]), config)[:, 0].tolist() == [5, 0]
    assert remove_controls([text], _controls("drop")) == [text]
    divided = ["\x0cone\x0ctwo\x85", "one \x0b\x0btwo", "one\x0b\x1e\x85two", "one\x00\x0ctwo\x00", "\x0c"]
    kept = remove_controls(divided, config)
    assert kept == ["one two", "one two", "one two", "one two", ""]
    assert [each.split() for each in kept[:3]] == [each.split() for each in divided[:3]]


def _controls(action: str) -> object:
    from tfm.pipeline.cleaning.rules.texts.config import ControlsConfig

    return ControlsConfig.model_validate({"action": action})


def test_pairs_that_tests_have_are_known_by_either_side_or_both() -> None:
    held_out = HeldOutKeys.from_pairs([("A  dog", "Ein Hund"), ("", "leer")])
    pairs = [("a dog", "x"), ("y", "EIN HUND"), ("A dog", "Ein hund"), ("", "voll"), ("b", "c")]
    either = mark_shared_pairs(batch(pairs), OverlapConfig(), held_out)[:, 0]
    assert either.tolist() == [1, 1, 1, 0, 0]
    hidden = [("a\u200e \x07 dog", "x"), ("y", "ein\x0bHund\u061c"), ("a\u200bdog", "z")]
    hidden += [("a do\u00adg", "x"), ("a\u200b dog", "x"), ("y", "Ein \u2060Hu\u200dnd")]
    assert mark_shared_pairs(batch(hidden), OverlapConfig(), held_out)[:, 0].tolist() == [1, 1, 0, 1, 1, 1]
    both = mark_shared_pairs(batch(pairs), OverlapConfig(sides="both"), held_out)[:, 0]
    assert both.tolist() == [0, 0, 1, 0, 0]
    assert not mark_shared_pairs(batch(pairs), OverlapConfig(), HeldOutKeys.from_pairs([])).any()


@given(st.lists(st.lists(st.integers(0, 4), min_size=6, max_size=6), min_size=1, max_size=3))
def test_keys_are_counted_as_a_counter_does(rows: list[list[int]]) -> None:
    keys = [np.array(each, np.uint64) for each in rows]
    counts = [Counter(each) for each in rows]
    assert count_pairs_with_equal_key(keys, 6).tolist() == [
        max(count[each[row]] for count, each in zip(counts, rows, strict=True)) for row in range(6)
    ]
    assert is_first_occurrence(keys, 6).tolist() == [
        not any(each[row] in each[:row] for each in rows) for row in range(6)
    ]


def test_near_duplicates_are_found_as_often_as_the_curve_says() -> None:
    """1 - (1 - s^r)^b, over many pairs whose likeness s is computed from the sets themselves."""
    near = pytest.importorskip("tfm.pipeline.cleaning.rules.corpora.near_duplicates")
    pytest.importorskip("rensa", reason="needs the extra `clean`")
    from tfm.pipeline.cleaning.rules.corpora.config import NearDuplicatesConfig

    draw, config = random.Random(1), NearDuplicatesConfig(likeness=0.7)
    bands, rows = near.choose_lsh_bands_and_rows(0.7)
    texts = []
    for _ in range(1500):
        words = [f"{draw.randrange(10**6):06}" for _ in range(12)]
        changed = [each if draw.random() > 0.05 else f"{draw.randrange(10**6):06}" for each in words]
        texts += [" ".join(words), " ".join(changed)]
    keys = near.make_near_duplicate_hasher(config)(batch([(text, "") for text in texts]))
    assert keys.shape == (3000, bands)
    found = (keys[0::2] == keys[1::2]).any(1)
    expected = []
    for one, other in zip(texts[0::2], texts[1::2], strict=True):
        a, b = ({f"{text}\n"[i : i + 5] for i in range(len(text) - 3)} for text in (one, other))
        expected.append(1 - (1 - (len(a & b) / len(a | b)) ** rows) ** bands)
    deviation = math.sqrt(sum(p * (1 - p) for p in expected))
    assert abs(found.sum() - sum(expected)) < 4 * deviation
    assert found[np.array(expected) == 1].all()


def test_the_patterns_of_the_rules_are_as_their_words_say() -> None:
    from tfm.pipeline.cleaning.rules.pairs.markup import MARKUP_PATTERN

    assert MARKUP_PATTERN.findall("a <i class='x'>b</i> &amp; http://x.y/z {0} me@x.org") == [
        *("<i class='x'>", "</i>", "&amp;", "http://x.y/z", "{0}", "me@x.org")
    ]
    assert re.sub(r"\s", "", "a\u2028b") == "ab"  # white space to `str.split` too
