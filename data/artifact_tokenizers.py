"""The tokenizers stored in an artifact."""

from pathlib import Path

from tfm.data.errors import DataError
from tfm.data.safe_files import open_regular
from tfm.tokenizer import code_points
from tfm.tokenizer.special import SPECIALS
from tfm.tokenizer.tokenizer import Tokenizer


def load_file(file: Path) -> Tokenizer:
    """Load a tokenizer.json, which may be from elsewhere. Raises DataError with the part that does not fit."""
    try:
        if not file.is_dir():
            open_regular(file).close()
        return code_points.load_tokenizer(file)
    except FileNotFoundError:
        raise DataError("no such file", file=file) from None
    except IsADirectoryError:
        raise DataError("is a folder; give the tokenizer.json in it", file=file) from None
    except ValueError as error:
        names = ", ".join(f"{name} {number}" for number, name in enumerate(SPECIALS))
        raise DataError(f"{error}; its pieces must have contiguous ids from 0, the first {names}") from error


def load_pair(folder: Path) -> tuple[Tokenizer, Tokenizer]:
    """The tokenizers of source and target in a folder, the same one twice where they share a vocabulary.

    Raises DataError naming the file that is not a tokenizer of tfm.
    """
    try:
        return code_points.load_pair(folder)
    except FileNotFoundError as error:
        raise DataError("there is no tokenizer here", file=error.filename) from None
    except ValueError as error:
        raise DataError(str(error)) from error
