"""`tfm embed`: the word vectors of a model, a file or a text, as a file, a list of neighbours or a picture."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tfm.cli.options import Device, reject_flags
from tfm.cli.streams import print_json
from tfm.cli.typed_options import values_by_flag, with_options
from tfm.pipeline.model_io.model_folder import resolve_model_folder

if TYPE_CHECKING:
    from tfm.cli.word_tables import VectorsWithOrigin
    from tfm.pipeline.inference.neighbours import WordVectors

NUM_NEIGHBOURS = 10
Side = Literal["source", "target"]
FILE_OPTIONS = ("concordance", "window", "one_hot")
"""Options of text files."""


@dataclass(frozen=True)
class EmbedOptions:
    """Arguments and options of `tfm embed`."""

    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL",
            help="A trained model: its model/, or the folder of its run. Or a file of word vectors (word2vec, GloVe, "
            "fastText's .vec), or a text file, whose words have the counts of their neighbours as vectors.",
        ),
    ]
    nearest: Annotated[
        list[str] | None, typer.Option("--nearest", metavar="WORD", help="Print the words nearest to it; repeatable.")
    ] = None
    analogy: Annotated[
        tuple[str, str, str] | None,
        typer.Option("--analogy", metavar="A B C", help="Print what is to C as B is to A."),
    ] = None
    pair: Annotated[
        tuple[str, str] | None,
        typer.Option("--pair", metavar="C O", help="Print P(o | c), of skip-gram and CBOW: O as a neighbour of C."),
    ] = None
    concordance: Annotated[
        list[str] | None,
        typer.Option(
            "--concordance", metavar="WORD", help="Print a word in its contexts in a text file, and counts; repeatable."
        ),
    ] = None
    wordnet: Annotated[
        Path | None,
        typer.Option(
            "--wordnet",
            metavar="DIR",
            help="Print the synsets of the words of --nearest, and their hypernyms, from a folder of WordNet.",
        ),
    ] = None
    window: Annotated[
        int | None,
        typer.Option(
            "--window",
            metavar="M",
            min=1,
            max=1000,
            help="For a text file: largest distance of neighbours from a word (5).",
        ),
    ] = None
    one_hot: Annotated[bool, typer.Option("--one-hot", help="Of a text file: one-hot vectors in place of counts.")] = (
        False
    )
    text: Annotated[
        list[str] | None,
        typer.Option(
            "--text",
            metavar="TEXT",
            help="Compute the hidden states of a text, and print which are alike: of texts, of one word in several "
            "texts, or within one; with --json the vectors. Repeatable.",
        ),
    ] = None
    layer: Annotated[
        int | None,
        typer.Option("--layer", metavar="L", min=0, help="Layer of --text; 0: the embedding (the last, and its norm)."),
    ] = None
    unit: Annotated[
        Literal["piece", "word", "text"] | None,
        typer.Option("--unit", help="What has a vector in --text: piece, word or text (text of several, word of one)."),
    ] = None
    count: Annotated[
        int | None,
        typer.Option("--count", metavar="N", min=1, help=f"Number of words, or pairs, to print ({NUM_NEIGHBOURS})."),
    ] = None
    as_json: Annotated[bool, typer.Option("--json", help="Print the same as JSON.")] = False
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            dir_okay=False,
            help="Write all vectors in word2vec's text format, or in its binary one if FILE ends in .bin; also .gz.",
        ),
    ] = None
    picture: Annotated[
        Path | None,
        typer.Option("--picture", metavar="FILE", dir_okay=False, help="Draw words as points in a plane: .png, .svg."),
    ] = None
    words: Annotated[
        Path | None,
        typer.Option(
            "--words",
            metavar="FILE",
            help="Words of the picture, one per line, with a class that sets their colour; default: frequent words.",
        ),
    ] = None
    side: Annotated[
        Side | None,
        typer.Option(
            "--side",
            help="Which embedding of a model with two: source or target (target). With skip-gram and CBOW: source, the "
            "vectors that predict (the default), or target, those that are predicted.",
        ),
    ] = None
    device: Device = None

    @cached_property
    def file_width(self) -> int | None:
        """The dimension of the vectors of a file; None if MODEL is none of vectors."""
        from tfm.pipeline.model_io.vector_files import vector_width

        return vector_width(self.model) if self.model.is_file() else None

    @property
    def is_of_text(self) -> bool:
        """Whether the vectors are counts of a text's words."""
        return self.model.is_file() and self.file_width is None

    @property
    def shows(self) -> bool:
        """Whether something is printed of word vectors."""
        return bool(self.nearest or self.analogy or self.pair or self.concordance)


@with_options
def embed(options: EmbedOptions) -> None:
    """Show the word vectors of a model, a file or a text.

    The vectors are those of skip-gram or CBOW, or the embedding of any other model; those of a file, as other programs
    write them; of a text file counts of words within a window; with --text those that the layers of a model make of a
    text.
    """
    if options.text:
        _print_hidden_states(options, options.text)
        return
    _check_options(options)
    from tfm.cli.console import make_reporter
    from tfm.cli.word_tables import iterate_word_tables, picture_glyphs_warning
    from tfm.pipeline.artifacts.files import convert_os_errors, write_bytes_atomically
    from tfm.pipeline.artifacts.place import check_output_files
    from tfm.pipeline.inference.neighbours import PICTURE_SUFFIXES
    from tfm.pipeline.model_io.pretrained_vectors import vectors_name_problem

    if options.out is not None and (problem := vectors_name_problem(options.out.name)) is not None:
        raise typer.BadParameter(problem, param_hint="--out")
    if options.picture is not None and options.picture.suffix not in PICTURE_SUFFIXES:
        raise typer.BadParameter(f"its name must end in {' or '.join(PICTURE_SUFFIXES)}", param_hint="--picture")
    check_output_files({"--out": options.out, "--picture": options.picture}, (options.model, options.words))
    reporter = make_reporter(tables_on_stdout=True)
    word_vectors = _vectors_with_origin(options)
    tables = list(
        iterate_word_tables(
            word_vectors,
            options.nearest or (),
            options.analogy,
            options.pair,
            options.concordance or (),
            options.wordnet,
            options.count or NUM_NEIGHBOURS,
        )
    )
    words_to_draw = _words_to_draw(options, word_vectors.vectors)
    files = list(_output_files(word_vectors.vectors, options.out, options.picture, words_to_draw))
    if options.as_json:
        print_json({table.title: table.as_json() for table in tables})
    else:
        for table in tables:
            reporter.table(table.title, table.columns, table.formatted_rows())
    for file, content in files:
        with convert_os_errors(file):
            write_bytes_atomically(file, content)
        reporter.line(f"written: {file}")
    if (
        options.picture is not None
        and words_to_draw is not None
        and (warning := picture_glyphs_warning(options.picture, words_to_draw)) is not None
    ):
        reporter.warn(warning)


