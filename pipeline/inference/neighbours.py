"""A model's word vectors: nearest neighbors, analogies, and a picture in two dimensions.

Legend: n words · V vocabulary · E width.
"""

import difflib
import io
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from operator import not_
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tfm.data.errors import DataError, format_count
from tfm.data.lines import open_lines
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.label_fonts import font_rc_params
from tfm.pipeline.model_io.loaded_model import LoadedModel
from tfm.pipeline.model_io.pretrained_vectors import model_word_vectors
from tfm.pipeline.model_io.vector_files import Matrix, read_vectors
from tfm.pipeline.tasks.abilities import TASK_SPECS

MAX_WORDS_IN_PLOT = 100
PICTURE_SUFFIXES = (".png", ".svg")
_PLOT_STYLE = {"font.size": 8.0, "svg.hashsalt": "tfm", "svg.fonttype": "none"}


@dataclass(frozen=True)
class Neighbour:
    """A word that lies near, and the cosine of the angle between the two vectors."""

    word: str
    cosine: float


@dataclass(frozen=True)
class WordVectors:
    """The word vectors of one side of a model, of a file, or of a text: rows (V, E), and the row of each word.

    owner: whose words they are, in messages.
    """

    rows: Mapping[str, int]
    vectors: Matrix
    owner: str = "the model"

    @classmethod
    def from_model(cls, loaded: LoadedModel, side: str | None) -> "WordVectors":
        """Return the vectors of a side, or of the only side. Raises DataError if no piece spells a word.

        Skip-gram and CBOW have two vectors of each word: "source" is v, by which it predicts, "target" u, by which it
        is predicted. None: the target's embedding, and v.
        """
        rows, vectors = model_word_vectors(loaded, side or "target")
        if side == "target" and TASK_SPECS[loaded.config.task].within_window:
            vectors = loaded.model.output.weight.detach().float().cpu().numpy()
        if not rows:
            raise DataError("no piece of its vocabulary spells a word", file=loaded.folder)
        return cls(rows, vectors)

    @classmethod
    def from_file(cls, file: Path, width: int) -> "WordVectors":
        """Return the vectors of a file, which are `width` wide. Raises DataError if it has none or is damaged."""
        vectors = read_vectors(file, width, None)
        if not vectors:
            raise DataError("has no word", file=file)
        return cls({word: row for row, word in enumerate(vectors)}, np.stack([*vectors.values()]), str(file))

    def __getitem__(self, word: str) -> Matrix:
        """The vector of a word. Raises RecipeError, which names words like it, if it has none."""
        if word not in self.rows:
            raise RecipeError(self.unknown_word_message(word))
        vector: Matrix = self.vectors[self.rows[word]]
        return vector

    def unknown_word_message(self, word: str) -> str:
        """The message on a word that has no vector."""
        similar_words = difflib.get_close_matches(word, self.rows, n=5)
        return f"{self.owner} has no vector for {word!r}" + (
            f"; it has {', '.join(map(repr, similar_words))}" if similar_words else ""
        )

    def nearest(self, vector: Matrix, count: int, exclude: Sequence[str] = ()) -> list[Neighbour]:
        """Find the words with the largest cosine to a vector.

        Args:
            vector: (E,) the vector.
            count: the number of words to return.
            exclude: words to leave out.

        Returns:
            The words, the nearest first.
        """
        norms = np.linalg.norm(self.vectors, axis=1) * np.linalg.norm(vector)
        cosines = (self.vectors @ vector) / np.maximum(norms, np.finfo(np.float32).tiny)
        words = [word for word in self.rows if word not in exclude]
        neighbours = [Neighbour(word, float(cosines[self.rows[word]])) for word in words]
        return sorted(neighbours, key=lambda each: -each.cosine)[:count]

    def analogies(self, first: str, second: str, third: str, count: int) -> list[Neighbour]:
        """Find the words that are to `third` as `second` is to `first` (Mikolov et al. 2013c).

        The result is the words nearest to v_second - v_first + v_third, of unit vectors.

        Args:
            first: a word.
            second: the word that belongs to it.
            third: the word for whose counterpart to look.
            count: the number of words to return.
        """
        first_vector, second_vector, third_vector = (_normalize(self[word]) for word in (first, second, third))
        return self.nearest(second_vector - first_vector + third_vector, count, exclude=(first, second, third))


def _normalize(vector: Matrix) -> Matrix:
    unit: Matrix = vector / max(float(np.linalg.norm(vector)), float(np.finfo(np.float32).tiny))
    return unit


