"""`tfm translate`: text to translations, by a trained model."""

import itertools
import shutil
import sys
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from tfm.cli.captions import images_into_folder, named_images, print_captions, print_hypotheses, reads_images
from tfm.cli.options import (
    Device,
    DeviceName,
    DrawSeed,
    Forbidden,
    Forced,
    From,
    NoRepeat,
    Out,
    Prefix,
    Prefixes,
    RecipeFile,
    Sets,
    Temperature,
    To,
    TopK,
    TopP,
    argv,
    config_section,
    reject_flags,
    require,
    stage_of_recipe,
)
from tfm.cli.streams import incoming
from tfm.cli.text_argument import STDIN, file_or_text, text_file
from tfm.pipeline.model_io.model_folder import model_folder

if TYPE_CHECKING:
    from tfm.pipeline.config import DecodingConfig
    from tfm.pipeline.inference.translation import Translation
    from tfm.pipeline.model_io.loaded_model import LoadedModel
    from tfm.pipeline.runtime.progress import Reporter

MAX_DIGITS = 19  # of a step: a whole number of 64 bits


def translate(
    model: Annotated[
        Path | None, typer.Argument(metavar="[MODEL]", help="A trained model: its model/, or the folder of its run.")
    ] = None,
    file: Annotated[
        Path | None,
        typer.Argument(
            parser=file_or_text,
            metavar="[FILE|-|TEXT|IMAGE]",
            help="File with one sentence per line; default or -: stdin; or a text. Of a model that reads images: an "
            "image, or a folder of them.",
        ),
    ] = None,
    more: Annotated[
        list[Path] | None, typer.Argument(metavar="[IMAGE]...", help="Further images, or folders of them.")
    ] = None,
    recipe: RecipeFile = None,
    ensemble: Annotated[
        list[Path] | None,
        typer.Option("--ensemble", metavar="MODEL", help="Another model of an ensemble with the first; repeatable."),
    ] = None,
    step: Annotated[
        str | None,
        typer.Option("--step", metavar="N|last", help="Use a checkpoint of the run's training."),
    ] = None,
    beam: Annotated[int | None, typer.Option("--beam", metavar="W", help="Beam width; 1 is greedy search.")] = None,
    n_best: Annotated[
        int | None,
        typer.Option(
            "--n-best", metavar="N", help="N hypotheses (labels) for each line, as LINE, SCORE, TEXT separated by tabs."
        ),
    ] = None,
    strategy: Annotated[
        str | None,
        typer.Option("--strategy", metavar="NAME", help="search (for the most probable) or sample (at random)."),
    ] = None,
    temperature: Temperature = None,
    top_k: TopK = None,
    top_p: TopP = None,
    seed: DrawSeed = None,
    length_norm: Annotated[
        str | None, typer.Option("--length-norm", metavar="NAME", help="none, average or wu.")
    ] = None,
    alpha: Annotated[
        float | None, typer.Option("--alpha", metavar="X", help="Strength of the length normalisation.")
    ] = None,
    min_length: Annotated[
        int | None, typer.Option("--min-length", metavar="N", help="Minimum number of pieces of a hypothesis.")
    ] = None,
    max_length: Annotated[
        int | None, typer.Option("--max-length", metavar="N", help="Maximum number of pieces of a hypothesis.")
    ] = None,
    no_repeat_ngram: NoRepeat = None,
    forbidden: Forbidden = None,
    forced: Forced = None,
    precision: Annotated[
        str | None,
        typer.Option("--precision", metavar="NAME", help="Precision of matrix products: fp32, bf16, int8."),
    ] = None,
    prefix: Prefix = None,
    prefixes: Prefixes = None,
    to: To = None,
    source_language: From = None,
    jsonl: Annotated[
        bool, typer.Option("--jsonl", help="Print one JSON object per line: source, translations, scores.")
    ] = False,
    device: Device = None,
    sets: Sets = None,
    out: Out = None,
) -> None:
    """Translate a text, or describe images.

    The result goes to stdout or, with --out, into a folder.

    With --recipe: translate the test sets of the recipe's dataset with its model, into runs/NAME/translations.
    """
    flags = {
        "decoding.beam": beam,
        "decoding.n_best": n_best,
        "decoding.strategy": strategy,
        "decoding.temperature": temperature,
        "decoding.top_k": top_k,
        "decoding.top_p": top_p,
        "decoding.seed": seed,
        "decoding.no_repeat_ngram": no_repeat_ngram,
        "decoding.forbidden": forbidden or None,
        "decoding.length_norm": length_norm,
        "decoding.alpha": alpha,
        "decoding.min_length": min_length,
        "decoding.max_length": max_length,
        "decoding.precision": precision,
    }
    if strategy == "sample":
        reject_flags({"--beam": beam}, "is for searching, and not for --strategy sample")
    if recipe is not None:
        alone = {
            "MODEL": model,
            "IMAGE": more,
            "--ensemble": ensemble,
            "--prefix": prefix,
            "--prefixes": prefixes,
            "--forced": forced,
        }
        alone |= {"--to": to, "--from": source_language}
        reject_flags(
            {**alone, "--step": step, "--jsonl": jsonl},
            "not allowed with --recipe, which sets the model and the test sets",
        )
        stage_of_recipe("translate", recipe, sets, {**flags, "training.device": device}, out)
        return
    first = require(model, "MODEL")
    from tfm.pipeline.config import DecodingConfig

    decoding = config_section(DecodingConfig, sets, flags)
    reject_flags({"--prefixes": None if prefix is None else prefixes}, "give either --prefix or --prefixes")
    if step is not None:
        reject_flags(
            {"--ensemble": ensemble, "--out": out},
            "not allowed with --step, which translates with one checkpoint to stdout",
        )
    models = [] if step is not None else [model_folder(each) for each in (first, *(ensemble or ()))]
    load = (
        partial(_models, models, device or "auto", to, source_language)
        if step is None
        else partial(_checkpoint, first, step, device or "auto", to, source_language)
    )
    if out is not None:
        reject_flags({"--jsonl": jsonl}, "not needed with --out, which writes text and JSON")
        reject_flags({"--prefix": prefix}, "with --out use --prefixes FILE")
    with ExitStack() as held:
        if reads_images(first, step):
            named = named_images(file, more, first)
            if out is not None:
                images_into_folder(models, named, decoding, (prefixes, forced), out, device or "auto")
                return
            print_captions(load, named, decoding, _starts(prefix, prefixes), _lines_of(forced), jsonl)
            return
        reject_flags({"IMAGE": more}, "this model reads text: give one file of it")
        text = text_file(file, first, held)
        if out is None:
            beside = _starts(prefix, prefixes), _lines_of(forced)
            translated = partial(_lines_by_torch, load, decoding, *beside)
            if step is None and len(models) == 1 and beside == (None, None) and device in (None, "auto", "cpu"):
                translated = partial(_few_lines_by_numpy, models[0], load, decoding, to, source_language)
            _to_stdout(translated, text, decoding, jsonl)
            return
        _into_folder(models, text, decoding, (prefixes, forced), out, device or "auto", (to, source_language))


