"""Scores of labels are those of scikit-learn; a label that one side lacks is wrong."""

import json
import random
from typing import Any

import pytest

from tfm.pipeline.config import EvaluationConfig
from tfm.pipeline.reports.evaluation_report import render_report
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.scoring.evaluation.assess import evaluate_segments
from tfm.pipeline.scoring.evaluation.evaluation import Evaluation
from tfm.pipeline.scoring.evaluation.scores_json import evaluations_as_json, evaluations_from_json
from tfm.pipeline.scoring.evaluation.segments import Segments
from tfm.pipeline.scoring.evaluation.text_warnings import hypothesis_warnings, reference_warnings
from tfm.pipeline.scoring.metrics.labels import (
    accuracy,
    label_count_warning,
    label_scores,
    label_warnings,
    macro_f1,
    unknown_labels_warning,
)
from tfm.pipeline.scoring.tables.labels import label_tables
from tfm.pipeline.tasks.abilities import task_evaluation_config

CONFIG = EvaluationConfig()
LINES = EvaluationConfig(labels="line")
METRICS: Any = ("accuracy", "macro_f1")


def sentences(seed: int, *, as_many: bool) -> tuple[list[str], list[str]]:
    """Tags given and wanted; some labels are only given, some only wanted. Not as_many: some lines lack some."""
    draw = random.Random(seed)
    wanted = [draw.choices(["N", "V", "ADJ", "ß", "只"], [9, 5, 3, 1, 1], k=draw.randint(1, 9)) for _ in range(40)]
    given = [[tag if draw.random() < 0.6 else draw.choice(["N", "V", "ADV", "X"]) for tag in tags] for tags in wanted]
    if not as_many:
        given = [tags[: draw.randint(0, 12)] + ["N"] * draw.choice([0, 0, 2]) for tags in given]
    return [" ".join(tags) for tags in given], [" ".join(tags) for tags in wanted]


def flat(hypotheses: list[str], references: list[str]) -> tuple[list[str], list[str]]:
    """Both sides as scikit-learn takes them, word by word, "missing" where a side has none."""
    given, wanted = [], []
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        one, other = hypothesis.split(), reference.split()
        longer = max(len(one), len(other))
        given += one + ["missing"] * (longer - len(one))
        wanted += other + ["missing"] * (longer - len(other))
    return given, wanted


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("as_many", [True, False])
def test_scores_of_labels_are_those_of_scikit_learn(seed: int, as_many: bool) -> None:
    from sklearn import metrics

    hypotheses, references = sentences(seed, as_many=as_many)
    given, wanted = flat(hypotheses, references)
    names = sorted({*given, *wanted} - {"missing"})
    found = label_scores(hypotheses, [references], CONFIG)
    figures = metrics.precision_recall_fscore_support(wanted, given, labels=names, zero_division=0)
    assert list(found.by_label) == names
    for each, precision, recall, f1, support in zip(found.by_label.values(), *figures, strict=True):
        assert (each.precision, each.recall, each.f1) == pytest.approx((100 * precision, 100 * recall, 100 * f1))
        assert each.support == support
    mean = metrics.f1_score(wanted, given, labels=names, average="macro", zero_division=0)
    assert macro_f1(hypotheses, [references], CONFIG).score == pytest.approx(100 * mean)
    if as_many:
        assert mean == metrics.f1_score(wanted, given, average="macro", zero_division=0)
    assert accuracy(hypotheses, [references], CONFIG).score == pytest.approx(
        100 * metrics.accuracy_score(wanted, given)
    )
    every = [*names, "missing"]
    matrix = metrics.confusion_matrix(wanted, given, labels=every)
    ours = [[found.confusion.get(w.replace("missing", ""), {}).get(g.replace("missing", ""), 0) for g in every]
            for w in every]  # fmt: skip
    assert ours == matrix.tolist()


