"""The run that a search makes of its best trial: what is said of the figure that chose it."""

import pytest

from tfm.pipeline.tuning.config import SearchConfig
from tfm.pipeline.tuning.search import describe_mean

SPACE = {"model.norm": {"choices": ["pre", "post"]}}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, ""),
        ({"repeats": 2}, ", the mean of 2 seeds"),
        ({"folds": 5}, ", the mean of 5 folds"),
        ({"folds": 5, "repeats": 3}, ", the mean of 5 folds and 3 seeds"),
    ],
)
def test_a_figure_of_several_runs_is_called_their_mean(settings: dict[str, int], words: str) -> None:
    about = {"name": "some", "base": "b.toml", "method": "grid", "space": SPACE, **settings}
    assert describe_mean(SearchConfig.model_validate(about)) == words
