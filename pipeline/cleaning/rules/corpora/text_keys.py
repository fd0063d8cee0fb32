"""64-bit keys of texts: equal texts have equal keys, in every process and on every machine."""

import hashlib
from collections.abc import Callable, Iterable

import numpy as np
import regex
from numpy.typing import NDArray

from tfm.data.lines import normalize_whitespace

Keys = NDArray[np.uint64]
KEY_BYTES = 8
NO_LETTER_PATTERN = regex.compile(
    r"[^\p{L}[[\p{M}&&\p{Alphabetic}]--[\p{Script=Inherited}\p{Script=Arabic}\p{Script=Hebrew}]]]+", flags=regex.V1
)
"""All but letters and signs of vowels that words differ by, as Devanagari and Thai have them; accents, and the points
of Arabic and Hebrew, which are mostly left out in writing, are no letters."""
INVISIBLE_PATTERN = regex.compile(r"[[\p{Cc}--[\t-\r\x1c-\x1f\x85]]\p{Cf}]+", flags=regex.V1)
"""Control characters that are no white space, marks of direction, soft hyphens, spaces and joiners without width."""
DIGITS_PATTERN = regex.compile(r"\p{N}+")


def hash_texts(texts: Iterable[str]) -> Keys:
    """(n,) the key of each text, as it is written."""
    digest = hashlib.blake2b
    digests = b"".join(digest(each.encode("utf-8", "surrogatepass"), digest_size=KEY_BYTES).digest() for each in texts)
    return np.frombuffer(digests, "<u8").astype(np.uint64)


def separate_directions(keys: Keys, languages: tuple[str, str] | None) -> Keys:
    """(n, k) the keys of pairs, which are others in each direction: the same texts are no repetition in another one.

    Args:
        keys: (n, k).
        languages: of sources and targets; None if a corpus does not say them.
    """
    return keys if languages is None else keys ^ hash_texts(["-".join(languages)])


def fold_spelling(text: str) -> str:
    """Return the text without what people do not see: white space, control and format characters (marks of direction,
    soft hyphens, joiners), normal form; and without case.
    """
    if not text.isprintable():
        text = INVISIBLE_PATTERN.sub("", text)
    return (" ".join(text.split()) if text.isascii() else normalize_whitespace(text)).casefold()


def keep_letters(text: str) -> str:
    """Return the letters of a text, small."""
    return str(NO_LETTER_PATTERN.sub("", text)).casefold()


def fold_numbers(text: str) -> str:
    """Return a text with 0 in place of each number, so that the lines of a list are one."""
    return str(DIGITS_PATTERN.sub("0", fold_spelling(text)))


TEXT_NORMALIZERS: dict[str, Callable[[str], str]] = {"nothing": str, "case": fold_spelling, "marks": keep_letters}
"""By what makes no difference: the function that takes it away."""
