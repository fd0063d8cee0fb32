"""Lines of `tfm translate` translated as they come, by numpy or torch, and printed."""

import itertools
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tfm.cli.captions import print_hypotheses
from tfm.cli.streams import open_live_stdin
from tfm.cli.text_argument import STDIN

if TYPE_CHECKING:
    from tfm.pipeline.config import DecodingConfig
    from tfm.pipeline.inference.translation_records import Translation
    from tfm.pipeline.model_io.loaded_model import LoadedModel
    from tfm.pipeline.runtime.progress import Reporter


def translate_lines_by_torch(
    load: "Callable[[], LoadedModel]",
    config: "DecodingConfig",
    prefixes: Iterable[str] | None,
    forced: Iterable[str] | None,
    lines: Iterable[str],
    reporter: "Reporter",
    is_line_ready: Callable[[], bool] | None,
) -> "Iterable[list[Translation]]":
    """Translate by torch; the prefix and the forced words of each line may be given."""
    from tfm.pipeline.inference.translation import translate_lines

    return translate_lines(
        load(), lines, config, reporter=reporter, prefixes=prefixes, forced=forced, ready=is_line_ready
    )


def translate_few_lines_by_numpy(
    model: Path,
    load: "Callable[[], LoadedModel]",
    config: "DecodingConfig",
    to: str | None,
    source_language: str | None,
    lines: Iterable[str],
    reporter: "Reporter",
    is_line_ready: Callable[[], bool] | None,
) -> "Iterable[list[Translation]]":
    """Translate by numpy as long as few lines are waiting; then by torch."""
    from tfm.pipeline.inference.numpy_translation import load_small_model, translate_stream

    small = partial(load_small_model, model, config, to, source_language)
    return translate_stream(small, load, lines, config, reporter=reporter, ready=is_line_ready)


def translate_to_stdout(
    translate: "Callable[[Iterable[str], Reporter, Callable[[], bool] | None], Iterable[list[Translation]]]",
    file: Path,
    config: "DecodingConfig",
    jsonl: bool,
    on_translations: "Callable[[str, Sequence[Translation]], None] | None" = None,
) -> None:
    """Translate one text line by line; from a pipe or a terminal, results are printed when no further line is waiting.

    Args:
        translate: (lines, reporter, whether the next line can be read without waiting) -> their translations.
        file: of the text.
        config: the [decoding] part of a recipe.
        jsonl: whether to print JSON lines.
        on_translations: called with each source and its translations.
    """
    from tfm.cli.console import make_reporter
    from tfm.data.lines import open_lines, stream_lines
    from tfm.pipeline.text_files import watch_lines

    reporter = make_reporter()
    stream = open_live_stdin(reporter) if file == STDIN else None
    sources, lines = itertools.tee(
        open_lines(file)
        if file != STDIN
        else watch_lines(stream_lines(stream or sys.stdin.buffer, "stdin"), "stdin", reporter)
    )
    ready = stream.is_line_ready if stream is not None else None
    for number, (translations, source) in enumerate(zip(translate(lines, reporter, ready), sources, strict=True), 1):
        print_hypotheses(number, source, translations, config, jsonl)
        if on_translations is not None:
            on_translations(source, translations)
