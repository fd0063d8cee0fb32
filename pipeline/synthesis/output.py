"""Synthetic pairs on disk: input.txt and output.txt, line by line; their scores; and what was dropped."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tfm.data.corpus_keys.table_keys import SYNTHETIC_FILES
from tfm.data.errors import format_count
from tfm.pipeline.cleaning.corpora import format_lines
from tfm.pipeline.synthesis.pairs import DROP_REASONS, SyntheticPair

SCORES_FILE = "scores.parquet"
DROPPED_FILE = "dropped.jsonl"
PAIRS_PER_BATCH = 4096
SCORES_SCHEMA = pa.schema(
    [
        ("line", pa.int64()),
        ("rank", pa.int32()),
        ("log_prob", pa.float64()),
        ("num_tokens", pa.int32()),
        ("score", pa.float64()),
    ]
)
"""The columns of scores.parquet, a row a pair in the order of the lines of input.txt."""


@dataclass(frozen=True)
class SyntheticTextSummary:
    """Counts of what was written.

    Args:
        lines: of the text.
        pairs: that stay.
        dropped: by the reason, pairs that do not stay.
        mean_score: of those that stay.
    """

    lines: int
    pairs: int
    dropped: dict[str, int]
    mean_score: float

    def as_json(self) -> dict[str, Any]:
        return {
            "lines": self.lines,
            "pairs": self.pairs,
            "dropped": self.dropped,
            "mean_score": round(self.mean_score, 6),
        }

    def __str__(self) -> str:
        drops = self.describe_dropped()
        counts = f"{format_count(self.pairs, 'pair')} of {format_count(self.lines, 'line')}"
        summary = f"{counts}, {self.mean_score:.3f} nats a token"
        return f"{summary}; dropped: {drops}" if drops else summary

    def describe_dropped(self) -> str:
        """Return the counts of pairs that do not stay, by the reason."""
        return ", ".join(f"{reason}: {count:,}" for reason, count in self.dropped.items() if count)


def write_pairs(pairs: Iterable[SyntheticPair], folder: Path) -> SyntheticTextSummary:
    """Write pairs into a folder.

    Args:
        pairs: in the order of the lines, with those that are dropped.
        folder: to write into.
    """
    drop_counts: Counter[str] = Counter()
    line, count, total = 0, 0, 0.0
    with ExitStack() as files:
        texts = [
            files.enter_context(open(folder / name, "x", encoding="utf-8", errors="replace", newline=""))
            for name in SYNTHETIC_FILES
        ]
        dropped_file = files.enter_context(
            open(folder / DROPPED_FILE, "x", encoding="utf-8", errors="replace", newline="\n")
        )
        scores = files.enter_context(pq.ParquetWriter(folder / SCORES_FILE, SCORES_SCHEMA, compression="zstd"))
        for batch in _batches(pairs):
            kept_pairs = [pair for pair in batch if pair.dropped is None]
            for file, side in zip(texts, ("input", "output"), strict=True):
                file.write(format_lines([getattr(pair, side) for pair in kept_pairs], is_first=count == 0))
            if kept_pairs:
                columns = ([getattr(pair, name) for pair in kept_pairs] for name in SCORES_SCHEMA.names)
                arrays = [pa.array(values, field.type) for values, field in zip(columns, SCORES_SCHEMA, strict=True)]
                scores.write_table(pa.Table.from_arrays(arrays, schema=SCORES_SCHEMA))
            for pair in batch:
                if pair.dropped is not None:
                    drop_counts[pair.dropped] += 1
                    dropped_file.write(_dropped_line(pair) + "\n")
            line, count = batch[-1].line, count + len(kept_pairs)
            total += sum(pair.score for pair in kept_pairs)
    return SyntheticTextSummary(line, count, {name: drop_counts[name] for name in DROP_REASONS}, total / max(count, 1))


def _dropped_line(pair: SyntheticPair) -> str:
    entry: dict[str, Any] = {"line": pair.line, "reason": pair.dropped, "input": pair.input}
    if pair.num_tokens:
        entry |= {"rank": pair.rank, "output": pair.output, "score": round(pair.score, 6)}
    return json.dumps(entry, ensure_ascii=False)


def _batches(pairs: Iterable[SyntheticPair]) -> Iterator[list[SyntheticPair]]:
    pairs = iter(pairs)
    while batch := list(islice(pairs, PAIRS_PER_BATCH)):
        yield batch
