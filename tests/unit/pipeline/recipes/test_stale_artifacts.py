"""Models that a recipe has made, and those of other values of its keys."""

from pathlib import Path
from typing import Any

import pytest

from tfm.pipeline.artifacts.artifact import Plan, publish
from tfm.pipeline.recipes.recipe import Recipe
from tfm.pipeline.recipes.unused_keys.stale_artifacts import stale_artifact_problem
from tfm.pipeline.stages.train import _training_settings

GUIDED: dict[str, Any] = {"links": "links.txt", "weight": 0.1}


def recipe_of(**training: Any) -> Recipe:
    return Recipe.model_validate(
        {"name": "small", "data": {"path": "corpus"}, "training": {"max_steps": 1, **training}}
    )


@pytest.mark.parametrize(
    ("made_by", "read_by", "told"),
    [
        ({}, {}, None),
        ({"guided_alignment": GUIDED}, {"guided_alignment": GUIDED}, None),
        ({"guided_alignment": GUIDED}, {"guided_alignment": {**GUIDED, "links": "renamed.txt"}}, None),
        (
            {"guided_alignment": GUIDED},
            {"guided_alignment": {**GUIDED, "weight": 0.2}},
            "training.guided_alignment.weight = 0.1: the recipe's 0.2",
        ),
        ({}, {"guided_alignment": GUIDED}, "training.guided_alignment = None: the recipe's {"),
        ({"guided_alignment": GUIDED}, {}, "training.guided_alignment = {"),
    ],
)
def test_a_model_is_of_a_recipe_if_its_keys_have_the_same_values(
    made_by: dict[str, Any], read_by: dict[str, Any], told: str | None, tmp_path: Path
) -> None:
    config = {"training": _training_settings(recipe_of(**made_by).training)}
    with publish(Plan("train", tmp_path / "model", config, {}, seed=1), command=["test"]) as draft:
        (draft.folder / "config.json").write_text("{}", "utf-8")
    problem = stale_artifact_problem(recipe_of(**read_by), tmp_path / "model", "train")
    assert (problem is None) is (told is None), problem
    assert told is None or told in (problem or "")
