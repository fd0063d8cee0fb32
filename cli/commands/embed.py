"""`tfm embed`: the word vectors of a model or a text, as a file, a list of neighbours or a picture."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tfm.cli.options import Device, reject_flags
from tfm.cli.streams import print_json
from tfm.pipeline.model_io.model_folder import resolve_model_folder

if TYPE_CHECKING:
    from tfm.pipeline.inference.neighbours import WordVectors

NUM_NEIGHBOURS = 10
Side = Literal["source", "target"]


def embed(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL",
            help="A trained model: its model/, or the folder of its run. Or a text file: its words have the counts of "
            "their neighbours as vectors.",
        ),
    ],
    nearest: Annotated[
        list[str] | None, typer.Option("--nearest", metavar="WORD", help="Print the words nearest to it; repeatable.")
    ] = None,
    analogy: Annotated[
        tuple[str, str, str] | None,
        typer.Option("--analogy", metavar="A B C", help="Print what is to C as B is to A."),
    ] = None,
    pair: Annotated[
        tuple[str, str] | None,
        typer.Option("--pair", metavar="C O", help="Print P(o | c), of skip-gram and CBOW: O as a neighbour of C."),
    ] = None,
    concordance: Annotated[
        list[str] | None,
        typer.Option(
            "--concordance", metavar="WORD", help="Print a word in its contexts in a text file, and counts; repeatable."
        ),
    ] = None,
    wordnet: Annotated[
        Path | None,
        typer.Option(
            "--wordnet",
            metavar="DIR",
            help="Print the synsets of the words of --nearest, and their hypernyms, from a folder of WordNet.",
        ),
    ] = None,
    window: Annotated[
        int | None,
        typer.Option(
            "--window", metavar="M", min=1, max=1000, help="Of a text file: how far neighbours stand from a word (5)."
        ),
    ] = None,
    one_hot: Annotated[
        bool, typer.Option("--one-hot", help="Of a text file: one-hot vectors in place of counts.")
    ] = False,
    text: Annotated[
        list[str] | None,
        typer.Option(
            "--text",
            metavar="TEXT",
            help="Compute the hidden states of a text, and print which are alike: of texts, of one word in several "
            "texts, or within one; with --json the vectors. Repeatable.",
        ),
    ] = None,
    layer: Annotated[
        int | None,
        typer.Option("--layer", metavar="L", min=0, help="Layer of --text; 0: the embedding (the last, and its norm)."),
    ] = None,
    unit: Annotated[
        Literal["piece", "word", "text"] | None,
        typer.Option("--unit", help="What has a vector in --text: piece, word or text (text of several, word of one)."),
    ] = None,
    count: Annotated[
        int | None,
        typer.Option("--count", metavar="N", min=1, help=f"Number of words, or pairs, to print ({NUM_NEIGHBOURS})."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the same as JSON.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="FILE", dir_okay=False, help="Write all vectors in word2vec's text format; also .gz."
        ),
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option("--picture", metavar="FILE", dir_okay=False, help="Draw words as points in a plane: .png, .svg."),
    ] = None,
    words: Annotated[
        Path | None,
        typer.Option(
            "--words",
            metavar="FILE",
            help="Words of the picture, one per line, with a class that sets their colour; default: frequent words.",
        ),
    ] = None,
    side: Annotated[
        Side | None,
        typer.Option(
            "--side",
            help="Which embedding of a model with two: source or target (target). With skip-gram and CBOW: source, the "
            "vectors that predict (the default), or target, those that are predicted.",
        ),
    ] = None,
    device: Device = None,
) -> None:
    """Show the word vectors of a model, or of a text.

    The vectors are those of skip-gram or CBOW, or the embedding of any other model; of a text file counts of words
    within a window; with --text those that a model's layers make of a text.
    """
    of_file = {"--concordance": concordance, "--window": window, "--one-hot": one_hot}
    if text:
        others = {"--nearest": nearest, "--analogy": analogy, "--out": out, "--picture": picture, "--side": side}
        reject_flags({**others, **of_file, "--pair": pair}, "is for word vectors, and not for --text")
        _print_hidden_states(model, text, layer, unit or ("text" if len(text) > 1 else "word"), count, as_json, device)
        return
    reject_flags({"--layer": layer, "--unit": unit}, "it needs --text")
    shows = nearest or analogy or pair or concordance
    if not (shows or out or picture):
        raise typer.BadParameter(
            "give --nearest, --analogy, --pair, --concordance, --text, --out or --picture as well", param_hint="MODEL"
        )
    if not shows:
        reject_flags({"--count": count, "--json": as_json}, "it needs --nearest, --analogy, --pair or --concordance")
    if picture is None:
        reject_flags({"--words": words}, "it needs --picture FILE")
    if not nearest:
        reject_flags({"--wordnet": wordnet}, "it needs --nearest WORD")
    is_text = model.is_file()
    if is_text:
        reject_flags({"--side": side, "--pair": pair, "--device": device}, "is of models, and MODEL is a text file")
        if one_hot and not concordance:
            reject_flags({"--window": window}, "has no effect on one-hot vectors")
        if not (nearest or analogy or out or picture):
            reject_flags({"--one-hot": one_hot}, "it needs --nearest, --analogy, --out or --picture")
    else:
        reject_flags(of_file, "is of text files, and MODEL is none")
    from tfm.cli.console import make_reporter
    from tfm.cli.word_tables import iterate_word_tables, picture_glyphs_warning, vectors_of_model, vectors_of_text
    from tfm.pipeline.artifacts.files import check_file_is_writable, convert_os_errors, write_bytes_atomically
    from tfm.pipeline.inference.neighbours import PICTURE_SUFFIXES, frequent_words_without_class, read_word_classes

    if picture is not None and picture.suffix not in PICTURE_SUFFIXES:
        raise typer.BadParameter(f"its name must end in {' or '.join(PICTURE_SUFFIXES)}", param_hint="--picture")
    for file in filter(None, (out, picture)):
        check_file_is_writable(file)
    reporter = make_reporter(tables_on_stdout=True)
    word_vectors = vectors_of_text(model, window, one_hot=one_hot) if is_text else vectors_of_model(model, side, device)
    tables = list(
        iterate_word_tables(
            word_vectors, nearest or (), analogy, pair, concordance or (), wordnet, count or NUM_NEIGHBOURS
        )
    )
    shown = (
        None
        if picture is None
        else frequent_words_without_class(word_vectors.vectors)
        if words is None
        else read_word_classes(words, word_vectors.vectors)
    )
    files = list(_output_files(word_vectors.vectors, out, picture, shown))
    if as_json:
        print_json({each.title: each.as_json() for each in tables})
    else:
        for each in tables:
            reporter.table(each.title, each.columns, each.formatted_rows())
    for file, content in files:
        with convert_os_errors(file):
            write_bytes_atomically(file, content)
        reporter.line(f"written: {file}")
    if picture is not None and shown is not None and (warning := picture_glyphs_warning(picture, shown)) is not None:
        reporter.warn(warning)


def _print_hidden_states(
    model: Path,
    texts: list[str],
    layer: int | None,
    unit: Literal["piece", "word", "text"],
    count: int | None,
    as_json: bool,
    device: Device,
) -> None:
    """Print the hidden states of texts, or which are alike."""
    from tfm.cli.console import make_reporter
    from tfm.pipeline.attention_page.forward_passes import source_tokenizer_of
    from tfm.pipeline.inference.hidden_states import encode_texts, similar_pairs
    from tfm.pipeline.inference.source_problems import warn_of_unknown_sources
    from tfm.pipeline.model_io.loaded_model import load_model

    if as_json:
        reject_flags({"--count": count}, "has no effect with --json, which prints all vectors")
    loaded, reporter = load_model(resolve_model_folder(model), device or "auto"), make_reporter(tables_on_stdout=True)
    found = encode_texts(loaded, texts, layer=layer, unit=unit)
    warn_of_unknown_sources(source_tokenizer_of(loaded), texts, reporter)
    if as_json:
        print_json([{"text": each.text, "tokens": each.tokens, "vectors": each.vectors.tolist()} for each in found])
        return
    pairs = similar_pairs(found, unit, count or NUM_NEIGHBOURS)
    rows = [(each.first, each.in_first, each.second, each.in_second, f"{each.cosine:.3f}") for each in pairs]
    reporter.table("hidden states", (unit, "of", "beside", "of", "cosine"), rows)


def _output_files(
    vectors: "WordVectors", out: Path | None, picture: Path | None, class_by_word: "Mapping[str, str] | None"
) -> Iterator[tuple[Path, bytes]]:
    """The files to write, with their contents. shown: the words of the picture, with the class of each."""
    import gzip

    from tfm.pipeline.inference.neighbours import draw_word_plot as drawn
    from tfm.pipeline.model_io.pretrained_vectors import format_vectors

    if out is not None:
        content = format_vectors(vectors.rows, vectors.vectors).encode()
        yield out, gzip.compress(content, mtime=0) if out.suffix == ".gz" else content
    if picture is not None and class_by_word is not None:
        yield picture, drawn(vectors, class_by_word, picture.suffix)
