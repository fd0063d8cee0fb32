"""The built-in corpora by name: the generators of their pairs, and the identity of their versions."""

import ast
import hashlib
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tfm.data.corpus_config import PARAMETERS, CorpusConfig

# Built-in corpora are the same for every seed of training, so that scores compare.
SEED = 1
CONTRASTS = 1000  # sentences of each split of a contrast set
WITH_CONTRASTS = ("it",)


def generate(corpus: CorpusConfig) -> Iterator[tuple[str, str]]:
    """The pairs of a built-in corpus: as many as requested, after those to skip."""
    # So says CorpusConfig, which knows the names too.
    assert corpus.path is not None
    assert corpus.split is not None
    assert corpus.size is not None
    names = ("source", "target") if corpus.path == "languages" else PARAMETERS.get(corpus.path, ())
    parameters = {name: getattr(corpus, name) for name in names}
    return _generator(corpus.path)[1](corpus.split, corpus.skip + corpus.size, SEED, **parameters)


def contrast_sets(name: str) -> dict[str, list[dict[str, Any]]]:
    """Contrast sets of a built-in corpus that has them, by split.

    Each has the source, right target, wrong targets and category of a sentence: the sentences with which a recipe's
    test sets of CONTRASTS begin.
    """
    from tfm.data.synthetic import pronouns

    return {
        split: [
            {"category": each.category, "source": each.english, "right": each.german, "wrong": [*each.wrong]}
            for each in {"it": pronouns.examples}[name](split, CONTRASTS, SEED)
        ]
        for split in ("test", "combinations")
    }


def parsed_sentences(name: str) -> Iterator[list[tuple[str, str, int | None, str]]]:
    """The words of the test sentences of a built-in corpus with contrasts: text, tag, governor (from 0), relation."""
    from tfm.data.synthetic import pronouns

    for example in {"it": pronouns.examples}[name]("test", CONTRASTS, SEED):
        yield [*pronouns.parsed(example)]


def scenes(split: str, size: int, skip: int = 0) -> Iterator[tuple[NDArray[np.uint8], tuple[str, ...]]]:
    """Return the images (48, 48, 3) of the built-in corpus `scenes`, each with its captions.

    Args:
        split: of the corpus.
        size: the number of images.
        skip: the number of images to skip before them.
    """
    from tfm.data.synthetic.scenes.corpus import example

    return (example(split, number, SEED) for number in range(skip, skip + size))


@cache
def version(name: str) -> str:
    """The seed of a built-in corpus, and sha256 of the code that makes it: of all that its modules import here.

    Names of files, imports and docstrings do not affect the version.
    """
    waiting = list(_modules(name))
    found = set(waiting)
    while waiting:
        for value in list(vars(waiting.pop()).values()):
            imported = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
            if (
                imported is not None
                and imported.startswith(f"{__package__}.")
                and (module := sys.modules[imported]) not in found
            ):
                found.add(module)
                waiting.append(module)
    codes = sorted(code_of(Path(str(module.__file__)).read_text("utf-8")) for module in found)
    return f"seed {SEED} code {hashlib.sha256(''.join(codes).encode()).hexdigest()}"


def code_of(source: str) -> str:
    """The lines of a Python file without its imports, docstrings and blank lines."""
    left_out: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if is_text or isinstance(node, ast.Import | ast.ImportFrom):
            left_out.update(range(node.lineno, node.end_lineno + 1))  # type: ignore[attr-defined]
    lines = enumerate(source.splitlines(keepends=True), 1)
    return "".join(line for number, line in lines if number not in left_out and line.strip())


def _modules(name: str) -> tuple[ModuleType, ...]:
    """The modules that make a built-in corpus."""
    if name == "scenes":
        from tfm.data.synthetic.scenes import corpus

        return (corpus,)
    return _generator(name)[0]


def _generator(name: str) -> tuple[tuple[ModuleType, ...], Callable[..., Iterator[tuple[str, str]]]]:
    """The modules of a built-in corpus, and the generator of its pairs from (split, size, seed, its parameters)."""
    from tfm.data import typing_errors
    from tfm.data.synthetic import (
        grammar,
        inflection,
        languages,
        programs,
        pronouns,
        spelling,
        string_tasks,  # imported here: whoever only reads lines need not build a grammar
    )

    if name == "inflection":
        return (inflection,), inflection.generate
    if name == "spelling":
        return (spelling, typing_errors), spelling.generate
    if name in programs.PROGRAMS:
        return (programs,), programs.PROGRAMS[name]
    if name == "it":
        return (pronouns,), pronouns.generate
    if name == "languages":
        return (languages,), languages.generate
    return (grammar, string_tasks), {"grammar": grammar.generate, **string_tasks.TOYS}[name]
