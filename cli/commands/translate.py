"""`tfm translate`: text to translations, by a trained model."""

import itertools
import shutil
import sys
from collections.abc import Iterable
from contextlib import ExitStack
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import typer

from tfm.cli.alignment_file import open_alignment_file
from tfm.cli.captions import caption_images_to_folder, image_arguments, print_captions, reads_images
from tfm.cli.line_translation import translate_few_lines_by_numpy, translate_lines_by_torch, translate_to_stdout
from tfm.cli.masks import NUM_CANDIDATES, print_mask_fillings
from tfm.cli.options import command_line, config_section, reject_flags, require_flag, run_recipe_stage
from tfm.cli.text_argument import STDIN, resolve_text_argument
from tfm.cli.translate_options import TranslateOptions
from tfm.cli.typed_options import values_by_flag, with_options
from tfm.pipeline.model_io.model_folder import predicts_masked_tokens

if TYPE_CHECKING:
    from tfm.pipeline.config import DecodingConfig
    from tfm.pipeline.model_io.loaded_model import LoadedModel

MAX_CHECKPOINT_STEP_DIGITS = 18  # a whole number of 64 bits


@with_options
def translate(options: TranslateOptions) -> None:
    """Translate a text, describe images, or predict what [MASK] hides in a text.

    The result goes to stdout or, with --out, into a folder.

    With --recipe: translate the test sets of the recipe's dataset with its model, into runs/NAME/translations.
    """
    if options.strategy == "sample":
        reject_flags(values_by_flag(options, "beam"), "is for searching, and not for --strategy sample")
    if options.recipe is not None:
        _translate_tests(options, options.recipe)
        return
    first = require_flag(options.model, "MODEL")
    from tfm.pipeline.config import DecodingConfig

    decoding = config_section(DecodingConfig, options.sets, options.decoding_flags)
    _check_options(options)
    load = cache(partial(_load_model, options))
    with ExitStack() as resources:
        if reads_images(first, options.step):
            reject_flags(values_by_flag(options, "unit"), "is for a masked language model")
            reject_flags(values_by_flag(options, "cluster"), "is for texts: this process captions images. Remove it")
            reject_flags(values_by_flag(options, "alignments"), "is for words of two texts: this model reads images")
            images = image_arguments(options.file, options.more, first)
            if options.out is not None:
                files = options.prefixes, options.forced
                caption_images_to_folder(
                    options.model_folders, images, decoding, files, options.out, options.device or "auto"
                )
                return
            print_captions(load, images, decoding, *_constraint_texts(options), options.jsonl)
            return
        reject_flags({"IMAGE": options.more}, "this model reads text: give one file of it")
        text = resolve_text_argument(options.file, first, resources)
        if options.step is None and predicts_masked_tokens(first):
            _fill_masks_to_stdout(options, text, decoding)
            return
        reject_flags(values_by_flag(options, "unit"), "is for a masked language model")
        if options.out is not None:
            _translate_into_folder(options, text, decoding, options.out)
            return
        constraints = _constraint_texts(options)
        translator = partial(translate_lines_by_torch, load, decoding, *constraints)
        is_basic_search = options.step is None and not options.ensemble and constraints == (None, None)
        if is_basic_search and options.alignments is None and options.device in (None, "auto", "cpu"):
            languages = options.to, options.source_language
            translator = partial(translate_few_lines_by_numpy, options.model_folders[0], load, decoding, *languages)
        inputs = text, options.prefixes, options.forced
        align = resources.enter_context(open_alignment_file(options.alignments, load, inputs))
        translate_to_stdout(translator, text, decoding, options.jsonl, align)


def _translate_tests(options: TranslateOptions, recipe: Path) -> None:
    """Translate the test sets of a recipe."""
    other_options = (
        *("ensemble", "prefix", "prefixes", "forced", "to", "source_language", "step", "unit", "jsonl"),
        "alignments",
    )
    reject_flags(
        {"MODEL": options.model, "IMAGE": options.more, **values_by_flag(options, *other_options)},
        "not allowed with --recipe, which sets the model and the test sets",
    )
    flags = {**options.decoding_flags, "training.device": options.device}
    run_recipe_stage("translate", recipe, options.sets, flags, options.out, cluster=options.cluster)


