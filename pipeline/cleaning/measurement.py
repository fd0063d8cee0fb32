"""The scores and keys of pairs by all rules that look at each pair alone, by several processes."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tfm.pipeline.cleaning.rules.registry import CleaningRule
from tfm.pipeline.cleaning.text_batch import TextPairBatch
from tfm.pipeline.runtime.cpu import num_processors
from tfm.pipeline.runtime.worker_process import can_fork, fork_worker, receive_from_worker, send_to_worker

CHUNK_ROWS = 4096
"""Pairs that are measured at once. Scores do not depend on it."""
WORKER_KILLED_MESSAGE = "clean: a process was killed while measuring pairs; if memory ran out, end other programs"


@dataclass(frozen=True)
class PairChunk:
    """Some pairs of one corpus, in order.

    Args:
        corpus: number of the corpus.
        has_source: whether these are pairs.
        sources: (n,).
        targets: (n,).
        languages: of sources and targets, if the corpus says them.
    """

    corpus: int
    has_source: bool
    sources: Sequence[str]
    targets: Sequence[str]
    languages: tuple[str, str] | None = None

    def __len__(self) -> int:
        return len(self.targets)


@dataclass(frozen=True)
class ChunkMeasurement:
    """Scores and keys of the pairs of a chunk.

    Args:
        columns: scores (n,) by name of a column, and keys (n, k) by name of a rule.
        changes: the texts of pairs that rules changed, by number in the chunk.
    """

    columns: Mapping[str, NDArray[np.float64] | NDArray[np.uint64]]
    changes: dict[int, tuple[str, str]] = field(default_factory=dict)


class ChunkMeasurer:
    """Measures chunks by some rules.

    Args:
        rules: in order.
        everything: whether slow rules measure also pairs that fail a rule before them.
    """

    def __init__(self, rules: Sequence[CleaningRule], *, everything: bool = False) -> None:
        self.rules = [rule for rule in rules if rule.kind != "model_score"]
        self.everything = everything

    def __call__(self, chunk: PairChunk) -> ChunkMeasurement:
        columns: dict[str, NDArray[np.float64] | NDArray[np.uint64]] = {}
        sides = [chunk.sources, chunk.targets]
        for rule in self.rules:
            if rule.change is not None:
                new_sides = [rule.change(side) for side in sides]
                changed = np.zeros(len(chunk))
                for old_texts, new_texts in zip(sides, new_sides, strict=True):
                    if old_texts is not new_texts:
                        changed += [
                            one is not other and one != other for one, other in zip(old_texts, new_texts, strict=True)
                        ]
                columns[rule.name], sides = (changed > 0).astype(np.float64), new_sides
        pairs = TextPairBatch(*sides, has_source=chunk.has_source, languages=chunk.languages)
        has_passed = np.ones(len(chunk), np.bool_)
        for rule in self.rules:
            if rule.measure is None:
                continue
            if rule.compares_sides and not chunk.has_source:
                scores = np.full((len(chunk), len(rule.limits)), np.nan)
            elif rule.kind == "dedup_keys":
                columns[rule.name] = rule.measure(pairs).astype(np.uint64)
                continue
            elif rule.kind == "expensive_score" and not self.everything:
                scores = np.full((len(chunk), len(rule.limits)), np.nan)
                rows = np.flatnonzero(has_passed)
                scores[rows] = rule.measure(pairs if len(rows) == len(chunk) else pairs.select(rows))
            else:
                scores = rule.measure(pairs)
            columns.update(zip(rule.score_names, scores.T, strict=True))
            if all(limit.percentile is None for limit in rule.limits):
                has_passed &= ~rule.find_failed_pairs(scores, rule.limits)
        return ChunkMeasurement(columns, _list_changes(chunk, sides))


def _list_changes(chunk: PairChunk, sides: Sequence[Sequence[str]]) -> dict[int, tuple[str, str]]:
    """The texts of pairs that are not as they were, by number."""
    if sides[0] is chunk.sources and sides[1] is chunk.targets:
        return {}
    return {
        row: (source, target)
        for row, (source, target, *original) in enumerate(zip(*sides, chunk.sources, chunk.targets, strict=True))
        if [source, target] != original
    }


def measure_chunks(
    measurer: Callable[[PairChunk], ChunkMeasurement], chunks: Iterable[PairChunk], workers: int | None = None
) -> Iterator[tuple[PairChunk, ChunkMeasurement]]:
    """Yield each chunk with its measurement, in order.

    Args:
        measurer: chunk -> measurement.
        chunks: as many as there are; a few are in memory at a time.
        workers: processes; 1: this one alone; None: one a processor.

    Raises:
        DataError: a process is killed.
    """
    remaining = iter(chunks)
    first = list(islice(remaining, 2))
    workers = num_processors() if workers is None else workers
    if len(first) < 2 or workers < 2 or not can_fork():
        yield from ((chunk, measurer(chunk)) for chunk in chain(first, remaining))
        return
    with ExitStack() as stack:
        idle = [stack.enter_context(fork_worker(lambda chunk, _: measurer(chunk))) for _ in range(workers)]
        busy: deque[tuple[Any, PairChunk]] = deque()

        def receive_measured_chunk() -> tuple[PairChunk, ChunkMeasurement]:
            line, chunk = busy.popleft()
            (measurement,) = receive_from_worker(line, WORKER_KILLED_MESSAGE)
            idle.append(line)
            return chunk, measurement

        for chunk in chain(first, remaining):
            if not idle:
                yield receive_measured_chunk()
            send_to_worker(line := idle.pop(), chunk, WORKER_KILLED_MESSAGE)
            busy.append((line, chunk))
        while busy:
            yield receive_measured_chunk()
