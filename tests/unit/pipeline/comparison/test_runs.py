"""Runs side by side: what differs, which figures compare, and what of a run is not the model's."""

import json
import math
import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.tiny_artifact import signed
from tests.tiny_runs import METRICS, SETTINGS, add_scores, make_run
from tfm.model.config import NEWER_MODEL_KEYS, ModelConfig
from tfm.pipeline.comparison.curves_plot import draw_curves
from tfm.pipeline.comparison.metric_tests import SignificanceResults
from tfm.pipeline.comparison.runs import compare_runs
from tfm.pipeline.comparison.tables.as_json import comparison_as_json
from tfm.pipeline.config import EvaluationConfig
from tfm.pipeline.errors import DataError, RecipeError, WriteError
from tfm.pipeline.reports.run_summary import read_run
from tfm.pipeline.scoring.metrics.labels import accuracy, macro_f1
from tfm.pipeline.scoring.metrics.registry import Score


def test_only_what_differs_from_the_first_is_told(tmp_path: Path) -> None:
    first = make_run(tmp_path / "first", model={"norm": "pre", "encoder": {"layers": 2, "dim": 8}})
    other = make_run(tmp_path / "other", model={"norm": "post", "encoder": {"layers": 2, "dim": 16}, "newer": 1})
    found = compare_runs([first, other])
    assert found.differs == {"first": {}, "other": {"model.norm": "post", "model.encoder.dim": 16}}


@pytest.mark.parametrize("key", NEWER_MODEL_KEYS)
def test_a_key_that_manifests_leave_out_at_its_default_is_told(tmp_path: Path, key: str) -> None:
    default = ModelConfig.model_fields[key].default
    plain, changed = make_run(tmp_path / "plain"), make_run(tmp_path / "changed", model={key: "another"})
    assert compare_runs([plain, changed]).differs == {"plain": {}, "changed": {f"model.{key}": "another"}}
    assert compare_runs([changed, plain]).differs == {"changed": {}, "plain": {f"model.{key}": default}}


def test_a_table_beside_none_is_told(tmp_path: Path) -> None:
    none = make_run(tmp_path / "none", model={"sampling": None, "canine": None})
    tables = make_run(tmp_path / "tables", model={"sampling": {"rate": 8, "of": {"width": 2}}, "canine": None})
    told = {"model.sampling.rate": 8, "model.sampling.of.width": 2}
    assert compare_runs([none, tables]).differs == {"none": {}, "tables": told}
    assert compare_runs([tables, none]).differs == {"tables": {}, "none": {"model.sampling": None}}


def test_another_beam_is_a_difference_once_both_have_translated(tmp_path: Path) -> None:
    first = add_scores(make_run(tmp_path / "first"), 30.0)
    other = make_run(tmp_path / "other")
    assert compare_runs([first, other]).differs["other"] == {}
    assert compare_runs([first, add_scores(other, 31.0, beam=1)]).differs["other"] == {"decoding.beam": 1}


def test_figures_are_those_of_manifests_and_scores(tmp_path: Path) -> None:
    run = add_scores(make_run(tmp_path / "run", loss=1.5), 30.0, perplexity=Score(math.inf, "unit:token"))
    (found,) = compare_runs([run]).runs
    values = {name: figure.score for name, figure in found.figures.items()}
    assert values == {
        "parameters": 1000,
        "updates": 25,
        "seconds": 17.0,
        "valid.loss": 1.5,
        "valid.perplexity": math.exp(1.5),
        "valid.accuracy": 0.5,
        "test.bleu": 30.0,
        "test.perplexity": math.inf,
        # 10 updates in 2 s, then 10 in 13 - 2 - 5 s: 200 and 1,800 tokens
        "tokens_per_second": 2000 / 8,
    }
    json.dumps(comparison_as_json(compare_runs([run]), SignificanceResults()), allow_nan=False)


def test_the_curve_s_clock_leaves_validations_out(tmp_path: Path) -> None:
    curve = read_run(make_run(tmp_path / "run"), "run").curve
    assert curve is not None
    assert curve.steps == [10, 25]
    assert curve.losses == [3.0, 2.0]
    assert curve.seconds == [2.0, 17.0 - 5.0 - 1.0]  # all is over after the last validation


