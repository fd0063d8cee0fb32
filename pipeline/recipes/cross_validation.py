"""Cross-validation: a recipe trained once for each fold of its training data, without it, and validated on it."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tfm.data.config import DataConfig, FoldConfig
from tfm.data.corpora.portions import fold_number_of
from tfm.data.corpora.sources import describe_corpus, read_pairs, resolve_splits
from tfm.pipeline.artifacts.artifact import open_artifact
from tfm.pipeline.errors import DataError
from tfm.pipeline.recipes.recipe import Recipe
from tfm.pipeline.recipes.recipe_batch import RUNS_FOLDER, load_recipes
from tfm.pipeline.recipes.run_paths import run_folder
from tfm.pipeline.reports.model_figures import extra_validation_scores
from tfm.pipeline.scoring.metrics.bleu_tokenizer import choose_tokenizer

FOLD_STAGES = ("clean", "tokenize", "preprocess", "train")
"""The stages of each fold: no test set is scored."""
FOLD_VALIDATION_FIGURES = ("loss", "perplexity", "accuracy", "bleu")
"""Before further scores of validation."""


@dataclass(frozen=True)
class FoldResult:
    """The model that a fold was kept from. examples: of the fold; figures: of validation on it, by name; signatures: of
    those that have one."""

    number: int
    run: str
    examples: int
    updates: int
    figures: dict[str, float]
    signatures: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class CrossValidation:
    """A recipe, and in order the results of its folds."""

    name: str
    folds: tuple[FoldResult, ...]

    @property
    def figures(self) -> list[str]:
        """The names of the figures that all folds have."""
        names = dict.fromkeys([*FOLD_VALIDATION_FIGURES, *(name for fold in self.folds for name in fold.figures)])
        return [name for name in names if all(name in fold.figures for fold in self.folds)]

    def signature(self, figure: str) -> str | None:
        """The one signature that a figure has in all folds; None if it has none, or several."""
        signatures = {fold.signatures.get(figure) for fold in self.folds}
        return signatures.pop() if len(signatures) == 1 else None

    def no_mean_reason(self, figure: str) -> str | None:
        """Why a figure has no mean: its folds were scored by different definitions; None if it has one."""
        return no_mean_reason(figure, {f"fold {each.number}": each.signatures.get(figure, "") for each in self.folds})

    def mean(self, figure: str) -> float:
        """Over folds, each counted once; of a figure without `no_mean_reason`."""
        return math.fsum(fold.figures[figure] for fold in self.folds) / len(self.folds)

    def deviation(self, figure: str) -> float:
        """The standard deviation over folds, with n - 1; not a number if a value is infinite.

        It is no error of the mean: docs/tuning/cross-validation.md says why.
        """
        values = [fold.figures[figure] for fold in self.folds]
        return statistics.stdev(values) if all(map(math.isfinite, values)) else math.nan

    def as_json(self) -> dict[str, Any]:
        """Return all results as JSON has them; numbers without end as text, as manifests have them."""
        summary = {name: self._summarize_metric(name) for name in self.figures}
        return {"name": self.name, **summary, "folds": [asdict(fold) for fold in self.folds]}

    def _summarize_metric(self, figure: str) -> dict[str, Any]:
        if (reason := self.no_mean_reason(figure)) is not None:
            return {"mean": None, "deviation": None, "signature": None, "why": reason}
        signature = self.signature(figure)
        extra = {} if signature is None else {"signature": signature}
        return {"mean": self.mean(figure), "deviation": self.deviation(figure), **extra}


def no_mean_reason(figure: str, signatures: Mapping[str, str]) -> str | None:
    """Why a figure of several folds, by their names, has no mean: their signatures differ; None if it has one."""
    first, *remaining = signatures.items()
    counterexample = next((each for each in remaining if each[1] != first[1]), None)
    if counterexample is None:
        return None
    description = " and ".join(f"{signature} in {name}" for name, signature in (first, counterexample))
    remedy = "; set evaluation.bleu_tokenize" if figure == "bleu" else ""
    return f"{figure} has no mean, as it is {description}{remedy}"


def leave_fold_out(recipe: Recipe, fold: int, num_folds: int) -> Recipe:
    """Return a recipe, called NAME-fold-NUMBER, that trains without a fold of its training data and validates on it.

    Args:
        recipe: the recipe.
        fold: number of the fold, from 1.
        num_folds: number of folds.
    """
    data = recipe.data.model_copy(update={"fold": FoldConfig(number=fold, of=num_folds)})
    return recipe.model_copy(update={"name": f"{recipe.name}-fold-{fold}", "data": data})


def load_folds(
    files: Sequence[Path],
    num_folds: int,
    overrides: Sequence[str] = (),
    flags: Mapping[str, object | None] | None = None,
    seeds: Sequence[int] = (),
) -> dict[str, list[Recipe]]:
    """Return the recipes of each fold, by the name of the recipe.

    The folds of a recipe are drawn with `data.split_seed`, and are the same for all seeds.

    Args:
        files: as for `load_recipes`.
        num_folds: number of folds.
        overrides: as for `load_recipes`.
        flags: as for `load_recipes`.
        seeds: as for `load_recipes`.

    Raises:
        DataError: a fold would be empty.
    """
    first = {**(flags or {}), "data.fold.number": 1, "data.fold.of": num_folds}
    loaded = load_recipes(files, overrides, first, seeds)
    for data in {recipe.data.model_dump_json(): recipe.data for recipe in loaded}.values():
        if (problem := empty_fold_problem(data, num_folds)) is not None:
            raise DataError(problem)
    return {
        recipe.name: [leave_fold_out(recipe, number, num_folds) for number in range(1, num_folds + 1)]
        for recipe in loaded
    }


def empty_fold_problem(data: DataConfig, num_folds: int) -> str | None:
    """Why the training data cannot be cut into so many folds: one would be empty. Reading ends when all have a text."""
    train = resolve_splits(data.model_copy(update={"fold": None})).train
    filled_folds: set[int] = set()
    for corpus in train:
        for source, target in read_pairs(corpus, online=data.online):
            text = source if corpus.has_source else target
            if corpus.has_source or text.strip():  # else a line break, which goes with the text before it
                filled_folds.add(fold_number_of(text, num_folds, data.split_seed))
            if len(filled_folds) == num_folds:
                return None
    empty = next(number for number in range(1, num_folds + 1) if number not in filled_folds)
    corpora = ", ".join(map(describe_corpus, train))
    return (
        f"{num_folds} folds are too many for {corpora}: {num_folds - len(filled_folds)} of them, such as fold {empty}, "
        "would be empty; give fewer folds"
    )


def bleu_tokenizers_problem(recipe: Recipe, num_folds: int) -> str | None:
    """Why the BLEU of a recipe's folds would have no mean: "auto" finds several tokenizers for them."""
    data = recipe.data
    train = resolve_splits(data.model_copy(update={"fold": None})).train
    directions = {corpus.languages for corpus in train}  # each has a tokenizer of its own
    if recipe.evaluation.bleu_tokenize != "auto" or len(directions) > 1 or not all(each.has_source for each in train):
        return None
    targets: dict[int, list[str]] = {}
    for corpus in train:
        for source, target in read_pairs(corpus, online=data.online):
            targets.setdefault(fold_number_of(source, num_folds, data.split_seed), []).append(target)
    names = {f"fold {number}": f"tok:{choose_tokenizer([texts]).name}" for number, texts in sorted(targets.items())}
    return no_mean_reason("bleu", names)


