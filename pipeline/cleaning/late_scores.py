"""Scores that need a model or a command: of pairs that passed all other rules, as a stream."""

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from tfm.pipeline.cleaning.config import ExternalScorer
from tfm.pipeline.cleaning.measurement import PairChunk
from tfm.pipeline.cleaning.rules.pairs.cross_entropy import DualCrossEntropy, exchanged_models_problem
from tfm.pipeline.cleaning.rules.pairs.mutual_information import MutualInformation
from tfm.pipeline.cleaning.rules.registry import CleaningRule
from tfm.pipeline.cleaning.text_batch import Bools, Floats
from tfm.pipeline.cleaning.work_folder import MeasurementFolder
from tfm.pipeline.errors import DataError
from tfm.pipeline.runtime.progress import Reporter
from tfm.pipeline.scoring.metrics.external.command import ExternalMetricError, run_command_on_pairs

PAIR_SCORERS = {"mutual_information": MutualInformation, "cross_entropy": DualCrossEntropy}
ROWS_PER_SAVE = 4096
"""Pairs that a model scores between two savings. Blocks begin at multiples of it, so that one that is resumed is the
same."""
PairReader = Callable[[int], Iterator[PairChunk]]
"""Number of pairs to skip -> chunks, with the texts as rules changed them."""
Pair = tuple[str | None, str]
PairBlock = tuple[Bools, list[Pair]]
"""Which pairs of a block (b,) are wanted; and those, as source, if there is one, and target."""


def score_remaining_pairs(
    rule: CleaningRule,
    is_needed: Bools,
    read: PairReader,
    folder: Path,
    plan: object,
    *,
    device: str,
    reporter: Reporter,
) -> Floats:
    """(n,) the scores of pairs by a late rule, NaN for those that are not wanted; resumes what a killed process began.

    Args:
        rule: the rule.
        is_needed: (n,) which pairs.
        read: the pairs.
        folder: of the work so far; a folder in it is this rule's.
        plan: all that determines the scores.
        device: of the models.
        reporter: shows progress.

    Raises:
        DataError: a model or a command fails.
    """
    rows = hashlib.sha256(np.packbits(is_needed).tobytes()).hexdigest()
    work = MeasurementFolder(folder / f"{rule.name}.late", [plan, rule.name, rows], {"scores": 1})
    try:
        with reporter.bar(rule.name, len(is_needed), "pairs", done=work.rows) as bar:

            def save(scores: Floats) -> None:
                work.append({"scores": scores}, {})
                work.save_progress()
                bar.advance(len(scores))

            blocks = _iterate_blocks(is_needed, read, work.rows)
            if isinstance(rule.config, ExternalScorer):
                _score_externally(rule.config, blocks, save)
            else:
                scorer = PAIR_SCORERS[rule.name](rule.config, device)
                for block_rows, pairs in blocks:
                    if work.rows == 0:
                        _warn_of_exchanged_models(scorer, pairs, rule.name, reporter)
                    save(_spread_scores(block_rows, _score_two_sided(scorer, pairs)))
        work.save_progress()
        return work.read_scores("scores")
    finally:
        work.close()


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


def _warn_of_exchanged_models(
    scorer: MutualInformation | DualCrossEntropy, pairs: Sequence[Pair], rule: str, reporter: Reporter
) -> None:
    """Warn where the first pairs are likelier by the models of the other directions."""
    two_sided = [(source, target) for source, target in pairs if source is not None]
    problem = exchanged_models_problem(scorer.forward, scorer.backward, two_sided, rule)
    if problem is not None:
        reporter.warn(problem)


def _score_two_sided(scorer: MutualInformation | DualCrossEntropy, pairs: Sequence[Pair]) -> Floats:
    """(p,) the scores of pairs by two models, NaN for texts without a source."""
    scores = np.full(len(pairs), np.nan)
    two_sided = [(source, target) for source, target in pairs if source is not None]
    scores[[source is not None for source, _ in pairs]] = scorer.score(two_sided) if two_sided else []
    return scores


def _score_externally(scorer: ExternalScorer, blocks: Iterator[PairBlock], save: Callable[[Floats], None]) -> None:
    """Save the numbers of a command that is started once, and reads pairs while it prints numbers for others."""
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
        raise DataError(f"clean.external: {scorer.name} {failure}") from None
