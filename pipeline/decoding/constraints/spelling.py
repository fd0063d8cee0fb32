"""What a user asks a model to write: it is written as asked, or refused."""

from collections.abc import Sequence

from tfm.data.errors import DataError, printable
from tfm.tokenizer.special import UNK_ID
from tfm.tokenizer.tokenizer import Tokenizer

MAX_SHOWN = 40


def encode_spelled(tokenizer: Tokenizer, texts: Sequence[str], what: str) -> list[list[int]]:
    """The ids of texts that a model is to write.

    Args:
        tokenizer: that of the model's targets.
        texts: what it is to write.
        what: what messages call such a text.

    Raises:
        DataError: where the vocabulary cannot spell a part of a text, which would be left out.
    """
    encoded = tokenizer.encode_batch(texts)
    for text, ids in zip(texts, encoded, strict=True):
        if UNK_ID in ids:
            word = next((word for word in text.split() if UNK_ID in tokenizer.encode(word)), text)
            shown = f'"{printable(word[:MAX_SHOWN])}"'
            raise DataError(f"{what} holds {shown}, which the model's vocabulary cannot spell: omit it")
    return encoded
