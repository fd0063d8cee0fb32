"""Trained models side by side: what differs between them, their figures, and which of these may be compared.

Where the signatures of two figures differ, it is said how: a loss on another dataset, BLEU of other texts or seconds of
another machine tell nothing beside each other.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.errors import RecipeError
from pipeline.manifest import plain
from pipeline.scoring.report import LOWER_IS_BETTER
from pipeline.trained import Trained, name_of, read_run

MAIN: Mapping[str, Sequence[str]] = {
    "translation": ("bleu", "exact_match"),
    "language_model": ("perplexity", "token_accuracy", "bits_per_character"),
    "masked_language_model": ("perplexity", "token_accuracy"),
    "classification": ("accuracy", "macro_f1"),
    "tagging": ("accuracy", "macro_f1"),
    "word_vectors": ("perplexity", "token_accuracy", "loss"),
}
"""By task: which metrics of the test set stand in the table."""
SMALL = {
    *("parameters", "updates", "seconds"),
    *(f"{part}.{name}" for name in (*LOWER_IS_BETTER, "loss") for part in ("valid", "test")),
}
"""Figures of which the lower is the better."""


@dataclass(frozen=True)
class Comparison:
    """Runs in the order in which they are shown; beside which run each figure is looked at; by name of the run what
    differs in its config from the first that was given."""

    runs: Sequence[Trained]
    beside: Mapping[str, Trained]
    differs: Mapping[str, Mapping[str, object]]

    @property
    def main(self) -> list[str]:
        """The metrics of test sets that stand in a table."""
        tasks = dict.fromkeys(run.task for run in self.runs)
        return list(dict.fromkeys(f"test.{name}" for task in tasks for name in MAIN.get(task, ())))

    def compares(self, run: Trained, name: str) -> bool:
        """Whether a figure that the run has says something beside that of the first run that has it."""
        return run.figures[name].signature == self.beside[name].figures[name].signature

    @property
    def notes(self) -> list[str]:
        """What is left out, and which figures do not compare, in words."""
        found = [f"{run.name}: {note}" for run in self.runs for note in run.notes]
        for run in self.runs:
            reasons: dict[tuple[str, str], list[str]] = {}
            for name in run.figures:
                if not self.compares(run, name):
                    other = self.beside[name]
                    why = _apart(run.figures[name].signature, other.figures[name].signature)
                    reasons.setdefault((other.name, why), []).append(name)
            found += [f"{run.name}: {', '.join(n)}: not comparable with {o}: {why}" for (o, why), n in reasons.items()]
        return found

    def as_json(self) -> dict[str, Any]:
        """All of it, but for the curves."""
        return {
            "runs": [
                {
                    "name": run.name,
                    "model": str(run.model.path),
                    "fingerprint": run.model.fingerprint,
                    "architecture": run.architecture,
                    "task": run.task,
                    "differs": plain(self.differs[run.name]),
                    "figures": {
                        name: {
                            "value": plain(figure.score),
                            "signature": figure.signature,
                            "comparable": self.compares(run, name),
                        }
                        for name, figure in run.figures.items()
                    },
                }
                for run in self.runs
            ],
            "notes": self.notes,
        }


def compare_runs(folders: Sequence[Path], sort: str | None = None) -> Comparison:
    """The models in some folders, of runs or of models, each verified.

    sort: a figure by which they are ordered, the best first, those without it last; bleu for test.bleu, loss for
    valid.loss. Raises DataError naming the folder that holds no model, RecipeError for a figure that no run has.
    """
    paths = dict.fromkeys(folders)
    names = [name_of(path) for path in paths]
    runs = [
        read_run(path, name if names.count(name) == 1 else str(path)) for path, name in zip(paths, names, strict=True)
    ]
    beside: dict[str, Trained] = {}
    for run in runs:
        for figure in run.figures:
            beside.setdefault(figure, run)
    first, differs = runs[0].config, {}
    for run in runs:
        # a key that one of them lacks is another version's, or of a stage that has not run
        differs[run.name] = {key: value for key, value in run.config.items() if first.get(key, value) != value}
    return Comparison(runs if sort is None else sorted_by(runs, figure_named(sort, list(beside))), beside, differs)


def figure_named(text: str, names: Sequence[str]) -> str:
    """The figure that is meant: by its whole name, or without what stands before the dot, of the test set first."""
    for wanted in (text, f"test.{text}", f"valid.{text}"):
        if wanted in names:
            return wanted
    raise RecipeError(f"--sort {text}: these runs have {', '.join(names)}")


def sorted_by(runs: Sequence[Trained], name: str) -> list[Trained]:
    """The runs, the best by a figure first; equal ones as they stood."""
    sign = 1 if name in SMALL else -1

    def badness(run: Trained) -> tuple[bool, float]:
        figure = run.figures.get(name)
        return (True, 0.0) if figure is None else (False, sign * figure.score)

    return sorted(runs, key=badness)


def _apart(signature: str, other: str) -> str:
    """In which parts two signatures differ."""
    mine, theirs = (dict.fromkeys(each.split("|")) for each in (signature, other))
    return f"{_listed(mine, theirs)} instead of {_listed(theirs, mine)}"


def _listed(some: Mapping[str, None], others: Mapping[str, None]) -> str:
    return ", ".join(part for part in some if part not in others) or "nothing"
