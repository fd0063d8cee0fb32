"""Several recipes in one command: what two runs share is copied whole, and an error stops as many as it should."""

from pathlib import Path
from typing import Any, get_args

import pytest

from tests.recording_reporter import Listening
from tests.tiny_artifact import make, plan_of
from tfm.model.config import (
    AttentionScore,
    DecoderMaskName,
    LookupKind,
    MixingName,
    Normalization,
    NormPlacement,
    PositionsJoin,
    PositionsName,
    ResidualConnection,
    ValueSource,
)
from tfm.pipeline.artifacts.artifact import open_artifact, stale_reason
from tfm.pipeline.errors import DataError, RecipeError, StoppedError, WriteError
from tfm.pipeline.recipes import chain, recipe_batch
from tfm.pipeline.recipes.recipe import Recipe, load_recipe
from tfm.pipeline.recipes.recipe_batch import copy_same_artifact_of_other_run, load_recipes, parse_seeds, run_recipes
from tfm.pipeline.runtime.progress import NullReporter

VARIANTS = sorted((Path(__file__).parents[4] / "recipes" / "variants").glob("*.toml"))


def recipe(name: str) -> Recipe:
    return Recipe.model_validate({"name": name, "data": {"path": "corpus"}})


def raising(monkeypatch: pytest.MonkeyPatch, errors: dict[str, Exception]) -> list[str]:
    """Stands in for the chain: some runs raise; the names of all that were begun."""
    begun: list[str] = []

    def run(recipe: Recipe, **more: Any) -> None:
        begun.append(recipe.name)
        if recipe.name in errors:
            raise errors[recipe.name]

    monkeypatch.setattr(chain, "run_recipe_stages", run)
    return begun


