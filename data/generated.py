"""The built-in corpora by name: what makes their pairs, and what tells one version of them from another."""

import hashlib
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

from data.config import PARAMETERS, CorpusConfig

# Built-in corpora are the same for every seed of training, so that scores compare.
SEED = 1


def generate(corpus: CorpusConfig) -> Iterator[tuple[str, str]]:
    """The pairs of a built-in corpus; as many as are asked for, after those that are to be passed over."""
    # So says CorpusConfig, which knows the names too.
    assert corpus.path is not None
    assert corpus.split is not None
    assert corpus.size is not None
    parameters = {name: getattr(corpus, name) for name in PARAMETERS.get(corpus.path, ())}
    return _generator(corpus.path)[1](corpus.split, corpus.skip + corpus.size, SEED, **parameters)


@cache
def version(name: str) -> str:
    """The seed of a built-in corpus, and sha256 of the source files that make it: of all that they import here."""
    waiting = list(_generator(name)[0])
    found = set(waiting)
    while waiting:
        for value in list(vars(waiting.pop()).values()):
            imported = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
            if imported is not None and imported.startswith("data.") and (module := sys.modules[imported]) not in found:
                found.add(module)
                waiting.append(module)
    digest = hashlib.sha256()
    for file in sorted(str(module.__file__) for module in found):
        digest.update(Path(file).read_bytes())
    return f"seed {SEED} code {digest.hexdigest()}"


def _generator(name: str) -> tuple[tuple[ModuleType, ...], Callable[..., Iterator[tuple[str, str]]]]:
    """The modules of a built-in corpus, and what makes its pairs of (split, size, seed, its parameters)."""
    from data import grammar, programs, toys  # imported here: whoever only reads lines need not build a grammar

    if name in programs.PROGRAMS:
        return (programs,), programs.PROGRAMS[name]
    return (grammar, toys), {"grammar": grammar.generate, **toys.TOYS}[name]
