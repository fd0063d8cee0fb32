"""Recipe files as they are read: TOML, merged over what they extend, each value with the file that says it."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tfm.pipeline.errors import RecipeError
from tfm.pipeline.recipes.error_messages import Key, Origin, Origins

MAX_BYTES = 2**20


def read(path: Path, origins: Origins, extended_by: tuple[Path, ...] = ()) -> dict[str, Any]:
    """A recipe file as nested dicts, merged over the recipe it extends; notes in `origins` where each value comes from.

    extended_by: the recipes that extend this one, the first first. Raises RecipeError for what is no recipe.
    """
    if path.resolve() in [each.resolve() for each in extended_by]:
        raise RecipeError(f"{path}: extends itself, by way of {' and '.join(map(str, extended_by))}")
    raw = _parse(path, extended_by)
    base = raw.pop("extends", None)
    if base is None:
        merged = raw
    elif isinstance(base, str):
        merged = read(path.parent / base, origins, (*extended_by, path))
        merged.pop("name", None)  # two runs in one folder would undo each other
        _merge(merged, raw)
    else:
        raise RecipeError(f"{path}: extends must be the name of a recipe file, not {base!r:.60}")
    origins.update(dict.fromkeys(_leaves(raw), Origin(str(path), -len(extended_by))))
    return merged


def _parse(path: Path, extended_by: tuple[Path, ...]) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        by = f", which {extended_by[-1]} extends" if extended_by else ""
        raise RecipeError(f"{path}: there is no such recipe{by}") from None
    except OSError as error:
        raise RecipeError(f"{path}: cannot be read as a recipe: {error.strerror}") from None
    except ValueError:
        raise RecipeError(f"{str(path)!r}: is not a file name") from None
    if len(data) > MAX_BYTES:
        raise RecipeError(f"{path}: is not a recipe: larger than {MAX_BYTES} bytes")
    try:
        return tomllib.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise RecipeError(f"{path}: is not a recipe: not UTF-8 text (byte {error.start + 1})") from None
    except ValueError as error:  # TOMLDecodeError, and int() of very many digits
        raise RecipeError(f"{path}: is not TOML: {error}") from None
    except RecursionError:
        raise RecipeError(f"{path}: is not a recipe: nested too deeply") from None


def _merge(under: dict[str, Any], over: Mapping[str, Any]) -> None:
    for key, value in over.items():
        if isinstance(value, Mapping) and isinstance(under.get(key), dict):
            _merge(under[key], value)
        else:
            under[key] = value


def _leaves(raw: Mapping[str, Any], key: Key = ()) -> list[Key]:
    found: list[Key] = []
    for name, value in raw.items():
        found += _leaves(value, (*key, name)) if isinstance(value, Mapping) and value else [(*key, name)]
    return found
