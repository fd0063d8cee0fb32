"""A recipe's settings of texts alone, without a source: who can read them, and whether they are running text."""

from collections.abc import Iterator
from typing import Any

from tfm.data.config import DataConfig
from tfm.pipeline.tasks.abilities import TASK_SPECS
from tfm.tokenizer.config import TokenizerConfig


def default_to_running_text(raw: dict[str, Any]) -> None:
    """Say in a recipe, as it was read, that its texts are running text, if its model reads windows of such text."""
    model, data = raw.get("model"), raw.get("data")
    if isinstance(model, dict) and isinstance(data, dict) and model.get("block", "none") not in (None, "none"):
        data.setdefault("running_text", True)


def copy_text_to_missing_side(raw: dict[str, Any]) -> None:
    """Say in a recipe, as it was read, that one text is source and target, where its task hides pieces of a text and a
    corpus names the text alone, as either.
    """
    model, data = raw.get("model"), raw.get("data")
    task = model.get("task") if isinstance(model, dict) else None
    abilities = TASK_SPECS.get(task) if isinstance(task, str) else None
    if abilities is None or not abilities.hides_pieces or not isinstance(data, dict):
        return
    for corpus in _tables_of_corpora(data):
        if corpus.get("format") == "generated":  # its columns have names of their own
            continue
        source, target = corpus.get("source", "none"), corpus.get("target", "none")
        is_text = corpus.get("format", "text") == "text" and "path" not in corpus
        if source in (None, "none") and target not in (None, "none") and "source" in corpus:
            corpus["source"] = target
        elif source not in (None, "none") and target in (None, "none") and ("target" in corpus or is_text):
            corpus["target"] = source


def _tables_of_corpora(data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The tables of a recipe's [data] that name texts."""
    tests = data.get("tests")
    parts = [data if "path" in data else None, *(tests.values() if isinstance(tests, dict) else ())]
    for name in ("train", "valid"):
        corpora = data.get(name)
        parts += corpora if isinstance(corpora, list) else [corpora]
    yield from (part for part in parts if isinstance(part, dict))


def check_corpora_have_sources(task: str, data: DataConfig) -> None:
    """Raise ValueError if the task reads sources, and corpora have none."""
    if TASK_SPECS[task].reads != "source":
        return
    keys_without_source = [
        f"data.{name}" for name, corpus in data.corpora_by_name.items() if not (corpus.has_source or corpus.has_images)
    ]
    if data.path is not None and data.source is None:
        keys_without_source = ["data", *keys_without_source]
    if not keys_without_source:
        return
    remedy = "give the file or column of the texts as `source`"
    if TASK_SPECS[task].translates:
        remedy += ', or set model.task = "language_model" for texts alone'
    raise ValueError(f'model.task = "{task}" reads sources, and {keys_without_source[0]} has source = "none": {remedy}')


def check_vocabularies_have_texts(data: DataConfig, tokenizer: TokenizerConfig) -> None:
    """Raise ValueError if a side has a vocabulary of its own, and no training corpus has a text on it."""
    if tokenizer.shared or tokenizer.source_from is not None or tokenizer.file is not None or data.images is not None:
        return
    if (data.path is None or data.source is None) and not any(corpus.has_source for corpus in data.train):
        name = "data.train" if data.path is None else "data"
        raise ValueError(
            f'tokenizer.shared = false learns pieces of sources, and {name} has source = "none": set shared = true'
        )
