"""From corpora to decisions: measured by several processes, decided rule by rule, scored by models and commands."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tfm.data.corpora.portions import Corpus
from tfm.data.errors import DataError
from tfm.pipeline.cleaning.corpora import iterate_chunks
from tfm.pipeline.cleaning.decisions import Decisions, apply_rules
from tfm.pipeline.cleaning.measurement import ChunkMeasurement, ChunkMeasurer, PairChunk, measure_chunks
from tfm.pipeline.cleaning.previous_scores import PreviousScores
from tfm.pipeline.cleaning.rules.registry import CleaningRule
from tfm.pipeline.cleaning.text_batch import Bools, Floats
from tfm.pipeline.cleaning.work_folder import MeasurementFolder
from tfm.pipeline.runtime.progress import Reporter

if TYPE_CHECKING:
    from tfm.pipeline.cleaning.late_scores import LateScorer

SECONDS_PER_SAVE = 10.0
"""Time between two savings of what was measured, which wait for the disk."""


@dataclass(frozen=True)
class Cleaner:
    """Rules and the corpora that they are for.

    Args:
        rules: in order.
        corpora: in order.
        online: whether a Hugging Face dataset may be downloaded.
        plan: all that determines the scores, a JSON value.
        folder: of the work, which is resumed if it is there.
        device: of models.
        reporter: shows progress.
        everything: whether each rule measures also pairs that another one drops.
        workers: processes that measure; None: one a processor.
        previous_scores: those by models and commands in the artifact that is made again; None: none that are the same.
        measure: chunks -> each with its measurement, in order; None: by processes of this machine.
    """

    rules: Sequence[CleaningRule]
    corpora: Sequence[Corpus]
    online: bool
    plan: object
    folder: Path
    device: str
    reporter: Reporter
    everything: bool = False
    workers: int | None = None
    previous_scores: PreviousScores | None = None
    measure: Callable[[Iterable[PairChunk]], Iterator[tuple[PairChunk, ChunkMeasurement]]] | None = None

    def measure_pairs(self, num_pairs: int | None) -> MeasurementFolder:
        """Measure all pairs, or those that are left to do. num_pairs: the number of all, if it is known."""
        widths = {
            name: 1
            for rule in self.rules
            if rule.kind not in ("dedup_keys", "model_score")
            for name in rule.score_names
        }
        widths |= {rule.name: rule.num_keys for rule in self.rules if rule.kind == "dedup_keys"}
        widths["corpus"] = 1  # where no rule measures, it counts the pairs
        work = MeasurementFolder(self.folder, [self.plan, self.everything], widths)
        try:
            measurer = ChunkMeasurer(self.rules, everything=self.everything)
            measure = self.measure or partial(measure_chunks, measurer, workers=self.workers)
            last_save = time.monotonic()
            with self.reporter.bar("measuring", num_pairs, "pairs", done=work.rows) as bar:
                chunks = iterate_chunks(self.corpora, online=self.online, skip=work.rows)
                for chunk, measurement in measure(chunks):
                    corpus = np.full(len(chunk), float(chunk.corpus))
                    work.append({**measurement.columns, "corpus": corpus}, measurement.changes)
                    bar.advance(len(chunk))
                    if time.monotonic() - last_save >= SECONDS_PER_SAVE:
                        work.save_progress()
                        last_save = time.monotonic()
            work.save_progress()
        except BaseException:
            work.close()
            raise
        return work

    def apply_rules(self, work: MeasurementFolder) -> Decisions:
        """Return the fate of each pair that was measured."""

        @cache
        def late_scorer() -> "LateScorer":
            from tfm.pipeline.cleaning.late_scores import LateScorer  # loads torch

            return LateScorer(
                lambda skip: self.read_changed_pairs(work, skip),
                self.folder,
                self.plan,
                device=self.device,
                reporter=self.reporter,
            )

        def score(rule: CleaningRule, is_needed: Bools) -> Floats:
            scores = self._read_previous_scores(rule, is_needed)
            return late_scorer().score(rule, is_needed) if scores is None else scores

        return apply_rules(self.rules, work, score, score_dropped_pairs=self.everything)

    def _read_previous_scores(self, rule: CleaningRule, is_needed: Bools) -> Floats | None:
        """(n,) the scores of pairs by models or a command, if they gave them to the same pairs before; else None."""
        scores = None if self.previous_scores is None else self.previous_scores.read(rule.name, is_needed)
        if self.previous_scores is not None and scores is not None:
            self.reporter.line(f"{rule.name}: its scores in {self.previous_scores.folder} are used again")
        return scores

    def read_changed_pairs(self, work: MeasurementFolder, skip: int = 0) -> Iterator[PairChunk]:
        """The pairs again, as rules changed them, without the first ones.

        Raises:
            DataError: there are not as many as before.
        """
        changes = work.read_changes()
        row, change = skip, next((each for each in changes if each[0] >= skip), None)
        for chunk in iterate_chunks(self.corpora, online=self.online, skip=skip):
            end = row + len(chunk)
            if end > work.rows:
                break
            if change is not None and change[0] < end:
                sources, targets = list(chunk.sources), list(chunk.targets)
                while change is not None and change[0] < end:
                    sources[change[0] - row], targets[change[0] - row] = change[1:]
                    change = next(changes, None)
                chunk = replace(chunk, sources=sources, targets=targets)
            yield chunk
            row = end
        else:
            if row == work.rows:
                return
        raise DataError("a corpus was changed while it was cleaned: run the same command again")
