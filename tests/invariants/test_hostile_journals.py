"""The trials of a search that others send: read as they are, or refused in a line; nothing outside is reached."""

import json
import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
from optuna.trial import TrialState

from tests import hostile
from tests.hostile_json import VALUES, variants
from tfm.pipeline.errors import DataError, RecipeError, TfmError, WriteError
from tfm.pipeline.tuning.config import SearchConfig
from tfm.pipeline.tuning.report import search_page
from tfm.pipeline.tuning.results import equally_good_trials, summarize_trials
from tfm.pipeline.tuning.space import make_parameters, suggest_configuration
from tfm.pipeline.tuning.study import Trials
from tfm.pipeline.tuning.study_opening import open_trials

pytestmark = pytest.mark.promise("hostile")
SPACE = {
    "a": {"values": [1, 2, 3]},
    "b": {"low": 0.1, "high": 10.0, "log": True},
    "c": {"choices": ["x", "y"]},
    "d": {"values": [0.1, 0.2], "only_if": {"c": "y"}},
}
EVERY = pytest.mark.parametrize("every", [397, pytest.param(1, marks=pytest.mark.slow)])
"""All variants, or quickly one of many."""


def opened(folder: Path, url: str | None = None, method: str = "tpe") -> Trials:
    config = SearchConfig.model_validate(
        {"name": "s", "base": "b", "method": method, "trials": 9, "pruning": "hyperband", "space": SPACE}
    )
    return open_trials(config, {"seed": config.seed}, make_parameters(config.space), folder, url)


def searched(folder: Path, url: str | None = None) -> Trials:
    """A search with trials that are finished, pruned, running."""
    trials = opened(folder, url)
    for number, state in enumerate((TrialState.COMPLETE, TrialState.PRUNED, TrialState.RUNNING)):
        with trials.claim_trial() as mine:
            assert mine is not None
            mine.trial.set_user_attr("configuration", suggest_configuration(trials.parameters, mine.trial))
            spent = {"updates_of": {"0000": 30}, "updates": 30, "seconds": 1.5, "validated": [10, 20]}
            for key, value in spent.items():
                mine.trial.set_user_attr(key, value)
            for step in (1, 2):
                mine.trial.report(0.5 + number, step)
                mine.trial.should_prune()
            if state != TrialState.RUNNING:
                ended = "finished" if state == TrialState.COMPLETE else "pruned"
                for key, value in {"values": [0.5], "ended": ended, "reason": "why", "behind": False}.items():
                    mine.trial.set_user_attr(key, value)
                trials.study.tell(mine.trial, 0.5 if state == TrialState.COMPLETE else None, state=state)
    return trials


def used(trials: Trials, *, with_page: bool = False) -> None:
    """What a search does with its trials: it reports them, and goes on with the next."""
    found = summarize_trials(trials)
    json.dumps(found.as_json(), allow_nan=False)
    if with_page:  # its pictures take a second
        search_page(trials.config, trials.parameters, found)
    trials.stop_reason()
    with trials.claim_trial() as mine:
        if mine is not None:
            suggest_configuration(trials.parameters, mine.trial)
            mine.trial.report(0.7, 9)
            mine.trial.should_prune()


def is_refused(folder: Path, read: Callable[[], object]) -> bool:
    """Whether a search is refused in one short line that names it; what is not refused is used."""
    said = ""
    try:
        read()
    except DataError as error:
        said = str(error)
    assert said.startswith(f"{folder}") or not said, said[:300]
    assert "folder away" in said or not said
    assert len(said) < 1000
    assert "\n" not in said
    return bool(said)


@EVERY
def test_every_place_of_a_journal(tmp_path: Path, every: int) -> None:
    searched(tmp_path / "s")
    journal = tmp_path / "s" / "trials.journal"
    lines = journal.read_text("utf-8").splitlines()
    of_a_kind = {re.sub("[0-9]+", "", line): place for place, line in enumerate(lines)}
    wrong = ((place, text) for place in of_a_kind.values() for _, text in variants(json.loads(lines[place])))
    refused = 0
    for place, text in islice(wrong, None, None, every):
        changed = "\n".join([*lines[:place], text, *lines[place + 1 :]]) + "\n"
        journal.write_text(changed, "utf-8")
        if is_refused(tmp_path / "s", lambda: used(opened(tmp_path / "s"), with_page=every == 1)):
            refused += 1
            assert journal.read_text("utf-8") == changed
    assert refused


ATTRIBUTES = {
    *("configuration", "same_as", "began", "ended", "reason", "values", "updates", "seconds", "updates_of"),
    *("validated", "behind"),
}


