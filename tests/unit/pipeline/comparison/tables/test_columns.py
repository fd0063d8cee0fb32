"""The tables of a comparison: what stands in which cell, which mark means what, and the same in LaTeX and JSON."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.tiny_runs import add_scores, add_texts, make_run
from tfm.pipeline.comparison.human_agreement import look_up_human_agreement
from tfm.pipeline.comparison.metric_tests import (
    MISSING_SEEDS_REASON,
    ScoreEstimate,
    SignificanceResults,
    run_significance_tests,
)
from tfm.pipeline.comparison.runs import Comparison, compare_runs, sort_rows
from tfm.pipeline.comparison.tables.as_json import comparison_as_json
from tfm.pipeline.comparison.tables.columns import (
    Cell,
    Column,
    comparison_columns,
    difference_columns,
    match_metric_names,
    score_columns,
)
from tfm.pipeline.comparison.tables.latex import comparison_latex, escape_latex
from tfm.pipeline.comparison.tables.legend import agreement_legend, legend_sentences
from tfm.pipeline.comparison.tables.settings import settings_beside_figures, settings_columns
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.scoring.evaluation.segments import Segments
from tfm.pipeline.scoring.metrics.registry import Score
from tfm.pipeline.significance.human_agreement_table import TABLE_SOURCE, agreement_with_people
from tfm.pipeline.significance.paired_tests import PairedDifference

LINES = [f"wort {number} ÄÖ كلب" for number in range(40)]
METRICS = ["exact_match"]


def said(num_wrong: int) -> list[str]:
    return [text if place >= num_wrong else text + " x" for place, text in enumerate(LINES)]


def run_of(folder: Path, num_wrong: int, *, seed: int = 1, norm: str = "pre", **more: Any) -> Path:
    run = make_run(folder, seed=seed, model={"norm": norm}, loss=1 + num_wrong / 100)
    return add_texts(run, {"test": Segments("test", LINES, said(num_wrong), [LINES])}, metrics=METRICS, **more)


def compared(folders: Sequence[Path], **more: Any) -> tuple[Comparison, SignificanceResults]:
    found = compare_runs(folders, **more)
    return found, run_significance_tests(found, METRICS, NullReporter())


def texts(columns: Sequence[Column]) -> Mapping[str, list[str]]:
    return {column.heading: [str(cell) for cell in column.cells] for column in columns}


def test_marks_say_what_differs_and_what_does_not_compare(tmp_path: Path) -> None:
    runs = [
        run_of(tmp_path / "base", 20),
        run_of(tmp_path / "much", 5, norm="post"),
        run_of(tmp_path / "little", 19, norm="other"),
        run_of(tmp_path / "lower", 0, lowercase=True),
    ]
    found, tested = compared(runs)
    columns = comparison_columns(found, tested, METRICS, format_duration=lambda seconds: f"{seconds:.0f} s")
    cells = texts(columns)
    assert cells["run"] == ["base", "much", "little", "lower"]
    assert cells["training"] == ["17 s"] * 4
    scores = cells["exact match"]
    assert [re.sub(r" ± \d+\.\d\d", " ±", cell) for cell in scores] == ["50.00 ±", "87.50 ±*", "52.50 ±", "100.00 ±†"]
    assert [cell.best for cell in columns[-1].cells] == [False, True, False, False]  # what does not compare is not best
    assert cells["valid loss ↓"] == ["1.2000", "1.0500", "1.1900", "1.0000"]
    (settings,) = settings_beside_figures(found)
    assert settings.heading == "differs from base"
    assert [*map(str, settings.cells)][1:3] == ["model.norm = post", "model.norm = other"]
    sentences = legend_sentences(found, tested, METRICS, columns)
    assert [sentence.partition(":")[0] for sentence in sentences] == ["± of one run", "*", "†"]
    by = "by approximate randomisation (10,000 trials), after Holm's correction over 2 tests"
    assert sentences[1] == f"*: differs from base with p < 0.05 {by}"
    tests = texts(difference_columns(found, tested, METRICS))
    assert tests["run"] == ["much", "little"]
    assert tests["difference"] == ["+37.50*", "+2.50"]
    assert tests["p corrected"][1] == "1.0000"
    assert "people agree" not in tests
    assert agreement_legend(found, tested, METRICS) == []


def test_of_several_seeds_the_mean_and_the_deviation_stand(tmp_path: Path) -> None:
    runs = [run_of(tmp_path / f"a-{seed}", 20 + seed, seed=seed) for seed in (1, 2, 3)]
    runs += [run_of(tmp_path / f"b-{seed}", 6 + seed, seed=seed, norm="post") for seed in (1, 2, 3)]
    found, tested = compared(runs)
    columns = comparison_columns(found, tested, METRICS, format_duration=str)
    cells = texts(columns)
    assert cells["run"] == ["a (3 seeds)", "b (3 seeds)"]
    assert cells["exact match"] == ["45.00 ± 2.50", "80.00 ± 2.50*"]
    assert cells["valid loss ↓"] == ["1.2200 ± 0.0100", "1.0800 ± 0.0100"]
    assert cells["parameters"] == ["1,000", "1,000"]
    assert texts(settings_beside_figures(found)) == {"differs from a": ["", "model.norm = post"]}
    told = {"run": ["b (3 seeds)"], "setting": ["model.norm"], "value": ["post"], "in a": ["pre"]}
    assert texts(settings_columns(found)) == told
    assert [each.partition(":")[0] for each in legend_sentences(found, tested, METRICS, columns)] == [
        "± of several seeds",
        "*",
    ]
    tests = texts(difference_columns(found, tested, METRICS))
    assert set(tests) == {"run", "metric", "difference", "95 % interval", "p over seeds", "p corrected"}


def test_a_mean_over_some_seeds_alone_is_told_and_is_not_the_best(tmp_path: Path) -> None:
    """Who knows why a seed has no score: there is no TER of a hypothesis that does not end."""
    runs = []
    for name, values in {"a": (55.0, 56.0, 54.0), "b": (50.0, 52.0, None)}.items():
        for seed, value in enumerate(values, 1):
            others = {} if value is None else {"ter": Score(value, "nrefs:1")}
            runs.append(
                add_scores(make_run(tmp_path / f"{name}-{seed}", seed=seed, model={"norm": name}), 30, **others)
            )
    found = compare_runs(runs)
    tested = run_significance_tests(found, ["ter"], NullReporter())
    cells = {
        column.heading: column.cells for column in comparison_columns(found, tested, ["ter"], format_duration=str)
    }["TER ↓"]
    assert [(cell.text, cell.best) for cell in cells] == [("55.00", False), ("51.00", False)]
    assert "b: test.ter: the mean is without b-3" in found.notes
    assert f"b: ter: {MISSING_SEEDS_REASON}" in tested.notes
    assert [row.name for row in sort_rows(found.rows, "test.ter")] == ["a", "b"]


def test_as_json_has_runs_and_rows_with_their_tests(tmp_path: Path) -> None:
    runs = [run_of(tmp_path / f"a-{seed}", 20 + seed, seed=seed) for seed in (1, 2)]
    runs += [run_of(tmp_path / f"b-{seed}", 6 + seed, seed=seed, norm="post") for seed in (1, 2)]
    document = json.loads(json.dumps(comparison_as_json(*compared(runs)), allow_nan=False))
    assert document["baseline"] == "a"
    assert document["test"] == {"name": "test", "segments": 40}
    assert document["tests"] == {"resamples": 1000, "trials": 10000, "seed": 12345, "level": 0.05}
    figures = [run["figures"]["test.exact_match"] for run in document["runs"]]
    assert [figure["value"] for figure in figures] == [47.5, 45.0, 82.5, 80.0]
    assert all(figure["low"] <= figure["value"] <= figure["high"] for figure in figures)
    assert "versus" not in figures[0]
    versus = figures[2]["versus"]
    assert versus["low"] <= versus["difference"] <= versus["high"]
    assert versus["difference"] == 35.0
    assert versus["stands"] == (versus["p_holm"] < 0.05)
    assert {"p_bootstrap", "p_randomisation", "low", "high", "better", "people_agree"} <= versus.keys()
    row = document["rows"][1]
    assert (row["name"], row["runs"], row["seeds"]) == ("b", ["b-1", "b-2"], [1, 2])
    assert row["differs"] == {"model.norm": "post"}
    figure = row["figures"]["test.exact_match"]
    assert (figure["mean"], figure["num_runs"]) == (81.25, 2)
    assert figure["versus"]["difference"] == 35.0
    assert {"p", "p_holm", "degrees_of_freedom", "share_of_seeds", "stands"} <= figure["versus"].keys()


def test_the_chance_that_people_agree_stands_in_the_table_and_in_json(tmp_path: Path) -> None:
    segments = [Segments("test", LINES, said(num_wrong), [LINES]) for num_wrong in (30, 20)]
    runs = [
        add_texts(make_run(tmp_path / name, model={"norm": name}), {"test": each}, metrics=["bleu"])
        for name, each in zip("ab", segments, strict=True)
    ]
    found = compare_runs(runs)
    tested = run_significance_tests(found, ["bleu"], NullReporter())
    versus = tested.rows["bleu"]["b"].versus
    assert versus is not None
    expected = agreement_with_people("bleu", versus.difference)
    assert texts(difference_columns(found, tested, ["bleu"]))["people agree"] == [str(expected)]
    (sentence,) = agreement_legend(found, tested, ["bleu"])
    assert TABLE_SOURCE in sentence
    people = comparison_as_json(found, tested)["rows"][1]["figures"]["test.bleu"]["versus"]["people_agree"]
    assert people["source"] == TABLE_SOURCE
    assert expected is not None
    assert people["percent"] == expected.percent


@pytest.mark.parametrize(
    ("metric", "signature", "known"),
    [
        ("comet", "external:comet|command:python comet_scores.py --batch-size 8|stat:mean", True),
        ("wmt22-comet-da", "external:x|command:score|stat:mean", True),
        ("comet", "external:comet|command:python comet_scores.py --model Unbabel/wmt22-comet-da|stat:mean", True),
        ("comet", "external:comet|command:python comet_scores.py --model Unbabel/XCOMET-XL|stat:mean", False),
        ("comet", "external:comet|command:other|stat:mean", False),
        ("comet22", "external:comet22|command:other|stat:mean", False),
        ("comet", "external:comet|command:python long/comet_scores.py --mod…|stat:mean", False),
        ("rouge1", "nrefs:1", False),
    ],
)
def test_comet_is_known_by_its_model(metric: str, signature: str, known: bool) -> None:
    expected = agreement_with_people("comet22", 0.7) if known else None
    assert look_up_human_agreement(metric, signature, 0.007) == expected
    assert look_up_human_agreement(metric, signature, 0.0) is None


@pytest.mark.parametrize(
    ("named", "metrics"),
    [
        ([], ["bleu"]),
        (["chrf"], ["chrf"]),
        (["test.chrf", "bleu", "chrf"], ["chrf", "bleu"]),
    ],
)
def test_metrics_are_those_of_the_task_or_those_named(tmp_path: Path, named: list[str], metrics: list[str]) -> None:
    run = add_scores(make_run(tmp_path / "run"), 30.0, chrf=Score(50.0, "x"))
    assert match_metric_names(named, compare_runs([run])) == metrics
    with pytest.raises(RecipeError, match="--metric ter: these runs have bleu, chrf"):
        match_metric_names(["ter"], compare_runs([run]))
    with pytest.raises(RecipeError, match="these runs have no scores"):
        match_metric_names(["ter"], compare_runs([make_run(tmp_path / "bare")]))


@pytest.mark.parametrize(
    ("metric", "values", "cells"),
    [
        ("chrf", (0.5, 0.25), ["0.50", "0.25"]),
        ("bits_per_character", (0.68351, 0.67336), ["0.6835", "0.6734"]),
        ("comet", (0.83451, -0.2), ["0.8345", "-0.2000"]),
        ("perplexity", (1.08, 2.5), ["1.08", "2.50"]),
        ("perplexity", (math.inf, 1.0367e99), ["∞", "1.04e+99"]),
    ],
)
def test_figures_have_the_digits_of_their_size(
    tmp_path: Path, metric: str, values: tuple[float, float], cells: list[str]
) -> None:
    runs = [
        add_scores(make_run(tmp_path / name, model={"norm": name}), 30.0, **{metric: Score(value, "x")})
        for name, value in zip("ab", values, strict=True)
    ]
    (column,) = score_columns(compare_runs(runs), SignificanceResults(), [metric])
    assert [str(cell) for cell in column.cells] == cells


def test_a_difference_from_what_has_no_end_is_shown(tmp_path: Path) -> None:
    runs = [
        add_scores(make_run(tmp_path / name, model={"norm": name}), 30.0, perplexity=Score(value, "x"))
        for name, value in (("a", math.inf), ("b", 3.0))
    ]
    found = compare_runs(runs)
    versus = PairedDifference(-math.inf, -math.inf, math.nan, 1.0, 1.0, 9, 1.0, 1.0, True)
    measured = {"b": ScoreEstimate(3.0, math.nan, 1.0, math.inf, versus)}
    tested = SignificanceResults("test", 9, rows={"perplexity": measured})
    assert texts(difference_columns(found, tested, ["perplexity"]))["95 % interval"] == ["-∞ to –"]
    (column,) = score_columns(found, tested, ["perplexity"])
    assert [str(cell) for cell in column.cells] == ["∞", "3.00"]
    json.dumps(comparison_as_json(found, tested), allow_nan=False)


def test_a_figure_without_end_is_shown_and_has_no_spread(tmp_path: Path) -> None:
    runs = [
        add_scores(make_run(tmp_path / f"a-{seed}", seed=seed), 30.0, perplexity=Score(value, "unit:token"))
        for seed, value in ((1, math.inf), (2, 3.0))
    ]
    found = compare_runs(runs)
    (cell,) = comparison_columns(found, SignificanceResults(), ["perplexity"], format_duration=str)[-1].cells
    assert str(cell) == "∞"


HOSTILE = 'a_1 & 50 % of \\{x}$y^z~#<tab>|"q"'


def test_latex_is_escaped_and_says_how_it_was_tested(tmp_path: Path) -> None:
    runs = [run_of(tmp_path / HOSTILE.replace("/", ""), 20), run_of(tmp_path / "عربي", 5, norm="post")]
    found, tested = compared(runs)
    lines = comparison_latex(found, tested, METRICS).splitlines()
    rows = [line.strip() for line in lines if line.endswith(r" \\")]
    assert rows[0] == r"& exact match \\"
    assert rows[1].startswith(
        r"a\_1 \& 50 \% of \textbackslash{}\{x\}\$y\textasciicircum{}z\textasciitilde{}\#\textless{}tab\textgreater{}"
        r"\textbar{}\symbol{34}q\symbol{34} & 50.00 $\pm$ "
    )
    assert re.fullmatch(r"عربي & \\textbf\{87\.50\} \$\\pm\$ \d+\.\d\d\$\^\{\*\}\$ \\\\", rows[2])
    assert all(len(re.findall(r"(?<!\\)&", row)) == 1 for row in rows)
    (caption,) = (line.strip() for line in lines if r"\caption" in line)
    assert caption.startswith(r"\caption{Scores on test (40 segments), the best in bold. $\pm$ of one run: ")
    assert r"$^{*}$: differs from a\_1 \& 50 \% of" in caption
    assert r"with p \textless{} 0.05 by approximate randomisation" in caption
    assert caption.count("{") == caption.count("}")
    assert [line for line in lines if line.startswith("% ")] == [
        r"% \usepackage{booktabs}",
        f"% exact_match: {found.runs[0].figures['test.exact_match'].signature}",
        "% tests: resamples:1000|trials:10000|seed:12345|level:0.05",
    ]
    begun = re.findall(r"\\begin\{(\w+)\}", "\n".join(lines))
    assert begun == re.findall(r"\\end\{(\w+)\}", "\n".join(lines))[::-1] == ["table", "tabular"]


def test_every_character_that_latex_obeys_is_escaped() -> None:
    for character in "\\{}$&#^_~%":
        assert escape_latex(character).startswith("\\")
        assert len(escape_latex(character)) > 1
    assert escape_latex("zwei\nZeilen\x1b") == r"zwei\textbackslash{}nZeilen\textbackslash{}x1b"
    assert escape_latex("Größe 狗") == "Größe 狗"
    assert escape_latex("*[a]--b–c") == r"{*}{[}a{]}-{}-b\textendash{}c"  # a row's end takes * and [...] for its own


def test_a_cell_shows_its_marks_behind_its_spread() -> None:
    assert str(Cell("3.00", "0.10", is_significant=True)) == "3.00 ± 0.10*"
    assert str(Cell("3.00", comparable=False)) == "3.00†"


BLEU = "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0"


@pytest.mark.parametrize(
    ("metric", "signature", "known"),
    [
        ("bleu", f"{BLEU}|source:1f|reference:2e", True),
        ("bleu", BLEU.replace("13a", "ja-mecab-0.996-IPA"), True),
        ("bleu", BLEU.replace("13a", "zh"), True),
        ("bleu", BLEU.replace("13a", "char"), False),
        ("bleu", BLEU.replace("13a", "flores200"), False),
        ("bleu", BLEU.replace("mixed", "lc"), False),
        ("bleu", BLEU.replace("nrefs:1", "nrefs:var"), False),
        ("bleu", BLEU.replace("nrefs:1", "nrefs:12"), False),
        ("bleu", BLEU.replace("eff:no", "eff:yes"), False),
        ("bleu", f"{BLEU}|noise:0.1|noise-seed:1", False),
        ("chrf", "nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:2.6.0", True),
        ("chrf", "nrefs:1|case:lc|eff:yes|nc:6|nw:0|space:no|version:2.6.0", False),
        ("chrf", "nrefs:2|case:mixed|eff:yes|nc:6|nw:0|space:no|version:2.6.0", False),
    ],
)
def test_people_agree_is_for_the_definitions_of_the_table_alone(metric: str, signature: str, known: bool) -> None:
    assert look_up_human_agreement(metric, signature, 1.0) == (agreement_with_people(metric, 1.0) if known else None)


def test_further_scores_of_validation_have_columns_and_the_better_is_marked(tmp_path: Path) -> None:
    runs = []
    for name, wer in (("base", 20.0), ("better", 10.0)):
        scores = {"wer": {"score": wer, "signature": "unit:word"}}
        validation = {"loss": 1.0, "perplexity": 2.7, "accuracy": 0.5, "scores": scores}
        runs.append(make_run(tmp_path / name, figures={"validation": validation}))
    found = compare_runs(runs, "valid.wer")
    columns = {
        each.heading: each
        for each in comparison_columns(
            found, run_significance_tests(found, [], NullReporter()), [], format_duration=str
        )
    }
    assert [row.name for row in found.rows] == ["better", "base"]
    assert [str(cell) for cell in columns["valid WER ↓"].cells] == ["10.00", "20.00"]
    assert [cell.best for cell in columns["valid WER ↓"].cells] == [True, False]
    assert found.runs[0].figures["valid.wer"].signature.startswith("unit:word|")