def _models(folders: list[Path], device: DeviceName, to: str | None, source_language: str | None) -> "LoadedModel":
    from tfm.pipeline.model_io.ensemble import load_ensemble

    return load_ensemble(folders, device).for_languages(to, source_language)


def _checkpoint(run: Path, step: str, device: DeviceName, to: str | None, source_language: str | None) -> "LoadedModel":
    from tfm.pipeline.training.checkpoints.unfinished_model import LAST, load_checkpoint

    if step != LAST and not (step.isascii() and step.isdecimal() and len(step) < MAX_DIGITS):
        raise typer.BadParameter("give a step number, or last", param_hint="--step")
    loaded = load_checkpoint(run, None if step == LAST else int(step), device)
    return loaded.for_languages(to, source_language)


def _into_folder(
    models: list[Path],
    file: Path,
    config: "DecodingConfig",
    beside: tuple[Path | None, Path | None],
    out: Path,
    device: DeviceName,
    languages: tuple[str | None, str | None],
) -> None:
    """Translate one text into an artifact; beside: the files of prefixes and of forced words."""
    from tfm.cli.console import make_reporter
    from tfm.pipeline.stages.translate import translate_file

    with TemporaryDirectory() as folder:
        if file == STDIN:
            file = Path(folder) / "stdin"
            with file.open("wb") as copy:
                shutil.copyfileobj(sys.stdin.buffer, copy)
        translate_file(
            models[0],
            file,
            config,
            out,
            command=argv(),
            reporter=make_reporter(),
            device=device,
            ensemble=models[1:],
            prefixes=beside[0],
            forced=beside[1],
            to=languages[0],
            source_language=languages[1],
        )


def _lines_by_torch(
    load: "Callable[[], LoadedModel]",
    config: "DecodingConfig",
    prefixes: Iterable[str] | None,
    forced: Iterable[str] | None,
    lines: Iterable[str],
    reporter: "Reporter",
    ready: Callable[[], bool] | None,
) -> "Iterable[list[Translation]]":
    from tfm.pipeline.inference.translation import translate_lines

    return translate_lines(load(), lines, config, reporter=reporter, prefixes=prefixes, forced=forced, ready=ready)


def _few_lines_by_numpy(
    model: Path,
    load: "Callable[[], LoadedModel]",
    config: "DecodingConfig",
    to: str | None,
    source_language: str | None,
    lines: Iterable[str],
    reporter: "Reporter",
    ready: Callable[[], bool] | None,
) -> "Iterable[list[Translation]]":
    """Translate by numpy as long as few lines are waiting; then by torch."""
    from tfm.pipeline.inference.numpy_translation import small_model, translate_as_they_come

    small = partial(small_model, model, config, to, source_language)
    return translate_as_they_come(small, load, lines, config, reporter=reporter, ready=ready)


def _to_stdout(
    translated: "Callable[[Iterable[str], Reporter, Callable[[], bool] | None], Iterable[list[Translation]]]",
    file: Path,
    config: "DecodingConfig",
    jsonl: bool,
) -> None:
    """Translate one text line by line; from a pipe or a terminal, results are printed when no further line is
    waiting. translated: (lines, reporter, whether the next line can be read without waiting) -> their translations."""
    from tfm.cli.console import make_reporter
    from tfm.data.lines import open_lines, stream_lines

    reporter = make_reporter()
    stream = incoming(reporter) if file == STDIN else None
    sources, asked = itertools.tee(
        open_lines(file) if file != STDIN else stream_lines(stream or sys.stdin.buffer, "stdin")
    )
    ready = stream.ready if stream is not None else None
    for number, (found, source) in enumerate(zip(translated(asked, reporter, ready), sources, strict=True), 1):
        print_hypotheses(number, source, found, config, jsonl)


def _starts(prefix: str | None, prefixes: Path | None) -> Iterable[str] | None:
    """The prefix of each line's translation."""
    lines = _lines_of(prefixes)
    return itertools.repeat(prefix) if lines is None and prefix is not None else lines


def _lines_of(file: Path | None) -> Iterable[str] | None:
    if file is None:
        return None
    from tfm.data.lines import open_lines

    return open_lines(file)
