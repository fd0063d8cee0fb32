"""What a trial keeps of its validations, when it is pruned, what stays of it on disk. The trainings are played."""

import io
import json
import math
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import optuna
import pytest

from tfm.pipeline.artifacts.artifact import Plan
from tfm.pipeline.errors import DataError
from tfm.pipeline.recipes.recipe import Recipe
from tfm.pipeline.training.early_stopping import Validation
from tfm.pipeline.tuning import trial
from tfm.pipeline.tuning.config import SearchConfig
from tfm.pipeline.tuning.journal import hold_lock
from tfm.pipeline.tuning.report import methods_paragraph
from tfm.pipeline.tuning.results import summarize_trials
from tfm.pipeline.tuning.space import make_parameters
from tfm.pipeline.tuning.study import MAX_IDLE_TRIALS, ClaimedTrial, Trials
from tfm.pipeline.tuning.study_opening import open_trials
from tfm.pipeline.tuning.trial import (
    FAILED_STATUS,
    FINISHED_STATUS,
    PRUNED_STATUS,
    TrialOutcome,
    remove_artifacts_of_worse_trials,
)
from tfm.pipeline.tuning.trial_progress import PRUNE_ATTR, TrialLog, TrialProgress, TrialPruned
from tfm.pipeline.tuning.trial_records import DUPLICATE_OF_ATTR, WAITING_STATUS

LAST = 9  # validations of a training that is not pruned
STEPS = 10  # updates from one to the next


def played(folder: Path, **settings: Any) -> Trials:
    """A search whose trials are kept in memory."""
    given = {"name": "s", "base": "b", "method": "random", "trials": 99, "space": {"a": {"values": list(range(40))}}}
    config = SearchConfig.model_validate(given | settings)
    folder.mkdir(exist_ok=True)
    maximize = config.metric in ("accuracy", "bleu")
    study = optuna.create_study(study_name="s", direction="maximize" if maximize else "minimize")
    return Trials(config, make_parameters(config.space), folder, study, shares_folder=True)


def validation(number: int, loss: float, accuracy: float = 0.0) -> Validation:
    return Validation(step=STEPS * number, epoch=1, loss=loss, accuracy=accuracy)


def train(trials: Trials, claimed: ClaimedTrial, losses: Sequence[float]) -> str:
    """Play a training with these losses of validation, and tell the study how it ended."""
    account = TrialProgress(trials, claimed)
    account.start_run("0", is_first=True)
    try:
        account.raise_if_pruned()
        for number, loss in enumerate(losses, 1):
            account.on_validation(validation(number, loss), number == len(losses))
    except TrialPruned:
        trials.study.tell(claimed.trial, state=optuna.trial.TrialState.PRUNED)
        return PRUNED_STATUS
    trials.study.tell(claimed.trial, losses[-1])
    return FINISHED_STATUS


def losses_of(quality: int) -> list[float]:
    """Curves that never cross: the lower the quality is, the better is the trial, at each validation."""
    return [quality + 2 / number for number in range(1, LAST + 1)]


QUALITIES = [(17 * number) % 40 for number in range(40)]  # each of 0 to 39 once


def played_through(trials: Trials) -> list[tuple[str, int]]:
    """How each trial ended, and after how many validations."""
    found = []
    for quality in QUALITIES:
        with trials.claim_trial() as claimed:
            assert claimed is not None
            ended = train(trials, claimed, losses_of(quality))
            found.append((ended, len(trials.all_trials()[claimed.number].intermediate_values)))
    return found


def test_median_ends_what_is_behind_the_median_of_those_that_finished(tmp_path: Path) -> None:
    found, finished = played_through(played(tmp_path, pruning="median")), []
    for quality, got in zip(QUALITIES, found, strict=True):
        behind = len(finished) >= 5 and quality > median(finished)
        assert got == ((PRUNED_STATUS, 2) if behind else (FINISHED_STATUS, LAST))
        if not behind:
            finished.append(quality)
    assert min(finished) == 0


