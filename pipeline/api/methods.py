"""The methods of `Model` that its task decides on."""

from collections.abc import Callable, Mapping

from tfm.pipeline.errors import DataError
from tfm.pipeline.model_io.loaded_model import LoadedModel
from tfm.pipeline.tasks.abilities import TASK_SPECS, TaskSpec

TASKS_WITH_METHOD: Mapping[str, Callable[[TaskSpec], bool]] = {
    "translate": lambda task: task.translates,
    "generate": lambda task: task.continues_text,
    "score": lambda task: task.writes,
    "classify": lambda task: task.labels == "label",
    "tag": lambda task: task.labels == "tags",
    "fill": lambda task: task.hides_pieces,
    "embed": lambda task: True,
    "encode": lambda task: not task.within_window,
    "attend": lambda task: not task.within_window,
}
"""The tasks that have each method, by its name."""
TEXT_ONLY_METHODS = {"score", "encode"}
"""Methods that a model of images lacks, whatever its task."""


def check_has_method(loaded: LoadedModel, method: str) -> None:
    """Raise DataError for a method that the task of the model does not have, with the methods that it has."""
    task = loaded.config.task
    methods = [name for name, method_names in TASKS_WITH_METHOD.items() if method_names(TASK_SPECS[task])]
    if method not in methods:
        method_names = ", ".join(
            f"{name}()" for name in methods if loaded.images is None or name not in TEXT_ONLY_METHODS
        )
        raise DataError(f"was trained for {task}: it has no {method}(); it has {method_names}", file=loaded.folder)
