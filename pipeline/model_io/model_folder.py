"""Where the model of a run is."""

from pathlib import Path


def model_folder(folder: Path) -> Path:
    """The folder of the model itself; the folder of a run, which has it as model/, may be given too."""
    holds_one = not (folder / "manifest.json").exists() and (folder / "model").exists()
    return folder / "model" if holds_one else folder
