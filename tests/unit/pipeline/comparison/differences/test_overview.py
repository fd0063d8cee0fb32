"""All differences of some systems: means over runs, what is left out, and why."""

from dataclasses import replace
from pathlib import Path

import pytest
import sacrebleu

from tests.tiny_dataset import make_dataset
from tests.tiny_runs import make_run
from tfm.pipeline.comparison.differences.overview import (
    MAX_ROWS,
    SINGLE_LETTERS_MESSAGE,
    SystemDifferences,
    find_differences,
)
from tfm.pipeline.comparison.systems import System
from tfm.pipeline.config import EvaluationConfig
from tfm.pipeline.reports.run_summary import RunSummary, read_run
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.scoring.evaluation.segments import Segments

REFERENCES = ["der Hund läuft schnell nach Hause", "die Katze schläft auf dem Sofa", "eine Maus frisst den Käse auf"]
BEFORE = ["der Hund läuft schnell weg", "die Katze schläft auf dem Bett", "eine Maus frisst den Käse auf"]
AFTER = ["der Hund läuft schnell nach Hause", "die Katze liegt auf dem Sofa", "die Maus frisst den Käse auf"]
MAIN = Segments("main", ["a b", "c d e", "f g"], BEFORE, [REFERENCES])


def system(name: str, hypotheses: list[str], **changes: object) -> System:
    return System(name, {"main": replace(MAIN, hypotheses=hypotheses, **changes)})  # type: ignore[arg-type]


def trained(folder: Path, dataset: str = "elsewhere") -> RunSummary:
    return read_run(make_run(folder, dataset=dataset), "base-1")


def titles(found: SystemDifferences) -> list[str]:
    return [each.title for each in (*found.tables, *found.words)]


def test_figures_are_means_over_the_runs_of_a_system(tmp_path: Path) -> None:
    rows = {"base": [system("base-1", BEFORE), system("base-2", AFTER)], "other": [system("other-1", AFTER)]}
    (found,) = find_differences(rows, trained(tmp_path / "run"), NullReporter())
    assert (found.test, found.columns) == ("main", ["base", "other"])
    assert titles(found) == [
        "BLEU (effective order) by length of the source",
        "chrF by length of the source",
        "What BLEU is made of, in percent",
    ]
    both = [sacrebleu.corpus_bleu(each, [REFERENCES]).precisions[0] for each in (BEFORE, AFTER)]
    assert found.tables[2].rows[0].values == pytest.approx([sum(both) / 2, both[1]])
    scores = [
        sacrebleu.corpus_chrf([each[0], each[2]], [[REFERENCES[0], REFERENCES[2]]]).score for each in (BEFORE, AFTER)
    ]
    assert found.tables[1].rows[0].values == pytest.approx([sum(scores) / 2, scores[1]])
    assert list(found.changes) == ["other"]
    assert [each.line for each in found.changes["other"].gained] == [1]
    assert sorted(each.line for each in found.changes["other"].lost) == [2, 3]
    assert "sentences are those of the first run of each system" in found.notes
    assert any("base-1 has no dataset/" in note for note in found.notes)


def test_words_are_counted_in_the_training_texts_of_the_baseline(tmp_path: Path) -> None:
    texts = ["der Hund"] * 3 + ["die Katze"]
    known = make_dataset(tmp_path / "run" / "dataset", texts, learned_from=[*REFERENCES, *texts] * 9)
    rows = {"base": [system("base-1", BEFORE)], "other": [system("other-1", AFTER)]}
    (found,) = find_differences(rows, trained(tmp_path / "run", known.fingerprint), NullReporter())
    assert [each.split()[0] for each in titles(found)[3:]] == ["F1", "precision", "recall"]
    by_count = {row.name: (row.count, row.values) for row in found.words[0].rows}
    # der, Hund: right in both. die, Katze: 2 wanted; the second says `die` once more, of 3 given 2 are right.
    assert by_count["3"] == (2, [100, 100])
    assert by_count["1"] == (2, pytest.approx([100, 80]))
    assert found.notes == []
    (other,) = find_differences(rows, trained(tmp_path / "another"), NullReporter())
    assert other.words == []


