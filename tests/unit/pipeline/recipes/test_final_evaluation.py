"""Which of some runs validation chooses, and when it cannot."""

from dataclasses import replace
from pathlib import Path

import pytest

from tfm.pipeline.artifacts.artifact import Manifest
from tfm.pipeline.config import DecodingConfig, EvaluationConfig
from tfm.pipeline.errors import DataError, RecipeError
from tfm.pipeline.recipes.final_evaluation.candidates import (
    CandidateRun,
    choose_run,
    decoding_without_defaults,
    read_candidate,
)
from tfm.pipeline.recipes.final_evaluation.final_scores import distinct_runs
from tfm.pipeline.scoring.evaluation.evaluation import Evaluation
from tfm.pipeline.scoring.metrics.score import LOWER_IS_BETTER_SIGNATURE, Score


def candidate(name: str, task: str = "translation", texts: str = "t", **scores: tuple[float, str]) -> CandidateRun:
    found = {figure: Score(*score) for figure, score in scores.items()}
    evaluation = Evaluation("valid", 2, found, (), "source", (), (), (), texts=texts)
    made = Manifest(Path(name), Path(name), "evaluate", "", [], {}, {}, {}, 1, {}, {})
    return CandidateRun(Path(name), task, None, EvaluationConfig(), 1, evaluation, made)


def test_the_best_is_chosen_by_the_task_s_main_figure() -> None:
    runs = [
        candidate(name, bleu=(bleu, "tok:13a"), chrf=(9 - bleu, "")) for name, bleu in (("a", 1), ("b", 3), ("c", 2))
    ]
    assert choose_run(runs).run.folder == Path("b")
    assert choose_run(runs).description == "BLEU 3 of validation, the best of 3 runs"
    assert choose_run(runs, "chrf").run.folder == Path("a")
    assert choose_run(runs[:1]).description == "BLEU 1 of validation"


def test_of_equal_ones_the_first_is_chosen_and_the_lower_where_that_is_better() -> None:
    comet = f"external:comet|{LOWER_IS_BETTER_SIGNATURE}|stat:mean"
    figures = (("a", 5.0), ("b", 4.0), ("c", 4.0))
    runs = [candidate(name, ter=(ter, "s"), comet=(-ter, comet)) for name, ter in figures]
    assert choose_run(runs, "ter").run.folder == Path("b")
    assert choose_run(runs, "comet").run.folder == Path("a")


def test_seeds_of_a_recipe_are_chosen_by_their_mean_and_together() -> None:
    """The best single run is of another recipe, whose mean is worse."""
    runs = [
        replace(candidate(f"{recipe}-{seed}", bleu=(bleu, "tok:13a")), recipe=recipe)
        for recipe, values in (("a", (5.0, 1.0)), ("b", (4.0, 4.5)))
        for seed, bleu in enumerate(values, 1)
    ]
    choice = choose_run([*runs, candidate("c", bleu=(4.2, "tok:13a"))])
    assert [str(each.folder) for each in choice.runs] == ["b-1", "b-2"]
    assert (choice.name, choice.description) == (
        "b",
        "BLEU 4.25 of validation, the mean of 2 seeds, the best of 3 recipes",
    )


def test_models_of_other_pieces_are_chosen_from_by_a_figure_of_the_text() -> None:
    """Perplexity by token is of the pieces: the first figure that compares is that by word."""

    def model(name: str, vocab: int, by_word: float) -> CandidateRun:
        pieces = f"unit:token|count:{vocab}|vocab:{vocab}"
        scores = {"perplexity": (float(vocab), pieces), "word_perplexity": (by_word, f"unit:word|count:7|{pieces}")}
        return candidate(name, "language_model", **scores)

    choice = choose_run([model("a", 10, 50.0), model("b", 20, 40.0)])
    assert (choice.run.folder, choice.figure) == (Path("b"), "word_perplexity")
    assert choose_run([model("a", 10, 50.0), model("b", 10, 60.0)]).figure == "perplexity"


def test_what_does_not_compare_is_refused_with_the_reason() -> None:
    bleu = candidate("a", bleu=(1.0, "tok:13a"))
    for other, reason in (
        (candidate("b", bleu=(1.0, "tok:zh")), "bleu of a is tok:13a, that of b is tok:zh"),
        (candidate("b", texts="others", bleu=(1.0, "tok:13a")), "a and b have other validation texts"),
        (candidate("b", chrf=(1.0, "")), "b has no bleu of its validation split; it has chrf"),
        (candidate("b", "tagging", bleu=(1.0, "tok:13a")), "between tagging and translation: give runs of one task"),
    ):
        with pytest.raises(RecipeError, match=reason):
            choose_run([bleu, other])


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere: there is no such folder$"):
        read_candidate(tmp_path / "nowhere")


def test_a_run_by_two_names_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in "ab":
        Path(name).mkdir()
    Path("link").symlink_to("a")
    given = [Path("a"), Path("b/../a"), Path("link"), Path("b"), Path("a")]
    assert distinct_runs(given) == [Path("a"), Path("b")]
    assert distinct_runs(given[2:]) == [Path("link"), Path("b")]


def test_defaults_that_a_manifest_has_are_set_by_nobody() -> None:
    """A model that labels refuses what is set of a search."""
    for settings in ({}, {"beam": 2, "n_best": 3}, {"forced": ("a",), "precision": "bf16"}):
        asked = DecodingConfig.model_validate(settings)
        found = decoding_without_defaults(asked.model_dump(mode="json"))
        assert (found, found.model_fields_set) == (asked, {*settings})
