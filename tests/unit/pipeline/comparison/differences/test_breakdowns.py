"""Where systems differ: each figure beside sacrebleu itself, or counted by hand."""

import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st

from tfm.pipeline.comparison.differences.breakdowns import (
    Breakdown,
    BreakdownRow,
    average_columns,
    breakdown_by_label,
    breakdown_by_ngram_order,
    breakdown_by_source_length,
    largest_differences,
)
from tfm.pipeline.config import EvaluationConfig
from tfm.pipeline.scoring.evaluation.segments import Segments

CONFIG = EvaluationConfig()
SOURCES = ["one", "two words", "here are three", "and now four words", "x", "these also are four"]
REFERENCES = ["eins ja", "zwei Wörter hier", "das sind nun drei", "und nun sind es fünf Wörter", "x y", "das sind vier"]
GOOD = ["eins ja", "zwei Wörter", "das sind nun drei", "und nun sind es fünf Worte", "x", "auch sind das vier"]
BAD = ["ja eins", "drei Wörter hier", "das sind drei", "und jetzt sind es viele Wörter da", "y", "das sind auch vier"]


def segments(hypotheses: list[str], *references: list[str], sources: list[str] | None = SOURCES) -> Segments:
    return Segments("test", sources, hypotheses, references or (REFERENCES,))


def test_by_length_each_bin_is_scored_by_itself() -> None:
    bleu, chrf = breakdown_by_source_length([segments(GOOD), segments(BAD)], CONFIG)
    assert bleu.title == "BLEU (effective order) by length of the source"
    assert chrf.title == "chrF by length of the source"
    assert [(row.name, row.count) for row in bleu.rows] == [("1", 2), ("2", 1), ("3", 1), ("4", 2)]
    rows_of = {"1": (0, 4), "2": (1,), "3": (2,), "4": (3, 5)}
    for table in (bleu, chrf):
        for row in table.rows:
            for hypotheses, value in zip((GOOD, BAD), row.values, strict=True):
                ours = [hypotheses[i] for i in rows_of[row.name]]
                theirs = [[REFERENCES[i] for i in rows_of[row.name]]]
                score = (
                    sacrebleu.corpus_chrf(ours, theirs)
                    if table is chrf
                    else sacrebleu.corpus_bleu(ours, theirs, use_effective_order=True)
                )
                assert value == pytest.approx(score.score, abs=1e-9)


def test_without_a_source_the_reference_s_length_counts() -> None:
    (table, _) = breakdown_by_source_length([segments(GOOD, sources=None)], CONFIG)
    assert table.title.endswith("by length of the reference")
    assert [(row.name, row.count) for row in table.rows] == [("2", 2), ("3", 2), ("4", 1), ("6", 1)]
    (left,) = breakdown_by_source_length([segments(GOOD)], CONFIG, ["bleu"])
    assert left.title.startswith("chrF ")


@pytest.mark.parametrize(("hypotheses", "lowercase"), [(GOOD, False), (BAD, True)])
def test_ngrams_are_those_of_sacrebleu(hypotheses: list[str], lowercase: bool) -> None:
    table = breakdown_by_ngram_order([segments(hypotheses)], EvaluationConfig(lowercase=lowercase))
    score = sacrebleu.corpus_bleu(hypotheses, [REFERENCES], lowercase=lowercase, smooth_method="none")
    values = {row.name: row.values[0] for row in table.rows}
    assert [values[f"{n}-grams"] for n in (1, 2, 3, 4)] == pytest.approx(score.precisions, abs=1e-9)
    assert values["brevity penalty"] == pytest.approx(100 * score.bp, abs=1e-9)
    assert values["length ratio"] == pytest.approx(100 * score.sys_len / score.ref_len, abs=1e-9)


