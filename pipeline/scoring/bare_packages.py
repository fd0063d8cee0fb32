"""Import of a module without what the packages around it import."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec, module_from_spec


@contextmanager
def import_without_package_code(*names: str) -> Iterator[None]:
    """Let modules of these packages be imported without the code of the packages themselves.

    rouge-score needs nltk's Porter stemmer alone, but `import nltk` loads all of nltk, scikit-learn, pandas and
    scipy.stats: three seconds, for words that take milliseconds. Afterwards the packages and their modules are
    forgotten, so that a later `import nltk` imports all of it, as if nothing had been.

    Args:
        names: packages, the outer first; if the first is imported already, nothing is changed.
    """
    outer = names[0]
    if outer in sys.modules:
        yield
        return
    try:
        for name in names:
            spec = find_spec(name)
            if spec is not None:
                sys.modules[name] = module_from_spec(spec)
        yield
    finally:
        for name in [name for name in sys.modules if name == outer or name.startswith(f"{outer}.")]:
            del sys.modules[name]
