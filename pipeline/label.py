"""Lines of text to labels by a trained model: one a line (classification), or one a word (tagging)."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch

from data.batches import pairs_from_ids
from data.buckets import ordered_batches
from pipeline.config import TrainingConfig
from pipeline.errors import DataError
from pipeline.models import LoadedModel
from pipeline.tasks.task import About, Labels
from pipeline.tasks.tasks import TASKS

LABELLING = ("classification", "tagging")
TRANSLATING = ("translation",)
OTHERWISE_USED = {"language_model": "use `tfm generate`", "word_vectors": "use `tfm embed`"}
TOKENS = 8192


def labels_instead(loaded: LoadedModel) -> bool:
    """Whether the model labels. Raises DataError where it neither labels nor translates."""
    task = loaded.config.task
    if task not in (*LABELLING, *TRANSLATING):
        remedy = OTHERWISE_USED.get(task, "it is a beginning for others (--init-from)")
        raise DataError(f"learned {task} and gives no translations: {remedy}", file=loaded.folder)
    return task in LABELLING


def label(
    loaded: LoadedModel, sources: Sequence[Sequence[int]], on_done: Callable[[int], None] | None = None
) -> Iterator[tuple[str, float, int]]:
    """Labels of each source (ids without end token), between spaces; their log-probability; how many they are.

    A source without pieces has none, and one longer than the model reads is cut. `on_done` is told how many more are
    done.
    """
    limit, device = loaded.model.max_length - 1, next(loaded.model.parameters()).device
    about = About(TrainingConfig(), loaded.config, loaded.source_tokenizer, loaded.target_tokenizer, TOKENS)
    task, tell = TASKS[loaded.config.task](about), on_done or (lambda _: None)
    found = [Labels([], 0.0)] * len(sources)
    filled = [row for row, ids in enumerate(sources) if len(ids)]
    lengths = np.array([min(len(sources[row]), limit) + 1 for row in filled], np.int64)
    loaded.model.eval()
    with torch.inference_mode():
        for rows in ordered_batches(lengths, lengths, budget=TOKENS):
            batch = pairs_from_ids([sources[filled[row]][:limit] for row in rows], [[]] * len(rows))
            for row, labels in zip(rows, task.predict(loaded.model, batch.to(device)), strict=True):
                found[filled[row]] = labels
            tell(len(rows))
    if len(filled) < len(sources):
        tell(len(sources) - len(filled))
    texts = loaded.target_tokenizer.decode_batch([labels.ids for labels in found])
    for text, labels in zip(texts, found, strict=True):
        yield text, labels.log_prob, len(labels.ids)