def test_hyperband_ends_trials_at_its_rungs_and_never_the_best(tmp_path: Path) -> None:
    """With 9 validations there are three brackets, which judge first after 1, after 3, and after 9: the end."""
    found = played_through(played(tmp_path, pruning="hyperband"))
    assert found[0] == (FINISHED_STATUS, LAST)  # until one has finished nobody knows how long a training is
    assert {number for ended, number in found if ended == PRUNED_STATUS} == {1, 3}
    assert {number for ended, number in found if ended == FINISHED_STATUS} == {LAST}
    assert found[QUALITIES.index(0)] == (FINISHED_STATUS, LAST)
    assert sum(number for _, number in found) < 0.7 * LAST * len(found)
    finished = [quality for quality, (ended, _) in zip(QUALITIES, found, strict=True) if ended == FINISHED_STATUS]
    pruned = [quality for quality, (ended, _) in zip(QUALITIES, found, strict=True) if ended == PRUNED_STATUS]
    assert median(finished) < median(pruned)


@pytest.mark.parametrize("pruning", ["median", "hyperband"])
def test_new_processes_prune_as_one_does(pruning: str, tmp_path: Path) -> None:
    one, found = played_through(played(tmp_path / "one", pruning=pruning)), []
    other = played(tmp_path / "other", pruning=pruning)
    for quality in QUALITIES:
        again = Trials(other.config, other.parameters, other.folder, other.study, shares_folder=True)
        again.study.pruner = again.study.sampler = None  # type: ignore[assignment]  # those of a process are its own
        with again.claim_trial() as claimed:
            assert claimed is not None
            ended = train(again, claimed, losses_of(quality))
            found.append((ended, len(again.all_trials()[claimed.number].intermediate_values)))
    assert found == one


def test_a_trial_that_has_done_all_is_not_pruned(tmp_path: Path) -> None:
    trials = played(tmp_path, pruning="median")
    for loss in (1.0, 1.0, 1.0, 1.0, 1.0, 5.0):
        with trials.claim_trial() as claimed:
            assert claimed is not None
            assert (
                train(trials, claimed, [loss, loss]) == FINISHED_STATUS
            )  # the second is the end: nothing would be saved


def test_a_worker_killed_between_decision_and_end_leaves_a_trial_that_is_pruned(tmp_path: Path) -> None:
    trials = played(tmp_path, pruning="median")
    for _ in range(5):
        with trials.claim_trial() as claimed:
            assert claimed is not None
            train(trials, claimed, [1.0, 1.0, 1.0])
    with trials.claim_trial() as claimed:
        assert claimed is not None
        account = TrialProgress(trials, claimed)
        account.start_run("0", is_first=True)
        account.on_validation(validation(1, 2.0), False)
        with pytest.raises(TrialPruned):
            account.on_validation(validation(2, 2.0), False)
    with trials.claim_trial() as again:  # nobody had told the study
        assert again is not None
        assert (again.number, again.earlier[PRUNE_ATTR]) == (5, True)
        assert train(trials, again, [0.0, 0.0, 0.0]) == PRUNED_STATUS


def test_a_worker_killed_before_the_decision_leaves_it_to_the_next(tmp_path: Path) -> None:
    trials = played(tmp_path, pruning="median")
    for _ in range(5):
        with trials.claim_trial() as claimed:
            assert claimed is not None
            train(trials, claimed, [1.0, 1.0, 1.0])
    with trials.claim_trial() as claimed:
        assert claimed is not None
        claimed.trial.report(2.0, 1)
        claimed.trial.set_user_attr(
            "validated", [STEPS, 2 * STEPS]
        )  # and died; the checkpoint is from before the validation
    with trials.claim_trial() as again:
        assert again is not None
        assert train(trials, again, [2.0, 2.5, 0.0]) == PRUNED_STATUS
    assert trials.all_trials()[5].intermediate_values == {1: 2.0, 2: 2.5}


