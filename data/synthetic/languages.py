"""The built-in corpus `languages`: the same meanings in English (eng), German (deu) and Hindi (hin).

German and Hindi nouns have genders of their own, and three orders of words meet: subject-verb-object, verb-second,
subject-object-verb. Each sentence of a language has one translation in each of the others. The split "combinations" has
the verbs with objects with which no other split has them.
"""

from collections.abc import Callable, Iterator, Mapping
from hashlib import blake2b

from tfm.data.errors import DataError
from tfm.data.synthetic.language.phrases import SeededRandom
from tfm.data.synthetic.meaning import english, german, hindi
from tfm.data.synthetic.meaning.meaning import Meaning, draw_meaning
from tfm.data.synthetic.string_tasks import split_of

SPLITS = ("train", "valid", "test", "combinations")
HELD_OUT_SHARE = 0.04
SENTENCE_REALIZERS: Mapping[str, Callable[[Meaning], str]] = {
    "eng": english.realize_sentence,
    "deu": german.realize_sentence,
    "hin": hindi.realize_sentence,
}
"""Functions from a meaning to a sentence of each language, by its code in ISO 639-3."""


def is_held_out(verb: str, noun: str) -> bool:
    """Whether a verb has a noun as its object in the split "combinations" alone."""
    return int.from_bytes(blake2b(f"{verb} {noun}".encode(), digest_size=8).digest(), "big") < HELD_OUT_SHARE * 2**64


def generate_meanings(split: str, size: int, seed: int) -> Iterator[Meaning]:
    """Yield different meanings, a pure function of the arguments; a longer run begins alike.

    Args:
        split: one of SPLITS.
        size: the number of meanings.
        seed: of the draws.

    Raises:
        DataError: there is no such split.
    """
    if split not in SPLITS:
        raise DataError(f"the built-in corpus `languages` has no split {split!r}; choose one of {', '.join(SPLITS)}")
    draw = SeededRandom(f"languages {split} {seed}")
    seen: set[str] = set()
    while len(seen) < size:
        meaning = draw_meaning(draw)
        text = english.realize_sentence(meaning)
        held_out = any(is_held_out(*pair) for pair in meaning.verb_object_pairs)
        if (("combinations" if held_out else split_of(text)) == split) and text not in seen:
            seen.add(text)
            yield meaning


def generate(split: str, size: int, seed: int, *, source: str | None, target: str) -> Iterator[tuple[str, str]]:
    """Yield the pairs of two languages: the same meanings whichever they are.

    Args:
        split: one of SPLITS.
        size: the number of pairs.
        seed: of the draws.
        source: the code of the source's language; None: sources are empty.
        target: the code of the target's language.
    """
    for meaning in generate_meanings(split, size, seed):
        yield "" if source is None else SENTENCE_REALIZERS[source](meaning), SENTENCE_REALIZERS[target](meaning)
