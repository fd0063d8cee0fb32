"""Recipe files as they are read: TOML, merged over what they extend, each value with the file that says it."""

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tfm.data.errors import DataError, format_names
from tfm.data.safe_files import read_bounded_file
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.recipes.messages.error_messages import Key, Origin, Origins

MAX_RECIPE_BYTES = 2**20
MAX_NESTING_DEPTH = 50
MAX_EXTENDS_DEPTH = 20
_KEY_PATTERN = r"""(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*"""
# tomllib takes time that grows with the square of such a key's length.
_DEEP_KEY_PATTERN = re.compile(rf"^[ \t]*(?:\[+[ \t]*)?(?:{_KEY_PATTERN}\.[ \t]*){{{MAX_NESTING_DEPTH}}}", re.MULTILINE)


def read_recipe_file(path: Path, origins: Origins, extended_by: tuple[Path, ...] = ()) -> dict[str, Any]:
    """Return a recipe file as nested dicts, merged over the recipe it extends.

    Args:
        path: the file.
        origins: receives the place that set each key.
        extended_by: the recipes that extend this one, the first first.

    Raises:
        RecipeError: the file is no recipe.
    """
    if len(extended_by) >= MAX_EXTENDS_DEPTH:
        first = f"{extended_by[0]} extends {extended_by[1]}, which extends another, and so on"
        raise RecipeError(f"{first}: more than {MAX_EXTENDS_DEPTH} recipes in a row, and tfm reads no more")
    if "\0" not in str(path) and os.path.realpath(path) in map(os.path.realpath, extended_by):
        raise RecipeError(f"{path}: extends itself, by way of {' and '.join(map(str, extended_by))}")
    try:
        raw = parse_toml(path)
    except FileNotFoundError:
        extender = f", which {extended_by[-1]} extends" if extended_by else ""
        with_suffix = path.with_name(f"{path.name}.toml")
        meant = f"; did you mean {with_suffix}?" if not extended_by and os.path.isfile(with_suffix) else ""
        meant = f"; a setting is given by --set {path}" if not extended_by and "=" in path.name else meant
        raise RecipeError(f"{path}: there is no such recipe{extender}{meant}") from None
    if isinstance(raw.get("search"), dict):
        raise RecipeError(f"{path}: has [search], and is for `tfm search`; a recipe is its base")
    base = raw.pop("extends", None)
    if base is None:
        merged = raw
    elif isinstance(base, str):
        merged = read_recipe_file(path.parent / base, origins, (*extended_by, path))
        merged.pop("name", None)  # two runs in one folder would undo each other
        _merge_tables(merged, raw)
    else:
        raise RecipeError(f"{path}: extends must be the name of a recipe file, not {base!r:.60}")
    origins.update(dict.fromkeys(_leaf_keys(raw), Origin(str(path), -len(extended_by))))
    return merged


def parse_toml(path: Path) -> dict[str, Any]:
    """A TOML file as nested dicts.

    Raises:
        RecipeError: it is no file, no TOML, or larger or deeper than any recipe.
        FileNotFoundError: there is no such file.
    """
    try:
        text = read_bounded_file(path, max_bytes=MAX_RECIPE_BYTES, follow_symlinks=True).decode("utf-8-sig")
        if _DEEP_KEY_PATTERN.search(text):
            raise RecursionError
        content = tomllib.loads(text)
    except FileNotFoundError:
        raise
    except DataError as error:
        reason = str(error).removeprefix(f"{path}: ")
        raise RecipeError(
            f"{path}: cannot be read as a recipe: {reason}; a recipe is a file of at most {MAX_RECIPE_BYTES:,} bytes"
        ) from None
    except OSError as error:
        raise RecipeError(f"{path}: cannot be read as a recipe: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise RecipeError(f"{path}: is not a recipe: not UTF-8 text (byte {error.start + 1})") from None
    except ValueError as error:  # TOMLDecodeError, int() of very many digits, and NUL in a file name
        if "\0" in str(path):
            raise RecipeError(f"{str(path)!r}: is not a file name") from None
        raise RecipeError(f"{path}: is not TOML: {format_names([error])}") from None
    except RecursionError:
        raise RecipeError(f"{path}: is not a recipe: nested too deeply") from None
    if _is_too_deep(content):
        raise RecipeError(f"{path}: is not a recipe: nested too deeply")
    return content


def _is_too_deep(content: Mapping[str, Any]) -> bool:
    """Return whether tables and lists are nested deeper than in any recipe."""
    level: list[Any] = [content]
    for _ in range(MAX_NESTING_DEPTH):
        values = [value for each in level for value in (each.values() if isinstance(each, dict) else each)]
        level = [value for value in values if isinstance(value, (dict, list))]
    return bool(level)


def _merge_tables(base: dict[str, Any], overrides: Mapping[str, Any]) -> None:
    for key, value in overrides.items():
        if isinstance(value, Mapping) and isinstance(base.get(key), dict):
            _merge_tables(base[key], value)
        else:
            base[key] = value


def _leaf_keys(raw: Mapping[str, Any], key: Key = ()) -> list[Key]:
    keys: list[Key] = []
    for name, value in raw.items():
        keys += _leaf_keys(value, (*key, name)) if isinstance(value, Mapping) and value else [(*key, name)]
    return keys
