"""Who runs which trial: claims, what another left, limits, journals whose writer died, databases."""

import errno
import os
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from optuna.trial import TrialState

from tests.cli.user import ROOT
from tfm.pipeline.errors import DataError, RecipeError, WriteError
from tfm.pipeline.tuning import storage
from tfm.pipeline.tuning.config import SearchConfig
from tfm.pipeline.tuning.space import make_parameters, suggest_configuration
from tfm.pipeline.tuning.study import Trials
from tfm.pipeline.tuning.study_opening import open_trials


def opened(folder: Path, url: str | None = None, create: bool = True, **settings: Any) -> Trials:
    config = SearchConfig.model_validate(
        {"name": "s", "base": "b", "method": "random", "trials": 3, "space": {"a": {"values": [1, 2, 3]}}} | settings
    )
    return open_trials(config, {"seed": config.seed}, make_parameters(config.space), folder, url, create=create)


def urls(folder: Path) -> list[str | None]:
    return [None, f"sqlite:///{folder}/trials.db"]


@pytest.mark.parametrize("which", [0, 1], ids=["journal", "database"])
@pytest.mark.few(1)
def test_a_trial_belongs_to_one_worker_until_it_ends(which: int, tmp_path: Path) -> None:
    url = urls(tmp_path)[which]
    one, other = opened(tmp_path / "s", url), opened(tmp_path / "s", url)
    with one.claim_trial() as mine, other.claim_trial() as theirs:
        assert mine is not None
        assert theirs is not None
        assert (mine.number, theirs.number) == (0, 1)
        one.study.tell(mine.trial, 0.5)
    # the other one's process died: whoever comes next goes on with it
    with one.claim_trial() as left, other.claim_trial() as last, one.claim_trial() as none:
        assert left is not None
        assert last is not None
        assert (left.number, last.number, none) == (1, 2, None)
        assert left.earlier["began"] > 0
        assert suggest_configuration(one.parameters, left.trial).keys() == {"a"}
    assert one.stop_reason() == "3 trials"


@pytest.mark.slow
def test_a_trial_of_another_machine_is_left_to_it(tmp_path: Path) -> None:
    url = urls(tmp_path)[1]
    here, there = opened(tmp_path / "here", url), opened(tmp_path / "there", url)
    with there.claim_trial() as theirs:
        assert theirs is not None
    with here.claim_trial() as mine, there.claim_trial() as again:
        assert mine is not None
        assert again is not None
        assert (theirs.number, mine.number, again.number) == (0, 1, 0)


def test_limits_count_all_workers(tmp_path: Path) -> None:
    found = opened(tmp_path / "s", trials=None, hours=1.0, updates=500)
    assert found.stop_reason() is None
    with found.claim_trial() as mine:
        assert mine is not None
        mine.trial.set_user_attr("updates", 500)
    assert found.stop_reason() == "500 updates"
    mine.trial.set_user_attr("updates", 499)
    mine.trial.set_user_attr("seconds", 3599.0)
    assert found.stop_reason() is None
    mine.trial.set_user_attr("seconds", 3600.0)
    assert found.stop_reason() == "1 hour"


def test_samplers_and_pruners_are_told_which_figure_is_the_better(tmp_path: Path) -> None:
    for metric, direction in (("loss", "MINIMIZE"), ("perplexity", "MINIMIZE"), ("accuracy", "MAXIMIZE")):
        assert opened(tmp_path / metric, metric=metric).study.direction.name == direction


def test_finished_trials_stand_from_best_to_worst(tmp_path: Path) -> None:
    for metric, expected in (("loss", [1, 0]), ("accuracy", [0, 1])):
        found = opened(tmp_path / metric, metric=metric)
        for value in (0.9, 0.1, None):
            with found.claim_trial() as mine:
                assert mine is not None
                found.study.tell(mine.trial, value, state=TrialState.FAIL if value is None else TrialState.COMPLETE)
        assert [each.number for each in found.finished_trials()] == expected


def test_a_line_that_its_writer_could_not_finish_is_cut(tmp_path: Path) -> None:
    with opened(tmp_path / "s").claim_trial() as mine:
        assert mine is not None
    journal = tmp_path / "s" / "trials.journal"
    whole = journal.read_bytes()
    journal.write_bytes(whole + b'{"op_code": 4, "wor')
    with opened(tmp_path / "s").claim_trial() as again:
        assert again is not None
        assert again.number == 0
    assert journal.read_bytes().startswith(whole)


