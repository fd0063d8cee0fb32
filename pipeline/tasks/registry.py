"""The tasks by name."""

from collections.abc import Callable

from tfm.pipeline.tasks.classification import Classification
from tfm.pipeline.tasks.language_model import LanguageModel
from tfm.pipeline.tasks.masked_language_model import MaskedLanguageModel
from tfm.pipeline.tasks.span_corruption import SpanCorruption
from tfm.pipeline.tasks.tagging import Tagging
from tfm.pipeline.tasks.task import Task, TaskContext
from tfm.pipeline.tasks.translation import Translation
from tfm.pipeline.tasks.word_vectors import WordVectorTask

TASKS: dict[str, Callable[[TaskContext], Task]] = {
    "translation": Translation.of,
    "language_model": LanguageModel.of,
    "masked_language_model": MaskedLanguageModel.of,
    "span_corruption": SpanCorruption.of,
    "classification": Classification.of,
    "tagging": Tagging.of,
    "word_vectors": WordVectorTask.of,
}


def task_of(context: TaskContext) -> Task:
    """The task that a model learns."""
    return TASKS[context.model.task](context)