def test_of_scripts_without_spaces_each_letter_counts_and_that_is_said(tmp_path: Path) -> None:
    texts = ["今天狗跑了", "今天猫跑了"]
    known = make_dataset(tmp_path / "run" / "dataset", texts, learned_from=texts * 9)
    one = System("base-1", {"main": Segments("main", None, texts[1:], [texts[:1]])})
    (found,) = find_differences({"base": [one]}, trained(tmp_path / "run", known.fingerprint), NullReporter())
    assert {row.name: (row.count, row.values) for row in found.words[0].rows if row.count} == {
        "1": (1, [0]),
        "2": (4, [100]),
    }
    assert SINGLE_LETTERS_MESSAGE in found.notes


def test_systems_with_other_texts_are_left_out_and_named(tmp_path: Path) -> None:
    rows = {
        "base": [system("base-1", BEFORE)],
        "short": [system("short-1", AFTER[:2], sources=["a b", "c d e"], references=[REFERENCES[:2]])],
        "other": [system("other-1", AFTER), system("other-2", AFTER, references=[["x", *REFERENCES[1:]]])],
        "none": [System("none-1", {})],
        "alone": [],
    }
    (found,) = find_differences(rows, trained(tmp_path / "run"), NullReporter())
    assert found.columns == ["base", "other"]
    told = [note for note in found.notes if "skipped:" in note]
    assert told == [
        "short-1 is skipped: main: 2 segments, not 3",
        "other-2 is skipped: main: the reference of line 1 is another text",
        "none-1 is skipped: has no translations of main",
        "alone is skipped: there are no translations of test sets beside its model",
    ]
    assert find_differences({"base": [], "other": rows["other"]}, trained(tmp_path / "bare"), NullReporter()) == []


def test_every_test_set_of_the_baseline_has_its_own(tmp_path: Path) -> None:
    both = {"main": MAIN, "second": replace(MAIN, name="second", hypotheses=AFTER)}
    rows = {"base": [System("base-1", both)], "other": [system("other-1", AFTER)]}
    first, second = find_differences(rows, trained(tmp_path / "run"), NullReporter())
    assert (first.columns, second.columns) == (["base", "other"], ["base"])
    assert second.changes == {}


def test_labels_have_a_table_of_their_own_and_no_words(tmp_path: Path) -> None:
    labels = [f"L{number:02}" for number in range(MAX_ROWS + 2)]
    config = EvaluationConfig(metrics=("accuracy", "macro_f1"), labels="line")
    right = Segments("main", labels, labels, [labels])
    wrong = replace(right, hypotheses=[*labels[:-1], labels[0]])
    rows = {name: [System(name, {"main": each}, evaluation=config)] for name, each in (("a", right), ("b", wrong))}
    (found,) = find_differences(rows, trained(tmp_path / "run"), NullReporter())
    assert titles(found) == ["accuracy by length of the source", "F1 by label"]
    assert len(found.tables[1].rows) == MAX_ROWS
    assert [(row.name, row.values) for row in found.tables[1].rows[:2]] == [
        (labels[-1], [100, 0]),
        (labels[0], pytest.approx([100, 200 / 3])),
    ]
    assert found.notes == [f"F1 by label: the {MAX_ROWS} of {MAX_ROWS + 2} rows in which systems differ most"]
    assert [each.line for each in found.changes["b"].lost] == [MAX_ROWS + 2]


def test_what_bleu_cannot_read_is_left_out_with_the_reason(tmp_path: Path) -> None:
    one = Segments("main", ["x"], ["one two"], [["one three"]])
    (found,) = find_differences({"a": [System("a", {"main": one})]}, trained(tmp_path / "run"), NullReporter())
    assert titles(found) == ["chrF by length of the source"]
    assert any(note.startswith("BLEU is not shown: no reference has 4 tokens") for note in found.notes)
