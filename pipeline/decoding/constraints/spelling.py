"""Texts that a user asks a model to write: they are written as asked, or refused."""

import unicodedata
from collections.abc import Sequence

from tfm.data.errors import DataError, escape_unprintable
from tfm.tokenizer.special import UNK_ID
from tfm.tokenizer.tokenizer import Tokenizer

MAX_CHARACTERS_SHOWN = 40


def encode_without_unknown(tokenizer: Tokenizer, texts: Sequence[str], what: str) -> list[list[int]]:
    """The ids of texts that a model is to write.

    Args:
        tokenizer: that of the model's targets.
        texts: what it is to write.
        what: what messages call such a text.

    Raises:
        DataError: the vocabulary cannot spell a part of a text, which would be left out, or other letters would be
            written, as where the tokenizer folds case.
    """
    encoded = tokenizer.encode_batch(texts)
    for text, ids in zip(texts, encoded, strict=True):
        if UNK_ID in ids:
            word = next((word for word in text.split() if UNK_ID in tokenizer.encode(word)), text)
            shown = f'"{escape_unprintable(word[:MAX_CHARACTERS_SHOWN])}"'
            raise DataError(f"{what} holds {shown}, which the model's vocabulary cannot spell: remove it")
    for text, written in zip(texts, tokenizer.decode_batch(encoded), strict=True):
        check_letters(text, written, what)
    return encoded


def check_letters(text: str, written: str, what: str) -> None:
    """Check that a text is written as asked, whatever its spaces.

    Args:
        text: what was asked for.
        written: what its pieces are the text of.
        what: what messages call such a text.

    Raises:
        DataError: the tokenizer writes other letters, as where it folds case.
    """
    if _visible_letters(written) != _visible_letters(text):
        given, shown = (f'"{escape_unprintable(each[:MAX_CHARACTERS_SHOWN])}"' for each in (text, written))
        raise DataError(f"{what} {given} would be written as {shown}, as the model's tokenizer spells it: give that")


def _visible_letters(text: str) -> str:
    """The text without white space, in one spelling of each character."""
    return unicodedata.normalize("NFC", "".join(text.split()))
