"""What would go wrong in a training, found before its first step."""

import shutil
from pathlib import Path

import numpy as np

from data.store import Dataset
from pipeline.config import KeepConfig
from pipeline.errors import CannotWrite, DataError


def check_lengths(data: Dataset, max_length: int) -> None:
    """Raise DataError where an example is longer than the model can read."""
    for name, split in (("train", data.train), ("valid", data.valid)):
        longer = np.maximum(split.source_lengths, split.target_lengths) + 1
        if not len(longer):
            raise DataError(f"the {name} split is empty; make the dataset again with more data")
        too_long = int((longer > max_length).sum())
        if too_long:
            remedy = "raise it, or lower data.limits.max_length" if name == "train" else "raise it"
            raise DataError(
                f"{too_long} of {len(split)} {name} examples have more than model.max_length = {max_length} pieces "
                f"(the longest {longer.max()}, end token included); {remedy}"
            )


def check_room(folder: Path, num_parameters: int, keep: KeepConfig, *, ema: bool) -> None:
    """Raise CannotWrite where the disk has no room for the checkpoints and the model."""
    weights = 4 * num_parameters
    checkpoints = keep.last + keep.best + 2  # the newest, and one in the making
    needed = weights * ((4 if ema else 3) * checkpoints + 2)
    place = folder
    while not place.exists():
        place = place.parent
    there = sum(file.stat().st_size for file in folder.rglob("*.safetensors"))  # of a training that goes on
    free = shutil.disk_usage(place).free + there
    if free < needed:
        raise CannotWrite(
            f"{folder}: training needs up to {needed / 1e6:,.0f} MB for checkpoints and {free / 1e6:,.0f} MB are "
            "free; make room, or keep fewer (training.keep)"
        )
