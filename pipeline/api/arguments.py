"""Arguments of Python callers: texts, lists of them, numbers and names, each checked before anything is computed."""

import os
from collections.abc import Iterable, Mapping, Sequence, Set
from operator import index
from pathlib import Path
from typing import Any, Literal, cast, get_args

import numpy as np

from tfm.pipeline.artifacts.files import name_problem
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.runtime.progress import Reporter

Side = Literal["source", "target"]
SIDES = get_args(Side)


def to_text_list(texts: str | Iterable[str], argument_name: str) -> list[str]:
    """Return the texts as a list; a single text is a list of one.

    Args:
        texts: the texts, or one.
        argument_name: the name of the argument, for messages.

    Raises:
        TypeError: the argument is no list of texts, or an item of it is no text; the item is named by its number.
    """
    if isinstance(texts, bytes | Mapping | Set) or not isinstance(texts, Iterable):
        raise TypeError(f"{argument_name} is {type(texts).__name__}: give a str, or a list of str{_path_advice(texts)}")
    text_list = [texts] if isinstance(texts, str) else list(texts)
    for number, text in enumerate(text_list):
        if not isinstance(text, str):
            raise TypeError(f"{argument_name}[{number}] is {type(text).__name__}: give a str{_path_advice(text)}")
    return text_list


def _path_advice(argument: object) -> str:
    """The rest of a message about a path in place of a text; "" for anything else."""
    if not isinstance(argument, os.PathLike):
        return ""
    return ", such as Path.read_text() of a text file, or str() of the name of an image file"


def check_single_text(text: object, argument_name: str) -> str:
    """One text. Raises TypeError for anything else."""
    if not isinstance(text, str):
        raise TypeError(f"{argument_name} is {type(text).__name__}: give one str{_path_advice(text)}")
    return text


def check_folder(folder: object, argument_name: str) -> Path:
    """Return the path of a folder. Raises what `check_path` does, and RecipeError for an empty name."""
    path = check_path(folder, argument_name)
    if not os.fspath(cast("Any", folder)):
        raise RecipeError(f'{argument_name} is empty: give the name of a folder; the working folder is "."')
    return path


def check_file(file: object, argument_name: str) -> Path:
    """Return the path of a file. Raises what `check_path` does, and RecipeError for a path without a file name."""
    path = check_path(file, argument_name)
    if not path.name:
        raise RecipeError(f"{argument_name} {str(path)!r} names no file: give the name of one")
    return path


def check_path(path: object, argument_name: str) -> Path:
    """A path that a file system can be asked for.

    Args:
        path: the argument.
        argument_name: its name, for messages.

    Raises:
        TypeError: the argument is no path.
        RecipeError: no file or folder can have the name: it is too long, or has a character that no name has.
    """
    if not isinstance(path, str | os.PathLike) or isinstance(os.fspath(path), bytes):
        raise TypeError(f"{argument_name} is {type(path).__name__}: give a str or a Path")
    if (problem := name_problem(str(os.fspath(path)))) is not None:
        raise RecipeError(f"{argument_name} {os.fspath(path)[:60]!r} {problem}")
    return Path(path)


def check_reporter(reporter: object) -> Reporter | None:
    """Return the reporter. Raises TypeError if it lacks a method of `Reporter`."""
    methods = [name for name in vars(Reporter) if not name.startswith("_")]
    if reporter is None or all(callable(getattr(reporter, name, None)) for name in methods):
        return cast("Reporter | None", reporter)
    raise TypeError(
        f"reporter is {type(reporter).__name__}: give an object with the methods {', '.join(methods)}, or None"
    )


def check_languages(to: object, source_language: object) -> tuple[str | None, str | None]:
    """The codes of two languages, or None. Raises TypeError for anything else."""
    first, second = (
        None if code is None else check_single_text(code, name)
        for code, name in ((to, "to"), (source_language, "source_language"))
    )
    return first, second


def require_texts(texts: object, argument_name: str, purpose: str) -> list[str]:
    """Return a list of texts.

    Args:
        texts: the texts.
        argument_name: the name of the argument, for messages.
        purpose: the rest of a message: for what each text is.

    Raises:
        TypeError: one text is given, which would be a list of its letters.
    """
    if isinstance(texts, str | bytes | Mapping | Set) or not isinstance(texts, Iterable):
        raise TypeError(f"{argument_name} is {type(texts).__name__}: give a list of str, {purpose}")
    return to_text_list(texts, argument_name)


def flatten_phrases(forced: Iterable[Sequence[str]]) -> list[str]:
    """Lists of phrases, one for each text, as lines with tabs between them."""
    if isinstance(forced, str | bytes) or not isinstance(forced, Iterable):
        raise TypeError(f"forced_in_each is {type(forced).__name__}: give a list of lists of str, one for each text")
    phrase_lists = [
        require_texts(phrases, f"forced_in_each[{number}]", "the phrases of a text")
        for number, phrases in enumerate(forced)
    ]
    for number, phrases in enumerate(phrase_lists):
        if any("\t" in phrase for phrase in phrases):
            raise RecipeError(f"forced_in_each[{number}]: a phrase holds a tab: give two phrases")
    return ["\t".join(phrases) for phrases in phrase_lists]


def check_whole_number(value: object, name: str, minimum: int) -> int:
    """Return an int of any kind, numpy's too, as an int.

    Args:
        value: the argument.
        name: its name, for messages.
        minimum: the least number that is allowed.

    Raises:
        TypeError: the argument is no whole number.
        RecipeError: the number is too small.
    """
    try:
        number = None if isinstance(value, bool | np.bool_) else index(value)  # type: ignore[arg-type]
    except TypeError:
        number = None
    if number is None:
        raise TypeError(f"{name} is {type(value).__name__}: give a whole number")
    if number < minimum:
        raise RecipeError(f"{name} ({number}) must be at least {minimum}")
    return number


def check_optional_bool(value: object, argument_name: str) -> bool | None:
    """True, False, numpy's too, or None. Raises TypeError for anything else: the text "False" would be true."""
    if value is not None and not isinstance(value, bool | np.bool_):
        raise TypeError(f"{argument_name} is {type(value).__name__}: give True or False")
    return None if value is None else bool(value)


def check_single_setting(value: object, argument_name: str) -> object:
    """A number, a text, None, or a list of these; of numpy's numbers and arrays and of tuples Python's own.

    Raises TypeError for anything else.
    """
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [check_single_setting(each, argument_name) for each in value]
    if value is not None and not isinstance(value, int | float | str):
        raise TypeError(f"{argument_name} is {type(value).__name__}: give a number, a str, or a list of str")
    return value


def check_choice(name: object, names: Sequence[str], argument_name: str) -> str:
    """Return a name if it is one of the choices.

    Args:
        name: the argument.
        names: the names that are allowed.
        argument_name: the name of the argument, for messages.

    Raises:
        RecipeError: the name is another.
    """
    if name not in names:
        raise RecipeError(f"{argument_name} = {name!r} is not allowed; it may be {' or '.join(map(repr, names))}")
    return str(name)


def check_side(side: Side | None) -> Side | None:
    """Return the requested side of an embedding. Raises RecipeError for an unknown name."""
    return None if side is None else cast(Side, check_choice(side, SIDES, "side"))
