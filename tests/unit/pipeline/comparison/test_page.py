"""The page of a comparison: everything found is on it, as text, and nothing else."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.html_elements import Elements
from tests.tiny_runs import add_texts, make_run
from tfm.pipeline.comparison.differences.breakdowns import Breakdown, BreakdownRow
from tfm.pipeline.comparison.differences.changed_sentences import find_sentence_changes
from tfm.pipeline.comparison.differences.html import MIN_BAR_SCALE
from tfm.pipeline.comparison.differences.overview import SystemDifferences
from tfm.pipeline.comparison.metric_tests import run_significance_tests
from tfm.pipeline.comparison.page import NO_OUTPUTS_MESSAGE, render_page, score_interval_columns, write_page
from tfm.pipeline.comparison.page import comparison_page as comparison_page
from tfm.pipeline.comparison.runs import compare_runs
from tfm.pipeline.comparison.tables.columns import Cell, Column, comparison_columns
from tfm.pipeline.config import EvaluationConfig
from tfm.pipeline.errors import WriteError
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.scoring.evaluation.segments import Segments
from tfm.pipeline.scoring.metrics.cider import cider_d
from tfm.pipeline.scoring.metrics.score import Score

NASTY = "</td><script>alert('1')</script> & \u202edrow\u202c $title {x} " + "longer_than_a_phone_" * 5
SHOWN = NASTY.replace("\u202e", "\\u202e").replace("\u202c", "\\u202c")
SENTENCES = [
    ("الكلب يجري اليوم", "الكلب ينام اليوم"),
    ("הכלב רץ", "הכלב ישן"),
    ("今天狗跑了", "今天猫跑了"),
    ("ja", NASTY),
]


def differences() -> SystemDifferences:
    """Of a baseline and two systems, with names and texts that try to be more than text."""
    before, after = ([pair[side] for pair in SENTENCES] for side in (0, 1))
    one = Segments(NASTY, [NASTY] * 4, before, [after])
    found = find_sentence_changes(one, Segments(NASTY, None, after, [after]), EvaluationConfig(), 9, lambda _: None)
    rows = [BreakdownRow("1–2", 1234, [50.0, 52.5, 45.0]), BreakdownRow(NASTY, 7, [None, 0.5, 0.25])]
    words = [Breakdown(f"{kind} of words", "times in training", "in the references", rows) for kind in ("F1", "recall")]
    parts = Breakdown("What BLEU is made of", "part", "", [BreakdownRow("1-grams", None, [70.0, 70.25, 70.0])])
    tables = [Breakdown("BLEU by length", "words", "segments", rows), parts]
    return SystemDifferences(NASTY, ["base", NASTY, "other"], tables, words, {NASTY: found}, [NASTY])


def page() -> str:
    columns = [
        Column("run", [Cell("base"), Cell(NASTY)], numeric=False),
        Column("BLEU", [Cell("34.07", "1.47", best=True), Cell("33.00", "1.50", is_significant=True)]),
    ]
    return render_page(f"Comparison of {NASTY}", {NASTY: columns}, [f"* {NASTY}"], [differences()], [NASTY])


def test_all_text_is_text() -> None:
    found = Elements(page())
    assert not {"script", "link", "img", "iframe", "object", "a"} & set(found.found)
    assert found.texts["title"] == found.texts["h1"] == [f"Comparison of {SHOWN}"]
    assert f"Where they differ: {SHOWN}" in found.texts["h2"]
    assert found.texts["li"] == [f"* {SHOWN}", SHOWN, SHOWN]
    for tag in ("td", "dd", "ins", "bdi", "h2", "p"):
        assert any(SHOWN in text for text in found.texts[tag]), tag
    assert "\u202e" not in page()


def test_figures_their_marks_and_their_best_are_shown() -> None:
    found = Elements(page())
    assert found.texts["td"][:4] == ["base", "34.07 ± 1.47", SHOWN, "33.00 ± 1.50*"]
    assert found.texts["strong"] == ["34.07 ± 1.47"]


def test_a_breakdown_shows_differences_and_bars_on_one_scale() -> None:
    found = Elements(page())
    start = found.texts["td"].index("1–2")
    assert found.texts["td"][start : start + 9] == ["1–2", "1,234", "50.00", "52.50", "+2.50", "", "45.00", "-5.00", ""]
    assert found.texts["td"][start + 9 : start + 18] == [SHOWN, "7", "–", "0.50", "–", "", "0.25", "–", ""]
    bars = [(each["class"], each["style"]) for each in found.found["div"] if "style" in each]
    assert bars[:2] == [("more", "width: 25.0%"), ("less", "width: 50.0%")]
    assert bars[2] == ("more", f"width: {50 * 0.25 / MIN_BAR_SCALE:.1f}%")
    heads = found.texts["th"]
    assert heads[heads.index("part") :][:4] == ["part", "base", SHOWN, "difference"]  # no column of counts


def test_sentences_stand_with_marks_in_their_own_direction() -> None:
    found = Elements(page())
    assert all(each == {"dir": "auto"} for each in found.found["dd"])
    assert {"يجري", "ينام", "רץ", "ישן", "狗", "猫"} <= {*found.texts["del"], *found.texts["ins"]}
    assert sum(text.startswith("line 3, chrF ") for text in found.texts["p"]) == 1
    assert any(" 4, worse 0, " in text for text in found.texts["p"])
    assert found.texts["h4"] == ["Gained most"]
    assert found.texts["summary"] == ["Precision and recall of words"]


def test_the_page_of_runs_has_their_tables_and_intervals(tmp_path: Path) -> None:
    texts = Segments("main", None, ["a b c d e", "f g", "x"], [["a b c d e", "f g", "h i"]])
    for name, hypotheses in (("one", texts.hypotheses), ("two", ["a b c d", "f h", "h i"])):
        add_texts(make_run(tmp_path / name), {"main": replace(texts, hypotheses=hypotheses)})
    bare = make_run(tmp_path / "bare")
    found = compare_runs([tmp_path / "one", tmp_path / "two", bare])
    tested = run_significance_tests(found, ["chrf"], NullReporter())
    shown = Elements(
        comparison_page(
            found, tested, ["chrf"], comparison_columns(found, tested, ["chrf"], format_duration=str), NullReporter()
        )
    )
    assert shown.texts["h2"][:3] == ["Figures", "Scores on main: 3 segments", "Is the difference from one real?"]
    for name in ("one", "two"):
        measured = tested.rows["chrf"][name]
        cells = [name, "chrF", f"{measured.value:.2f}", "–"]  # of three segments there is no interval
        places = [place for place, text in enumerate(shown.texts["td"]) if text == name]
        assert cells in [shown.texts["td"][place : place + 4] for place in places]
    assert any(text.startswith("bare is skipped") for text in shown.texts["li"])
    alone = compare_runs([bare])
    nothing = run_significance_tests(alone, [], NullReporter())
    empty = Elements(
        comparison_page(alone, nothing, [], comparison_columns(alone, nothing, [], format_duration=str), NullReporter())
    )
    assert empty.texts["h2"] == ["Figures", "Notes"]
    assert NO_OUTPUTS_MESSAGE.format("bare") in empty.texts["li"]


def test_settings_that_differ_have_a_table_of_their_own(tmp_path: Path) -> None:
    base = make_run(tmp_path / "base", model={"norm": "pre", "tie": None})
    other = make_run(tmp_path / "other", model={"norm": "post", "tie": None, "values": "keys"})
    found = compare_runs([base, other])
    tested = run_significance_tests(found, [], NullReporter())
    columns = comparison_columns(found, tested, [], format_duration=str)
    shown = Elements(comparison_page(found, tested, [], columns, NullReporter()))
    assert shown.texts["h2"][:2] == ["Figures", "What differs from base"]
    cells = shown.texts["td"]
    for row in (["other", "model.norm", "post", "pre"], ["other", "model.values", "keys", "projection"]):
        assert row in [cells[place : place + 4] for place in range(len(cells))]
    assert not any("model.norm =" in text for text in cells)


def test_small_scores_have_as_many_digits_as_in_the_table(tmp_path: Path) -> None:
    """COMET and bits a character differ in the third digit."""
    texts = Segments("main", None, ["a", "b", "c"] * 40, [["a", "b", "c"] * 40])
    for name, values in (("one", (0.81, 0.82, 0.83)), ("two", (0.812, 0.823, 0.834))):
        extra = {"comet": Score(sum(values) / 3, "external:comet|command:x")}
        rows = [
            {"split": "main", "line": line, "log_prob": None, "pieces": None, "words": None} for line in range(1, 121)
        ]
        noted = [{**row, "external": {"comet": value}} for row, value in zip(rows, values * 40, strict=True)]
        add_texts(make_run(tmp_path / name), {"main": texts}, noted=noted, extra=extra)
    found = compare_runs([tmp_path / "one", tmp_path / "two"])
    shown = [
        column.cells[1].text
        for column in score_interval_columns(found, run_significance_tests(found, ["comet"], NullReporter()), ["comet"])
    ]
    assert shown[:3] == ["two", "comet", "0.8230"]
    low, high = map(float, shown[3].split(" to "))
    assert len(shown[3]) == len("0.8120 to 0.8340")
    assert 0.820 < low < 0.823 < high < 0.826


def test_cider_d_is_in_0_to_10_and_has_four_digits(tmp_path: Path) -> None:
    lines = ["a dog runs over a field", "two men sit", "a child plays with a ball"]
    for name, said in (("one", lines), ("two", [*lines[:2], "a child has a ball"])):
        segments = Segments("main", None, said, [lines])
        add_texts(make_run(tmp_path / name), {"main": segments}, metrics=["cider_d"])
    found = compare_runs([tmp_path / "one", tmp_path / "two"])
    shown = [
        column.cells
        for column in score_interval_columns(
            found, run_significance_tests(found, ["cider_d"], NullReporter()), ["cider_d"]
        )
    ]
    assert [cells[0].text for cells in shown[:3]] == ["one", "CIDEr-D", "9.1667"]
    value = cider_d(["a dog runs over a field", "two men sit", "a child has a ball"], [lines], EvaluationConfig()).score
    assert shown[2][1].text == f"{value:.4f}"


def test_it_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    write_page(file, page())
    assert file.read_text("utf-8") == page()
    with pytest.raises(WriteError):
        write_page(tmp_path / "nowhere" / "page.html", page())