def test_validations_are_counted_once_and_those_without_a_figure_left_out(tmp_path: Path) -> None:
    trials = played(tmp_path)
    with trials.claim_trial() as claimed:
        assert claimed is not None
        account = TrialProgress(trials, claimed)
        account.start_run("0-4", is_first=True)
        for number, loss in ((1, 3.0), (2, float("nan")), (3, 2.0), (3, 2.0)):
            account.on_validation(validation(number, loss), False)
    with trials.claim_trial() as again:  # killed, and gone on with from the checkpoint before the third
        assert again is not None
        account = TrialProgress(trials, again)
        account.start_run("0-4", is_first=True)
        account.on_validation(validation(3, 2.0), False)
        account.on_validation(validation(4, 1.0), True)
        account.start_run("0-5", is_first=False)
        account.on_validation(validation(1, 9.0), False)
        account.record_cost(7)  # fewer than it had: of a training that is already published nothing is heard
    kept = trials.all_trials()[0]
    assert kept.intermediate_values == {1: 3.0, 3: 2.0, 4: 1.0}
    assert (kept.user_attrs["updates"], kept.user_attrs["updates_of"]) == (50, {"0-4": 40, "0-5": 10})


def test_a_validation_from_before_a_kill_prunes_nothing(tmp_path: Path) -> None:
    """Heard again, it is not the newest: the training has gone on since, and was not behind then."""
    trials = played(tmp_path, pruning="median")
    for _ in range(5):
        with trials.claim_trial() as claimed:
            assert claimed is not None
            train(trials, claimed, [1.0] * LAST)
    with trials.claim_trial() as claimed:
        assert claimed is not None
        claimed.trial.set_user_attr("validated", [STEPS * number for number in range(1, 6)])
    with trials.claim_trial() as again:
        assert again is not None
        account = TrialProgress(trials, again)
        account.start_run("0", is_first=True)
        for number in (3, 4):
            account.on_validation(validation(number, 9.0), False)
        with pytest.raises(TrialPruned):
            account.on_validation(validation(5, 9.0), False)


@pytest.mark.parametrize(
    ("figures", "expected"),
    [
        ([3.0, 1.0], (FINISHED_STATUS, "", 2.0)),
        ([math.inf, 1.0], (FAILED_STATUS, "its loss of validation is inf", None)),
        ([1.0, math.nan], (FAILED_STATUS, "its loss of validation is nan", None)),
    ],
)
def test_the_mean_over_seeds_counts_and_what_is_not_finite_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, figures: list[float], expected: tuple[str, str, float | None]
) -> None:
    recipe = Recipe.model_validate({"name": "0000", "data": {"path": "corpus"}, "training": {"max_steps": 5}})
    left = iter(figures)
    counts = iter((5, 6))
    monkeypatch.setattr(trial, "make_trial_recipe", lambda *given: recipe)
    monkeypatch.setattr(trial, "check_inputs_unchanged", lambda *given: None)
    monkeypatch.setattr(trial, "_prepare_dataset", lambda *given: None)
    monkeypatch.setattr(trial, "_train_trial", lambda *given: (next(left), f"labels:{next(counts)}|stat:mean"))
    trials = played(tmp_path, repeats=2)
    with trials.claim_trial() as claimed:
        assert claimed is not None
        outcome = trial.run_trial(trials, claimed, Path("b"), (), command=(), log=TrialLog(io.StringIO()))
    assert (outcome.ended, outcome.reason, outcome.value) == expected
    assert trials.all_trials()[0].value == expected[2]


