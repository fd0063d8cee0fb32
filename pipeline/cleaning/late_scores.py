"""Scores that need a model or a command: of pairs that passed all other rules, as a stream."""

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from tfm.pipeline.artifacts.no_symlinks import remove_path_below
from tfm.pipeline.cleaning.config import ExternalScorer
from tfm.pipeline.cleaning.measurement import PairChunk
from tfm.pipeline.cleaning.rules.pairs.cross_entropy import score_by_cross_entropy
from tfm.pipeline.cleaning.rules.pairs.mutual_information import score_by_mutual_information
from tfm.pipeline.cleaning.rules.pairs.translation_models import TranslationModels
from tfm.pipeline.cleaning.rules.registry import CleaningRule
from tfm.pipeline.cleaning.text_batch import Bools, Floats
from tfm.pipeline.cleaning.work_folder import MeasurementFolder, late_work_folder
from tfm.pipeline.errors import DataError
from tfm.pipeline.model_io.model_folder import resolve_model_folder
from tfm.pipeline.runtime.progress import Reporter
from tfm.pipeline.scoring.metrics.external.command import (
    ExternalMetricError,
    SegmentCountError,
    run_command_on_pairs,
)

PAIR_SCORERS = {"mutual_information": score_by_mutual_information, "cross_entropy": score_by_cross_entropy}
ROWS_PER_SAVE = 4096
"""Pairs that a model scores between two savings. Blocks begin at multiples of it, so that one that is resumed is the
same."""
ENTROPY_COLUMNS = ("forward", "backward")
PairReader = Callable[[int], Iterator[PairChunk]]
"""Number of pairs to skip -> chunks, with the texts as rules changed them."""
Pair = tuple[str | None, str]
PairBlock = tuple[Bools, list[Pair]]
"""Which pairs of a block (b,) are wanted; and those, as source, if there is one, and target."""
ModelFolders = tuple[Path, ...]


class LateScorer:
    """Rules that need a model or a command; those with the same two models measure a pair once.

    Args:
        read: the pairs.
        folder: of the work so far; a folder in it is one rule's.
        plan: all that determines the scores.
        device: of the models.
        reporter: shows progress.
    """

    def __init__(self, read: PairReader, folder: Path, plan: object, *, device: str, reporter: Reporter) -> None:
        self.read, self.folder, self.plan, self.device, self.reporter = read, folder, plan, device, reporter
        self._models: tuple[ModelFolders, TranslationModels] | None = None
        self._entropies: dict[ModelFolders, Floats] = {}

    def score(self, rule: CleaningRule, is_needed: Bools) -> Floats:
        """(n,) the scores of pairs, NaN for those that are not wanted; resumes what a killed process began.

        Args:
            rule: the rule.
            is_needed: (n,) which pairs.

        Raises:
            DataError: a model or a command fails.
        """
        rows = hashlib.sha256(np.packbits(is_needed).tobytes()).hexdigest()
        is_external = isinstance(rule.config, ExternalScorer)
        widths = dict.fromkeys(("scores",) if is_external else ("scores", *ENTROPY_COLUMNS), 1)
        work = MeasurementFolder(late_work_folder(self.folder, rule.name), [self.plan, rule.name, rows], widths)
        try:
            with self.reporter.bar(rule.name, len(is_needed), "pairs", done=work.rows) as bar:

                def save(columns: Mapping[str, Floats]) -> None:
                    work.append(columns, {})
                    work.save_progress()
                    bar.advance(len(columns["scores"]))

                blocks = _iterate_blocks(is_needed, self.read, work.rows)
                if is_external and not is_needed[work.rows :].any():  # no command is started for nothing
                    save({"scores": np.full(len(is_needed) - work.rows, np.nan)})
                elif is_external:
                    self._models = None
                    discard = partial(remove_path_below, self.folder, work.folder)
                    _score_externally(rule.config, blocks, lambda scores: save({"scores": scores}), discard)
                else:
                    self._score_by_models(rule, is_needed, blocks, work, save)
            work.save_progress()
            return work.read_scores("scores")
        finally:
            work.close()

    def _score_by_models(
        self,
        rule: CleaningRule,
        is_needed: Bools,
        blocks: Iterator[PairBlock],
        work: MeasurementFolder,
        save: Callable[[Mapping[str, Floats]], None],
    ) -> None:
        """Save the scores of blocks, and the entropies that they are made of; keep these for the next rule."""
        models, folders = self._load_models(rule), _model_folders(rule)
        kept = self._entropies.get(folders)
        is_measured = kept is not None and not np.isnan(kept[0, is_needed]).any()
        is_checked = kept is not None or work.rows > 0
        for block_rows, pairs in blocks:
            two_sided = [(source, target) for source, target in pairs if source is not None]
            has_source = np.array([source is not None for source, _ in pairs], np.bool_)
            if kept is not None and is_measured:
                entropies = kept[:, work.rows : work.rows + len(block_rows)][:, block_rows]
            else:
                # the first block may have none that passed all other rules
                if not is_checked and two_sided:
                    is_checked = True
                    if (problem := models.exchange_problem(two_sided, rule.name)) is not None:
                        self.reporter.warn(problem)
                entropies = np.full((2, len(pairs)), np.inf)
                entropies[:, has_source] = models.measure_entropies(two_sided, two_sided)
            scores = np.full(len(pairs), np.nan)
            scores[has_source] = PAIR_SCORERS[rule.name](two_sided, entropies[:, has_source], models)
            columns = dict(zip(("scores", *ENTROPY_COLUMNS), (scores, *entropies), strict=True))
            save({name: _spread_scores(block_rows, column) for name, column in columns.items()})
        measured = np.stack([work.read_scores(name) for name in ENTROPY_COLUMNS])
        self._entropies = {folders: measured if kept is None else np.where(np.isnan(kept), measured, kept)}

    def _load_models(self, rule: CleaningRule) -> TranslationModels:
        """The models of a rule, which are loaded if the rule before had others."""
        folders = _model_folders(rule)
        if self._models is None or self._models[0] != folders:
            self._models = None  # before the others are loaded
            self._models = folders, TranslationModels(rule.config, self.device)
        return self._models[1]