def read_word_classes(file: Path, words: WordVectors) -> dict[str, str]:
    """The words of a file, one a line, and the class of each, which may follow it; "" where none does.

    Raises DataError, with the line, for a word without a vector and a line with more.
    """
    classes: dict[str, str] = {}
    for number, line in enumerate(open_lines(file), 1):
        fields = line.split()
        if len(fields) > 2:
            raise DataError(f"has {format_count(len(fields), 'column')}: a word, and its class", file=file, line=number)
        if fields and fields[0] not in words.rows:
            raise DataError(words.unknown_word_message(fields[0]), file=file, line=number)
        if fields:
            classes[fields[0]] = fields[1] if len(fields) == 2 else ""
    if len(classes) < 2:
        raise DataError("a picture needs two words or more", file=file)
    return classes


def frequent_words_without_class(words: WordVectors) -> dict[str, str]:
    """The words with the lowest ids that have no class: the most frequent ones for kind `word`, and roughly so for
    pieces, after the alphabet.

    Pieces without a letter are no words, and single letters of alphabets that have capitals come last.
    """
    alphabetic_words = [word for word in words.rows if any(map(str.isalpha, word))]
    is_single_letter = [len(word) == 1 and word.lower() != word.upper() for word in alphabetic_words]
    ordered_words = [
        *compress(alphabetic_words, map(not_, is_single_letter)),
        *compress(alphabetic_words, is_single_letter),
    ]
    classes = dict.fromkeys(ordered_words[:MAX_WORDS_IN_PLOT], "")
    if len(classes) < 2:
        raise RecipeError(f"a picture needs two words or more, and the model has {len(classes)}")
    return classes


def principal_components(vectors: Matrix) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Places (n, 2) of vectors (n, E) on the two directions in which they differ most, and the share of their variance
    (2,) that each has.

    X - mean = U S W^T; the places are the first two columns of U S. The largest number of a direction is positive.
    """
    centered = vectors.astype(np.float64) - vectors.mean(0, dtype=np.float64)
    left, singular, right = np.linalg.svd(centered, full_matrices=False)
    signs = np.sign(right[np.arange(len(right)), np.abs(right).argmax(1)])
    coordinates, shares = np.zeros((len(vectors), 2)), np.zeros(2)
    num_directions = min(2, len(singular))
    coordinates[:, :num_directions] = (left * singular * signs)[:, :num_directions]
    shares[:num_directions] = (singular**2)[:num_directions] / max(
        float((singular**2).sum()), np.finfo(np.float64).tiny
    )
    return coordinates, shares


def draw_word_plot(words: WordVectors, class_by_word: Mapping[str, str], file_suffix: str) -> bytes:
    """Draw some words as points of a plane. The same words give the same bytes.

    Args:
        words: the vectors.
        class_by_word: the words, with the class of each or "".
        file_suffix: ".png" or ".svg".

    Returns:
        The bytes of a PNG or SVG file.
    """
    # matplotlib takes most of a second to import: only a drawing pays for it
    import matplotlib
    from matplotlib.figure import Figure

    coordinates, shares = principal_components(words.vectors[[words.rows[word] for word in class_by_word]])
    classes = list(dict.fromkeys(class_by_word.values()))
    with matplotlib.rc_context(_PLOT_STYLE | font_rc_params([*class_by_word, *classes])), warnings.catch_warnings():  # type: ignore[arg-type]
        # a character that the font lacks is drawn as a box
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure = Figure(figsize=(9, 7), layout="constrained")
        axes = figure.subplots()
        for number, name in enumerate(classes):
            color = f"C{number % 10}"
            class_rows = [row for row, each in enumerate(class_by_word.values()) if each == name]
            axes.scatter(coordinates[class_rows, 0], coordinates[class_rows, 1], s=9, color=color, label=name or None)
            for row in class_rows:
                axes.annotate(
                    list(class_by_word)[row],
                    (float(coordinates[row, 0]), float(coordinates[row, 1])),
                    xytext=(2, 2),
                    textcoords="offset points",
                    color=color,
                    parse_math=False,
                )
        axes.set_xlabel(f"first principal component, {100 * shares[0]:.0f} % of the variance")
        axes.set_ylabel(f"second, {100 * shares[1]:.0f} %")
        if any(classes):
            axes.legend(frameon=False)
        buffer = io.BytesIO()
        metadata = {"Software": None} if file_suffix == ".png" else {"Date": None, "Creator": None}
        figure.savefig(buffer, format=file_suffix[1:], dpi=120, metadata=metadata)
    return buffer.getvalue()
