"""A recipe's settings of texts without a source: who can read them, and whether they are running text."""

from typing import Any

from tfm.data.config import DataConfig
from tfm.pipeline.tasks.abilities import ABILITIES


def add_running_text(raw: dict[str, Any]) -> None:
    """Say in a recipe, as it was read, that its texts are running text, if its model reads windows of such text."""
    model, data = raw.get("model"), raw.get("data")
    if isinstance(model, dict) and isinstance(data, dict) and model.get("block", "none") not in (None, "none"):
        data.setdefault("running_text", True)


def check_sources(task: str, data: DataConfig) -> None:
    """Raise ValueError where the task reads sources, and corpora have none."""
    if ABILITIES[task].reads != "source":
        return
    without = [f"data.{name}" for name, corpus in data.named.items() if not (corpus.has_source or corpus.has_images)]
    if data.path is not None and data.source is None:
        without = ["data", *without]
    if not without:
        return
    instead = "give the file or column of the texts as `source`"
    if ABILITIES[task].translates:
        instead += ', or set model.task = "language_model" for texts alone'
    raise ValueError(f'model.task = "{task}" reads sources, and {without[0]} has source = "none": {instead}')