def _model_folders(rule: CleaningRule) -> ModelFolders:
    return tuple(resolve_model_folder(Path(name)).resolve() for name in (rule.config.forward, rule.config.backward))


def _iterate_blocks(is_needed: Bools, read: PairReader, start: int) -> Iterator[PairBlock]:
    """The pairs from row `start` on, which is a multiple of ROWS_PER_SAVE, in blocks of so many."""
    block: list[Pair] = []
    row = begin = start
    for chunk in read(start):
        for source, target in zip(chunk.sources, chunk.targets, strict=True):
            if is_needed[row]:
                block.append((source if chunk.has_source else None, target))
            row += 1
            if row % ROWS_PER_SAVE == 0:
                yield is_needed[begin:row], block
                block, begin = [], row
    if row > begin:
        yield is_needed[begin:row], block


def _spread_scores(is_needed: Bools, scores: Iterable[float]) -> Floats:
    """(b,) the scores of the pairs that are wanted, NaN for the others."""
    all_scores = np.full(len(is_needed), np.nan)
    all_scores[is_needed] = np.fromiter(scores, np.float64, int(is_needed.sum()))
    return all_scores


def _score_externally(
    scorer: ExternalScorer,
    blocks: Iterator[PairBlock],
    save: Callable[[Floats], None],
    discard: Callable[[], None],
) -> None:
    """Save the numbers of a command that is started once, and reads pairs while it prints numbers for others.

    Discard all that was saved where there are more or fewer numbers than pairs: they may be those of other pairs.
    """
    pending_blocks: deque[Bools] = deque()
    scores: list[float] = []

    def iterate_pairs() -> Iterator[Pair]:
        for rows, pairs in blocks:
            pending_blocks.append(rows)
            yield from pairs

    def save_complete_blocks(numbers: Sequence[float]) -> None:
        scores.extend(numbers)
        while pending_blocks and len(scores) >= (size := int(pending_blocks[0].sum())):
            save(_spread_scores(pending_blocks.popleft(), scores[:size]))
            del scores[:size]

    try:
        run_command_on_pairs(scorer, iterate_pairs(), save_complete_blocks)
    except ExternalMetricError as failure:
        if isinstance(failure, SegmentCountError):
            discard()
        raise DataError(f"clean.external: {scorer.name} {failure}") from None