def test_the_first_error_stops_all(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = raising(monkeypatch, {"b": DataError("bad")})
    with pytest.raises(DataError):
        run_recipes([recipe(name) for name in "abc"], command=[], reporter=NullReporter())
    assert begun == ["a", "b"]


def test_keep_going_runs_all_and_tells_which_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    errors: dict[str, Exception] = {"a": OSError(28, "No space left", "x/y"), "c": WriteError("locked")}
    begun, talk = raising(monkeypatch, errors), Listening()
    failed = run_recipes([recipe(name) for name in "abcd"], keep_going=True, command=[], reporter=talk)
    assert begun == ["a", "b", "c", "d"]
    assert failed == errors
    assert talk.warnings == ["a failed: x/y: No space left", "c failed: locked"]
    assert [line for line in talk.lines if line.startswith("==")][1] == "== b (2 of 4)"


@pytest.mark.parametrize("error", [StoppedError("stopped"), KeyboardInterrupt(), BrokenPipeError()])
def test_who_stops_one_stops_all(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    begun = raising(monkeypatch, {"a": error})
    with pytest.raises(type(error)):
        run_recipes([recipe(name) for name in "ab"], keep_going=True, command=[], reporter=NullReporter())
    assert begun == ["a"]


def test_one_recipe_has_no_heading(monkeypatch: pytest.MonkeyPatch) -> None:
    raising(monkeypatch, {})
    talk = Listening()
    run_recipes([recipe("a")], command=[], reporter=talk)
    assert talk.lines == []


def test_two_recipes_of_one_name_are_refused(tmp_path: Path) -> None:
    files = [tmp_path / "one.toml", tmp_path / "two.toml"]
    for file in files:
        file.write_text('name = "same"\n[data]\npath = "corpus"\n')
    with pytest.raises(RecipeError, match=r'one\.toml and .*two\.toml have the same name, "same"'):
        load_recipes(files)


def test_each_recipe_is_run_with_each_seed_under_a_name_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('seed = 9\n[data]\npath = "corpus"\n')
    (tmp_path / "b.toml").write_text('name = "other"\n[data]\npath = "corpus"\n')
    found = load_recipes([tmp_path / "a.toml", tmp_path / "b.toml"], ["training.max_steps=5"], {}, [1, 20])
    assert [(each.name, each.seed) for each in found] == [("a-1", 1), ("a-20", 20), ("other-1", 1), ("other-20", 20)]
    alone = load_recipe(tmp_path / "a.toml", ["training.max_steps=5"])
    assert [each.model_copy(update={"name": "a", "seed": 9}) for each in found[:2]] == [alone, alone]
    (tmp_path / "b.toml").write_text('name = "a-1"\n[data]\npath = "corpus"\n')
    (tmp_path / "c.toml").write_text('name = "a"\n[data]\npath = "corpus"\n')
    with pytest.raises(RecipeError, match='have the same name, "a-1"'):
        load_recipes([tmp_path / "a.toml", tmp_path / "c.toml"], seeds=[1])
    with pytest.raises(RecipeError, match="--set seed = 3: --seeds sets"):
        load_recipes([tmp_path / "a.toml"], ["seed = 3"], seeds=[1])
    (tmp_path / "c.toml").write_text(f'name = "{"n" * 99}"\n[data]\npath = "corpus"\n')
    with pytest.raises(RecipeError, match="name"):
        load_recipes([tmp_path / "c.toml"], seeds=[12])


def test_a_list_of_seeds_is_read() -> None:
    assert parse_seeds("3") == [3]
    assert parse_seeds("1, 2,0,4294967295") == [1, 2, 0, 4294967295]


@pytest.mark.parametrize("text", ["", "1,", "1,x", "-1", "1.5", "1-3", "4294967296", "٣", "9" * 5000, "1,2,1", "1,01"])
def test_a_bad_list_of_seeds_is_refused(text: str) -> None:
    with pytest.raises(RecipeError, match=r"^--seeds"):
        parse_seeds(text)


def test_an_artifact_of_the_same_plan_is_taken_over_whole(tmp_path: Path) -> None:
    other, mine = plan_of(tmp_path / "other", size=3), plan_of(tmp_path / "mine", size=3)
    make(other)
    talk = Listening()
    copy_same_artifact_of_other_run(mine, [tmp_path / "nowhere", other.folder], ["tfm", "run"], talk)
    assert stale_reason(mine) is None
    made = open_artifact(mine.folder)
    assert made.fingerprint == open_artifact(other.folder).fingerprint
    assert made.figures == open_artifact(other.folder).figures
    assert made.command == ["tfm", "run"]
    assert talk.lines == [f"mine: copied from {other.folder}, which has the same settings and inputs"]


@pytest.mark.parametrize("difference", [{"size": 4}, {"size": 3, "seed": 2}, {"size": 3, "stage": "second"}])
def test_an_artifact_of_another_plan_is_not_taken_over(tmp_path: Path, difference: dict[str, Any]) -> None:
    other, mine = plan_of(tmp_path / "other", size=3), plan_of(tmp_path / "mine", **difference)
    make(other)
    copy_same_artifact_of_other_run(mine, [other.folder], [], NullReporter())
    assert not mine.folder.exists()


def test_neither_a_damaged_artifact_is_taken_over_nor_a_fresh_one_replaced(tmp_path: Path) -> None:
    other, mine = plan_of(tmp_path / "other", size=3), plan_of(tmp_path / "mine", size=3)
    make(other)
    (other.folder / "a.txt").write_text("other")
    copy_same_artifact_of_other_run(mine, [other.folder], [], NullReporter())
    assert not mine.folder.exists()
    make(other, "new")
    make(mine, "own")
    copy_same_artifact_of_other_run(mine, [other.folder], [], NullReporter())
    assert (mine.folder / "a.txt").read_text() == "own"


def test_a_tokenizer_that_failed_runs_left_is_shared_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[Any] = []

    def run(recipe: Recipe, *, on_stage: Any, **more: Any) -> None:
        on_stage("tokenize")
        on_stage("train")
        raise DataError("bad")

    monkeypatch.setattr(chain, "run_recipe_stages", run)
    monkeypatch.setattr(
        recipe_batch,
        "plan_stage",
        lambda recipe, stage, place: plan_of(place.tokenizer) if stage == "tokenize" else None,
    )
    monkeypatch.setattr(
        recipe_batch,
        "copy_same_artifact_of_other_run",
        lambda todo, others, *more: taken.append((todo.folder, list(others))),
    )
    run_recipes([recipe(name) for name in "abc"], keep_going=True, root=tmp_path, command=[], reporter=NullReporter())
    a, b, c = (tmp_path / name / "tokenizer" for name in "abc")
    assert taken == [(b, [a]), (c, [a, b])]


def test_variants_are_of_one_budget_and_there_is_one_of_every_part() -> None:
    recipes = {recipe.name: recipe for recipe in load_recipes(VARIANTS)}
    base = recipes["base"]
    for name, each in recipes.items():
        same = {"name": name, "model": each.model}
        if name == "lstm-sgd":  # a paper's way to train is the part, in as many updates of as many tokens
            update = {key: getattr(each.training, key) for key in ("optimizer", "schedule", "clip_norm")}
            same["training"] = base.training.model_copy(update=update)
        assert each == base.model_copy(update=same), name
        assert (each.model == base.model) == (name == "base"), name
    assert {each.model.residual for each in recipes.values()} == {*get_args(ResidualConnection)}
    parts = {
        "norm": NormPlacement,
        "normalization": Normalization,
        "mixing": MixingName,
        "positions": PositionsName,
        "score": AttentionScore,
    }
    parts |= {"positions_join": PositionsJoin, "lookup": LookupKind, "mask": DecoderMaskName, "values": ValueSource}
    for part, names in parts.items():
        of_imported_models = {"fairseq"}  # the sinusoids of "sinusoidal", counted from elsewhere
        assert {getattr(each.model, part) for each in recipes.values()} == {*get_args(names)} - of_imported_models, part
