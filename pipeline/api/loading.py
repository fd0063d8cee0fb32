"""Load a trained model: `tfm.load`."""

import os

import torch

from tfm.pipeline.api import arguments
from tfm.pipeline.api.logged import LoggingReporter
from tfm.pipeline.api.messages import name_parameters_in_errors
from tfm.pipeline.api.model import Model
from tfm.pipeline.config import Device
from tfm.pipeline.model_io.loaded_model import load_model
from tfm.pipeline.model_io.model_folder import resolve_model_folder
from tfm.pipeline.runtime.progress import Reporter


@name_parameters_in_errors
def load(
    folder: str | os.PathLike[str], *, device: Device | torch.device = "auto", reporter: Reporter | None = None
) -> Model:
    """Load the model in the folder of a run, or in its own, verified.

    Args:
        folder: of the run or the model.
        device: cpu, cuda, mps, or torch's object; auto: a GPU if there is one.
        reporter: receives progress and warnings; None: warnings go to the logger `tfm`, and no progress is shown.

    Raises:
        DataError: there is no model.
        TypeError: an argument is of another kind.
    """
    path = arguments.check_folder(folder, "folder")
    name = str(device) if isinstance(device, torch.device) else arguments.check_single_text(device, "device")
    checked_reporter = arguments.check_reporter(reporter) or LoggingReporter()
    return Model(load_model(resolve_model_folder(path), name), checked_reporter)