def test_the_seconds_of_a_trial_are_without_those_in_which_another_worker_makes_the_dataset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = Recipe.model_validate({"name": "0000", "data": {"path": "corpus"}, "training": {"max_steps": 5}})
    trials, is_made, waits = played(tmp_path), threading.Event(), threading.Event()

    def train_at_once(_: Trials, __: Recipe, account: TrialProgress, *___: object) -> tuple[float, str]:
        account.record_cost(5)
        return 1.0, ""

    def make_dataset() -> None:
        with hold_lock(trials.folder / ".share.lock"):
            is_made.set()
            assert waits.wait(10)
            time.sleep(0.6)

    monkeypatch.setattr(trial, "make_trial_recipe", lambda *given: recipe)
    monkeypatch.setattr(trial, "check_inputs_unchanged", lambda *given: None)
    monkeypatch.setattr(trial, "plan_stage", lambda *given: Plan("preprocess", tmp_path, {}, {}, None))
    for name in ("copy_same_artifact_of_other_run", "run_stage"):
        monkeypatch.setattr(trial, name, lambda *given, **named: time.sleep(0.01))
    monkeypatch.setattr(trial, "_train_trial", train_at_once)
    other = threading.Thread(target=make_dataset)
    other.start()
    assert is_made.wait(10)
    with trials.claim_trial() as claimed:
        assert claimed is not None
        begun = time.monotonic()
        waits.set()
        trial.run_trial(trials, claimed, Path("b"), (), command=(), log=TrialLog(io.StringIO()))
        whole = time.monotonic() - begun
    other.join()
    attributes = trials.all_trials()[0].user_attrs
    assert attributes["updates"] == 5
    assert 0.04 <= attributes["seconds"] <= whole - 0.4


def test_figures_of_several_definitions_have_no_mean_and_end_the_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = Recipe.model_validate({"name": "0000", "data": {"path": "corpus"}, "training": {"max_steps": 5}})
    left = iter([(3.0, "nrefs:1|tok:13a"), (1.0, "nrefs:var|tok:zh")])
    monkeypatch.setattr(trial, "make_trial_recipe", lambda *given: recipe)
    monkeypatch.setattr(trial, "check_inputs_unchanged", lambda *given: None)
    monkeypatch.setattr(trial, "_prepare_dataset", lambda *given: None)
    monkeypatch.setattr(trial, "_train_trial", lambda *given: next(left))
    trials = played(tmp_path, metric="bleu", folds=2)
    reason = "bleu has no mean, as it is tok:13a in 0000-fold-1 and tok:zh in 0000-fold-2; set evaluation.bleu_tokenize"
    with trials.claim_trial() as claimed:
        assert claimed is not None
        with pytest.raises(DataError, match=reason):
            trial.run_trial(trials, claimed, Path("b"), (), command=(), log=TrialLog(io.StringIO()))
    assert trials.all_trials()[0].value is None


def test_what_is_not_among_the_best_leaves_no_model(tmp_path: Path) -> None:
    trials = played(tmp_path, keep=2, repeats=2)
    (tmp_path / "trials").mkdir()
    names = ("0000-1", "0000-2", "0001-1", "0002", "0003-1", "00010-1", "10000")
    for name in names:
        (tmp_path / "trials" / name / "model").mkdir(parents=True)
        (tmp_path / "trials" / name / "log.txt").write_text("said")
    for number, value in enumerate((3.0, 1.0, 1.0, 2.0)):
        with trials.claim_trial() as claimed:
            assert claimed is not None
            if number == 1:  # took the figure of a trial that another worker finished before it, but which is later
                claimed.trial.set_user_attr(DUPLICATE_OF_ATTR, 2)
            trials.study.tell(claimed.trial, value)
    assert [each.number for each in trials.finished_trials()] == [2, 1, 3, 0]
    remove_artifacts_of_worse_trials(trials)
    left = {name for name in names if (tmp_path / "trials" / name / "model").exists()}
    assert left == {"0002", "0003-1", "00010-1", "10000"}
    assert all((tmp_path / "trials" / name / "log.txt").exists() for name in names)


