"""Opens the study of a search: a new one, or the existing one if it is of the same search."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import optuna
from optuna.storages import BaseStorage
from optuna.study import Study, StudyDirection
from optuna.trial import TrialState

from tfm.data.errors import format_names
from tfm.pipeline.artifacts.no_symlinks import check_no_symlinks
from tfm.pipeline.errors import DataError
from tfm.pipeline.tasks.abilities import LOWER_IS_BETTER
from tfm.pipeline.tuning.config import SearchConfig
from tfm.pipeline.tuning.journal import DAMAGED_JOURNAL_REMEDY, hold_lock
from tfm.pipeline.tuning.space import Configuration, Parameter, list_configurations, sort_keys_in_draw_order
from tfm.pipeline.tuning.storage import hide_password, open_storage, raise_storage_errors
from tfm.pipeline.tuning.study import SEARCH_ATTR, Trials

NO_SEARCH_DESCRIPTION = object()
"""In its place, of a study that does not say it yet."""


def open_trials(
    config: SearchConfig,
    search_settings: Mapping[str, Any],
    parameters: tuple[Parameter, ...],
    folder: Path,
    url: str | None,
    *,
    create: bool = True,
) -> Trials:
    """Open the study of a search: a new one, or the existing one, without writing to it.

    One whose trials have not trained, as an error ended the first, begins anew if the search was changed.

    Args:
        config: the search.
        search_settings: all settings that define the search.
        parameters: its space; a new study draws its keys by name, whatever their order.
        folder: where its runs lie.
        url: the database of the trials; None: a journal in the folder.
        create: whether a study that is not there is made on disk; else there are no trials, and nothing is written.

    Raises:
        DataError: the study there is another search, or holds attributes that no search writes.
        WriteError: the folder holds a link that tfm did not make, or cannot be written.
    """
    check_folder(folder)
    source = str(folder / "trials.journal") if url is None else hide_password(url, url)
    with raise_storage_errors(source):
        storage = open_storage(folder, url, create=create)
        study = None if storage is None else _find_study(storage, config, url)
        study_settings = None if study is None else study.user_attrs.get(SEARCH_ATTR, NO_SEARCH_DESCRIPTION)
    settings, parameters = json.loads(json.dumps(search_settings)), sort_keys_in_draw_order(parameters)
    if isinstance(settings.get("space"), dict):
        settings["space"] = {each.key: settings["space"][each.key] for each in parameters}
    if storage is None or (not create and (study is None or study_settings is NO_SEARCH_DESCRIPTION)):
        empty = optuna.create_study(direction=_study_direction(config))  # in memory
        return Trials(config, parameters, folder, empty, shares_folder=url is None, source=source)
    if study is None or study_settings is NO_SEARCH_DESCRIPTION:
        with hold_lock(folder / ".claim.lock"), raise_storage_errors(source):
            study, study_settings = _open_or_create_study(storage, config, parameters, settings, url)
    if not isinstance(study_settings, Mapping):
        raise DataError(
            f"{SEARCH_ATTR}: {study_settings!r:.60} is no description of a search; {DAMAGED_JOURNAL_REMEDY}",
            file=source,
        )
    changed_keys = sorted(setting_differences(study_settings, settings))
    if not changed_keys and study.directions != [_study_direction(config)]:
        changed_keys = ["direction"]
    if changed_keys and create and url is None:
        with hold_lock(folder / ".claim.lock"), raise_storage_errors(source):
            if not Trials(config, parameters, folder, study, shares_folder=True).has_work():
                optuna.delete_study(study_name=study.study_name, storage=storage)
                study, study_settings = _open_or_create_study(storage, config, parameters, settings, url)
                changed_keys = []
    if changed_keys:
        remedy = "move that folder away" if url is None else "take another database (--storage)"
        raise DataError(
            f"holds the trials of another search, which differs in {format_names(changed_keys[:3])}; give "
            f"this one another name (search.name), or {remedy}",
            file=folder if url is None else source,
        )
    parameters = _order_parameters(study_settings.get("space"), parameters)
    trials = Trials(config, parameters, folder, study, shares_folder=url is None, source=source)
    trials.all_trials()
    return trials


def _order_parameters(space: object, parameters: tuple[Parameter, ...]) -> tuple[Parameter, ...]:
    """The keys in the order in which a study began with them, of which its samplers' draws are a function."""
    places = {key: place for place, key in enumerate(space)} if isinstance(space, Mapping) else {}
    return tuple(sorted(parameters, key=lambda each: places.get(each.key, 0)))


def check_folder(folder: Path) -> None:
    """Raise WriteError if the folder of a search holds a link or special file where the search writes."""
    names = ("trials.journal", "search", "trials", ".trials.lock", ".claim.lock", ".share.lock", ".publish.lock")
    check_no_symlinks(folder, *(folder / name for name in names))
    if (folder / "trials").is_dir():
        check_no_symlinks(folder, *(folder / "trials").iterdir())


def _study_direction(config: SearchConfig) -> StudyDirection:
    return StudyDirection.MINIMIZE if config.metric in LOWER_IS_BETTER else StudyDirection.MAXIMIZE


def _find_study(storage: BaseStorage, config: SearchConfig, url: str | None) -> Study | None:
    """The study that a storage has of this search; a journal's has any name, as a folder may have been renamed."""
    names = optuna.get_all_study_names(storage)
    names = names[:1] if url is None else [name for name in names if name == config.name]
    return optuna.load_study(storage=storage, study_name=names[0]) if names else None


def _open_or_create_study(
    storage: BaseStorage, config: SearchConfig, parameters: tuple[Parameter, ...], settings: Any, url: str | None
) -> tuple[Study, Any]:
    """The study that another worker has begun meanwhile, or a new one; with what it searches."""
    study = _find_study(storage, config, url)
    if study is None:
        # a worker on another machine may begin it meanwhile, in a database that both share
        shared = url is not None
        study = optuna.create_study(
            storage=storage, study_name=config.name, direction=_study_direction(config), load_if_exists=shared
        )
    if SEARCH_ATTR in study.user_attrs:
        return study, study.user_attrs[SEARCH_ATTR]
    if any(each.state != TrialState.WAITING for each in study.get_trials(deepcopy=False)):
        raise ValueError("has trials of an unknown search")
    for configuration in list_configurations(parameters) if config.method == "grid" else ():
        study.enqueue_trial(_to_optuna_values(configuration, parameters), skip_if_exists=True)
    study.set_user_attr(SEARCH_ATTR, settings)
    return study, settings


def _to_optuna_values(configuration: Configuration, parameters: tuple[Parameter, ...]) -> dict[str, Any]:
    """A configuration as Optuna keeps it: values with an order as their place."""
    return {
        parameter.key: (parameter.values or ()).index(configuration[parameter.key])
        if parameter.ordered
        else configuration[parameter.key]
        for parameter in parameters
        if parameter.key in configuration
    }


def setting_differences(before: Mapping[str, Any], after: Mapping[str, Any], key: str = "") -> Iterator[str]:
    """The keys that differ; of the base recipe one that only one of them has came with a later version."""
    shared = before.keys() & after.keys() if key.startswith("recipe.") else before.keys() | after.keys()
    for name in shared:
        yield from _value_differences(before.get(name), after.get(name), f"{key}{name}")


def _value_differences(old: Any, new: Any, key: str) -> Iterator[str]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        yield from setting_differences(old, new, f"{key}.")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for number, pair in enumerate(zip(old, new, strict=True)):
            yield from _value_differences(*pair, f"{key}.{number}")
    elif old != new:
        yield key
