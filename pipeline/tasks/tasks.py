"""The tasks by name."""

from collections.abc import Callable
from typing import Any

from pipeline.tasks.classification import Classification
from pipeline.tasks.language_model import LanguageModel
from pipeline.tasks.masked_language_model import MaskedLanguageModel
from pipeline.tasks.tagging import Tagging
from pipeline.tasks.task import About
from pipeline.tasks.translation import Translation
from pipeline.tasks.word_vectors import Neighbours

TASKS: dict[str, Callable[[About], Any]] = {
    "translation": Translation.of,
    "language_model": LanguageModel.of,
    "masked_language_model": MaskedLanguageModel.of,
    "classification": Classification.of,
    "tagging": Tagging.of,
    "word_vectors": Neighbours.of,
}