def test_a_line_that_a_dead_worker_could_not_finish_spoils_nothing_of_those_alive(tmp_path: Path) -> None:
    alive, late = opened(tmp_path / "s"), opened(tmp_path / "s")
    with open(tmp_path / "s" / "trials.journal", "ab") as stream:
        stream.write(b'{"op_code": 8, "worker')
    with alive.claim_trial() as mine:
        assert mine is not None
        alive.study.tell(mine.trial, 0.5)
    assert [each.value for each in late.all_trials()] == [0.5]
    assert [each.value for each in opened(tmp_path / "s").all_trials()] == [0.5]


@pytest.mark.parametrize(
    "method",
    ["random", "window", "evolution", "tpe"],  # gp draws all keys at once, from what it knows of running trials too
)
def test_a_worker_that_dies_between_two_keys_leaves_what_it_would_have_drawn(method: str, tmp_path: Path) -> None:
    space = {
        "a": {"values": list(range(30))},
        "b": {"low": 0.0, "high": 1.0},
        "c": {"values": [1]},
        "d": {"values": list(range(30))},
    }
    found: dict[bool, list[dict[str, Any]]] = {True: [], False: []}
    for dies, seen in found.items():
        for number in range(13 if method == "tpe" else 5):  # it draws at random before the tenth
            trials = opened(tmp_path / str(dies), space=space, method=method, trials=99)  # as a new process does
            if dies:
                with trials.claim_trial() as mine:
                    assert mine is not None
                    for parameter in trials.parameters[: number % 4]:
                        parameter.suggest(mine.trial)
            with trials.claim_trial() as mine:
                assert mine is not None
                seen.append(suggest_configuration(trials.parameters, mine.trial))
                trials.study.tell(mine.trial, float(seen[-1]["a"]))
    assert found[True] == found[False]


def test_another_search_and_no_database_are_refused(tmp_path: Path) -> None:
    with opened(tmp_path / "s").claim_trial() as mine:
        assert mine is not None
        mine.trial.set_user_attr("updates", 1)
    with pytest.raises(DataError, match="holds the trials of another search, which differs in seed"):
        opened(tmp_path / "s", seed=9)
    url = f"sqlite:///{tmp_path}/x.db"
    opened(tmp_path / "t", url)
    with pytest.raises(DataError, match=f"^{url}: holds .* or take another database") as refused:  # no folder has them
        opened(tmp_path / "u", url, seed=9)
    assert "folder" not in str(refused.value)
    with pytest.raises(RecipeError, match="--storage nonsense: cannot be opened"):
        opened(tmp_path / "s", "nonsense")


@pytest.mark.parametrize("num_trials", [0, 1, 2])
def test_a_search_that_has_not_trained_may_be_changed(tmp_path: Path, num_trials: int) -> None:
    """As after an error in the data of the first trial. Whoever reads the journal later finds the new search alone."""
    for seed in (1, 9, 2):
        trials = opened(tmp_path / "s", seed=seed)
        for number in range(num_trials):
            with trials.claim_trial() as mine:
                assert mine is not None
                assert mine.number == 0  # the same one again, after its error
                if number == 0:
                    suggest_configuration(trials.parameters, mine.trial)
    again = opened(tmp_path / "s", seed=2)
    assert [each.number for each in again.all_trials()] == [*range(min(num_trials, 1))]
    assert again.study.user_attrs["search"]["seed"] == 2


def test_a_search_that_a_worker_has_begun_is_not_changed(tmp_path: Path) -> None:
    with opened(tmp_path / "s").claim_trial() as mine:
        assert mine is not None
        with pytest.raises(DataError, match="holds the trials of another search"):
            opened(tmp_path / "s", seed=9)
    trials = opened(tmp_path / "s", seed=9)
    assert trials.all_trials() == []


@pytest.mark.parametrize("work", ["validation", "pruned", "failed"])
def test_a_search_with_an_end_or_a_validation_is_not_changed(tmp_path: Path, work: str) -> None:
    trials = opened(tmp_path / "s")
    with trials.claim_trial() as mine:
        assert mine is not None
        suggest_configuration(trials.parameters, mine.trial)
        if work == "validation":
            mine.trial.report(1.0, 1)
        else:
            trials.study.tell(mine.trial, state=TrialState.PRUNED if work == "pruned" else TrialState.FAIL)
    with pytest.raises(DataError, match="holds the trials of another search"):
        opened(tmp_path / "s", seed=9)


