"""The folder of a run's model, and the inputs that it reads."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tfm.pipeline.config import GuidedAlignmentConfig


def resolve_model_folder(folder: Path) -> Path:
    """The folder of the model itself; the folder of a run, which has it as model/, may be given too."""
    holds_one = not (folder / "manifest.json").exists() and (folder / "model").exists()
    return folder / "model" if holds_one else folder


def reads_images(model: Path) -> bool:
    """Whether the model in a folder reads images, so far as can be seen without opening it."""
    from tfm.data.image_config import IMAGES_FILE  # here, as it needs pydantic, which `tfm --help` does without

    return (model / IMAGES_FILE).is_file()


def predicts_masked_tokens(model: Path) -> bool:
    """Whether the model in a folder, or of a run, predicts hidden pieces, so far as can be seen without opening it."""
    from tfm.pipeline.tasks.abilities import TASK_SPECS  # here, for the same reason

    task = read_task(model)
    return task is not None and task in TASK_SPECS and TASK_SPECS[task].hides_pieces


def read_task(model: Path) -> str | None:
    """The task of the model in a folder, or of a run, so far as can be seen without opening it; None if that is not."""
    from tfm.data.errors import DataError  # here, for the same reason
    from tfm.data.json_documents import read_json

    try:
        task = read_json(resolve_model_folder(model) / "config.json").get("task")
    except (DataError, OSError):
        return None  # the one who opens the model says what is wrong
    return task if isinstance(task, str) else None


def read_guided_alignment(config: Mapping[str, Any]) -> "GuidedAlignmentConfig | None":
    """Return how a head of a model was trained to align; None if none was.

    Args:
        config: of the model's training, as its manifest or a checkpoint's plan has it.

    Raises:
        ValidationError: the config describes it in another way.
    """
    from tfm.pipeline.config import GuidedAlignmentConfig  # here, for the same reason

    training = config.get("training")
    settings = training.get("guided_alignment") if isinstance(training, dict) else None
    if isinstance(settings, dict):
        settings = {"links": "links", **settings}  # the file is an input of the training under any name
    return None if settings is None else GuidedAlignmentConfig.model_validate(settings)