def test_a_run_without_scores_or_curve_shows_files_hint(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", metrics=[])
    (run / "training" / "metrics.jsonl").unlink()
    found = compare_runs([run])
    assert found.notes == []
    assert found.runs[0].curve is None
    assert "valid.loss" in found.runs[0].figures
    assert "tokens_per_second" not in found.runs[0].figures


def test_a_model_alone_and_a_run_are_the_same(tmp_path: Path) -> None:
    run = add_scores(make_run(tmp_path / "run"), 30.0)
    by_model = compare_runs([run / "model"]).runs[0]
    assert by_model.name == "run"
    assert by_model.figures == compare_runs([run]).runs[0].figures


def test_a_run_that_is_named_in_two_ways_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first, second = (make_run(tmp_path / name) for name in ("t", "u"))
    named = [Path("t"), Path("u"), Path("u/model"), second, Path("u"), Path("../") / tmp_path.name / "t"]
    found = compare_runs(named, baseline=first / "model")
    assert [run.name for run in found.runs] == ["t", "u"]
    assert [run.name for run in found.baseline.runs] == ["t"]


def test_the_ledger_that_lies_beside_the_runs_is_none_of_them(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    (tmp_path / "ledger.jsonl").write_text("")
    assert [each.name for each in compare_runs(sorted(tmp_path.iterdir())).runs] == ["run"]
    assert [each.name for each in compare_runs([run]).runs] == ["run"]
    with pytest.raises(DataError, match=r"ledger\.jsonl"):
        compare_runs([tmp_path / "ledger.jsonl"])


def test_runs_of_one_name_are_told_by_their_folders(tmp_path: Path) -> None:
    folders = [make_run(tmp_path / place / "run") for place in "ab"]
    assert [run.name for run in compare_runs(folders).runs] == [str(folder) for folder in folders]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"signature": "nrefs:1|case:lc|tok:13a"}, "case:lc instead of case:mixed"),
        ({"reference": "another text"}, "reference:"),
    ],
)
def test_a_score_of_another_signature_or_text_does_not_compare(
    tmp_path: Path, change: dict[str, str], said: str
) -> None:
    first, same = (add_scores(make_run(tmp_path / name), 30.0) for name in ("first", "same"))
    other = add_scores(make_run(tmp_path / "other"), 40.0, **change)  # type: ignore[arg-type]
    found = compare_runs([first, same, other])
    assert [found.is_comparable(run, "test.bleu") for run in found.runs] == [True, True, False]
    (note,) = found.notes
    assert note.startswith("other: test.bleu: not comparable with first: ")
    assert said in note
    assert [
        run["figures"]["test.bleu"]["comparable"] for run in comparison_as_json(found, SignificanceResults())["runs"]
    ] == [
        True,
        True,
        False,
    ]


@pytest.mark.parametrize("metric", ["accuracy", "macro_f1"])
def test_labels_that_a_system_alone_gives_make_no_other_figure(tmp_path: Path, metric: str) -> None:
    config, references = EvaluationConfig(labels="word"), [["a b", "a b"]]
    score = {"accuracy": accuracy, "macro_f1": macro_f1}[metric]
    runs = []
    for name, hypotheses in {"first": ["a b", "b b"], "other": ["a b c", "b c"]}.items():
        found = score(hypotheses, references, config)
        runs.append(add_scores(make_run(tmp_path / name), 30.0, **{metric: found}))
    assert compare_runs(runs).notes == []


SPANS = {"share": 0.15, "mean_length": 3.0}


@pytest.mark.parametrize("spans", [{"share": 0.5}, {"mean_length": 5.0}])
def test_losses_of_other_hidden_spans_do_not_compare(tmp_path: Path, spans: dict[str, float]) -> None:
    runs = [
        make_run(tmp_path / name, model={"task": "span_corruption", "span_corruption": {**SPANS, **changed}})
        for name, changed in (("first", {}), ("same", {}), ("other", spans))
    ]
    found = compare_runs(runs)
    assert [found.is_comparable(run, "valid.loss") for run in found.runs] == [True, True, False]