def _check_options(options: TranslateOptions) -> None:
    """Raise BadParameter for options that exclude each other."""
    if options.alignments is not None:
        reject_flags(values_by_flag(options, "ensemble"), "has no one attention: --alignments needs a single model")
        reject_flags(
            values_by_flag(options, "out"), "with --alignments: align the files of the folder with `tfm align`"
        )
    reject_flags(
        {"--prefixes": None if options.prefix is None else options.prefixes}, "give either --prefix or --prefixes"
    )
    if options.step is not None:
        reject_flags(
            values_by_flag(options, "ensemble", "out"),
            "not allowed with --step, which translates with one checkpoint to stdout",
        )
    else:
        _ = options.model_folders  # what is no model is named before a text is asked for
    if options.prefixes is not None:
        from tfm.cli.console import make_reporter
        from tfm.pipeline.text_files import check_text_file

        check_text_file(options.prefixes, make_reporter())
    if options.out is not None:
        reject_flags(values_by_flag(options, "jsonl"), "not needed with --out, which writes text and JSON")
        reject_flags(values_by_flag(options, "prefix"), "with --out use --prefixes FILE")
    else:
        reject_flags(
            values_by_flag(options, "cluster"), "give --out: what goes to stdout is translated by this process"
        )


def _constraint_texts(options: TranslateOptions) -> tuple[Iterable[str] | None, Iterable[str] | None]:
    """The prefix of each line's translation, and the forced words of each line."""
    prefixes = _read_optional_lines(options.prefixes)
    if prefixes is None and options.prefix is not None:
        prefixes = itertools.repeat(options.prefix)
    return prefixes, _read_optional_lines(options.forced)


def _load_model(options: TranslateOptions) -> "LoadedModel":
    """Load the model, the ensemble or, with --step, the checkpoint that translates."""
    device = options.device or "auto"
    if options.step is None:
        from tfm.cli.console import make_reporter
        from tfm.pipeline.model_io.ensemble import load_ensemble

        loaded = load_ensemble(options.model_folders, device, reporter=make_reporter())
    else:
        from tfm.pipeline.training.checkpoints.unfinished_model import LAST_CHECKPOINT, load_checkpoint

        step = options.step
        if step != LAST_CHECKPOINT and not (
            step.isascii() and step.isdecimal() and len(step) <= MAX_CHECKPOINT_STEP_DIGITS
        ):
            raise typer.BadParameter("give a step number, or last", param_hint="--step")
        loaded = load_checkpoint(
            require_flag(options.model, "MODEL"), None if step == LAST_CHECKPOINT else int(step), device
        )
    return loaded.for_languages(options.to, options.source_language)


def _translate_into_folder(options: TranslateOptions, file: Path, config: "DecodingConfig", out: Path) -> None:
    """Translate one text into an artifact."""
    from tfm.cli.console import make_reporter
    from tfm.pipeline.stages.translate import translate_file
    from tfm.pipeline.text_files import check_text_file

    first, *other_models = options.model_folders
    with TemporaryDirectory() as folder:
        if file == STDIN:
            file = Path(folder) / "stdin"
            with file.open("wb") as copy:
                shutil.copyfileobj(sys.stdin.buffer, copy)
            check_text_file(file, make_reporter(), displayed_name="stdin")
        translate_file(
            first,
            file,
            config,
            out,
            command=command_line(),
            reporter=make_reporter(),
            device=options.device or "auto",
            ensemble=other_models,
            prefixes=options.prefixes,
            forced=options.forced,
            to=options.to,
            source_language=options.source_language,
            cluster=options.cluster,
        )


def _fill_masks_to_stdout(options: TranslateOptions, file: Path, config: "DecodingConfig") -> None:
    """Print what a masked language model predicts of one text, line by line."""
    from tfm.cli.console import make_reporter
    from tfm.data.lines import open_lines, stream_lines
    from tfm.pipeline.text_files import watch_lines

    other_options = ("ensemble", "prefix", "prefixes", "forced", "to", "source_language", "alignments", "out")
    decoding_flags = {f"decoding.{key}": True for key in sorted(config.model_fields_set - {"n_best"})}
    reject_flags(
        {**values_by_flag(options, *other_options), **decoding_flags},
        "has no effect: this model predicts what [MASK] hides",
    )
    count = config.n_best if "n_best" in config.model_fields_set else NUM_CANDIDATES
    stdin = watch_lines(stream_lines(sys.stdin.buffer, "stdin"), "stdin", make_reporter())
    lines = open_lines(file) if file != STDIN else stdin
    name = "stdin" if file == STDIN else str(file) if file == options.file else None
    print_mask_fillings(partial(_load_model, options), lines, name, count, options.unit or "piece", options.jsonl)


def _read_optional_lines(file: Path | None) -> Iterable[str] | None:
    if file is None:
        return None
    from tfm.data.lines import open_lines

    return open_lines(file)
