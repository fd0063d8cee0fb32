"""Output of cleaning: texts, the score of each pair, the dropped pairs with their reasons, and examples."""

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from tfm.data.arrays import splitmix64
from tfm.pipeline.cleaning.corpora import clean_text_file_names, format_lines
from tfm.pipeline.cleaning.decisions import Decisions
from tfm.pipeline.cleaning.measurement import PairChunk
from tfm.pipeline.cleaning.rules.registry import CleaningRule
from tfm.pipeline.cleaning.text_batch import Floats
from tfm.pipeline.cleaning.work_folder import MeasurementFolder

JSON_ENCODER = json.JSONEncoder(ensure_ascii=False)
RuleIndices = NDArray[np.int16]
NUM_EXAMPLES = 10
MAX_EXAMPLE_CHARACTERS = 400
SCORES_FILE = "scores.parquet"
DROPPED_FILE = "dropped.jsonl"


@dataclass(frozen=True)
class RuleExample:
    """A pair that a rule dropped or changed: where it is, counted from 1, its texts, and its scores by that rule."""

    corpus: int
    pair: int
    source: str
    target: str
    scores: dict[str, float | None]


@dataclass
class CleanTextSummary:
    """Pairs read and kept of each corpus, and some of those that each rule dropped or changed."""

    read: list[int]
    kept: list[int]
    examples: dict[str, list[RuleExample]] = field(default_factory=lambda: defaultdict(list))


class ScoreTable:
    """The scores of all pairs, read as they are asked for."""

    def __init__(self, rules: Sequence[CleaningRule], work: MeasurementFolder, decisions: Decisions) -> None:
        self.rules = rules
        self.names = [name for rule in rules for name in rule.score_names]
        self._work, self._late = work, decisions.scores

    def read(self, name: str, start: int, count: int) -> Floats:
        """(count,) the scores of a column, of pairs from one on."""
        late_scores = self._late.get(name)
        return self._work.read_scores(name, start, count) if late_scores is None else late_scores[start : start + count]

    def select_row_scores(self, number: int, row: int) -> dict[str, float | None]:
        """The scores of a pair by one rule."""
        return {name: _round_score(float(self.read(name, row, 1)[0])) for name in self.rules[number].score_names}

    def select_dropped_scores(self, rule_indices: RuleIndices, start: int) -> dict[int, dict[str, float | None]]:
        """The scores of dropped pairs by the rule that dropped each, by number.

        Args:
            rule_indices: (n,) of some pairs: 0, or the number of a rule from 1.
            start: number of the first of them.
        """
        scores_by_row: dict[int, dict[str, float | None]] = {}
        for number in np.unique(rule_indices[rule_indices > 0]).tolist():
            rows = np.flatnonzero(rule_indices == number)
            names = self.rules[number - 1].score_names
            scores = zip(*(self.read(name, start, len(rule_indices))[rows].tolist() for name in names), strict=True)
            for row, row_scores in zip(rows.tolist(), scores, strict=True):
                scores_by_row[row] = dict(zip(names, map(_round_score, row_scores), strict=True))
        return dict(sorted(scores_by_row.items()))


def _round_score(score: float) -> float | None:
    return round(score, 6) if math.isfinite(score) else None


def choose_example_rows(table: ScoreTable, decisions: Decisions) -> dict[int, list[int]]:
    """Numbers of pairs -> the rules of which they are examples: ten a rule, drawn by the number of the pair."""
    rules_by_row = defaultdict(list)
    for number, rule in enumerate(table.rules):
        fates = decisions.dropped_by
        is_example = table.read(rule.name, 0, len(fates)) == 1 if rule.kind == "transform" else fates == number + 1
        rows = np.flatnonzero(is_example)
        example_rows = rows[np.argsort(splitmix64(rows.astype(np.uint64)), kind="stable")[:NUM_EXAMPLES]]
        for row in example_rows.tolist():
            rules_by_row[row].append(number)
    return rules_by_row