def read_folds(name: str, recipes: Sequence[Recipe], root: Path = RUNS_FOLDER) -> CrossValidation:
    """Return the results of the runs of a recipe's folds.

    Args:
        name: name of the cross-validation.
        recipes: the recipe of each fold.
        root: the folder of all runs.

    Raises:
        DataError: a run has no model.
    """
    return CrossValidation(name, tuple(_read_fold(recipe, run_folder(recipe, root)) for recipe in recipes))


def _read_fold(recipe: Recipe, folder: Path) -> FoldResult:
    fold, model, dataset = recipe.data.fold, open_artifact(folder / "model", "train"), open_artifact(folder / "dataset")
    assert fold is not None
    validation, rows = model.figures["validation"], dataset.figures["rows"]
    if not (isinstance(validation, Mapping) and isinstance(rows, Mapping)):
        raise DataError("its manifest has no figures of validation: train it again", file=folder / "model")
    figures = {key: float(validation[key]) for key in FOLD_VALIDATION_FIGURES if validation.get(key) is not None}
    signatures = {key: str(text) for key in figures if (text := validation.get(f"{key}_signature")) is not None}
    for name, extra_score in extra_validation_scores(validation).items():
        figures[name], signatures[name] = extra_score.score, extra_score.signature
    return FoldResult(fold.number, recipe.name, int(rows["valid"]), int(model.figures["updates"]), figures, signatures)
