"""The searches that the bench writes are those that it was given, and its table counts them."""

from pathlib import Path

import pytest

from bench.trials import DEFAULT_SEARCH, SearchResult, as_toml, results_table
from tfm.pipeline.tuning.config import load_search
from tfm.pipeline.tuning.search import open_search

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("name", [DEFAULT_SEARCH.name, "demo.toml", "atis.toml"])
def test_a_search_written_down_is_read_as_it_was(name: str, tmp_path: Path) -> None:
    given = load_search(ROOT / "recipes/search" / name)
    content = given.model_dump(mode="json", exclude_none=True)
    (tmp_path / f"{given.name}.toml").write_text(as_toml(content), encoding="utf-8")
    read = load_search(tmp_path / f"{given.name}.toml")
    # the tables of methods, which the bench leaves at their defaults, are those of the file
    assert read == given


def test_the_base_of_the_bench_is_a_recipe(tmp_path: Path) -> None:
    assert open_search(ROOT / DEFAULT_SEARCH, root=tmp_path).trials.config.hours is not None


def test_the_table_has_the_mean_and_the_ends() -> None:
    head, row = results_table({"random": [SearchResult(2.0, 10, 10), SearchResult(1.0, 12, 9)]})
    assert head.split() == ["best", "loss", "lowest", "highest", "trials", "finished"]
    assert row.split() == ["random", "1.5000", "1.0000", "2.0000", "11.0", "9.5"]