def write_clean_text(
    chunks: Iterable[PairChunk], table: ScoreTable, decisions: Decisions, num_corpora: int, folder: Path | None
) -> CleanTextSummary:
    """Write the texts that stay, one file a side and corpus, and all else that there is to say of each pair.

    Args:
        chunks: all pairs, with their texts as rules changed them.
        table: of all scores.
        decisions: the fate of each pair.
        num_corpora: number of corpora.
        folder: to write into; None: nothing is written.
    """
    summary = CleanTextSummary([0] * num_corpora, [0] * num_corpora)
    examples, row = choose_example_rows(table, decisions), 0
    with ExitStack() as files:
        writer = None if folder is None else _CleanTextWriter(folder, num_corpora, table, files)
        for chunk in chunks:
            num_read = summary.read[chunk.corpus]
            fates = decisions.dropped_by[row : row + len(chunk)]
            if writer is not None:
                writer.write(chunk, fates, row, num_read, is_first=not summary.kept[chunk.corpus])
            for number in sorted(examples.keys() & range(row, row + len(chunk))) if examples else ():
                for rule in examples.pop(number):
                    source, target = (
                        side[number - row][:MAX_EXAMPLE_CHARACTERS] for side in (chunk.sources, chunk.targets)
                    )
                    position = chunk.corpus, num_read + number - row + 1
                    example = RuleExample(*position, source, target, table.select_row_scores(rule, number))
                    summary.examples[table.rules[rule].name].append(example)
            summary.read[chunk.corpus] += len(chunk)
            summary.kept[chunk.corpus] += int((fates == 0).sum())
            row += len(chunk)
    return summary


class _CleanTextWriter:
    """The files of the artifact, open for writing; `files` closes them."""

    def __init__(self, folder: Path, num_corpora: int, table: ScoreTable, files: ExitStack) -> None:
        def open_text(name: str) -> IO[str]:
            return files.enter_context(open(folder / name, "x", encoding="utf-8", errors="replace", newline=""))

        self._texts = [[open_text(name) for name in clean_text_file_names(number)] for number in range(num_corpora)]
        self._dropped = open_text(DROPPED_FILE)
        self._table = table
        self._names = [rule.name for rule in table.rules]
        fields = [("corpus", pa.int32()), ("pair", pa.int64()), ("dropped_by", pa.dictionary(pa.int16(), pa.string()))]
        self._schema = pa.schema([*fields, *((name, pa.float64()) for name in table.names)])
        self._scores = files.enter_context(pq.ParquetWriter(folder / SCORES_FILE, self._schema, compression="zstd"))

    def write(
        self, chunk: PairChunk, rule_indices: RuleIndices, row: int, num_corpus_pairs_before: int, *, is_first: bool
    ) -> None:
        """Write some pairs.

        Args:
            chunk: the pairs.
            rule_indices: by pair, the number of the rule that dropped it, from 1; 0: it is kept.
            row: the row of the first pair in all corpora.
            num_corpus_pairs_before: the number of pairs of its corpus before it.
            is_first: whether these are the first pairs of the files.
        """
        rows = np.flatnonzero(rule_indices == 0).tolist()
        sides = [chunk.sources, chunk.targets]
        for file, texts, is_there in zip(self._texts[chunk.corpus], sides, (chunk.has_source, True), strict=True):
            if is_there:
                file.write(format_lines([texts[index] for index in rows], is_first=is_first))
        for index, scores in self._table.select_dropped_scores(rule_indices, row).items():
            number = int(rule_indices[index]) - 1
            entry = {
                "corpus": chunk.corpus,
                "pair": num_corpus_pairs_before + index + 1,
                "rule": self._names[number],
                "scores": scores,
                "source": chunk.sources[index] if chunk.has_source else None,
                "target": chunk.targets[index],
            }
            self._dropped.write(JSON_ENCODER.encode(entry) + "\n")
        reasons = pa.DictionaryArray.from_arrays(
            pa.array(rule_indices - 1, pa.int16(), mask=rule_indices == 0), self._names or [""]
        )
        columns = [
            pa.array(np.full(len(chunk), chunk.corpus, np.int32)),
            pa.array(np.arange(num_corpus_pairs_before + 1, num_corpus_pairs_before + len(chunk) + 1)),
            reasons,
            *(pa.array(self._table.read(name, row, len(chunk)), from_pandas=True) for name in self._table.names),
        ]
        self._scores.write_table(pa.Table.from_arrays(columns, schema=self._schema))
