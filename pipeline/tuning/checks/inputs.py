"""The contents that the trials of a search learn from: figures of validation compare only if they are the same.

A study keeps the fingerprint of each input; a trial that would read other contents is refused before it begins.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from tfm.data.corpora.sources import resolve_splits
from tfm.data.errors import format_names
from tfm.data.foreign_tokenizers.loading import tokenizer_files
from tfm.pipeline.alignment.pharaoh import links_input
from tfm.pipeline.artifacts.artifact import Input
from tfm.pipeline.artifacts.corpus_inputs import corpus_inputs
from tfm.pipeline.errors import DataError
from tfm.pipeline.model_io.model_folder import resolve_model_folder
from tfm.pipeline.model_io.pretrained_vectors import vector_inputs
from tfm.pipeline.recipes.recipe import Recipe, load_recipe
from tfm.pipeline.tuning.journal import hold_lock
from tfm.pipeline.tuning.space import Configuration
from tfm.pipeline.tuning.study import SEARCH_ATTR, Trials
from tfm.pipeline.tuning.study_opening import setting_differences

INPUTS_ATTR = "inputs"
"""The attribute of a study that has the fingerprints."""
INPUT_KEYS = (
    *("clean", "data", "tokenizer"),
    *("training.init_from", "training.guided_alignment", "model.source_vectors", "model.target_vectors"),
)
"""Keys, or tables of them, that say which files and texts are read, and how."""
CORPUS_LABEL_PREFIXES = ("train: ", "valid: ")
"""How the labels of corpora begin."""
CORPORA_KEY = "corpora"
"""The key of the labels of all corpora, among the fingerprints."""
BATCHING_KEYS = ("data.batch_tokens", "data.temperature", "data.shard_rows")
"""Keys of [data] that are about texts which were read."""


def varies_inputs(configuration: Configuration) -> bool:
    """Return whether it may be the fault of a configuration that something cannot be read."""
    return any(
        key.startswith(f"{table}.") or key == table
        for key in configuration.keys() - {*BATCHING_KEYS}
        for table in INPUT_KEYS
    )


def check_inputs_unchanged(
    trials: Trials, recipe: Recipe, configuration: Configuration, base: Path, sets: Sequence[str]
) -> None:
    """Check that the inputs of a trial have the contents that they had for the trials before; keep those that are new.

    Inputs that cannot be read are left to the stage that reads them, unless the base recipe has the same problem, which
    then is no fault of the configuration.

    Args:
        trials: the trials of the search.
        recipe: the recipe of the trial.
        configuration: the trial's values of the keys that vary.
        base: the recipe that is varied.
        sets: `--set` texts.

    Raises:
        DataError: an input has changed, or cannot be read in the base recipe either.
    """
    try:
        inputs = _inputs_by_label(recipe)
    except DataError as error:
        if str(error) == _input_problem(load_recipe(base, sets)):
            raise
        return
    of_data = {
        key: value
        for key, value in configuration.items()
        if key.partition(".")[0] == "data" and key not in BATCHING_KEYS
    }
    # a trial may read other columns of one dataset
    data_settings = json.dumps(of_data, sort_keys=True) if of_data else ""
    fingerprints = _fingerprints_by_label(inputs, data_settings)
    with hold_lock(trials.folder / ".claim.lock"):
        study_fingerprints = trials.study.user_attrs.get(INPUTS_ATTR, {})
        if not isinstance(study_fingerprints, dict):
            raise DataError(f"its study has no valid {INPUTS_ATTR!r}: {study_fingerprints!r:.60}", file=trials.folder)
        for key, fingerprint in fingerprints.items():
            if study_fingerprints.get(key, fingerprint) != fingerprint:
                change = _describe_input_change(
                    key.removesuffix(data_settings), str(study_fingerprints[key]), fingerprint
                )
                raise DataError(
                    f"{change} since this search began, and figures of other contents do not compare; restore it, or "
                    "give the search another name (search.name)",
                    file=trials.folder,
                )
        if fingerprints.keys() - study_fingerprints.keys():
            trials.study.set_user_attr(INPUTS_ATTR, {**study_fingerprints, **fingerprints})


def _fingerprints_by_label(inputs: Mapping[str, Input], data_settings: str) -> dict[str, str]:
    """Fingerprints by label and path, so that trials compare whatever both of them read, and the labels of all corpora.

    An input without a path of its own, as columns of a dataset, is told by `data_settings` too, the values of keys of
    the data.
    """
    fingerprints = {}
    for label, input_ in inputs.items():
        is_corpus = label.startswith(CORPUS_LABEL_PREFIXES)
        path = "" if input_.path is None or label.endswith(f": {input_.path}") else f": {input_.path}"
        fingerprints[f"{label}{path}{data_settings if is_corpus and input_.path is None else ''}"] = input_.fingerprint
    fingerprints[f"{CORPORA_KEY}{data_settings}"] = "\n".join(
        sorted(label for label in inputs if label.startswith(CORPUS_LABEL_PREFIXES))
    )
    return fingerprints


def _describe_input_change(key: str, before: str, after: str) -> str:
    """The change of an input, in words."""
    if key != CORPORA_KEY:
        return f"{key} was changed"
    removed, added = set(before.splitlines()) - {*after.splitlines()}, set(after.splitlines()) - {*before.splitlines()}
    parts = [f"{word} {min(labels)}" for word, labels in (("without", removed), ("with", added)) if labels]
    return f"the list of corpora was changed ({', '.join(parts)})"


def check_base_recipe_unchanged(trials: Trials, base: Path, sets: Sequence[str]) -> None:
    """Check that the base recipe has the settings with which the search began: each trial reads it again.

    Raises:
        DataError: it has others.
        RecipeError: it cannot be read.
    """
    study_settings = trials.study.user_attrs.get(SEARCH_ATTR, {})
    settings = {"recipe": json.loads(json.dumps(load_recipe(base, sets).model_dump(mode="json", exclude={"name"})))}
    initial_settings = (
        {"recipe": study_settings["recipe"]}
        if isinstance(study_settings, dict) and "recipe" in study_settings
        else settings
    )
    if keys := sorted(setting_differences(initial_settings, settings)):
        raise DataError(
            f"the base recipe {base} was changed since this search began ({format_names(keys[:3])}), and figures of "
            "other settings do not compare; restore it, or give the search another name (search.name)",
            file=trials.folder,
        )


def _input_problem(recipe: Recipe) -> str | None:
    """Why an input of a recipe cannot be read; None if all can."""
    try:
        _inputs_by_label(recipe)
    except DataError as error:
        return str(error)
    return None


def _inputs_by_label(recipe: Recipe) -> dict[str, Input]:
    """The inputs of a recipe's model, by label: its corpora but the tests, and files of tokenizer and training."""
    splits = resolve_splits(recipe.data)
    inputs = corpus_inputs({"train": splits.train, "valid": splits.valid}, online=recipe.data.online)
    first = None if recipe.training.init_from is None else resolve_model_folder(Path(recipe.training.init_from))
    artifacts = {"tokenizer.source_from": recipe.tokenizer.source_from, "training.init_from": first}
    inputs |= {key: Input.from_artifact(Path(place)) for key, place in artifacts.items() if place is not None}
    if recipe.tokenizer.file is not None and Path(recipe.tokenizer.file).exists():
        inputs |= {
            f"tokenizer.{name}": Input.from_file(file) for name, file in tokenizer_files(recipe.tokenizer).items()
        }
    guide = recipe.training.guided_alignment
    return inputs | vector_inputs(recipe.model) | links_input(None if guide is None else guide.links)