def test_a_label_of_several_words_is_one_where_lines_are_labels() -> None:
    from sklearn import metrics

    given, wanted = ["very good", "not good", "bad", " bad "], ["very good", "very good", "bad", "not bad"]
    bare = [each.strip() for each in given]
    for score, theirs in (
        (accuracy, metrics.accuracy_score(wanted, bare)),
        (macro_f1, metrics.f1_score(wanted, bare, average="macro", zero_division=0)),
    ):
        assert score(given, [wanted], LINES).score == pytest.approx(100 * theirs)
    assert accuracy(given, [wanted], LINES).signature.startswith("unit:line|count:4|")
    assert task_evaluation_config("classification", EvaluationConfig()).labels == "line"
    assert task_evaluation_config("classification", EvaluationConfig(metrics=METRICS)).labels == "line"
    assert task_evaluation_config("classification", EvaluationConfig(labels="word")).labels == "word"
    assert task_evaluation_config("tagging", EvaluationConfig()).labels == "auto"


def test_labels_are_scored_as_by_hand() -> None:
    given, wanted = ["A B", "C", "B B B"], [["A A", "B", "B B"]]
    # pairs: A A, B A, C B, B B, B B, and B where there should be nothing
    assert accuracy(given, wanted, CONFIG).score == pytest.approx(100 * 3 / 6)
    # A: 2 * 1 / (1 + 2); B: 2 * 2 / (4 + 3); C, which is only given: 0
    assert macro_f1(given, wanted, CONFIG).score == pytest.approx(100 * (2 / 3 + 4 / 7) / 3)
    assert "labels:3|" in macro_f1(given, wanted, CONFIG).signature
    assert label_scores(given, wanted, CONFIG).confusion == {"": {"B": 1}, "A": {"A": 1, "B": 1}, "B": {"B": 2, "C": 1}}


def found(given: list[str], wanted: list[str], **changes: Any) -> Evaluation:
    config = EvaluationConfig(metrics=METRICS, samples=1, **changes)
    return evaluate_segments(Segments("test", None, given, [wanted]), config, seed=1, reporter=NullReporter())


def test_each_label_is_in_json_and_scores_of_former_times_open() -> None:
    evaluation = found(["A", "B C", ""], ["A", "B B", "A"])
    content = json.loads(json.dumps(evaluations_as_json([evaluation])))
    assert evaluations_from_json(content) == [evaluation]
    assert content["labels"]["by_label"]["B"] == {"precision": 100, "recall": 50, "f1": pytest.approx(200 / 3),
                                                  "support": 2}  # fmt: skip
    assert content["labels"]["confusion"] == {"A": {"": 1, "A": 1}, "B": {"B": 1, "C": 1}}
    del content["labels"]
    for samples in content["samples"].values():
        for sample in samples:
            del sample["accuracy"]
    assert evaluations_from_json(content)[0].labels is None


def test_tables_of_labels_have_a_row_for_each_and_say_what_lacks_one() -> None:
    evaluation = found(["A", "B C", ""], ["A", "B B", "<b>"])
    assert evaluation.labels is not None
    labels, confusions = label_tables(evaluation.labels, 12)
    assert labels[2] == [
        ["B", "100.00", "50.00", "66.67", "2"],
        ["<b>", "0.00", "0.00", "0.00", "1"],
        ["A", "100.00", "100.00", "100.00", "1"],
        ["C", "0.00", "0.00", "0.00", "0"],
    ]
    assert confusions[1] == ["reference ↓ given →", "(none)", "A", "B", "C"]
    assert ["<b>", "1", "0", "0", "0"] in confusions[2]
    page = render_report("t", [evaluation], curves=None, inputs={})
    assert "Confusion matrix on test" in page
    assert "<td>&lt;b&gt;</td>" in page
    assert "<b>" not in page


def test_many_labels_have_the_commonest_confusions_instead_of_a_matrix() -> None:
    names = [f"label{number}" for number in range(40)]
    given = [*names[1:], names[0], *names[:3]]
    evaluation = found([*given, "label5"], [*names, *names[:3], "label4"])
    assert evaluation.labels is not None
    labels, confusions = label_tables(evaluation.labels, 30)
    assert labels[0] == "the 30 commonest of 40 labels"
    assert confusions[0] == "commonest confusions"
    assert confusions[2][0] == ["label4", "label5", "2"]
    assert "commonest confusions".capitalize() in render_report("t", [evaluation], curves=None, inputs={})
    assert found(["A"], ["A"]).labels is not None