def test_losses_on_another_dataset_and_seconds_of_another_machine_do_not_compare(tmp_path: Path) -> None:
    first = make_run(tmp_path / "first")
    other = make_run(tmp_path / "other", dataset="others", figures={"settings": {**SETTINGS, "threads": 1}})
    found = compare_runs([first, other])
    marked = {name for name in found.runs[1].figures if not found.is_comparable(found.runs[1], name)}
    assert marked == {"valid.loss", "valid.perplexity", "valid.accuracy", "seconds", "tokens_per_second"}
    assert any("threads:1 instead of threads:2" in note for note in found.notes)
    assert found.differs["other"] == {"settings.threads": 1, "dataset": "others"}


def test_tasks_mix_and_lack_each_other_s_metrics(tmp_path: Path) -> None:
    first = add_scores(make_run(tmp_path / "first"), 30.0)
    other = make_run(tmp_path / "other", model={"architecture": "encoder_only", "task": "tagging"})
    found = compare_runs([first, other])
    assert [run.task for run in found.runs] == ["translation", "tagging"]
    assert [run.architecture for run in found.runs] == ["transformer", "encoder_only"]
    assert found.main_test_metrics == ["test.bleu", "test.exact_match", "test.accuracy", "test.macro_f1"]
    assert not found.is_comparable(found.runs[1], "valid.loss")


def test_sorting_puts_the_best_first_and_those_without_last(tmp_path: Path) -> None:
    worse = add_scores(make_run(tmp_path / "worse", loss=3.0), 10.0)
    none = make_run(tmp_path / "none", loss=1.0)
    better = add_scores(make_run(tmp_path / "better", loss=2.0), 20.0)
    runs = [worse, none, better]
    for metric, names in (
        (None, ["worse", "none", "better"]),
        ("test.bleu", ["better", "worse", "none"]),
        ("bleu", ["better", "worse", "none"]),  # validation has none here
        ("loss", ["none", "better", "worse"]),
        ("valid.accuracy", ["worse", "none", "better"]),
        ("seconds", ["worse", "none", "better"]),
    ):
        assert [run.name for run in compare_runs(runs, metric).runs] == names, metric
    with pytest.raises(RecipeError, match=r"--sort rouge9: these runs have parameters, .*test\.bleu"):
        compare_runs(runs, "rouge9")


def test_a_bare_name_sorts_by_validation_and_by_the_test_set_it_is_warned(tmp_path: Path) -> None:
    first, second = (
        add_scores(
            make_run(tmp_path / name, figures={"validation": {"accuracy": valid, "loss": 1.0}}),
            30.0,
            accuracy=Score(test, "stat:share*100"),
        )
        for name, valid, test in (("first", 0.9, 50.0), ("second", 0.8, 60.0))
    )
    for sort, best, warned in (
        ("accuracy", "first", False),
        ("valid.accuracy", "first", False),
        ("test.accuracy", "second", True),
        ("bleu", "second", True),  # equal: as they were given
        (None, "second", False),
    ):
        found = compare_runs([second, first], sort)
        assert found.runs[0].name == best, sort
        assert any("an optimistic score" in note for note in found.notes) == warned, sort


def test_sorting_changes_neither_what_differs_nor_what_compares(tmp_path: Path) -> None:
    first = make_run(tmp_path / "first", loss=3.0, model={"norm": "pre"})
    like = make_run(tmp_path / "like", loss=2.5, model={"norm": "pre"})
    other = make_run(tmp_path / "other", loss=2.0, model={"norm": "post"}, dataset="another")
    found = compare_runs([first, like, other], "loss")
    assert [run.name for run in found.runs] == ["other", "like", "first"]
    assert found.baseline.name == "first"
    assert {name: set(each) for name, each in found.differs.items()} == {
        "first": set(),
        "like": set(),
        "other": {"model.norm", "dataset"},
    }
    assert [found.is_comparable(run, "valid.loss") for run in found.runs] == [False, True, True]
    assert any(note.startswith("other: ") and "not comparable with first" in note for note in found.notes)
    found = compare_runs([first, like, other])
    assert [found.is_comparable(run, "valid.loss") for run in found.runs] == [True, True, False]


