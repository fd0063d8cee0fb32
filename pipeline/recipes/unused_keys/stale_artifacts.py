"""Artifacts that a stage reads, and that were made by other values of the recipe's keys, which then have no effect.

The places and contents of corpora are not compared: a folder may be renamed.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from tfm.data.corpus_keys.table_keys import drop_unset_keys
from tfm.pipeline.artifacts.artifact import open_artifact
from tfm.pipeline.artifacts.canonical_json import find_differences, to_jsonable
from tfm.pipeline.artifacts.manifest import Manifest
from tfm.pipeline.errors import DataError
from tfm.pipeline.recipes.recipe import Recipe
from tfm.pipeline.reports.model_figures import model_and_training_settings

Values = Mapping[str, Any]

DATASET_KEYS = ("batch_tokens", "limits", "ratios", "split_seed", "fold", "temperature")
"""Keys of [data] that a dataset is made by, beside its corpora."""
TEXT_KEEPING_KEYS = ("batch_sentences", "shortlist")


def stale_artifact_problem(recipe: Recipe, folder: Path, maker: str) -> str | None:
    """Return a key with another value in the recipe than the artifact was made with; None if there is none.

    Args:
        recipe: the recipe.
        folder: the folder of the artifact.
        maker: the stage that makes it.
    """
    if maker not in VALUES_BY_MAKER:
        return None
    try:
        manifest = open_artifact(folder, maker)
    except DataError:  # the stage itself reports it
        return None
    old, new = VALUES_BY_MAKER[maker](manifest, recipe)
    for key, (old_value, new_value) in find_differences(to_jsonable(old), to_jsonable(new)).items():
        return (
            f"{folder} was made with {key} = {old_value!r:.60}: the recipe's {new_value!r:.60} has no effect on it; "
            f"run `tfm {maker}` with the same recipe first"
        )
    return None


def _tokenizer_values(manifest: Manifest, recipe: Recipe) -> tuple[Values, Values]:
    config = recipe.tokenizer
    old, new = manifest.config.get("tokenizer"), config.model_dump(mode="json", exclude=config.keys_without_effect)
    if not isinstance(old, dict):
        return {}, {}
    old, new = _fill_defaults(old, new, type(config))
    return {"tokenizer": old}, {"tokenizer": new}


def _dataset_values(manifest: Manifest, recipe: Recipe) -> tuple[Values, Values]:
    data = manifest.config.get("data")
    if not isinstance(data, dict):
        return {}, {}
    old = {key: data[key] for key in DATASET_KEYS if key in data}
    new = drop_unset_keys(recipe.data.model_dump(mode="json", include=set(old)))
    tests = {"tests": manifest.config.get("tests")} if recipe.data.tests else {}
    return {"data": old | tests}, {"data": new | ({"tests": [*recipe.data.tests]} if tests else {})}


def _model_values(manifest: Manifest, recipe: Recipe) -> tuple[Values, Values]:
    """The parts of a training, but the place of links, which manifests leave out; without [model] where it starts from
    another model, which has the settings of that.
    """
    parts = ("training",) if recipe.training.init_from is not None else ("model", "training")
    old: dict[str, Any] = {"seed": manifest.seed}
    new: dict[str, Any] = {"seed": recipe.seed}
    settings = model_and_training_settings(manifest)
    for part in parts:
        values = settings.get(part)
        if isinstance(values, dict):
            old[part] = values
            new[part] = getattr(recipe, part).model_dump(mode="json", include=set(values))
    if recipe.training.guided_alignment is not None and new.get("training", {}).get("guided_alignment"):
        new["training"]["guided_alignment"].pop("links")
    return old, new


def _translation_values(manifest: Manifest, recipe: Recipe) -> tuple[Values, Values]:
    """The keys of decoding, without those that change no text, and without the place of a shortlist."""
    old = manifest.config.get("decoding")
    if not isinstance(old, dict):
        return {}, {}
    old, new = _fill_defaults(old, recipe.decoding.as_json(), type(recipe.decoding))
    for key in TEXT_KEEPING_KEYS:
        old.pop(key, None)
        new.pop(key, None)
    return {"decoding": old}, {"decoding": new}


def _fill_defaults(old: Values, new: Values, config: type[BaseModel]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Both with the defaults of keys that one of them lacks, as they had no effect."""
    defaults = {key: config.model_fields[key].default for key in {*old, *new} if key in config.model_fields}
    return {**defaults, **old}, {**defaults, **new}


VALUES_BY_MAKER: Mapping[str, Callable[[Manifest, Recipe], tuple[Values, Values]]] = {
    "tokenize": _tokenizer_values,
    "preprocess": _dataset_values,
    "train": _model_values,
    "translate": _translation_values,
}
"""By stage: the values that its artifact was made with, and those of the recipe, by key."""
