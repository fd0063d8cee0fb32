"""Lines of text to labels by a trained model: one for each line (classification) or each word (tagging)."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch

from tfm.data.batching.batches import PairBatch, pair_batch_from_ids, pair_batch_from_images
from tfm.data.batching.buckets import length_sorted_batches
from tfm.data.dataset.unseen_labels import count_unseen_labels_in_texts, unseen_labels_message
from tfm.data.images.row_images import RowImages
from tfm.pipeline.decoding.search.hypothesis import check_not_nan
from tfm.pipeline.errors import DataError
from tfm.pipeline.inference.label_sources import LabelSource, encode_sources, is_tagging_task
from tfm.pipeline.inference.source_problems import SourceProblems
from tfm.pipeline.model_io.loaded_model import LoadedModel
from tfm.pipeline.runtime.progress import Reporter
from tfm.pipeline.tasks.abilities import TASK_SPECS
from tfm.pipeline.tasks.registry import make_task
from tfm.pipeline.tasks.task import PredictedLabels, TaskContext
from tfm.pipeline.training_config import TrainingConfig

MAX_BATCH_TOKENS = 8192
MAX_BATCH_IMAGES = 64  # at a time


def predicts_labels(loaded: LoadedModel) -> bool:
    """Whether the model labels. Raises DataError if it neither labels nor translates."""
    task = loaded.config.task
    abilities = TASK_SPECS[task]
    if not abilities.gives_hypotheses:
        raise DataError(f"was trained for {task} and does not translate: {abilities.instead}", file=loaded.folder)
    return abilities.labels is not None


def warn_of_unseen_labels(loaded: LoadedModel, references: Sequence[Sequence[str]], reporter: Reporter) -> None:
    """Warn of labels in the references that the model, if it gives labels, cannot give.

    Args:
        loaded: the model.
        references: one or more lists of lines.
        reporter: shows the warning.
    """
    if loaded.target_tokenizer.label_kind is not None:
        unseen_labels = count_unseen_labels_in_texts(
            [label for texts in references for label in texts], loaded.target_tokenizer
        )
        if unseen_labels:
            reporter.warn(unseen_labels_message(unseen_labels, "the references"))


def label_texts(
    loaded: LoadedModel,
    lines: Sequence[str],
    source_problems: SourceProblems,
    on_done: Callable[[int], None] | None = None,
    *,
    n_best: int = 1,
) -> Iterator[list[tuple[str, float, int]]]:
    """Label each line with a classifier's `n_best` likeliest labels, each by itself, or a tagger's likeliest tags.

    A line without pieces has no label, and one longer than the model reads is cut.

    Args:
        loaded: the classifier or tagger.
        lines: the texts.
        source_problems: counts the lines that are cut.
        on_done: called with the number of further lines that are done.
        n_best: the number of labels of a classifier.

    Yields:
        For each line, a list of labels, between spaces, with their log-probability and their number.
    """
    loaded.check_reads_text("give image files")
    device = next(loaded.model.parameters()).device
    context = TaskContext(
        TrainingConfig(), loaded.config, loaded.source_tokenizer, loaded.target_tokenizer, MAX_BATCH_TOKENS
    )
    task: Any = make_task(context)  # one that labels, so that it has `predict`
    report_done = on_done or (lambda _: None)
    sources = encode_sources(
        loaded.source_tokenizer,
        lines,
        loaded.model.max_length - 1,
        source_problems,
        by_word=is_tagging_task(loaded.config.task),
    )
    results = [[PredictedLabels([], 0.0)]] * len(sources)
    nonempty_rows = [row for row, source in enumerate(sources) if source.ids]
    lengths = np.array([len(sources[row].ids) + 1 for row in nonempty_rows], np.int64)
    loaded.model.eval()
    with torch.inference_mode():
        for rows in length_sorted_batches(lengths, lengths, budget=MAX_BATCH_TOKENS):
            batch = _pad_sources([sources[nonempty_rows[row]] for row in rows])
            for row, labels in zip(rows, task.predict(loaded.model, batch.to(device), n_best), strict=True):
                results[nonempty_rows[row]] = labels
            report_done(len(rows))
    if len(nonempty_rows) < len(sources):
        report_done(len(sources) - len(nonempty_rows))
    check_not_nan(np.array([labels.log_prob for predictions in results for labels in predictions]))
    texts = iter(
        loaded.target_tokenizer.decode_batch([labels.ids for predictions in results for labels in predictions])
    )
    for predictions in results:
        yield [(next(texts), labels.log_prob, len(labels.ids)) for labels in predictions]


def label_images(
    loaded: LoadedModel, images: RowImages, on_done: Callable[[int], None] | None = None, *, n_best: int = 1
) -> Iterator[list[tuple[str, float, int]]]:
    """Label each image with its likeliest labels, as `label_texts` does for lines.

    Args:
        loaded: the classifier.
        images: the images.
        on_done: called with the number of further images that are done.
        n_best: the number of labels of each image.

    Yields:
        For each image, a list of labels with their log-probability and their number.
    """
    device = next(loaded.model.parameters()).device
    context = TaskContext(
        TrainingConfig(), loaded.config, loaded.source_tokenizer, loaded.target_tokenizer, MAX_BATCH_TOKENS
    )
    task: Any = make_task(context)
    loaded.model.eval()
    for begin in range(0, len(images), MAX_BATCH_IMAGES):
        pixels = images.take(np.arange(begin, min(begin + MAX_BATCH_IMAGES, len(images))))
        batch = pair_batch_from_images(pixels, [[]] * len(pixels), images.preparation)
        with torch.inference_mode():
            results = task.predict(loaded.model, batch.to(device), n_best)
        check_not_nan(np.array([labels.log_prob for predictions in results for labels in predictions]))
        texts = iter(
            loaded.target_tokenizer.decode_batch([labels.ids for predictions in results for labels in predictions])
        )
        for predictions in results:
            yield [(next(texts), labels.log_prob, len(labels.ids)) for labels in predictions]
        if on_done is not None:
            on_done(len(pixels))


def _pad_sources(sources: Sequence[LabelSource]) -> PairBatch:
    """Sources of one task as a batch without targets."""
    words = [source.sizes for source in sources if source.sizes is not None]
    return pair_batch_from_ids([source.ids for source in sources], [[]] * len(sources), words or None)
