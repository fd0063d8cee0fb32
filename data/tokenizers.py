"""The tokenizers that lie in an artifact."""

from pathlib import Path

from data.errors import DataError
from tokenizer import tokenizer
from tokenizer.tokenizer import Tokenizer


def load_pair(folder: Path) -> tuple[Tokenizer, Tokenizer]:
    """The tokenizers of source and target in a folder, the same one twice where they share a vocabulary.

    Raises DataError naming the file that is none of ours.
    """
    try:
        return tokenizer.load_pair(folder)
    except FileNotFoundError as error:
        raise DataError("there is no tokenizer here", file=error.filename) from None
    except ValueError as error:
        raise DataError(str(error)) from error
