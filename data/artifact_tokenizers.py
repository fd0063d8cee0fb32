"""The tokenizers stored in an artifact."""

from pathlib import Path

from tfm.data.errors import DataError
from tfm.tokenizer import code_points
from tfm.tokenizer.tokenizer import Tokenizer


def load_tokenizer_pair(folder: Path) -> tuple[Tokenizer, Tokenizer]:
    """The tokenizers of source and target in a folder, the same one twice where they share a vocabulary.

    Raises DataError naming the file that is not a tokenizer of tfm.
    """
    try:
        return code_points.load_pair(folder)
    except FileNotFoundError as error:
        raise DataError("there is no tokenizer here", file=error.filename) from None
    except ValueError as error:
        raise DataError(str(error)) from error