@EVERY
@pytest.mark.parametrize("where", ["user", "system"])
def test_every_attribute_of_a_trial(tmp_path: Path, where: str, every: int) -> None:
    searched(tmp_path / "s")
    journal = tmp_path / "s" / "trials.journal"
    before = journal.read_text("utf-8")
    names = ATTRIBUTES if where == "user" else {"fixed_params", "constraints", "completed_rung_0", "other"}
    cases = [(name, value) for name in sorted(names) for value in VALUES.values()]
    for name, value in islice(cases, None, None, max(1, every // 13)):
        code = 8 if where == "user" else 9
        line = f'{{"op_code":{code},"worker_id":"w","trial_id":2,"{where}_attr":{{"{name}":{value}}}}}\n'
        journal.write_text(before + line, "utf-8")
        is_refused(tmp_path / "s", lambda: used(opened(tmp_path / "s")))


@pytest.mark.parametrize(
    ("configuration", "said"),
    [
        ({"a": 9, "b": 1.0, "c": "x"}, "trial 2: configuration: a = 9, which is not in its space"),
        ({"a": True, "b": 1.0, "c": "x"}, "a = True, which is not in its space"),
        ({"a": 1, "b": 11.0, "c": "x"}, "b = 11.0, which is not in its space"),
        ({"a": 1, "b": 1.0, "c": "y"}, "d is missing"),
        (
            {"a": 1, "b": 1.0, "c": "x", "d": 0.1},
            "'d' is not a key of this search, or has no value although others have",
        ),
        ({"a": 1, "b": 1.0, "c": "x", "data.path": "/etc"}, "'data.path' is not a key of this search"),
        ([], r"configuration: \[\]: Input should be a valid dictionary"),
    ],
)
def test_a_configuration_that_is_none_of_the_search(tmp_path: Path, configuration: object, said: str) -> None:
    trials = searched(tmp_path / "s")
    trials.study._storage.set_trial_user_attr(2, "configuration", configuration)
    with pytest.raises(DataError, match=said) as caught:
        opened(tmp_path / "s")
    assert "trials.journal: trial 2: " in str(caught.value)
    with pytest.raises(DataError, match=said):
        trials.all_trials()


@pytest.mark.slow
def test_a_database_is_checked_as_a_journal_is(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/trials.db"
    trials = searched(tmp_path / "s", url)
    for name, value in {"updates_of": [1], "seconds": "x", "validated": ["a"], "values": {"a": 1}}.items():
        trials.study._storage.set_trial_user_attr(3, name, value)
        with pytest.raises(DataError, match=rf"trials\.db: trial 2: {name}"):
            opened(tmp_path / "s", url)
        trials.study._storage.set_trial_user_attr(3, name, spent_of(name))
    opened(tmp_path / "s", url)
    (tmp_path / "trials.db").write_bytes(b"SQLite format 3\0" + b"x" * 5000)
    with pytest.raises(TfmError):
        opened(tmp_path / "s", url)


def spent_of(name: str) -> object:
    return {"updates_of": {}, "seconds": 1.0, "validated": [], "values": []}[name]


@pytest.mark.parametrize(
    "line",
    [
        *(b"", b"3", b"[]", b"{}", b"\xff", b"\0" * 100, hostile.DEEP, hostile.DEEP_OBJECT, b'{"op_code": 11}'),
        *(b'{"op_code": NaN}', b'{"op_code": 4}', b'{"op_code":4,"study_id":0,"worker_id":"x","datetime_start":"x"}'),
    ],
)
def test_a_line_that_is_no_operation_is_named(tmp_path: Path, line: bytes) -> None:
    searched(tmp_path / "s")
    journal = tmp_path / "s" / "trials.journal"
    before = journal.read_bytes()
    journal.write_bytes(before + line + b"\n")
    with pytest.raises(DataError, match=rf"trials\.journal, line {before.count(10) + 1}: .*move that folder away"):
        opened(tmp_path / "s")
    assert journal.read_bytes() == before + line + b"\n"


def test_another_direction_or_description_is_refused(tmp_path: Path) -> None:
    searched(tmp_path / "s")
    journal = tmp_path / "s" / "trials.journal"
    text = journal.read_text("utf-8")
    journal.write_text(text.replace('"directions":[1]', '"directions":[2]'), "utf-8")
    with pytest.raises(DataError, match="another search, which differs in direction"):
        opened(tmp_path / "s")
    journal.write_text(text.replace('{"search":{"seed":1}}', '{"search":"x"}'), "utf-8")
    with pytest.raises(DataError, match="search: 'x' is no description of a search"):
        opened(tmp_path / "s")


def test_figures_of_other_trainings_or_beyond_their_squares(tmp_path: Path) -> None:
    trials = searched(tmp_path / "s")
    other = replace(trials, config=trials.config.model_copy(update={"folds": 5}))
    with pytest.raises(DataError, match=r"trial 0: values: has 1 figure; its trainings are 5"):
        other.all_trials()
    best, far = (
        replace(summarize_trials(trials).trials[0], values=(value, 2e307, 9e306, 8e307, 1e307))
        for value in (1e307, 1.7e308)
    )
    for folds in (None, 5):
        assert equally_good_trials([best, far], "perplexity", folds) == [best, far]


def test_trials_of_no_search_are_refused(tmp_path: Path) -> None:
    searched(tmp_path / "s")
    journal = tmp_path / "s" / "trials.journal"
    text = journal.read_text("utf-8")
    journal.write_text(text.replace('{"search":{"seed":1}}', '{"other":1}'), "utf-8")
    with pytest.raises(DataError, match="has trials of an unknown search"):
        opened(tmp_path / "s")


# What takes memory or time, and what leads elsewhere


def special(file: Path, elsewhere: Path) -> Iterator[str]:
    """What stands at the place of a file, one after the other."""
    elsewhere.write_bytes(b"precious, and without an end of line")
    for target in (elsewhere, Path("/dev/zero"), file):
        file.symlink_to(target)
        yield f"a link to {target.name}"
        file.unlink()
    os.mkfifo(file)
    yield "a FIFO"
    file.unlink()


@pytest.mark.parametrize(
    "name", ["trials.journal", ".claim.lock", ".trials.lock", ".share.lock", ".publish.lock", "trials/.0000.lock"]
)
def test_links_and_special_files_are_refused(tmp_path: Path, name: str) -> None:
    searched(tmp_path / "s")
    file = tmp_path / "s" / name
    file.unlink(missing_ok=True)
    for kind in special(file, tmp_path / "elsewhere"):
        with pytest.raises(WriteError, match=f"{name}: is a (link|special file) that tfm did not make"):
            opened(tmp_path / "s")
        assert (tmp_path / "elsewhere").read_bytes() == b"precious, and without an end of line", kind


@pytest.mark.parametrize("name", ["search", "trials", "trials/0001"])
def test_folders_that_are_links_are_refused(tmp_path: Path, name: str) -> None:
    searched(tmp_path / "s")
    folder = tmp_path / "s" / name
    if folder.exists():
        folder.rename(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").mkdir(exist_ok=True)
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(WriteError, match=f"{name}: is a link that tfm did not make"):
        opened(tmp_path / "s")


def test_a_link_that_comes_while_it_runs_is_not_followed(tmp_path: Path) -> None:
    trials = searched(tmp_path / "s")
    (tmp_path / "s" / "trials.journal").rename(tmp_path / "elsewhere")
    (tmp_path / "s" / "trials.journal").symlink_to(tmp_path / "elsewhere")
    before = (tmp_path / "elsewhere").read_bytes()
    with pytest.raises(WriteError, match="is a link"), trials.claim_trial():
        pass
    with pytest.raises(WriteError, match="is a link"):
        trials.study.set_user_attr("x", 1)
    assert (tmp_path / "elsewhere").read_bytes() == before


def test_a_search_is_read_where_nothing_can_be_written(tmp_path: Path) -> None:
    searched(tmp_path / "s")
    journal = tmp_path / "s" / "trials.journal"
    journal.write_bytes(journal.read_bytes() + b'{"op_code": 8, "wor')  # what a writer left that died
    for lock in tmp_path.glob("s/.*.lock"):
        lock.unlink()
    before = journal.read_bytes()
    (tmp_path / "s").chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        assert len(summarize_trials(opened(tmp_path / "s")).trials) == 3
    finally:
        (tmp_path / "s").chmod(stat.S_IRWXU)
    assert journal.read_bytes() == before
    assert not list(tmp_path.glob("s/.*.lock"))


@pytest.mark.parametrize("kind", ["a terabyte", "a line of a gigabyte", "many trials"])
def test_giants_are_refused_at_once(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    searched(tmp_path / "s")
    journal = tmp_path / "s" / "trials.journal"
    if kind == "many trials":
        monkeypatch.setattr("tfm.pipeline.tuning.journal.MAX_TRIALS", 5)
        new = '{"op_code":4,"worker_id":"w","study_id":0,"datetime_start":"2026-01-01T00:00:00"}\n'
        journal.write_text(journal.read_text("utf-8") + 9 * new, "utf-8")
    else:
        hostile.sparse(journal, 2**40 if kind == "a terabyte" else 2**30)
    began = time.monotonic()
    with pytest.raises(DataError, match=r"trials\.journal.*move that folder away"):
        opened(tmp_path / "s")
    assert time.monotonic() - began < 20


@pytest.mark.parametrize(
    "url",
    [
        *(
            "postgresql://user:hunter2@host/db",
            "nonsense://user:hunter2@host",
            "mysql://u:hunter2@[bad",
            "://u:hunter2@x",
        ),
        *("postgresql+nodriver://user:hun%24ter2hunter2@host:x/db", "x://host/db?password=hunter2&sslmode=a"),
    ],
)
def test_no_password_is_shown(tmp_path: Path, url: str) -> None:
    with pytest.raises(RecipeError, match=r"--storage .*\*\*\*.*cannot be opened") as caught:
        opened(tmp_path / "s", url)
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None
