"""Trained models compared: their differences, their figures, and which figures are comparable.

If the signatures of two figures differ, the difference is reported: losses on different datasets, BLEU of different
texts or seconds of different machines cannot be compared.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tfm.pipeline.artifacts.canonical_json import plain
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.reports.run_summary import Trained, name_of, read_run
from tfm.pipeline.tasks.abilities import ABILITIES, LOWER_IS_BETTER

SMALL = {
    *("parameters", "updates", "seconds"),
    *(f"{part}.{name}" for name in LOWER_IS_BETTER for part in ("valid", "test")),
}
"""Figures of which the lower is the better."""


OF_TEXT = ("bits_per_character", "word_perplexity")
"""Figures by units of the text itself, so that models with other pieces compare: the first `unit` and `count` of their
signature are the text's, the rest of these, and the vocabulary, are the pieces'."""
SORTED_BY_TEST = "sorted by {}: a test set used to choose a model gives an optimistic score of the chosen one"


@dataclass(frozen=True)
class Comparison:
    """Runs in the order in which they are shown; by figure the first of them that has it, which others stand beside;
    by name of the run what differs in its config from `base`, the first that was given; by what they are sorted."""

    runs: Sequence[Trained]
    beside: Mapping[str, Trained]
    differs: Mapping[str, Mapping[str, object]]
    base: str
    order: str | None = None

    @property
    def main(self) -> list[str]:
        """The metrics of test sets that stand in a table."""
        known = [ABILITIES[task] for task in dict.fromkeys(run.task for run in self.runs) if task in ABILITIES]
        return list(dict.fromkeys(f"test.{name}" for abilities in known for name in abilities.figures))

    def compares(self, run: Trained, name: str) -> bool:
        """Whether a figure that the run has says something beside that of the first run shown that has it."""
        return _matters(name, run) == _matters(name, self.beside[name])

    @property
    def notes(self) -> list[str]:
        """What is left out, and which figures do not compare, in words."""
        found = [] if not (self.order or "").startswith("test.") else [SORTED_BY_TEST.format(self.order)]
        found += [f"{run.name}: {note}" for run in self.runs for note in run.notes]
        for run in self.runs:
            reasons: dict[tuple[str, str], list[str]] = {}
            for name in run.figures:
                if not self.compares(run, name):
                    other = self.beside[name]
                    why = _apart(_matters(name, run), _matters(name, other))
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

    sort: a figure by which they are ordered, the best first, those without it last; loss for valid.loss, rouge1, which
    validation has not, for test.rouge1. Raises DataError naming the folder that holds no model, RecipeError for a
    figure that no run has.
    """
    paths = dict.fromkeys(folders)
    names = [name_of(path) for path in paths]
    runs = [
        read_run(path, name if names.count(name) == 1 else str(path)) for path, name in zip(paths, names, strict=True)
    ]
    first, differs = runs[0], {}
    for run in runs:
        # a key that one of them lacks is another version's, or of a stage that has not run
        differs[run.name] = {key: each for key, each in run.config.items() if first.config.get(key, each) != each}
    order = None
    if sort is not None:
        order = figure_named(sort, list(dict.fromkeys(name for run in runs for name in run.figures)))
        runs = sorted_by(runs, order)
    beside: dict[str, Trained] = {}
    for run in runs:
        for figure in run.figures:
            beside.setdefault(figure, run)
    return Comparison(runs, beside, differs, first.name, order)


def figure_named(text: str, names: Sequence[str]) -> str:
    """The figure that is meant: by its whole name or, without what stands before the dot, of validation first."""
    for wanted in (text, f"valid.{text}", f"test.{text}"):
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


def _matters(name: str, run: Trained) -> tuple[str, ...]:
    """The parts of a figure's signature that must agree where it is compared."""
    parts = tuple(run.figures[name].signature.split("|"))
    if name.partition(".")[2] not in OF_TEXT:
        return parts
    by_key: dict[str, str] = {}
    for part in parts:
        by_key.setdefault(part.partition(":")[0], part)
    by_key.pop("vocab", None)
    return tuple(by_key.values())


def _apart(mine: Sequence[str], theirs: Sequence[str]) -> str:
    """In which parts two signatures differ."""
    return f"{_listed(mine, theirs)} instead of {_listed(theirs, mine)}"


def _listed(some: Sequence[str], others: Sequence[str]) -> str:
    return ", ".join(part for part in some if part not in others) or "nothing"
