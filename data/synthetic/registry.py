"""The built-in corpora by name: the generators of their pairs, and the identity of their versions."""

import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tfm.data.corpus_config import CorpusConfig
from tfm.data.corpus_keys.built_in_corpora import GENERATOR_PARAMETERS
from tfm.data.synthetic.code_hash import hash_code

if TYPE_CHECKING:
    from tfm.data.synthetic.gold_alignments.links import GoldAlignment

# Built-in corpora are the same for every seed of training, so that scores compare.
SEED = 1
NUM_CONTRAST_EXAMPLES = 1000  # sentences of each split of a contrast set
GENERATORS_WITH_CONTRASTS = ("it",)
NUM_ALIGNED_SENTENCES = 1000
GENERATORS_WITH_ALIGNMENTS = ("grammar",)
PUBLISHED_HASHES = {
    "008228f99843b3bd": "b2e66cfcc0e1190a4b3fe0381d606bf4c119231cec5200bed21fe4607832da1c",
    "7aff6eb6aadb63db": "8a62cb423adfede63a4efd5ca57b8518abba4274620960a41693585a0ea9e145",
    "7e2d2b1507b0c96e": "9ca2c11ec6807977cded98c8e53dc2e412f6ed6955bb1c69717cf96343855a00",
    "9483d4cc1d300352": "c6f27f61348662a7b182b9347e5ba8bc0a4e867954081fdd3e17dc29b21f1f5e",
    "94a4bb61851306a6": "8c2a00f48e0f01add3aad80804c329261418e1c135a2e867d4efcc9c9a8485bc",
    "e5d40393bfc1406c": "3e5bbdcb9b1b08b82b86f46fa835167a46cba56e071a7d1c9de193068581c80d",
    "ee96a9889a7ae6e2": "c2f97d03e0c1e5a604366a6625eb4cbd2f3fcb8d057908418aec78e2db2fe311",
}
"""The hash that artifacts store for a corpus, by the first 16 digits of its code's hash, which renaming changes."""


def generate(corpus: CorpusConfig) -> Iterator[tuple[str, str]]:
    """The pairs of a built-in corpus: as many as requested, after those to skip."""
    # CorpusConfig checks these, and the names of corpora.
    assert corpus.path is not None
    assert corpus.split is not None
    assert corpus.size is not None
    names = ("source", "target") if corpus.path == "languages" else GENERATOR_PARAMETERS.get(corpus.path, ())
    parameters = {name: getattr(corpus, name) for name in names}
    return _corpus_modules_and_generator(corpus.path)[1](corpus.split, corpus.skip + corpus.size, SEED, **parameters)


def contrast_sets(name: str) -> dict[str, list[dict[str, Any]]]:
    """Contrast sets of a built-in corpus that has them, by split.

    Each contrast has the source, right target, wrong targets and category of a sentence. The test sets of a recipe
    begin with these sentences.
    """
    from tfm.data.synthetic import pronouns

    return {
        split: [
            {"category": each.category, "source": each.english, "right": each.german, "wrong": [*each.wrong]}
            for each in {"it": pronouns.generate_examples}[name](split, NUM_CONTRAST_EXAMPLES, SEED)
        ]
        for split in ("test", "combinations")
    }


def parsed_sentences(name: str) -> Iterator[list[tuple[str, str, int | None, str]]]:
    """The words of the test sentences of a built-in corpus with contrasts: text, tag, governor (from 0), relation."""
    from tfm.data.synthetic import pronouns

    for example in {"it": pronouns.generate_examples}[name]("test", NUM_CONTRAST_EXAMPLES, SEED):
        yield [*pronouns.parse_example(example)]


def aligned_sentences(name: str) -> Iterator[tuple[str, str, "GoldAlignment"]]:
    """The test sentences of a built-in corpus of GENERATORS_WITH_ALIGNMENTS, in both languages, and their links."""
    from tfm.data.synthetic import grammar
    from tfm.data.synthetic.gold_alignments.links import align_grammar_sentences

    for english, german in {"grammar": grammar.generate}[name]("test", NUM_ALIGNED_SENTENCES, SEED):
        yield english, german, align_grammar_sentences(english, german)


def generate_scenes(split: str, size: int, skip: int = 0) -> Iterator[tuple[NDArray[np.uint8], tuple[str, ...]]]:
    """Return the images (48, 48, 3) of the built-in corpus `scenes`, each with its captions.

    Args:
        split: of the corpus.
        size: the number of images.
        skip: the number of images to skip before them.
    """
    from tfm.data.synthetic.scenes.corpus import draw_image_and_captions

    return (draw_image_and_captions(split, number, SEED) for number in range(skip, skip + size))


@cache
def corpus_version(name: str) -> str:
    """The seed of a built-in corpus, and a hash of the code that makes it: its modules and their imports from here."""
    unvisited = list(_corpus_modules(name))
    modules = set(unvisited)
    while unvisited:
        for value in list(vars(unvisited.pop()).values()):
            imported = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
            if (
                imported is not None
                and imported.startswith(f"{__package__}.")
                and (module := sys.modules[imported]) not in modules
            ):
                modules.add(module)
                unvisited.append(module)
    code = hash_code(Path(str(module.__file__)).read_text("utf-8") for module in modules)
    return f"seed {SEED} code {PUBLISHED_HASHES.get(code[:16], code)}"


def _corpus_modules(name: str) -> tuple[ModuleType, ...]:
    """The modules that make a built-in corpus."""
    if name == "scenes":
        from tfm.data.synthetic.scenes import corpus

        return (corpus,)
    return _corpus_modules_and_generator(name)[0]


def _corpus_modules_and_generator(name: str) -> tuple[tuple[ModuleType, ...], Callable[..., Iterator[tuple[str, str]]]]:
    """The modules of a built-in corpus, and the generator of its pairs from (split, size, seed, its parameters)."""
    from tfm.data import typing_errors
    from tfm.data.synthetic import (
        grammar,
        inflection,
        languages,
        programs,
        pronouns,
        spelling,
        string_tasks,  # imported here, since reading lines needs no grammar
    )

    if name == "inflection":
        return (inflection,), inflection.generate
    if name == "spelling":
        return (spelling, typing_errors), spelling.generate
    if name in programs.PROGRAM_GENERATORS:
        return (programs,), programs.PROGRAM_GENERATORS[name]
    if name == "it":
        return (pronouns,), pronouns.generate
    if name == "languages":
        return (languages,), languages.generate
    return (grammar, string_tasks), {"grammar": grammar.generate, **string_tasks.STRING_TASKS}[name]
