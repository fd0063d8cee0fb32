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
    "translation": Translation.from_context,
    "language_model": LanguageModel.from_context,
    "masked_language_model": MaskedLanguageModel.from_context,
    "span_corruption": SpanCorruption.from_context,
    "classification": Classification.from_context,
    "tagging": Tagging.from_context,
    "word_vectors": WordVectorTask.from_context,
}


def make_task(context: TaskContext) -> Task:
    """The task that a model learns."""
    return TASKS[context.model.task](context)
