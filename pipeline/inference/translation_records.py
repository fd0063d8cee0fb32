"""Translations as records: their fields, and their lines in files."""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import tee
from typing import TYPE_CHECKING

from tfm.data.errors import format_count
from tfm.pipeline.artifacts.canonical_json import JSON
from tfm.pipeline.runtime.progress import Reporter

if TYPE_CHECKING:
    from tfm.pipeline.artifacts.artifact import Draft

SENTENCES_UNIT, IMAGES_UNIT = "sentences", "images"
"""Names of the things that were translated, as the figures of translations count them."""
IMAGE_CONTENTS_KEY = "contents"
"""The figure that is the hash of the images."""


@dataclass(frozen=True)
class Translation:
    """One translation of a line, itself one line.

    Args:
        text: the translation.
        score: log_prob after length normalization.
        log_prob: sum of the log-probabilities of its tokens (end token included), in nats.
        num_tokens: the number of tokens.
    """

    text: str
    score: float
    log_prob: float
    num_tokens: int


EMPTY_TRANSLATION = Translation("", 0.0, 0.0, 0)
"""The translation of an empty line."""


def join_to_one_line(text: str) -> str:
    """The text with a blank for each line break in it: line n of a file of translations belongs to line n."""
    return text.replace("\r", " ").replace("\n", " ")


def translations_as_json(source: str, translations: Sequence[Translation]) -> dict[str, JSON]:
    """One line of a .jsonl of translations: {"source", "translations": [{"text", "score", ...}, ...]}."""
    return {"source": source, "translations": [asdict(translation) for translation in translations]}


def reference_file_name(test: str, index: int) -> str:
    """The file of a test set's references; they are numbered from 1."""
    return f"{test}.reference.txt" if index == 1 else f"{test}.reference.{index}.txt"


def write_translations(
    draft: "Draft",
    name: str,
    source_name: str,
    sources: Iterable[str],
    translate: Callable[[Iterable[str]], Iterator[list[Translation]]],
    reporter: Reporter,
    *,
    unit: str = SENTENCES_UNIT,
    extra_figures: Mapping[str, JSON] = {},
) -> None:
    """Write the translations of one text into a draft, and their costs into its figures.

    Args:
        draft: the artifact that is made.
        name: of the files of the translations, and of the figures.
        source_name: of the file of the sources.
        sources: the texts.
        translate: gives the translations of texts, in their order.
        reporter: receives a message.
        unit: the name of the things that are translated.
        extra_figures: further figures.
    """
    start_time = time.monotonic()
    num_lines = num_tokens = 0
    sources, sources_to_translate = tee(sources)
    with ExitStack() as stack:
        text, records, copy = (
            stack.enter_context(open(draft.folder / file, "w", encoding="utf-8", newline="\n"))
            for file in (f"{name}.txt", f"{name}.jsonl", f"{source_name}.txt")
        )
        for source, translations in zip(sources, translate(sources_to_translate), strict=True):
            text.write(translations[0].text + "\n")
            records.write(json.dumps(translations_as_json(source, translations), ensure_ascii=False) + "\n")
            copy.write(join_to_one_line(source) + "\n")
            num_lines, num_tokens = num_lines + 1, num_tokens + translations[0].num_tokens
    seconds = time.monotonic() - start_time
    rate = num_tokens / seconds
    draft.figures[name] = {
        unit: num_lines,
        "seconds": round(seconds, 3),
        "tokens_per_second": round(rate, 1),
        **extra_figures,
    }
    count = format_count(num_lines, unit.removesuffix("s"))
    reporter.line(f"{name}: {count} in {seconds:.1f} s, {rate:,.0f} tokens a second")
