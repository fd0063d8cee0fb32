"""Figures of a training as TensorBoard scalars, in the folder of its work in progress."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from tfm.pipeline.artifacts.files import convert_os_errors
from tfm.pipeline.artifacts.no_symlinks import make_folder_below
from tfm.pipeline.distribution import install_command
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.training.trackers.tracker import MetricsLine, scalars


class TensorBoardSink:
    """Sink that writes figures as TensorBoard scalars. Raises RecipeError if the package is missing."""

    def __init__(self, folder: Path, *, step: int) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise RecipeError(
                f"training.trackers: tensorboard needs a package that is not installed: "
                f"{install_command('tensorboard')}"
            ) from error
        with convert_os_errors(folder):
            make_folder_below(folder.parent.parent, folder)
        self._writer = SummaryWriter(str(folder), purge_step=step + 1)

    def append(self, line: MetricsLine) -> None:
        """Add a line's figures."""
        for name, value in scalars(line):
            self._writer.add_scalar(name, value, line["step"])
        self._writer.flush()  # a thread writes them, and it dies with the process

    def close(self, files: Sequence[Path] = (), tags: Mapping[str, str] | None = None, *, is_finished: bool) -> None:
        """Close the file of events; TensorBoard shows the figures alone."""
        self._writer.close()
