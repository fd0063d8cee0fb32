"""`tfm attend`: what a trained model attends to."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tfm.cli.options import Device, RecipeOverrides, SourceLanguage, TargetLanguage, config_section, reject_flags
from tfm.cli.streams import print_data
from tfm.pipeline.model_io.model_folder import resolve_model_folder

if TYPE_CHECKING:
    from tfm.pipeline.attention_page.attended import AttentionTrace
    from tfm.pipeline.attention_page.head_report import HeadReport
    from tfm.pipeline.attention_page.picture import AttentionView
    from tfm.pipeline.config import DecodingConfig
    from tfm.pipeline.model_io.loaded_model import LoadedModel
    from tfm.pipeline.runtime.progress import Reporter

    _Picture = tuple[Path, AttentionTrace, AttentionView]
    """A file, and what is drawn into it."""

PAGE_FILE = Path("attention.html")


def attend(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="A trained model: its model/, or the folder of its run.")
    ],
    sentence: Annotated[
        str | None,
        typer.Argument(metavar="[SENTENCE]", help="Text for the model to read; of a model of images, a file."),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option("--target", metavar="TEXT", help="Target text (teacher forcing); default: its own translation."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE.html",
            dir_okay=False,
            help="The page (attention.html, if no other output is given).",
        ),
    ] = None,
    png: Annotated[
        Path | None,
        typer.Option(
            "--png", metavar="FILE.png", dir_okay=False, help="A picture of one attention: an alignment. Or .svg."
        ),
    ] = None,
    alignments: Annotated[
        Path | None,
        typer.Option(
            "--alignments",
            metavar="FILE.png",
            dir_okay=False,
            help="A picture of cross-attention between words: which word of the source each word belongs to. Or .svg.",
        ),
    ] = None,
    kind: Annotated[
        str | None, typer.Option("--kind", metavar="NAME", help="Attention to show first: encoder, decoder or cross.")
    ] = None,
    layer: Annotated[int | None, typer.Option("--layer", metavar="N", help="Layer, from 1; default: all.")] = None,
    head: Annotated[
        int | None, typer.Option("--head", metavar="N", help="Head, from 1; default: the mean of all.")
    ] = None,
    head_report: Annotated[
        list[Path] | None,
        typer.Option(
            "--head-report",
            metavar="FILE",
            help="Statistics of heads over a text or, also by tag and dependency, a .conllu file or `it`; repeatable.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the weights, and the head report, as JSON.")] = False,
    beam: Annotated[
        int | None, typer.Option("--beam", metavar="W", help="Beam width for the model's own translation.")
    ] = None,
    to: TargetLanguage = None,
    source_language: SourceLanguage = None,
    device: Device = None,
    sets: RecipeOverrides = None,
) -> None:
    """Show what a model attends to in a sentence or an image.

    Every layer and head, on one self-contained page.

    With --head-report: what each head does in a corpus, as a table on stdout.
    """
    if sentence is None:
        if not head_report:
            raise typer.BadParameter("give it, or --head-report FILE", param_hint="SENTENCE")
        sentence_flags = {
            "--target": target,
            "--png": png,
            "--alignments": alignments,
            "--kind": kind,
            "--layer": layer,
            "--head": head,
        }
        reject_flags(sentence_flags, "it applies to one sentence: give SENTENCE")
    from tfm.cli.console import make_reporter
    from tfm.pipeline.artifacts.files import convert_os_errors, name_problem, write_bytes_atomically
    from tfm.pipeline.artifacts.place import check_output_files
    from tfm.pipeline.attention_page.picture import choose_view
    from tfm.pipeline.config import DecodingConfig
    from tfm.pipeline.model_io.loaded_model import load_model

    if out is None and sentence is not None and png is None and alignments is None and not as_json:
        out = PAGE_FILE
    if out is None and png is None:
        reject_flags({"--kind": kind}, "is for a page or --png: give one of them too")
        if alignments is None:
            reject_flags({"--layer": layer, "--head": head}, "is for a page or picture: --json has all of them")
    _check_pictures({"--png": png, "--alignments": alignments})
    image = None if sentence is None or name_problem(sentence) else Path(sentence)
    check_output_files({"--out": out, "--png": png, "--alignments": alignments}, [*(head_report or ()), image])
    reporter = make_reporter(tables_on_stdout=True)
    decoding = config_section(DecodingConfig, sets, {"decoding.beam": beam})
    loaded = load_model(resolve_model_folder(model), device or "auto").for_languages(to, source_language)
    _check_search_is_used(loaded, decoding, target, has_report=bool(head_report))
    trace = None if sentence is None else _trace_attention(loaded, sentence, target, decoding, reporter)
    view = None if trace is None else choose_view(trace, kind, layer, head)
    report = _measure_heads(loaded, head_report, decoding, reporter) if head_report else None
    if as_json:
        _print_json(trace, report)
    elif report is not None:
        for table in report.tables():
            reporter.table(*table)
    pictures: list[_Picture] = []
    if png is not None and trace is not None and view is not None:
        pictures.append((png, trace, view))
    if alignments is not None and trace is not None:
        pictures.append((alignments, *_view_words(loaded, trace, layer, head)))
    for file, content in _output_files(f"Attention of {model}", trace, view, report, out, pictures):
        with convert_os_errors(file):
            write_bytes_atomically(file, content)
        reporter.line(f"written: {file}")
    for picture in pictures:
        _warn_of_missing_glyphs(*picture, reporter)


def _check_pictures(files: dict[str, Path | None]) -> None:
    """Raise BadParameter for a file, by its option, whose name is of no picture that is drawn."""
    from tfm.pipeline.attention_page.picture import PICTURE_SUFFIXES

    for option, file in files.items():
        if file is not None and file.suffix.lower() not in PICTURE_SUFFIXES:
            raise typer.BadParameter(f"its name must end in {' or '.join(PICTURE_SUFFIXES)}", param_hint=option)


def _check_search_is_used(
    loaded: "LoadedModel", decoding: "DecodingConfig", target: str | None, *, has_report: bool
) -> None:
    """Raise RecipeError for settings of a search where no translation is searched for."""
    from tfm.pipeline.attention_page.reading import generates_target
    from tfm.pipeline.errors import RecipeError

    if not decoding.model_fields_set:
        return
    reason = None
    if not generates_target(loaded):
        reason = f"this model ({loaded.config.task}) reads one text, without a search"
    elif target is not None and not has_report:
        reason = "--target is what the model is made to say, without a search"
    if reason is not None:
        raise RecipeError(f"decoding.{sorted(decoding.model_fields_set)[0]} has no effect: {reason}. Remove it")


def _trace_attention(
    loaded: "LoadedModel", sentence: str, target: str | None, decoding: "DecodingConfig", reporter: "Reporter"
) -> "AttentionTrace":
    """Read a sentence, or an image file, with a warning of characters that the vocabulary lacks."""
    from tfm.pipeline.attention_page.forward_passes import source_tokenizer_of
    from tfm.pipeline.attention_page.image_reading import trace_image_file
    from tfm.pipeline.attention_page.reading import trace_text
    from tfm.pipeline.inference.source_problems import warn_of_unknown_sources

    _warn_of_file_names({"--target": target} if loaded.images else {"SENTENCE": sentence, "--target": target}, reporter)
    if loaded.images is not None:
        return trace_image_file(loaded, Path(sentence), target, decoding)
    trace = trace_text(loaded, sentence, target, decoding)
    warn_of_unknown_sources(source_tokenizer_of(loaded), [sentence], reporter)
    return trace


def _warn_of_file_names(texts: dict[str, str | None], reporter: "Reporter") -> None:
    """Warn of texts that name a file, or standard input, which other commands read there."""
    from tfm.pipeline.artifacts.files import name_problem

    for option, text in texts.items():
        if text == "-" or (text and name_problem(text) is None and Path(text).is_file()):
            place = "standard input" if text == "-" else "the file of this name"
            reporter.warn(f"{option} {text} is read as a text, not as {place}: give a sentence, in quotation marks")


def _warn_of_missing_glyphs(file: Path, trace: "AttentionTrace", view: "AttentionView", reporter: "Reporter") -> None:
    from tfm.pipeline.attention_page.picture import token_labels
    from tfm.pipeline.label_fonts import missing_glyphs_warning

    if (warning := missing_glyphs_warning(file, token_labels(trace, view))) is not None:
        reporter.warn(warning)


def _measure_heads(
    loaded: "LoadedModel", files: list[Path], decoding: "DecodingConfig", reporter: "Reporter"
) -> "HeadReport":
    """The report on heads, and a warning of sentences that the vocabulary lacks."""
    from tfm.pipeline.attention_page.forward_passes import source_tokenizer_of
    from tfm.pipeline.attention_page.head_statistics import measure_heads
    from tfm.pipeline.attention_page.tagged_corpus import is_conllu_file
    from tfm.pipeline.inference.source_problems import SourceProblems
    from tfm.pipeline.text_files import check_text_file

    for file in files:
        if not is_conllu_file(file):
            check_text_file(file, reporter)
    problems, tokenizer = SourceProblems(), source_tokenizer_of(loaded)
    report = measure_heads(
        loaded,
        files,
        decoding,
        reporter,
        lambda each: problems.count_while_iterating(tokenizer, each, lambda sentence: sentence.text),
    )
    problems.warn(reporter, 0)
    return report


def _print_json(trace: "AttentionTrace | None", report: "HeadReport | None") -> None:
    from tfm.pipeline.attention_page.attended import trace_as_json

    document = {} if trace is None else trace_as_json(trace)
    if report is not None:
        document["head_report"] = report.as_json()
    print_data(json.dumps(document, allow_nan=False))


def _view_words(
    loaded: "LoadedModel", trace: "AttentionTrace", layer: int | None, head: int | None
) -> "tuple[AttentionTrace, AttentionView]":
    """The attention between the words of a sentence and its translation, and the view that shows it."""
    from tfm.pipeline.alignment.extraction import SentencePair, WordAligner
    from tfm.pipeline.alignment.word_trace import trace_words
    from tfm.pipeline.attention_page.picture import AttentionView

    aligner = WordAligner(loaded)
    words = trace_words(aligner, SentencePair(trace.source, trace.target or ""), aligner.choose_head(layer, head))
    return words, AttentionView("cross", 1, 1)


def _output_files(
    title: str,
    trace: "AttentionTrace | None",
    view: "AttentionView | None",
    report: "HeadReport | None",
    page: Path | None,
    pictures: "list[_Picture]",
) -> Iterator[tuple[Path, bytes]]:
    """The files to write, with their contents."""
    from tfm.pipeline.attention_page.page import render_attention_page
    from tfm.pipeline.attention_page.picture import draw_picture

    for file, drawn_trace, drawn_view in pictures:
        yield file, draw_picture(drawn_trace, drawn_view, file.suffix.lower())
    if page is not None:
        yield page, render_attention_page(title, trace, view, report).encode()
