"""Word vectors as text, in word2vec's and GloVe's format: each line has a word and its numbers, separated by spaces.

word2vec's format begins with a line that gives the number of words and the width of the vectors; GloVe's does not.
"""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tfm.data.errors import DataError
from tfm.data.lines import open_lines
from tfm.model.config import EMBEDDED_SIDES, ModelConfig
from tfm.pipeline.artifacts.artifact import Input
from tfm.tokenizer.special import SPECIALS
from tfm.tokenizer.tokenizer import Tokenizer

if TYPE_CHECKING:
    from tfm.pipeline.model_io.loaded_model import LoadedModel

Matrix: TypeAlias = NDArray[np.float32]
VECTORS = {"source": "source_vectors", "target": "target_vectors"}
"""The key of ModelConfig for the vectors from which the embedding of a side starts."""
MAX_DIGITS = 18
TABS = "its columns are separated by tabs, and those of word vectors by spaces: convert it, as by `tr '\\t' ' '`"
"""MAX_DIGITS: the most digits of a number in the first line of word2vec's format."""


def places_of(model: ModelConfig) -> dict[str, Path]:
    """The file or folder of vectors, for each side whose embedding starts from them."""
    given = {side: getattr(model, key) for side, key in VECTORS.items()}
    return {side: Path(place) for side, place in given.items() if place is not None}


def vectors_as_inputs(model: ModelConfig) -> dict[str, Input]:
    """The vectors that embeddings start from, as inputs of a training. Raises DataError where there are none."""
    return {VECTORS[side]: _as_input(place) for side, place in places_of(model).items()}


def _as_input(path: Path) -> Input:
    if path.is_dir():
        return Input.of_artifact(path, "train")
    try:
        return Input.of_file(path)
    except FileNotFoundError:
        raise DataError("no such file", file=path) from None


def words_of(tokenizer: Tokenizer) -> dict[str, int]:
    """Return the id of each word that a piece of the vocabulary spells, by rising id.

    If two pieces spell one word, the one that begins a word is taken. Control tokens spell no word, and neither does a
    piece that holds a space.
    """
    inside: dict[str, int] = {}
    begins: dict[str, int] = {}
    for number in range(len(SPECIALS), tokenizer.vocab_size):
        surface = tokenizer.surface(number)
        if surface.split() == [surface.strip()]:
            (begins if surface.startswith(" ") else inside).setdefault(surface.strip(), number)
    return dict(sorted({**inside, **begins}.items(), key=lambda each: each[1]))


def vectors_of(loaded: "LoadedModel", side: str) -> tuple[dict[str, int], Matrix]:
    """Return the words of a side of a model, with the id of each, and the vectors of all ids (V, E).

    A model that reads one side has the vectors of that side, whichever is asked for.
    """
    import torch

    from tfm.model.word_vectors import embedding_table

    read = EMBEDDED_SIDES.get(loaded.config.architecture, (side,))[0]
    if read == "source":
        loaded.check_reads_text("it has no word vectors of its source")
    tokenizer = loaded.source_tokenizer if read == "source" else loaded.target_tokenizer
    device = next(loaded.model.parameters()).device
    with torch.no_grad():
        table = embedding_table(loaded.model, read)(torch.arange(tokenizer.vocab_size, device=device))
    return words_of(tokenizer), table.float().cpu().numpy()


def find_vectors(path: Path, side: str, width: int, wanted: Collection[str]) -> Mapping[str, Matrix]:
    """Read the vectors of the wanted words in a text file, or in the folder of a model.

    Args:
        path: the file or folder.
        side: the embedding of the model, source or target.
        width: the dimension of the vectors (E).
        wanted: the words.

    Returns:
        The vectors (E,) by word.

    Raises:
        DataError: the vectors have another width.
    """
    if not path.is_dir():
        return read_vectors(path, width, wanted)
    from tfm.pipeline.model_io.loaded_model import load_model

    words, vectors = vectors_of(load_model(path, "cpu"), side)
    if vectors.shape[1] != width:
        raise _other_width(vectors.shape[1], width, path, None)
    return {word: vectors[words[word]] for word in wanted if word in words}


def read_vectors(file: Path, width: int, wanted: Collection[str]) -> dict[str, Matrix]:
    """Read the vectors of the wanted words that are in a file; of a word that comes up again, the first.

    The file is read line by line, and may end in .gz.

    Args:
        file: of lines with a word and its vector.
        width: the dimension of the vectors (E).
        wanted: the words.

    Returns:
        The vectors (E,) by word.

    Raises:
        DataError: a vector, whose line is named, is not `width` wide or no vector, or there are fewer or more than the
            file's first line says.
    """
    found: dict[str, Matrix] = {}
    promised, num_vectors = None, 0
    for number, line in enumerate(open_lines(file), 1):
        fields = line.split() if number == 1 else ()
        if len(fields) == 2 and all(field.isdecimal() and len(field) <= MAX_DIGITS for field in fields):
            if "\t" in line:
                raise DataError(TABS, file=file, line=1)
            promised, given = map(int, fields)
            if given != width:
                raise _other_width(given, width, file, number)
            continue
        line = line.rstrip(" ")
        if not line:
            continue
        word, numbers = _parts(line, width, file, number, is_first=num_vectors == 0)
        num_vectors += 1
        if word in wanted and word not in found:
            found[word] = _vector(numbers, file, number)
    if promised is not None and promised != num_vectors:
        problem = f"should have {promised} vectors by its first line, but has {num_vectors}: is it complete?"
        raise DataError(problem, file=file, line=1)
    return found


def _parts(line: str, width: int, file: Path, number: int, *, is_first: bool) -> tuple[str, list[str]]:
    """The word of a line and its numbers; a word may hold spaces (some of GloVe's do), though not the first one."""
    num_spaces = line.count(" ")
    word, *numbers = line.rsplit(" ", width)
    if "\t" in line and num_spaces < width:
        raise DataError(TABS, file=file, line=number)
    if num_spaces < width or (num_spaces > width and (is_first or _is_number(word.rpartition(" ")[2]))):
        raise _other_width(num_spaces, width, file, number)
    return word, numbers


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _vector(numbers: Sequence[str], file: Path, line: int) -> Matrix:
    try:
        with np.errstate(over="ignore"):  # beyond fp32 it is infinite, which is an error below
            vector = np.array([float(each) for each in numbers]).astype(np.float32)
    except ValueError:
        wrong = next(each for each in numbers if not _is_number(each))
        raise DataError(f"{wrong[:40]!r} is not a number", file=file, line=line) from None
    if not np.isfinite(vector).all():
        raise DataError("a vector contains a number that is not finite", file=file, line=line)
    return vector


def _other_width(found: int, wanted: int, path: Path, line: int | None) -> DataError:
    return DataError(
        f"its vectors are {found} wide, and the embedding is {wanted}: set model.embedding_dim = {found}",
        file=path,
        line=line,
    )


def vectors_text(words: Mapping[str, int], vectors: Matrix) -> str:
    """The vectors of some words, by their rows in (V, E), as word2vec writes them; reading gives the same numbers."""
    lines = [f"{len(words)} {vectors.shape[1]}"]
    lines += (f"{word} {' '.join(vectors[row].astype(np.str_))}" for word, row in words.items())
    return "\n".join([*lines, ""])
