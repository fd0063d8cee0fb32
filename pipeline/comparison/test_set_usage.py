"""The looks at the test set of a comparison, and their models: the more, the less its best score says."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tfm.pipeline.comparison.systems import System
from tfm.pipeline.reports.run_summary import RunSummary, run_name
from tfm.pipeline.scoring.ledger import (
    LedgerEntry,
    are_same_texts,
    describe_test_uses,
    has_entry,
    read_ledger,
    select_entries,
)


@dataclass(frozen=True)
class TestSetUsage:
    """The entries of one test set in the ledger of a folder of runs.

    Args:
        test: the name of the test set.
        folder: of the runs.
        entries: the looks at the test set.
        unlisted: runs compared here that were scored on it and whose models the ledger does not know: they were scored
            before it was begun, or elsewhere, and the numbers are too small.
    """

    test: str
    folder: Path
    entries: tuple[LedgerEntry, ...]
    unlisted: tuple[str, ...] = ()

    @property
    def num_models(self) -> int:
        return len({look.model for look in self.entries})

    def __str__(self) -> str:
        rest = f", and by {', '.join(self.unlisted)}, which the ledger does not have" if self.unlisted else ""
        return f"{self.test}: this test set was scored {describe_test_uses(self.entries)}{rest} ({self.folder})"


def list_test_set_usages(runs: Iterable[RunSummary], systems: Mapping[str, System]) -> list[TestSetUsage]:
    """The looks at the main test sets of some runs, by the ledgers beside their folders; of those that have some."""
    runs_by_ledger: dict[tuple[Path, str], list[RunSummary]] = {}
    for run in runs:
        system = systems.get(run.name)
        if run.folder is not None and system is not None and system.main and system.test_fingerprint:
            root, texts = Path(os.path.abspath(run.folder)).parent, system.test_fingerprint
            key = next(
                (each for each in runs_by_ledger if each[0] == root and are_same_texts(each[1], texts)), (root, texts)
            )
            runs_by_ledger.setdefault(key, []).append(run)
    usages = []
    for (root, texts), members in runs_by_ledger.items():
        if entries := tuple(select_entries(read_ledger(root), texts)):
            scored_runs = [run for run in members if any(name.startswith("test.") for name in run.figures)]
            unlisted_sets = tuple(
                run.name
                for run in scored_runs
                if not has_entry(entries, run.model.fingerprint, run_name(run.model.path))
            )
            usages.append(TestSetUsage(systems[members[0].name].main or "", root, entries, unlisted_sets))
    return usages
