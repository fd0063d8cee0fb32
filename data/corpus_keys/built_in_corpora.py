"""The built-in corpora of a recipe by name, the keys that only they have, and which values go together."""

from typing import Any, Literal, get_args

GeneratorName = Literal[
    "grammar", "it", "languages", "copy", "reverse", "sort", "addition", "programs",
    "inflection", "spelling", "scenes",
]  # fmt: skip
GENERATOR_PARAMETERS: dict[str, tuple[str, ...]] = {
    "addition": ("length", "mix"),
    "programs": ("length", "nesting", "mix"),
}
"""The keys that choose texts of a built-in corpus; corpora that are not here have one kind of text."""
BUILT_IN_LANGUAGES = ("eng", "deu", "hin")
"""The columns of the built-in corpus `languages`."""


def required_keys_problem(corpus: Any) -> str | None:
    """The problem of a built-in corpus (a CorpusConfig) with an unknown name or without a required key, or None."""
    if corpus.format != "generated":
        return None
    if corpus.path not in get_args(GeneratorName):
        return f'there is no built-in corpus "{corpus.path}"; there are {", ".join(get_args(GeneratorName))}'
    if corpus.split is None or corpus.size is None:
        return f'the built-in corpus "{corpus.path}" needs `split` and `size`'
    return None


def has_built_in_languages(corpus: Any) -> bool:
    """Whether a corpus (a CorpusConfig) is the built-in one of three languages."""
    return bool(corpus.format == "generated" and corpus.path == "languages")


def language_columns_problem(corpus: Any) -> str | None:
    """The problem of the columns of the built-in corpus `languages`; None if they are right, or for another corpus."""
    if not has_built_in_languages(corpus):
        return None
    for name, side in (("source", corpus.source), ("target", corpus.target)):
        if side is not None and side not in BUILT_IN_LANGUAGES:
            names = ", ".join(BUILT_IN_LANGUAGES)
            return f'`{name}` of the built-in corpus "languages" is one of {names}, not "{side}"'
    return None


def language_codes_problem(corpus: Any) -> str | None:
    """The problem of language codes that are not those of the columns of the built-in corpus `languages`, or None."""
    if corpus.languages is None or not has_built_in_languages(corpus):
        return None
    for name, code in (("source", corpus.source_language), ("target", corpus.target_language)):
        if code != getattr(corpus, name):
            return f'`{name}_language` is "{code}", but `{name}` is "{getattr(corpus, name)}"'
    return None
    return None


def parameters_problem(corpus: Any) -> str | None:
    """The problem of a corpus (a CorpusConfig) that lacks a parameter of its generator, or has one that is not its."""
    parameters = GENERATOR_PARAMETERS.get(str(corpus.path), ()) if corpus.format == "generated" else ()
    for name in ("length", "nesting", "mix"):
        value = getattr(corpus, name)
        if value is None and name in parameters:
            return f'the built-in corpus "{corpus.path}" needs `{name}`'
        if value not in (None, False) and name not in parameters:
            paths = " and ".join(f'"{path}"' for path, names in GENERATOR_PARAMETERS.items() if name in names)
            return f"`{name}` is only for built-in corpora: {paths}"
    return None
