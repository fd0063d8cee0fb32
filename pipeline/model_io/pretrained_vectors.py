"""Word vectors that embeddings start from, and those of a model, as word2vec's text format has them."""

import gzip
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tfm.data.compression.files import COMPRESSION_ENDINGS
from tfm.data.errors import DataError
from tfm.model.config import ModelConfig
from tfm.pipeline.artifacts.artifact import Input
from tfm.pipeline.model_io.vector_files import Matrix, read_vectors, width_error
from tfm.tokenizer.special import SPECIAL_TOKENS
from tfm.tokenizer.tokenizer import Tokenizer

if TYPE_CHECKING:
    from tfm.pipeline.model_io.loaded_model import LoadedModel

VECTOR_KEYS = {"source": "source_vectors", "target": "target_vectors"}
"""The key of ModelConfig for the vectors from which the embedding of a side starts."""


def vector_paths(model: ModelConfig) -> dict[str, Path]:
    """The file or folder of vectors, for each side whose embedding starts from them."""
    paths = {side: getattr(model, key) for side, key in VECTOR_KEYS.items()}
    return {side: Path(path) for side, path in paths.items() if path is not None}


def vector_inputs(model: ModelConfig) -> dict[str, Input]:
    """The vectors that embeddings start from, as inputs of a training. Raises DataError if there are none."""
    return {VECTOR_KEYS[side]: _vectors_input(path) for side, path in vector_paths(model).items()}


def _vectors_input(path: Path) -> Input:
    if path.is_dir():
        return Input.from_artifact(path, "train")
    try:
        return Input.from_file(path)
    except FileNotFoundError:
        raise DataError("no such file", file=path) from None


def word_ids(tokenizer: Tokenizer) -> dict[str, int]:
    """Return the id of each word that a piece of the vocabulary spells, by rising id.

    If two pieces spell one word, the one that begins a word is taken. Control tokens spell no word, and neither does a
    piece that holds a space.
    """
    ids: dict[str, int] = {}
    begins: dict[str, int] = {}
    for number in range(len(SPECIAL_TOKENS), tokenizer.vocab_size):
        surface = tokenizer.surface(number)
        if surface.split() == [surface.strip()]:
            (begins if surface.startswith(" ") else ids).setdefault(surface.strip(), number)
    return dict(sorted({**ids, **begins}.items(), key=lambda each: each[1]))


def model_word_vectors(loaded: "LoadedModel", side: str) -> tuple[dict[str, int], Matrix]:
    """Return the words of a side of a model, with the id of each, and the vectors of all ids (V, E).

    A model that reads one side has the vectors of that side, whichever is asked for. Raises DataError if they are no
    numbers.
    """
    import torch

    from tfm.model.word_vectors import embedding_table

    sides = loaded.config.embedded_sides
    read = side if side in sides else sides[0]
    if read == "source":
        loaded.check_reads_text("it has no word vectors of its source")
    tokenizer = loaded.source_tokenizer if read == "source" else loaded.target_tokenizer
    device = next(loaded.model.parameters()).device
    with torch.no_grad():
        table = embedding_table(loaded.model, read)(torch.arange(tokenizer.vocab_size, device=device))
    vectors: Matrix = table.float().cpu().numpy()
    if not np.isfinite(vectors).all():
        problem = "a word vector has a number that is not finite: its weights are broken (did training diverge?)"
        raise DataError(problem, file=loaded.folder)
    return word_ids(tokenizer), vectors


def read_wanted_vectors(path: Path, side: str, width: int, vocabulary: Collection[str]) -> Mapping[str, Matrix]:
    """Read the vectors of the words of a vocabulary that are in a text file, or in the folder of a model.

    Args:
        path: the file or folder.
        side: the embedding of the model, source or target.
        width: the dimension of the vectors (E).
        vocabulary: the words.

    Returns:
        The vectors (E,) by word.

    Raises:
        DataError: the vectors have another width.
    """
    if not path.is_dir():
        return read_vectors(path, width, vocabulary)
    from tfm.pipeline.model_io.loaded_model import load_model

    words, vectors = model_word_vectors(load_model(path, "cpu"), side)
    if vectors.shape[1] != width:
        raise width_error(vectors.shape[1], width, path, None)
    return {word: vectors[words[word]] for word in vocabulary if word in words}


def vectors_name_problem(name: str) -> str | None:
    """Why vectors are not written into a file of this name; None if they are."""
    is_compressed_otherwise = name.endswith(COMPRESSION_ENDINGS) and not name.endswith(".gz")
    return "of compressed vectors its name ends in .gz" if is_compressed_otherwise else None


def encode_vectors(words: Mapping[str, int], vectors: Matrix, name: str) -> bytes:
    """The bytes of a file of vectors in the format that its name says: word2vec's binary one (.bin), or text; .gz.

    Args:
        words: the words, with their rows.
        vectors: (V, E), the vectors.
        name: of the file.

    Raises:
        DataError: a word cannot be written in the binary format.
    """
    is_binary = name.removesuffix(".gz").endswith(".bin")
    content = pack_vectors(words, vectors) if is_binary else format_vectors(words, vectors).encode()
    return gzip.compress(content, mtime=0) if name.endswith(".gz") else content


def pack_vectors(words: Mapping[str, int], vectors: Matrix) -> bytes:
    """The vectors of some words, by their rows in (V, E), in word2vec's binary format.

    Raises:
        DataError: a word holds a space, which ends a word there.
    """
    if (word := next((word for word in words if " " in word), None)) is not None:
        raise DataError(
            f"the word {word!r:.80} holds a space, which ends a word in word2vec's binary format: write text"
        )
    rows = (word.encode() + b" " + vectors[row].astype("<f4").tobytes() + b"\n" for word, row in words.items())
    return b"".join([f"{len(words)} {vectors.shape[1]}\n".encode(), *rows])


def format_vectors(words: Mapping[str, int], vectors: Matrix) -> str:
    """The vectors of some words, by their rows in (V, E), as word2vec writes them; reading gives the same numbers."""
    lines = [f"{len(words)} {vectors.shape[1]}"]
    lines += (f"{word} {' '.join(vectors[row].astype(np.str_))}" for word, row in words.items())
    return "\n".join([*lines, ""])