def test_a_search_that_finds_nothing_new_ends(tmp_path: Path) -> None:
    trials = played(tmp_path, trials=None, hours=1.0)
    for number in range(101):
        with trials.claim_trial() as claimed:
            assert claimed is not None
            claimed.trial.set_user_attr("updates", 0 if number else 5)
            trials.study.tell(claimed.trial, state=optuna.trial.TrialState.FAIL)
        assert (trials.stop_reason() is None) == (number < 100)
    assert trials.stop_reason() == "100 trials in a row without an update"


@pytest.mark.parametrize("ended", [FINISHED_STATUS, FAILED_STATUS, PRUNED_STATUS])
def test_a_configuration_that_was_drawn_before_is_not_trained_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ended: str
) -> None:
    """Unless it was pruned: beside other trials it may go on."""
    trained: list[int] = []

    def outcome(_: Trials, claimed: ClaimedTrial, *__: object) -> TrialOutcome:
        trained.append(claimed.number)
        return TrialOutcome(ended, "loss was not finite", 2.0 if ended == FINISHED_STATUS else None)

    monkeypatch.setattr(trial, "_run_configuration", outcome)
    trials = played(tmp_path, space={"a": {"values": [3]}})
    for _ in range(3):
        with trials.claim_trial() as claimed:
            assert claimed is not None
            trial.run_trial(trials, claimed, Path("b"), (), command=(), log=TrialLog(io.StringIO()))
    assert trained == ([0, 1, 2] if ended == PRUNED_STATUS else [0])
    said = [(each.user_attrs["ended"], each.user_attrs["reason"], each.state) for each in trials.all_trials()]
    assert {each[0] for each in said} == {ended}
    assert len({each[2] for each in said}) == 1
    if ended != PRUNED_STATUS:
        assert [each[1] for each in said[1:]] == ["the same configuration as trial 0"] * 2


@pytest.mark.parametrize("ended", [FINISHED_STATUS, FAILED_STATUS, PRUNED_STATUS])
def test_a_configuration_that_another_worker_runs_is_not_trained_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ended: str
) -> None:
    """The second worker draws anew, and whoever is free when the first has ended takes over its end."""
    trained: list[int] = []

    def outcome(_: Trials, claimed: ClaimedTrial, *__: object) -> TrialOutcome:
        trained.append(claimed.number)
        if claimed.number == 0:
            for number in (1, 2):
                assert run_next(second) == (number, WAITING_STATUS)
            during = summarize_trials(second)
            assert [(each.ended, each.reason) for each in during.trials[1:]] == [(WAITING_STATUS, waits)] * 2
            assert "Of 3 trials, 2 not begun; 1 was trained: 1 running" in _paragraph(second)
            with second.claim_trial() as none:
                assert none is None  # the limit is reached, and those that wait are no work yet
        return TrialOutcome(ended, "", 2.0 if ended == FINISHED_STATUS else None)

    def run_next(of: Trials) -> tuple[int, str]:
        with of.claim_trial() as claimed:
            assert claimed is not None
            found = trial.run_trial(of, claimed, Path("b"), (), command=(), log=TrialLog(io.StringIO()))
            return claimed.number, found.ended

    monkeypatch.setattr(trial, "_run_configuration", outcome)
    waits = "to take over the end of trial 0, which has the same configuration"
    first = played(tmp_path, trials=3, space={"a": {"values": [3]}})
    second = Trials(first.config, first.parameters, first.folder, first.study, shares_folder=True)
    assert [run_next(first), run_next(second), run_next(first)] == [(number, ended) for number in range(3)]
    assert trained == ([0, 1, 2] if ended == PRUNED_STATUS else [0])
    found = summarize_trials(first)
    assert [each.same_as for each in found.trials] == [None, *([None] if ended == PRUNED_STATUS else [0]) * 2]
    assert [each.ended for each in found.trials] == [ended] * 3
    if ended == FINISHED_STATUS:
        assert found.num_trained == 1
        assert "Of 3 trials, 2 had the configuration of an earlier one; 1 was trained: 1 finished" in _paragraph(first)