def test_labels_that_say_little_are_said() -> None:
    line, word = EvaluationConfig(labels="line"), EvaluationConfig(labels="word")
    assert label_warnings(["a", "b"], line) == label_warnings(["a b", "b a"], word) == []
    assert label_warnings(["a b", "a b"], line) == [
        '"a b" is the only label of 2 lines: a model that always gives it is 100 % right'
    ]
    assert len(label_warnings(["a a", "a"], word)) == 1
    assert label_warnings(["a", " ", "b", ""], line) == [
        "2 of 4 lines have no label, and what is said there counts as wrong"
    ]


def test_sentences_with_more_or_fewer_labels_than_words_are_warned_of() -> None:
    """Lines of other sentences were scored without a word; labels behind the last word are compared with none."""
    references = ["O O", "B-X", "O O O", "O"]
    words = EvaluationConfig(labels="word")
    assert label_count_warning(references, references, words) is None
    assert label_count_warning(["O O", "", "O O O", "O"], references, words) is None  # blank ones have one of their own
    said = label_count_warning(["O O", "B-X", "O O", "O O"], references, words)
    assert said == (
        "2 of 4 hypotheses have more or fewer labels than the reference, the first in line 3 (2 and 3): are they of "
        "the same sentences, with all words?"
    )
    advice = ' If a line is one label, set evaluation.labels = "line"'
    for config, expected in (
        (EvaluationConfig(metrics=("entity_f1",)), [said + advice]),
        (EvaluationConfig(metrics=("accuracy",)), [said + advice]),  # a label is a word, unless a task is known
        (EvaluationConfig(metrics=("macro_f1",), labels="word"), [said]),
        (EvaluationConfig(metrics=("accuracy",), labels="line"), []),
        (EvaluationConfig(metrics=("bleu",)), []),
    ):
        warnings = hypothesis_warnings(["O O", "B-X", "O O", "O O"], [references], config, {})
        assert [warning for warning in warnings if "more or fewer" in warning] == expected


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["0", "1", "0"], "no label of the hypotheses (0, 1) is one of the references (good, very bad)"),
        (["__label__good", "__label__good", "x"], "no label of the hypotheses (__label__good, x) is one of"),
        (["Good", "good", "very bad"], "differ from those of the references in case (Good for good)"),
        (["very bad", "very bad", "very bad"], None),
        (["", "", ""], None),
        (["good", "new", "new"], None),
    ],
)
def test_labels_spelled_otherwise_are_warned_of(given: list[str], said: str | None) -> None:
    """Accuracy was 0.00 without a word where one side has numbers and the other names."""
    config = EvaluationConfig(metrics=("accuracy",), labels="line")
    warning = unknown_labels_warning(given, ["good", "very bad", "good"], config)
    assert (warning is None) == (said is None)
    assert said is None or said in str(warning)
    if any(given):
        warnings = hypothesis_warnings(given, [["good", "very bad", "good"]], config, {})
        assert warnings == ([] if warning is None else [warning])


@pytest.mark.parametrize("metrics", [("accuracy",), ("entity_f1", "macro_f1")])
def test_further_references_of_labels_are_warned_of(metrics: tuple[str, ...]) -> None:
    """A second annotator's labels were read by nothing, and no signature said so."""
    config = EvaluationConfig.model_validate({"metrics": metrics})
    labels = ["B-X O", "O O"]
    assert reference_warnings([labels], config) == []
    (warning,) = reference_warnings([labels, labels[::-1]], config)
    assert warning.startswith(", ".join(metrics))
    assert "the first of 2 references alone" in warning
    assert not any("alone" in each for each in reference_warnings([labels, labels], EvaluationConfig()))