def _vectors_with_origin(options: EmbedOptions) -> "VectorsWithOrigin":
    from tfm.cli.word_tables import vectors_of_file, vectors_of_model, vectors_of_text

    if options.file_width is not None:
        return vectors_of_file(options.model, options.file_width)
    if options.is_of_text:
        return vectors_of_text(options.model, options.window, one_hot=options.one_hot)
    return vectors_of_model(options.model, options.side, options.device)


def _check_options(options: EmbedOptions) -> None:
    """Raise BadParameter for options of word vectors that exclude each other, or lack what they need."""
    reject_flags(values_by_flag(options, "layer", "unit"), "it needs --text")
    if not (options.shows or options.out or options.picture):
        raise typer.BadParameter(
            "give --nearest, --analogy, --pair, --concordance, --text, --out or --picture as well", param_hint="MODEL"
        )
    if not options.shows:
        output_flags = {"--count": options.count, "--json": options.as_json}
        reject_flags(output_flags, "it needs --nearest, --analogy, --pair or --concordance")
    if options.picture is None:
        reject_flags(values_by_flag(options, "words"), "it needs --picture FILE")
    if not options.nearest:
        reject_flags(values_by_flag(options, "wordnet"), "it needs --nearest WORD")
    if options.file_width is not None:
        reject_flags(values_by_flag(options, "side", "pair", "device"), "it needs a model, and MODEL is word vectors")
    if not options.is_of_text:
        reject_flags(values_by_flag(options, *FILE_OPTIONS), "it needs a text file as MODEL")
        return
    reject_flags(values_by_flag(options, "side", "pair", "device"), "it needs a model, and MODEL is a text file")
    if options.one_hot and not options.concordance:
        reject_flags(values_by_flag(options, "window"), "has no effect on one-hot vectors")
    if not (options.nearest or options.analogy or options.out or options.picture):
        reject_flags(values_by_flag(options, "one_hot"), "it needs --nearest, --analogy, --out or --picture")


def _print_hidden_states(options: EmbedOptions, texts: list[str]) -> None:
    """Print the hidden states of texts, or which are alike."""
    word_options = ("nearest", "analogy", "out", "picture", "side", *FILE_OPTIONS, "pair")
    reject_flags(values_by_flag(options, *word_options), "is for word vectors, and not for --text")
    from tfm.cli.console import make_reporter
    from tfm.pipeline.attention_page.forward_passes import source_tokenizer_of
    from tfm.pipeline.inference.hidden_states import encode_texts, similar_pairs
    from tfm.pipeline.inference.source_problems import warn_of_unknown_sources
    from tfm.pipeline.model_io.loaded_model import load_model

    if options.as_json:
        reject_flags(values_by_flag(options, "count"), "has no effect with --json, which prints all vectors")
    loaded = load_model(resolve_model_folder(options.model), options.device or "auto")
    reporter, unit = make_reporter(tables_on_stdout=True), options.unit or ("text" if len(texts) > 1 else "word")
    states = encode_texts(loaded, texts, layer=options.layer, unit=unit)
    warn_of_unknown_sources(source_tokenizer_of(loaded), texts, reporter)
    if options.as_json:
        print_json([{"text": each.text, "tokens": each.tokens, "vectors": each.vectors.tolist()} for each in states])
        return
    pairs = similar_pairs(states, unit, options.count or NUM_NEIGHBOURS)
    rows = [(each.first, each.in_first, each.second, each.in_second, f"{each.cosine:.3f}") for each in pairs]
    reporter.table("hidden states", (unit, "of", "beside", "of", "cosine"), rows)


def _words_to_draw(options: EmbedOptions, vectors: "WordVectors") -> "Mapping[str, str] | None":
    """The words of the picture, with the class of each; None if there is no picture."""
    from tfm.pipeline.inference.neighbours import frequent_words_without_class, read_word_classes

    if options.picture is None:
        return None
    if options.words is None:
        return frequent_words_without_class(vectors)
    return read_word_classes(options.words, vectors)


def _output_files(
    vectors: "WordVectors", out: Path | None, picture: Path | None, class_by_word: "Mapping[str, str] | None"
) -> Iterator[tuple[Path, bytes]]:
    """The files to write, with their contents. class_by_word: the words of the picture, with the class of each."""
    from tfm.pipeline.inference.neighbours import draw_word_plot as drawn
    from tfm.pipeline.model_io.pretrained_vectors import encode_vectors

    if out is not None:
        yield out, encode_vectors(vectors.rows, vectors.vectors, out.name)
    if picture is not None and class_by_word is not None:
        yield picture, drawn(vectors, class_by_word, picture.suffix)
