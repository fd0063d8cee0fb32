"""How often the test set of a comparison was looked at, by how many models: the more, the less its best score says."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tfm.pipeline.comparison.systems import System
from tfm.pipeline.reports.run_summary import Trained
from tfm.pipeline.scoring.ledger import Look, in_words, looks, of_texts


@dataclass(frozen=True)
class LookedAt:
    """The entries of one test set in the ledger of a folder of runs."""

    test: str
    folder: Path
    entries: tuple[Look, ...]

    @property
    def num_models(self) -> int:
        return len({look.model for look in self.entries})

    def __str__(self) -> str:
        return f"{self.test}: this test set was looked at {in_words(self.entries)} ({self.folder})"


def looked_at(runs: Iterable[Trained], systems: dict[str, System]) -> list[LookedAt]:
    """The looks at the main test sets of some runs, by the ledgers beside their folders; of those that have some."""
    asked: dict[tuple[Path, str], str] = {}
    for run in runs:
        system = systems.get(run.name)
        if run.folder is not None and system is not None and system.main and system.known_by:
            asked.setdefault((Path(os.path.abspath(run.folder)).parent, system.known_by), system.main)
    found = [LookedAt(test, root, tuple(of_texts(looks(root), texts))) for (root, texts), test in asked.items()]
    return [each for each in found if each.entries]
