"""Sentences that gained and lost most: beside sacrebleu's own chrF, with marks in every script."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics.chrf import CHRF

from tfm.pipeline.comparison.differences.changed_sentences import (
    MAX_DIFF_WORDS,
    TextSpan,
    changed_label_spans,
    changed_word_spans,
    find_sentence_changes,
)
from tfm.pipeline.config import EvaluationConfig
from tfm.pipeline.scoring.evaluation.segments import Segments

CONFIG = EvaluationConfig()
REFERENCES = ["ein Hund läuft", "zwei Katzen schlafen", "drei Vögel", "vier", "fünf Fische", ""]
BEFORE = ["ein Hund läuft", "zwei Katzen", "drei Vögel", "vie", "fünf Fische", "x"]
AFTER = ["ein Hund lief", "zwei Katzen schlafen", "drei Vogel", "sechs", "fünf Fische", "y"]


def told(stretches: list[TextSpan]) -> str:
    return "".join(f"[{each.text}]" if each.differs else each.text for each in stretches)


def test_gains_are_differences_of_chrf_the_most_first() -> None:
    sources = [f"source {i}" for i in range(6)]
    before, after = (Segments("t", sources, each, [REFERENCES]) for each in (BEFORE, AFTER))
    done: list[int] = []
    found = find_sentence_changes(before, after, CONFIG, 9, done.append)
    assert sum(done) == 6
    metric = CHRF()
    gains = {
        line: metric.sentence_score(new, [reference]).score - metric.sentence_score(old, [reference]).score
        for line, (old, new, reference) in enumerate(zip(BEFORE, AFTER, REFERENCES, strict=True), 1)
    }
    assert (found.num_better, found.num_worse, found.num_as_good, found.num_same) == (
        sum(each > 0 for each in gains.values()),
        sum(each < 0 for each in gains.values()),
        1,
        1,
    )
    assert gains[6] == gains[5] == 0
    assert [each.line for each in found.gained] == [2]
    assert [each.line for each in found.lost] == sorted((1, 3, 4), key=lambda line: gains[line])
    for each in (*found.gained, *found.lost):
        assert each.gain == pytest.approx(gains[each.line], abs=1e-9)
        assert each.source == f"source {each.line - 1}"
        assert each.references == (REFERENCES[each.line - 1],)
    assert told(list(found.gained[0].before)) == "zwei Katzen"
    assert told(list(found.gained[0].after)) == "zwei Katzen [schlafen]"
    few = find_sentence_changes(before, after, CONFIG, 1, done.append)
    assert (few.num_worse, few.lost) == (found.num_worse, found.lost[:1])


def test_a_system_beside_itself_changed_nothing() -> None:
    one = Segments("t", None, BEFORE, [REFERENCES])
    found = find_sentence_changes(one, one, CONFIG, 9, lambda _: None)
    assert (found.num_same, found.gained, found.lost, found.num_as_good) == (6, [], [], 0)


def test_of_labels_the_share_that_is_right_counts_and_places_are_compared() -> None:
    config = EvaluationConfig(metrics=("accuracy",), labels="word")
    before, after = (Segments("t", ["a b c d"], [each], [["O B-x I-x O"]]) for each in ("O O B-x O", "O B-x O O"))
    (change,) = find_sentence_changes(before, after, config, 9, lambda _: None).gained
    assert change.scores == (50, 75)
    assert told(list(change.before)) == "O [O B-x] O"
    assert told(list(change.after)) == "O [B-x O] O"
    assert [told(each) for each in changed_label_spans("A B", "A")] == ["A [B]", "A"]
    line = EvaluationConfig(metrics=("accuracy",), labels="line")
    named = (Segments("t", None, [each], [["very bad"]]) for each in ("very bad", "very good"))
    (lost,) = find_sentence_changes(*named, line, 9, lambda _: None).lost
    assert lost.scores == (100, 0)


@pytest.mark.parametrize(
    ("one", "other", "first", "second"),
    [
        ("Ein Hund läuft.", "Ein Hund rennt weg.", "Ein Hund [läuft].", "Ein Hund [rennt weg]."),
        ("Ein Hund", "Ein Hund.", "Ein Hund", "Ein Hund[.]"),
        ("今天狗跑了", "今天猫跑了", "今天[狗]跑了", "今天[猫]跑了"),
        ("สุนัขวิ่ง", "แมววิ่ง", "[สุนัข]วิ่ง", "[แมว]วิ่ง"),
        ("الكلب يجري اليوم", "الكلب ينام اليوم", "الكلب [يجري] اليوم", "الكلب [ينام] اليوم"),
        ("הכלב רץ", "הכלב ישן", "הכלב [רץ]", "הכלב [ישן]"),
        ("می‌روم خانه", "می‌رود خانه", "[می‌روم] خانه", "[می‌رود] خانه"),
        ("कुत्ता दौड़ता है", "कुत्ता सोता है", "कुत्ता [दौड़ता] है", "कुत्ता [सोता] है"),
        ("👩‍👩‍👧 x", "👩 x", "[👩‍👩‍👧] x", "[👩] x"),
        ("", "a", "", "[a]"),
    ],
)
def test_words_that_differ_are_marked_in_any_script(one: str, other: str, first: str, second: str) -> None:
    assert tuple(map(told, changed_word_spans(one, other))) == (first, second)


@given(st.text(st.sampled_from("ab 今א.")), st.text(st.sampled_from("ab 今א.")))
def test_what_is_not_marked_is_in_both_in_the_same_order(one: str, other: str) -> None:
    for mark in (changed_word_spans, changed_label_spans):
        ours, theirs = mark(one, other)
        assert ("".join(each.text for each in ours), "".join(each.text for each in theirs)) == (one, other)
        kept = ["".join("".join(each.text.split()) for each in some if not each.differs) for some in (ours, theirs)]
        assert kept[0] == kept[1]


def test_of_a_very_long_text_the_beginning_is_marked() -> None:
    text = "a " * MAX_DIFF_WORDS
    ours, theirs = changed_word_spans("b " + text + "b", "c " + text + "c")
    assert [each.text for each in ours if each.differs] == ["b"]
    assert [each.text for each in theirs if each.differs] == ["c"]