TEXT = "unit:code-point|count:2663|newline:counted|unit:token|count:{}|end:counted|context:line{}"


@pytest.mark.parametrize(
    ("name", "one", "other", "compare"),
    [
        ("bits_per_character", TEXT.format(700, ""), TEXT.format(2663, ""), True),
        ("bits_per_character", TEXT.format(700, ""), TEXT.format(700, "|unknown:9"), False),
        ("bits_per_character", TEXT.format(700, ""), TEXT.format(700, "").replace("2663", "2600"), False),
        ("bits_per_character", "unit:code-point|count:9|vocab:40", "unit:code-point|count:9|vocab:80", True),
        ("word_perplexity", "unit:word|count:9|nrefs:1|vocab:40", "unit:word|count:9|nrefs:1|vocab:80", True),
        ("word_perplexity", "unit:word|count:9|nrefs:1|vocab:40", "unit:word|count:9|nrefs:2|vocab:40", False),
        ("perplexity", "unit:token|count:9|vocab:40", "unit:token|count:9|vocab:80", False),
        ("perplexity", "unit:token|count:9|vocab:40", "unit:token|count:8|vocab:40", False),
    ],
)
def test_figures_by_units_of_the_text_compare_across_tokenizers(
    tmp_path: Path, name: str, one: str, other: str, compare: bool
) -> None:
    runs = [
        add_scores(make_run(tmp_path / folder), 30.0, **{name: Score(1.0, signature)})
        for folder, signature in (("one", one), ("other", other))
    ]
    found = compare_runs(runs)
    assert found.is_comparable(found.runs[1], f"test.{name}") == compare
    assert any(f"test.{name}" in note for note in found.notes) != compare
    assert not any("nothing instead of count" in note for note in found.notes)


@pytest.mark.parametrize(
    ("words", "compare"),
    [
        ({"subsample": 0.001}, True),  # validation reads texts whole
        ({"shrink": True}, False),
        ({"window": 3}, False),
        ({"negatives": 5}, False),
    ],
)
def test_of_word_vectors_what_is_predicted_is_compared(tmp_path: Path, words: dict[str, Any], compare: bool) -> None:
    usual = {"window": 5, "shrink": False, "negatives": None, "subsample": None}
    first, other = (
        make_run(
            tmp_path / name,
            model={"architecture": "cbow", "task": "word_vectors", "word_vectors": {**usual, **changes}},
        )
        for name, changes in (("first", {}), ("other", words))
    )
    found = compare_runs([first, other])
    assert found.is_comparable(found.runs[1], "valid.loss") == compare


def test_scores_of_another_model_are_left_out_and_it_is_said(tmp_path: Path) -> None:
    run = add_scores(make_run(tmp_path / "run"), 30.0)
    other = make_run(tmp_path / "other", model={"norm": "post"})
    shutil.rmtree(run / "model")
    (run / "model").symlink_to((other / "model").resolve())
    found = compare_runs([run])
    assert "test.bleu" not in found.runs[0].figures
    assert any("run: scores/ belong to another model" in note for note in found.notes)


