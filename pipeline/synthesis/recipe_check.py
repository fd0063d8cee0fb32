"""Check that texts and models of [synthesis] are there, before the stages of a recipe that take hours."""

from pathlib import Path

from tfm.data.corpora.paths.corpus_files import corpus_files, corpus_paths_or_urls
from tfm.data.corpora.paths.remote_files import is_url
from tfm.data.errors import DataError, missing_file_error
from tfm.pipeline.artifacts.manifest import open_artifact
from tfm.pipeline.model_io.model_folder import read_task, resolve_model_folder
from tfm.pipeline.synthesis.config import SynthesisConfig
from tfm.pipeline.tasks.abilities import TASK_SPECS


def check_synthesis_inputs(config: SynthesisConfig, run_folder: Path) -> None:
    """Check that all is there that the last stage reads, but for what the run itself makes or downloads before it.

    Args:
        config: the [synthesis] part of a recipe.
        run_folder: of the recipe.

    Raises:
        DataError: a file is not there, or a folder has no model that translates.
    """

    def is_made_by_run(name: str) -> bool:
        return run_folder.absolute() in Path(name).absolute().parents

    files = [Path(file) for file in config.tests if not is_made_by_run(file)]
    if not any(is_url(name) or is_made_by_run(name) for name in corpus_paths_or_urls(config.text)):
        files += corpus_files(config.text)
    for file in files:
        if not file.exists():
            raise missing_file_error(file)
    for name in config.models:
        if is_made_by_run(name):
            continue
        folder = resolve_model_folder(Path(name))
        open_artifact(folder, "train")
        task = read_task(folder)
        if task is not None and task in TASK_SPECS and not TASK_SPECS[task].translates:
            raise DataError(f"was trained for {task}: give a model that translates", file=name)