def _paragraph(trials: Trials) -> str:
    return methods_paragraph(trials.config, trials.parameters, summarize_trials(trials))


def test_a_search_of_which_another_worker_runs_the_only_configuration_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trials = played(tmp_path, trials=None, hours=1.0, space={"a": {"values": [3]}})
    with trials.claim_trial() as first:
        assert first is not None
        first.trial.set_user_attr("configuration", {"a": first.trial.suggest_int("a", 0, 0) + 3})
        for _ in range(MAX_IDLE_TRIALS):
            with trials.claim_trial() as claimed:
                assert claimed is not None
                found = trial.run_trial(trials, claimed, Path("b"), (), command=(), log=TrialLog(io.StringIO()))
                assert found.ended == WAITING_STATUS
        with trials.claim_trial() as none:
            assert none is None
    assert trials.stop_reason() == "100 trials in a row without an update"


def test_optuna_alone_opens_the_study(tmp_path: Path) -> None:
    """A clean process that knows nothing of tfm; the other half is `open_trials` here."""
    space = {"model.norm": {"choices": ["pre", "post"]}, "training.schedule.peak": {"values": [0.1, 0.2, 0.4]}}
    config = SearchConfig.model_validate(
        {"name": "mine", "base": "b", "method": "random", "trials": 2, "space": space, "metric": "accuracy"}
    )
    trials = open_trials(config, {"seed": 1}, make_parameters(config.space), tmp_path / "mine", None)
    with trials.claim_trial() as claimed:
        assert claimed is not None
        norm = claimed.trial.suggest_categorical("model.norm", ["pre", "post"])
        place = claimed.trial.suggest_int("training.schedule.peak", 0, 2)
        claimed.trial.set_user_attr("updates", 30)
        claimed.trial.report(0.5, 1)
        trials.study.tell(claimed.trial, 0.75)
    program = """
import json, sys, optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
study = optuna.load_study(study_name="mine", storage=JournalStorage(JournalFileBackend(sys.argv[1])))
(trial,) = study.trials
assert not [name for name in sys.modules if name.split(".")[0] == "tfm"]
print(json.dumps([trial.params, trial.value, trial.state.name, trial.user_attrs, trial.intermediate_values,
    study.direction.name, study.user_attrs, study.best_trial.number]))
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "mine" / "trials.journal")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    params, value, state, attributes, between, direction, about, best = json.loads(done.stdout)
    assert params == {"model.norm": norm, "training.schedule.peak": place}
    assert (value, state, attributes["updates"], between) == (0.75, "COMPLETE", 30, {"1": 0.5})
    assert attributes["began"] > 0
    assert (direction, about, best) == ("MAXIMIZE", {"search": {"seed": 1}}, 0)


@pytest.mark.parametrize(("metric", "direction"), [("wer", "MINIMIZE"), ("exact_match", "MAXIMIZE")])
def test_a_search_reads_further_scores_of_validation(tmp_path: Path, metric: str, direction: str) -> None:
    config = SearchConfig.model_validate(
        {"name": "s", "base": "b", "trials": 9, "metric": metric, "space": {"a": {"values": [1, 2]}}}
    )
    trials = open_trials(config, {}, make_parameters(config.space), tmp_path / "s", None)
    assert trials.study.direction.name == direction
    with trials.claim_trial() as claimed:
        assert claimed is not None
        account = TrialProgress(trials, claimed)
        account.start_run("0", is_first=True)
        account.raise_if_pruned()
        for number, score in enumerate((40.0, 25.0), 1):
            scores = {metric: {"score": score, "signature": "s"}}
            found = {**validation(number, 1.0).model_dump(), "scores": scores}
            account.on_validation(Validation.model_validate(found), number == 2)
    assert trials.all_trials()[0].intermediate_values == {1: 40.0, 2: 25.0}
