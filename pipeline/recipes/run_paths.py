"""The paths of the artifacts of a run."""

from dataclasses import dataclass
from pathlib import Path

from tfm.pipeline.config import EvalSplit
from tfm.pipeline.recipes.recipe import Recipe


@dataclass(frozen=True)
class RunPaths:
    """The paths of the artifacts of a run.

    eval_split: the split that its translations and scores are of; those of the test sets are in translations/ and
    scores/.
    """

    folder: Path
    eval_split: EvalSplit = "tests"

    @property
    def clean(self) -> Path:
        return self.folder / "clean"

    @property
    def tokenizer(self) -> Path:
        return self.folder / "tokenizer"

    @property
    def dataset(self) -> Path:
        return self.folder / "dataset"

    @property
    def training(self) -> Path:
        return self.folder / "training"

    @property
    def model(self) -> Path:
        return self.folder / "model"

    @property
    def translations(self) -> Path:
        return self.folder / ("translations" if self.eval_split == "tests" else f"translations-{self.eval_split}")

    @property
    def scores(self) -> Path:
        return self.folder / ("scores" if self.eval_split == "tests" else f"scores-{self.eval_split}")

    @property
    def synthetic(self) -> Path:
        return self.folder / "synthetic"


def run_folder(recipe: Recipe, root: Path = Path("runs")) -> Path:
    """The folder of the recipe's run."""
    return root / recipe.name


def cleaned_data_folder(recipe: Recipe, run: RunPaths) -> Path | None:
    """The folder of clean training data, of a recipe that has [clean]."""
    return None if recipe.clean is None else run.clean


def get_run_paths(recipe: Recipe, root: Path = Path("runs")) -> RunPaths:
    """Return the paths that the stages of a recipe read and write."""
    return RunPaths(run_folder(recipe, root), "valid" if recipe.evaluation.tests == "final" else "tests")
