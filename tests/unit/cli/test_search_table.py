"""The table of a search on a terminal."""

import pytest

from tfm.cli.commands.recipes.search import describe_trials_shown, trials_table
from tfm.pipeline.tuning.results import SearchResults, TrialResult


@pytest.mark.parametrize(("num", "wanted"), [(10, "first"), (11, "10 of them")])
def test_the_title_says_where_trials_are_left_out(num: int, wanted: str) -> None:
    trials = tuple(TrialResult(number, {}, "finished", "", 0.0 + number, (), (), 1, 1.0, None) for number in range(num))
    assert describe_trials_shown(num) == wanted
    assert len(trials_table(SearchResults("loss", trials, trials, (), {}), [])[1]) == 10