def test_a_worker_of_a_search_that_was_changed_is_told(tmp_path: Path) -> None:
    late = opened(tmp_path / "s")
    opened(tmp_path / "s", seed=9)
    with pytest.raises(DataError, match="another worker began the search anew: run"), late.claim_trial():
        pytest.fail("it has a trial of a search that is no more")
    assert opened(tmp_path / "s", seed=9).all_trials() == []


def test_a_search_that_was_renamed_has_its_trials(tmp_path: Path) -> None:
    with opened(tmp_path / "s").claim_trial() as mine:
        assert mine is not None
    (tmp_path / "s").rename(tmp_path / "t")
    assert len(opened(tmp_path / "t", name="t").all_trials()) == 1


def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WriteError, match="file/s: cannot be written: Not a directory"):
        opened(tmp_path / "file" / "s")
    (tmp_path / "s" / ".claim.lock").mkdir(parents=True)
    with pytest.raises(WriteError, match="s: cannot be written: Is a directory"):
        opened(tmp_path / "s")


def test_a_full_disk_spoils_no_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is the system's, and the next worker finds all that was written before it."""
    found = opened(tmp_path / "s")
    with found.claim_trial() as mine:
        assert mine is not None
        with monkeypatch.context() as patch:
            patch.setattr("optuna.storages.journal._file.os.fsync", _full)
            with pytest.raises(OSError, match="No space left"):
                mine.trial.set_user_attr("updates", 3)
    journal = tmp_path / "s" / "trials.journal"
    journal.write_bytes(journal.read_bytes()[:-9])  # what did not find room
    with opened(tmp_path / "s").claim_trial() as again:
        assert again is not None
        assert again.number == 0
        assert "updates" not in again.earlier
        assert again.earlier["began"] > 0


