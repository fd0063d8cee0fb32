"""Texts that a user asks a model to write: they are written as asked, or refused."""

from collections.abc import Sequence

from tfm.data.errors import DataError, escape_unprintable
from tfm.data.lines import normalize
from tfm.tokenizer.special import UNK_ID
from tfm.tokenizer.tokenizer import Tokenizer

MAX_CHARACTERS_SHOWN = 40


def encode_without_unknown(tokenizer: Tokenizer, texts: Sequence[str], description: str) -> list[list[int]]:
    """The ids of texts that a model is to write.

    Args:
        tokenizer: that of the model's targets.
        texts: what it is to write.
        description: what messages call such a text.

    Raises:
        DataError: the vocabulary cannot spell a part of a text, which would be left out, or other letters would be
            written, as where the tokenizer folds case.
    """
    encoded = tokenizer.encode_batch(texts)
    for text, ids in zip(texts, encoded, strict=True):
        if UNK_ID in ids:
            word = next((word for word in text.split() if UNK_ID in tokenizer.encode(word)), text)
            excerpt = f'"{escape_unprintable(word[:MAX_CHARACTERS_SHOWN])}"'
            raise DataError(f"{description} holds {excerpt}, which the model's vocabulary cannot spell: remove it")
    for text, decoded_text in zip(texts, tokenizer.decode_batch(encoded), strict=True):
        check_same_letters(text, decoded_text, description)
    return encoded


def check_same_letters(text: str, decoded_text: str, description: str) -> None:
    """Check that a text is written as asked, whatever its spaces.

    Args:
        text: what was asked for.
        decoded_text: what its pieces are the text of.
        description: what messages call such a text.

    Raises:
        DataError: the tokenizer writes other letters, as where it folds case.
    """
    if _visible_letters(decoded_text) != _visible_letters(text):
        excerpt, decoded_excerpt = (
            f'"{escape_unprintable(each[:MAX_CHARACTERS_SHOWN])}"' for each in (text, decoded_text)
        )
        raise DataError(
            f"{description} {excerpt} would be written as {decoded_excerpt}, as the model's tokenizer spells it: "
            "give that"
        )


def _visible_letters(text: str) -> str:
    """The text without white space, in one spelling of each character."""
    return normalize("NFC", "".join(text.split()))