def test_ngrams_counted_by_hand() -> None:
    """`the cat the cat sat` against `the cat sat here now .`, and a word that is wrong: 3 of 6 words (`the` and
    `cat` clipped), 2 of 4 pairs, 1 of 3 triples, nothing of 2: that is 0, not smoothed, and of no n-grams no value."""
    one = Segments("t", None, ["the cat the cat sat", "it"], [["the cat sat here now .", "that"]])
    rows = {row.name: row.values[0] for row in breakdown_by_ngram_order([one], CONFIG).rows}
    assert [rows[f"{n}-grams"] for n in (1, 2, 3, 4)] == pytest.approx([100 * 3 / 6, 50, 100 / 3, 0])
    assert rows["length ratio"] == pytest.approx(100 * 6 / 7)
    short = breakdown_by_ngram_order([Segments("t", None, ["a b"], [["a b c d"]])], CONFIG)
    assert [row.values[0] for row in short.rows[:4]] == [100, 100, None, None]


def test_a_segment_may_have_fewer_references_than_others() -> None:
    table = breakdown_by_ngram_order([segments(GOOD, REFERENCES, ["", *BAD[1:]])], CONFIG)
    score = sacrebleu.corpus_bleu(GOOD, [REFERENCES, [None, *BAD[1:]]])
    assert [row.values[0] for row in table.rows[:4]] == pytest.approx(score.precisions, abs=1e-9)


def test_chinese_is_counted_in_characters() -> None:
    table = breakdown_by_ngram_order([Segments("t", None, ["今天狗跑了"], [["今天猫跑了"]])], CONFIG)
    assert [row.values[0] for row in table.rows[:4]] == [80, 50, 0, 0]


def test_labels_by_hand() -> None:
    """Of label A 1 of 2 given and 1 of 1 wanted: F1 2/3. B: 1 given right of 1, 2 wanted: 2/3. C of the second."""
    references = [["A", "B", "B", "C"]]
    config = EvaluationConfig(metrics=("accuracy",), labels="line")
    first, second = (Segments("t", None, each, references) for each in (["A", "B", "A", "C"], ["A", "B", "B", "D"]))
    whole = breakdown_by_label([first, second], config)
    assert [(row.name, row.count) for row in whole.rows] == [("A", 1), ("B", 2), ("C", 1), ("D", 0)]
    assert [row.name for row in largest_differences(whole, 2).rows] == ["C", "A"]
    values = {row.name: row.values for row in whole.rows}
    assert values["A"] == pytest.approx([200 / 3, 100])
    assert values["B"] == pytest.approx([200 / 3, 100])
    assert values["C"] == [100, 0]
    assert values["D"] == [None, 0]
    words = EvaluationConfig(metrics=("accuracy",), labels="word")
    tagged = breakdown_by_label([Segments("t", ["x y"], ["O B-X"], [["B-X B-X"]])], words)
    assert {row.name: (row.count, row.values) for row in tagged.rows} == {
        "O": (0, [0]),
        "B-X": (2, pytest.approx([200 / 3])),
    }


def test_accuracy_by_length_where_labels_are_scored() -> None:
    config = EvaluationConfig(metrics=("accuracy",), labels="word")
    one = Segments("t", ["a", "b c"], ["X", "X Y"], [["X", "Y Y"]])
    (table,) = breakdown_by_source_length([one], config)
    assert table.title == "accuracy by length of the source"
    assert [row.values for row in table.rows] == [[100], [50]]


@given(st.lists(st.lists(st.none() | st.floats(0, 100), min_size=3, max_size=3)))
def test_runs_of_one_system_become_their_mean(rows: list[list[float | None]]) -> None:
    found = Breakdown("F1", "x", "y", [BreakdownRow(str(i), i, values) for i, values in enumerate(rows)])
    for row, values in zip(average_columns(found, [[1], [0, 2]]).rows, rows, strict=True):
        first, second, third = values
        assert row.values[0] == second
        if first is None or third is None:
            assert row.values[1] == (first if third is None else third)
        else:
            assert row.values[1] == pytest.approx((first + third) / 2)