def _full(descriptor: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_key_of_recipes_that_came_later_is_no_difference(tmp_path: Path) -> None:
    config = opened(tmp_path / "s").config
    parameters = make_parameters(config.space)

    def open_with(recipe: dict[str, Any], **more: Any) -> Trials:
        return open_trials(config, {"recipe": recipe, **more}, parameters, tmp_path / "t", None)

    with open_with({"model": {"dim": 3}, "train": [{"path": "a"}]}).claim_trial() as mine:
        assert mine is not None
        mine.trial.set_user_attr("updates", 1)
    open_with({"model": {"dim": 3, "later": 1}, "train": [{"path": "a", "later": None}], "seed": 1})
    with pytest.raises(DataError, match=r"differs in recipe\.train\.0\.path"):
        open_with({"model": {"dim": 3}, "train": [{"path": "b"}]})
    with pytest.raises(DataError, match="differs in folds"):
        open_with({"model": {"dim": 3}, "train": [{"path": "a"}]}, folds=3)


SPACE: dict[str, dict[str, Any]] = {
    "b": {"low": 0.0, "high": 1.0},
    "d": {"values": [0.25, 0.5]},
    "a": {"values": [*range(9)], "only_if": {"d": 0.25}},
    "c": {"choices": ["x", "y", "z"]},
}


def drawn(folder: Path, spaces: list[dict[str, Any]], method: str = "random", url: str | None = None) -> list[object]:
    """The configurations that a search draws, whose file is as each of the spaces for one trial."""
    found: list[object] = []
    for each in spaces:
        settings = {"name": "s", "base": "b", "method": method, "trials": 9, "space": each}
        config = SearchConfig.model_validate(settings)
        about = config.model_dump(mode="json")
        trials = open_trials(config, about, make_parameters(config.space), folder, url)
        with trials.claim_trial() as mine:
            assert mine is not None
            found.append(suggest_configuration(trials.parameters, mine.trial))
            trials.study.tell(mine.trial, len(found) * 0.1)
    return found


TURNED = {key: SPACE[key] for key in ("c", "d", "b", "a")}


@pytest.mark.parametrize("which", [0, 1], ids=["journal", "database"])
@pytest.mark.parametrize("method", ["random", "tpe"])
@pytest.mark.few(2)
def test_draws_do_not_depend_on_the_order_of_the_keys(which: int, method: str, tmp_path: Path) -> None:
    """A file whose keys are in another order, also since a while ago, has the same trials."""
    one, other, third = (
        drawn(tmp_path / name, spaces, method, [None, f"sqlite:///{tmp_path}/{name}.db"][which])
        for name, spaces in (("one", [SPACE] * 4), ("other", [SPACE, TURNED, TURNED, SPACE]), ("third", [TURNED] * 4))
    )
    assert one == other == third
    assert any("a" in each for each in one)  # type: ignore[operator]


def test_a_search_goes_on_in_the_order_of_keys_in_which_it_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A study in whose time draws had the order of the file keeps it."""
    with monkeypatch.context() as then:
        then.setattr("tfm.pipeline.tuning.study_opening.sort_keys_in_draw_order", lambda parameters: parameters)
        before = drawn(tmp_path / "before", [TURNED] * 3)
        begun = drawn(tmp_path / "s", [TURNED])
    assert begun + drawn(tmp_path / "s", [TURNED, SPACE]) == before
    assert drawn(tmp_path / "new", [TURNED] * 3) != before


def test_a_grid_is_there_from_the_start(tmp_path: Path) -> None:
    found = opened(tmp_path / "s", method="grid", trials=None)
    again = opened(tmp_path / "s", method="grid", trials=None)
    assert len(again.all_trials()) == 3
    values = []
    with ExitStack() as held:
        while (mine := held.enter_context(found.claim_trial())) is not None:
            values.append(suggest_configuration(found.parameters, mine.trial)["a"])
    assert values == [1, 2, 3]
    assert found.stop_reason() == "every configuration"


@pytest.mark.parametrize("which", [0, 1], ids=["journal", "database"])
def test_reading_a_search_that_is_not_there_makes_none(which: int, tmp_path: Path) -> None:
    place = tmp_path / "s"
    read = opened(place, urls(tmp_path)[which], create=False)
    assert read.all_trials() == []
    assert not list(tmp_path.iterdir())
    with opened(place, urls(tmp_path)[which], seed=2).claim_trial() as mine:  # its settings are still free
        assert mine is not None
    assert len(opened(place, urls(tmp_path)[which], create=False, seed=2).all_trials()) == 1


def test_a_lowered_number_of_trials_leaves_what_was_begun_beyond_it(tmp_path: Path) -> None:
    found = opened(tmp_path / "s", trials=4)
    with found.claim_trial() as one, found.claim_trial(), found.claim_trial() as two, found.claim_trial() as three:
        for each in (one, two, three):
            assert each is not None
            found.study.tell(each.trial, 0.5)
    lowered = opened(tmp_path / "s", trials=3)
    with lowered.claim_trial() as none:
        assert none is None
    assert lowered.stop_reason() == "4 trials (search.trials is 3)"
    with opened(tmp_path / "s", trials=4).claim_trial() as left:
        assert left is not None
        assert left.number == 1


OPENS = """
import sys, time
from tfm.pipeline.tuning.storage import open_storage
from pathlib import Path
while time.time() < float(sys.argv[2]): pass
open_storage(Path("."), sys.argv[1])
"""


def test_tables_that_another_worker_is_making_are_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tries = []

    def loses(url: str) -> str:
        tries.append(url)
        if len(tries) < 4:
            raise RuntimeError(
                f"(sqlite3.OperationalError) {storage.TABLE_CREATION_RACE_MESSAGES[len(tries) - 1]}: studies"
            )
        return "the storage"

    monkeypatch.setattr(storage, "RDBStorage", loses)
    monkeypatch.setattr(storage, "SECONDS_BETWEEN_ATTEMPTS", 0.0)
    assert storage.open_storage(tmp_path, "sqlite:///x.db") == "the storage"  # type: ignore[comparison-overlap]
    tries.clear()
    monkeypatch.setattr(storage, "TABLE_CREATION_RACE_MESSAGES", ())
    with pytest.raises(RecipeError, match="cannot be opened"):
        storage.open_storage(tmp_path, "sqlite:///x.db")


@pytest.mark.slow
def test_workers_may_begin_a_database_together(tmp_path: Path) -> None:
    for number in range(3):
        url, moment = f"sqlite:///{tmp_path}/{number}.db", str(time.time() + 8)
        command = [sys.executable, "-c", OPENS, url, moment]
        workers = [subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) for _ in range(4)]
        assert [each.communicate()[1] for each in workers] == [""] * 4
