"""Tables of `tfm embed`: nearest words, probabilities of pairs, a word in its contexts, and what WordNet says of it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tfm.cli.options import Device
from tfm.pipeline.model_io.model_folder import resolve_model_folder

if TYPE_CHECKING:
    from tfm.pipeline.inference.neighbours import Neighbour, WordVectors
    from tfm.pipeline.model_io.loaded_model import LoadedModel


class TitledTable(NamedTuple):
    """A table with a title; as JSON, its rows are objects."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[object, ...]]

    def as_json(self) -> list[dict[str, object]]:
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def formatted_rows(self) -> list[tuple[object, ...]]:
        """The rows with rounded numbers."""
        return [tuple(_round_for_display(each) for each in row) for row in self.rows]


@dataclass(frozen=True)
class VectorsWithOrigin:
    """Word vectors, and what they are of.

    Args:
        vectors: the vectors.
        model: the model; None for a file.
        text_lines: the text; empty for a model.
        context_window: how far neighbors in the text stand from a word.
    """

    vectors: "WordVectors"
    model: "LoadedModel | None" = None
    text_lines: tuple[str, ...] = ()
    context_window: int = 0


def vectors_of_text(file: Path, window: int | None, *, one_hot: bool) -> VectorsWithOrigin:
    """Return the count vectors of a text file's words, or their one-hot vectors.

    Args:
        file: the text.
        window: how far neighbors stand from a word; None for the default.
        one_hot: one-hot vectors in place of counts.
    """
    from tfm.cli.console import make_reporter
    from tfm.data.lines import open_lines
    from tfm.pipeline.text_files import check_text_file
    from tfm.pipeline.words.concordance import DEFAULT_WINDOW, count_vectors, one_hot_vectors

    check_text_file(file, make_reporter())
    lines, window = tuple(open_lines(file)), window or DEFAULT_WINDOW
    return VectorsWithOrigin(one_hot_vectors(lines) if one_hot else count_vectors(lines, window), None, lines, window)


def vectors_of_file(file: Path, width: int) -> VectorsWithOrigin:
    """Return the word vectors of a file, which are `width` wide."""
    from tfm.pipeline.inference.neighbours import WordVectors

    return VectorsWithOrigin(WordVectors.from_file(file, width))


def vectors_of_model(model: Path, side: str | None, device: Device) -> VectorsWithOrigin:
    """Return the word vectors of a model, of a side or of its only one.

    Args:
        model: the folder of the model or its run.
        side: source or target; None for the default.
        device: name of the device; None for the default.
    """
    from tfm.pipeline.inference.neighbours import WordVectors
    from tfm.pipeline.model_io.loaded_model import load_model

    loaded = load_model(resolve_model_folder(model), device or "auto")
    return VectorsWithOrigin(WordVectors.from_model(loaded, side), loaded)


def iterate_word_tables(
    word_vectors: VectorsWithOrigin,
    nearest: Iterable[str],
    analogy: tuple[str, str, str] | None,
    pair: tuple[str, str] | None,
    concordance: Iterable[str],
    wordnet: Path | None,
    count: int,
) -> Iterator[TitledTable]:
    """Yield all tables that were asked for.

    Args:
        word_vectors: the vectors.
        nearest: words whose neighbors are listed.
        analogy: three words; None for none.
        pair: a word and its neighbor; None for none.
        concordance: words of the text that are shown in their contexts.
        wordnet: a folder of WordNet, which is asked for the words of `nearest`; None for none.
        count: the most rows of a table.
    """
    for word in nearest:
        yield _cosine_table(word, word_vectors.vectors.nearest(word_vectors.vectors[word], count, exclude=(word,)))
        if wordnet is not None:
            yield wordnet_table(word, wordnet)
    if analogy is not None:
        first, second, third = analogy
        yield _cosine_table(
            f"{second} - {first} + {third}", word_vectors.vectors.analogies(first, second, third, count)
        )
    if pair is not None:
        yield neighbour_probability_table(word_vectors, *pair)
    for word in concordance:
        yield from concordance_tables(word_vectors, word, count)


def _cosine_table(title: str, neighbours: "list[Neighbour]") -> TitledTable:
    return TitledTable(title, ("word", "cosine"), [(each.word, each.cosine) for each in neighbours])


def neighbour_probability_table(word_vectors: VectorsWithOrigin, center: str, outside: str) -> TitledTable:
    """P(o | c) of two words, with the dot product of which it is made."""
    from tfm.pipeline.words.neighbour_probability import neighbour_probability

    assert word_vectors.model is not None
    result = neighbour_probability(word_vectors.model, center, outside)
    columns = ("center", "outside", "dot", "probability", "rank")
    return TitledTable(f"P({outside} | {center})", columns, [tuple(getattr(result, name) for name in columns)])


def concordance_tables(word_vectors: VectorsWithOrigin, word: str, count: int) -> Iterator[TitledTable]:
    """A word in its contexts, and the words that stand most often in them."""
    from tfm.pipeline.errors import RecipeError
    from tfm.pipeline.words.concordance import count_neighbours, find_occurrences

    occurrences = list(find_occurrences(word_vectors.text_lines, word, word_vectors.context_window))
    if not occurrences:
        raise RecipeError(word_vectors.vectors.unknown_word_message(word))
    rows = [(each.line, " ".join(each.left), each.word, " ".join(each.right)) for each in occurrences[:count]]
    yield TitledTable(f"{word}: {len(occurrences):,} in the text", ("line", "before", "word", "after"), [*rows])
    neighbours = count_neighbours(occurrences).most_common(count)
    yield TitledTable(f"beside {word}", ("neighbour", "count"), [*neighbours])


def wordnet_table(word: str, folder: Path) -> TitledTable:
    """The synsets of a word in a folder of WordNet, with those above them."""
    from tfm.pipeline.scoring.metrics.wordnet import open_wordnet

    wordnet = open_wordnet(folder)
    rows = [
        (
            " ".join(lemma.name() for lemma in synset.lemmas()),
            " > ".join(above.words[0].name() for above in wordnet.hypernym_path(synset)),
            synset.gloss,
        )
        for synset in wordnet.synsets(word.lower())
    ]
    return TitledTable(f"{word} in WordNet", ("synset", "hypernyms", "gloss"), [*rows])


def picture_glyphs_warning(picture: Path, class_by_word: Mapping[str, str]) -> str | None:
    """Why characters of a picture are boxes; None if they are not."""
    from tfm.pipeline.label_fonts import missing_glyphs_warning

    return missing_glyphs_warning(picture, [*class_by_word, *class_by_word.values()])


def _round_for_display(value: object) -> object:
    """A number as a table shows it."""
    if not isinstance(value, float):
        return value
    return f"{value:.3f}" if value == 0 or abs(value) >= 0.001 else f"{value:.3g}"