def test_a_curve_of_another_training_is_left_out_and_it_is_said(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", metrics=METRICS[:2])
    found = compare_runs([run])
    assert found.runs[0].curve is None
    assert "tokens_per_second" not in found.runs[0].figures
    assert any("run: training/ belongs to another training" in note for note in found.notes)


@pytest.mark.parametrize(
    ("figures", "lines"),
    [
        # a training that is known by its file
        ({"metrics_sha256": "0" * 64}, METRICS),
        # those before: the published validation, or the clock, is another's; as many updates both
        ({"steps": [25]}, [*METRICS[:3], METRICS[3] | {"loss": 2.0001}]),
        ({"steps": [24]}, METRICS),
        ({"steps": [10, 25], "training_seconds": 13.5}, METRICS),
        ({"steps": [10, 25], "training_seconds": 17.0}, [*METRICS[:3], METRICS[2] | {"step": 25}, METRICS[3]]),
    ],
)
def test_a_curve_of_another_training_of_as_many_updates_is_left_out(
    tmp_path: Path, figures: dict[str, Any], lines: list[dict[str, Any]]
) -> None:
    found = compare_runs([make_run(tmp_path / "run", metrics=lines, figures=figures)]).runs[0]
    assert found.curve is None
    assert "tokens_per_second" not in found.figures
    assert any("to another training" in note for note in found.notes)


@pytest.mark.parametrize("figures", [{}, {"steps": [25]}, {"steps": [10, 25]}])
def test_a_curve_of_its_own_training_is_taken(tmp_path: Path, figures: dict[str, Any]) -> None:
    run = make_run(tmp_path / "old", figures=figures)
    assert compare_runs([run]).runs[0].curve is not None
    digest = sha256((run / "training" / "metrics.jsonl").read_bytes()).hexdigest()
    new = make_run(tmp_path / "new", figures={**figures, "metrics_sha256": digest})
    assert compare_runs([new]).runs[0].curve is not None


def test_errors_name_the_folder(tmp_path: Path) -> None:
    whole = make_run(tmp_path / "whole")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"/nowhere: there is no such folder"):
        compare_runs([whole, tmp_path / "nowhere"])
    with pytest.raises(DataError, match=r"/empty: has no model yet"):
        compare_runs([whole, tmp_path / "empty"])
    add_scores(whole, 30.0)
    with pytest.raises(DataError, match=r"/scores: was made by 'evaluate'"):
        compare_runs([whole / "scores"])
    damaged = make_run(tmp_path / "damaged")
    (damaged / "model" / "config.json").write_text("{ }")
    with pytest.raises(DataError, match=r"/damaged/model: 'config.json'"):
        compare_runs([whole, damaged])
    (whole / "scores" / "manifest.json").unlink()
    with pytest.raises(DataError, match=r"/whole/scores"):
        compare_runs([whole])


@pytest.mark.parametrize("wrong", [[], "many", {"a": 1}, 10**400, True, "nan"])
def test_a_figure_that_is_no_number_is_none(tmp_path: Path, wrong: object) -> None:
    run = make_run(tmp_path / "run", figures={"parameters": wrong, "validation": wrong, "settings": wrong})
    found = compare_runs([run])
    assert set(found.runs[0].figures) == {"updates", "seconds", "tokens_per_second"}


def test_scores_that_are_none_of_ours_are_an_error(tmp_path: Path) -> None:
    run = add_scores(make_run(tmp_path / "run"), 30.0)
    file = run / "scores" / "scores.json"
    file.write_text(file.read_text().replace("30.0", '"much"'))
    signed(run / "scores")
    with pytest.raises(DataError, match=r"/run/scores/scores.json: has no scores made by tfm; .* score again$"):
        compare_runs([run])


@pytest.mark.slow
def test_the_plot_has_both_clocks_and_every_run_with_a_curve(tmp_path: Path) -> None:
    runs = [read_run(make_run(tmp_path / name), name) for name in ("first", "second")]
    runs.append(read_run(make_run(tmp_path / "third", metrics=[]), "third"))
    files = [tmp_path / "one.svg", tmp_path / "two.svg"]
    for file in files:
        draw_curves(runs, file)
    assert files[0].read_bytes() == files[1].read_bytes()
    text = "".join(ElementTree.parse(files[0]).getroot().itertext())
    for word in ("first", "second", "updates", "seconds", "validation loss"):
        assert word in text
    assert "third" not in text
    draw_curves(runs, tmp_path / "one.png")
    assert (tmp_path / "one.png").read_bytes().startswith(b"\x89PNG")


def test_a_plot_that_cannot_be_is_refused(tmp_path: Path) -> None:
    run = read_run(make_run(tmp_path / "run"), "run")
    with pytest.raises(RecipeError, match=r"x\.pdf: a plot is a \.svg or a \.png"):
        draw_curves([run], tmp_path / "x.pdf")
    with pytest.raises(WriteError):
        draw_curves([run], tmp_path / "nowhere" / "x.svg")
    bare = read_run(make_run(tmp_path / "bare", metrics=[]), "bare")
    with pytest.raises(DataError, match=r"/bare: has no curve"):
        draw_curves([bare], tmp_path / "x.svg")
