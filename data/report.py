"""What is in a dataset: sizes, lengths, unknown tokens, what was dropped, repeated pairs, and the cost of padding."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from data.epochs import Lengths, cost
from data.examples import Chunk, Side, pair_keys, source_keys
from data.keys import Keys
from data.sources import describe
from data.splits import Corpus, shares
from data.store import Ints
from tokenizer.special import UNK_ID

LENGTH_EDGES = (0, 1, 6, 11, 16, 21, 31, 41, 51, 76, 101, 151, 201, 301, 501, 1001)
Table: TypeAlias = tuple[str, list[str], list[list[object]]]


@dataclass
class SideCount:
    """Tokens, unknown tokens and lengths of one side of a split; start and end tokens are not counted."""

    rows: int = 0
    tokens: int = 0
    unknown: int = 0
    longest: int = 0
    histogram: Ints = field(default_factory=lambda: np.zeros(len(LENGTH_EDGES), np.int64))

    def add(self, side: Side) -> None:
        """Count a chunk's side."""
        self.rows += len(side.lengths)
        self.tokens += len(side.ids)
        self.unknown += int((side.ids == UNK_ID).sum())
        self.longest = max(self.longest, int(side.lengths.max(initial=0)))
        bins = np.searchsorted(LENGTH_EDGES, side.lengths, side="right") - 1
        self.histogram += np.bincount(bins, minlength=len(LENGTH_EDGES))

    def as_json(self) -> dict[str, Any]:
        """For report.json."""
        return {
            "tokens": self.tokens,
            "unknown": self.unknown,
            "unknown_rate": self.unknown / self.tokens if self.tokens else 0.0,
            "mean_length": self.tokens / self.rows if self.rows else 0.0,
            "max_length": self.longest,
            "lengths": {_bin(i): int(count) for i, count in enumerate(self.histogram)},
        }


@dataclass
class CorpusCount:
    """What became of one corpus of a split: pairs read, and kept."""

    corpus: Corpus
    read: int = 0
    rows: int = 0


@dataclass
class SplitCount:
    """What became of one split. pairs, sources: keys of those that are kept."""

    pairs: Keys
    sources: Keys
    corpora: list[CorpusCount] = field(default_factory=list)
    dropped: dict[str, int] = field(default_factory=dict)
    source: SideCount = field(default_factory=SideCount)
    target: SideCount = field(default_factory=SideCount)
    lengths: Lengths = field(default_factory=Lengths)

    @property
    def rows(self) -> int:
        """Pairs kept."""
        return sum(corpus.rows for corpus in self.corpora)

    def add(self, chunk: Chunk) -> None:
        """Count what is kept of a chunk, to the last corpus."""
        self.corpora[-1].rows += len(chunk)
        self.source.add(chunk.source)
        self.target.add(chunk.target)
        self.lengths.add(chunk.source.lengths + 1, chunk.target.lengths + 1, self.corpora[-1].corpus.weight)
        self.pairs.add(pair_keys(chunk))
        self.sources.add(source_keys(chunk))

    def overlap(self, train: "SplitCount") -> dict[str, int]:
        """How many of these pairs, and of their sources, are in the training data as well."""
        return {"pairs": self.pairs.found_in(train.pairs), "sources": self.sources.found_in(train.sources)}

    def as_json(self) -> dict[str, Any]:
        """For report.json."""
        corpora = [
            {"corpus": describe(each.corpus), "weight": each.corpus.weight, "read": each.read, "rows": each.rows}
            for each in self.corpora
        ]
        return {
            "rows": self.rows,
            "read": sum(each.read for each in self.corpora),
            "dropped": self.dropped,
            "repeated": self.pairs.repeated(),
            "corpora": corpora,
            "source": self.source.as_json(),
            "target": self.target.as_json(),
        }


def make_report(counts: Mapping[str, SplitCount], *, budget: int, seed: int) -> dict[str, Any]:
    """The content of report.json. counts: by split, "train" among them."""
    share = shares({name: count.rows for name, count in counts.items()})
    epoch = cost(counts["train"].lengths, budget=budget, seed=seed, epoch=0)
    return {
        "splits": {name: {"share": share[name], **count.as_json()} for name, count in counts.items()},
        "overlap": {name: count.overlap(counts["train"]) for name, count in counts.items() if name != "train"},
        "batches": {
            "batch_tokens": budget,
            "batches_an_epoch": epoch.batches,
            "rows_an_epoch": epoch.rows,
            "padding": epoch.padding,
        },
    }


def tables(report: Mapping[str, Any]) -> list[Table]:
    """The report for people: tables as (title, columns, rows)."""
    splits = report["splits"]
    sizes: Table = ("splits", ["split", "pairs", "share", "source tokens", "target tokens", "unknown", "repeated"], [])
    for name, split in splits.items():
        source, target = split["source"], split["target"]
        unknown = f"{source['unknown_rate']:.3%} | {target['unknown_rate']:.3%}"
        counted = [f"{split['rows']:,}", f"{split['share']:.1%}", f"{source['tokens']:,}", f"{target['tokens']:,}"]
        sizes[2].append([name, *counted, unknown, f"{split['repeated']:,}"])
    return [sizes, _length_table(splits), _dropped_table(splits["train"]), _overlap_table(report)]


def batches_line(report: Mapping[str, Any]) -> str:
    """The cost of padding in a sentence."""
    cost = report["batches"]
    return (
        f"an epoch: {cost['rows_an_epoch']:,} pairs in {cost['batches_an_epoch']:,} batches of at most "
        f"{cost['batch_tokens']:,} padded tokens a side; {cost['padding']:.1%} of the positions are padding"
    )


def _length_table(splits: Mapping[str, Any]) -> Table:
    """Lengths in tokens, each bin as shares of source and target."""
    rows: list[list[object]] = []
    for i in range(len(LENGTH_EDGES)):
        counts = [(split[side]["lengths"][_bin(i)], split["rows"]) for split in splits.values() for side in _SIDES]
        if any(count for count, _ in counts):
            cells = [f"{count / total:.1%}" if count else "" for count, total in counts]
            rows.append([_bin(i), *(f"{one:>6} | {two:>6}" for one, two in zip(cells[::2], cells[1::2], strict=True))])
    return "lengths in tokens, source | target", ["tokens", *splits], rows


def _dropped_table(train: Mapping[str, Any]) -> Table:
    read = train["read"]
    rows: list[list[object]] = [[reason, f"{n:,}", f"{n / read:.2%}"] for reason, n in train["dropped"].items()]
    return f"dropped from the {read:,} training pairs read", ["reason", "pairs", "share"], rows


def _overlap_table(report: Mapping[str, Any]) -> Table:
    rows: list[list[object]] = []
    for name, found in report["overlap"].items():
        total = report["splits"][name]["rows"]
        rows.append([name, *(f"{found[what]:,} ({found[what] / total:.1%})" for what in ("pairs", "sources"))])
    return "also in the training data", ["split", "whole pairs", "sources"], rows


_SIDES: Sequence[str] = ("source", "target")


def _bin(index: int) -> str:
    """A bin of the length histogram in words: "6-10"."""
    low = LENGTH_EDGES[index]
    if index + 1 == len(LENGTH_EDGES):
        return f"{low}-"
    high = LENGTH_EDGES[index + 1] - 1
    return str(low) if low == high else f"{low}-{high}"
