"""The searches of recipes/search name keys that there are."""

from pathlib import Path

import pytest
from optuna.trial import TrialState

from tfm.pipeline.tuning.search import open_search

FILES = [
    file for file in (Path(__file__).parents[4] / "recipes").rglob("*.toml") if "[search]" in file.read_text("utf-8")
]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_it_opens(file: Path, tmp_path: Path) -> None:
    assert {each.state for each in open_search(file, root=tmp_path).trials.all_trials()} <= {TrialState.WAITING}


def test_an_item_of_a_list_has_a_number(tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text('[data]\npath = "corpus"\n', encoding="utf-8")
    text = (
        '[search]\nbase = "base.toml"\ntrials = 1\n[search.space]\n"training.optimizer.betas.1" = { values = [0.9] }\n'
    )
    (tmp_path / "s.toml").write_text(text, encoding="utf-8")
    assert open_search(tmp_path / "s.toml", root=tmp_path).trials.parameters[0].values == (0.9,)
