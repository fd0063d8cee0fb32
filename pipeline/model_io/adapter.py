"""An adapter beside the frozen model that it was trained on: adapter.safetensors, and adapter.json with its factor.

Loading such a model merges the two.
"""

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from safetensors.torch import load_file, save
from torch import Tensor

from tfm.data.errors import DataError, validation_problem
from tfm.data.json_documents import read_json
from tfm.model.layers.lora import merge_adapters
from tfm.pipeline.model_io.weight_files import path_for_safetensors, read_shapes

WEIGHTS_FILE, SETTINGS_FILE = "adapter.safetensors", "adapter.json"


class AdapterSettings(BaseModel):
    """Settings of an adapter: W + alpha / rank * B A."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rank: int = Field(ge=1, le=2**20)
    alpha: float = Field(gt=0, allow_inf_nan=False)

    @property
    def factor(self) -> float:
        return self.alpha / self.rank


def save_adapter(folder: Path, adapters: dict[str, Tensor], settings: AdapterSettings) -> None:
    """Write an adapter into the folder of the model that it belongs to.

    Args:
        folder: of the model.
        adapters: the matrices A and B, by name.
        settings: rank and alpha.
    """
    contiguous = {name: each.detach().contiguous() for name, each in adapters.items()}
    (folder / WEIGHTS_FILE).write_bytes(save(contiguous))
    (folder / SETTINGS_FILE).write_text(settings.model_dump_json(indent=2) + "\n", encoding="utf-8")


def merge_adapter(folder: Path, weights: dict[str, Tensor], displayed_folder: Path) -> dict[str, Tensor]:
    """Return the weights of a model, with the adapter that lies in its folder, where one does.

    Args:
        folder: of the model.
        weights: by name.
        displayed_folder: the folder in messages.

    Raises:
        DataError: the adapter is damaged.
        ValueError: the adapter is one of another model.
    """
    if not (folder / SETTINGS_FILE).exists():
        return weights
    try:
        adapter = AdapterSettings.model_validate(
            read_json(folder / SETTINGS_FILE, displayed_path=displayed_folder / SETTINGS_FILE)
        )
    except ValidationError as error:
        raise DataError(
            f"not an adapter: {validation_problem(error)}", file=displayed_folder / SETTINGS_FILE
        ) from error
    read_shapes(folder / WEIGHTS_FILE)  # which bounds what is made of its header
    return merge_adapters(weights, load_file(path_for_safetensors(folder / WEIGHTS_FILE)), adapter.factor)
