"""A report on a dataset, as JSON: sizes, lengths, unknown tokens, dropped and repeated pairs, the cost of padding."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tfm.data.arrays import Ints
from tfm.data.batching.padding_cost import LengthPairCounts, batching_cost
from tfm.data.corpora.portions import Corpus
from tfm.data.corpora.sources import describe_corpus
from tfm.data.corpora.splits import split_size_shares
from tfm.data.dataset.duplicate_keys import DuplicateKeyFile
from tfm.data.dataset.examples import EncodedSide, ExampleChunk
from tfm.data.dataset.row_keys import combine_duplicate_keys
from tfm.data.dataset.unwritable import UnwritableCharacterCounts
from tfm.tokenizer.special import UNK_ID

LENGTH_BIN_EDGES = (0, 1, 6, 11, 16, 21, 31, 41, 51, 76, 101, 151, 201, 301, 501, 1001)


@dataclass
class SideCount:
    """Tokens, unknown tokens and lengths of one side of a split; start and end tokens are not counted.

    Args:
        rows: the number of texts.
        tokens: the number of tokens.
        unknown: the number of unknown tokens.
        longest: tokens of the longest text.
        histogram: the number of texts of each length, by LENGTH_BIN_EDGES.
    """

    rows: int = 0
    tokens: int = 0
    unknown: int = 0
    longest: int = 0
    histogram: Ints = field(default_factory=lambda: np.zeros(len(LENGTH_BIN_EDGES), np.int64))

    def add(self, side: EncodedSide) -> None:
        """Count a chunk's side."""
        self.rows += len(side.lengths)
        self.tokens += len(side.ids)
        self.unknown += int((side.ids == UNK_ID).sum())
        self.longest = max(self.longest, int(side.lengths.max(initial=0)))
        bins = np.searchsorted(LENGTH_BIN_EDGES, side.lengths, side="right") - 1
        self.histogram += np.bincount(bins, minlength=len(LENGTH_BIN_EDGES))

    def as_json(self) -> dict[str, Any]:
        """Return the entry of report.json."""
        return {
            "tokens": self.tokens,
            "unknown": self.unknown,
            "unknown_rate": self.unknown / self.tokens if self.tokens else 0.0,
            "mean_length": self.tokens / self.rows if self.rows else 0.0,
            "max_length": self.longest,
            "lengths": {length_bin(i): int(count) for i, count in enumerate(self.histogram)},
        }


@dataclass
class CorpusCount:
    """Counts of one corpus of a split.

    Args:
        corpus: the corpus.
        read: the number of pairs that were read.
        rows: the number of pairs that are kept.
        factor: of `data.temperature`, beside the weight.
        lengths: of the first epoch.
    """

    corpus: Corpus
    read: int = 0
    rows: int = 0
    factor: float = 1.0  # of `data.temperature`, beside the weight
    lengths: LengthPairCounts = field(default_factory=LengthPairCounts)  # of the first epoch

    def as_json(self) -> dict[str, Any]:
        """Return the entry of dataset.json: rows, weight, factor if there is one and, if not used in all, epochs."""
        entry = {"rows": self.rows, "weight": self.corpus.weight}
        entry |= {} if self.factor == 1 else {"factor": self.factor}
        return entry if self.corpus.epochs is None else {**entry, "epochs": list(self.corpus.epochs)}


@dataclass
class SplitCount:
    """Counts of one split.

    Args:
        pairs: keys of the pairs that are kept.
        sources: keys of their sources.
        targets: keys of their targets.
        corpora: counts of each corpus.
        dropped: the number of pairs that were dropped, by reason.
        source: counts of the sources.
        target: counts of the targets.
        unwritable: of validation and test data.
        cut: the number of sources that were cut, of those that were read.
        images: of a split of images, the report on them.
    """

    pairs: DuplicateKeyFile
    sources: DuplicateKeyFile
    targets: DuplicateKeyFile
    corpora: list[CorpusCount] = field(default_factory=list)
    dropped: dict[str, int] = field(default_factory=dict)
    source: SideCount = field(default_factory=SideCount)
    target: SideCount = field(default_factory=SideCount)
    unwritable: UnwritableCharacterCounts | None = None
    cut: int = 0
    images: dict[str, Any] | None = None

    @property
    def rows(self) -> int:
        """Pairs kept."""
        return sum(corpus.rows for corpus in self.corpora)

    @property
    def lengths(self) -> LengthPairCounts:
        """Lengths of the pairs of the first epoch."""
        lengths = LengthPairCounts()
        for corpus in self.corpora:
            for weight, counts in corpus.lengths.counts.items():
                lengths.counts.setdefault(weight * corpus.factor, Counter()).update(counts)
        return lengths

    def add(self, chunk: ExampleChunk) -> None:
        """Count the pairs of a chunk that are kept, for the last corpus."""
        self.corpora[-1].rows += len(chunk)
        self.source.add(chunk.source)
        self.target.add(chunk.target)
        corpus = self.corpora[-1].corpus
        if corpus.epochs is None or corpus.epochs[0] == 1:
            self.corpora[-1].lengths.add(chunk.source.lengths + 1, chunk.target.lengths + 1, corpus.weight)
        source, target = chunk.source.duplicate_keys(), chunk.target.duplicate_keys()
        self.pairs.add(combine_duplicate_keys(source, target))
        self.sources.add(source[chunk.source.is_nonempty])
        self.targets.add(target[chunk.target.lengths > 0])
        if self.unwritable is not None:
            self.unwritable.add(chunk.target)

    def overlap(self, train: "SplitCount") -> dict[str, int]:
        """Count the pairs, their sources and their targets that are in the training data as well."""
        return {
            kind: getattr(self, kind).count_common(getattr(train, kind)) for kind in ("pairs", "sources", "targets")
        }

    def as_json(self) -> dict[str, Any]:
        """Return the entry of report.json."""
        corpora = [
            {"corpus": describe_corpus(corpus.corpus), "read": corpus.read, **corpus.as_json()}
            for corpus in self.corpora
        ]
        unwritable = {} if self.unwritable is None else {"unwritable": self.unwritable.as_json()}
        return {
            "rows": self.rows,
            "read": sum(each.read for each in self.corpora),
            "dropped": self.dropped,
            "cut": self.cut,
            "repeated": self.pairs.num_duplicates(),
            "corpora": corpora,
            "source": self.source.as_json(),
            "target": self.target.as_json(),
            **unwritable,
            **({} if self.images is None else {"images": self.images}),
        }


def make_dataset_report(counts: Mapping[str, SplitCount], *, batch_tokens: int, seed: int) -> dict[str, Any]:
    """Return the content of report.json.

    Args:
        counts: by split, "train" among them.
        batch_tokens: of a batch, in tokens.
        seed: of the draws of a training.
    """
    share = split_size_shares({name: count.rows for name, count in counts.items()})
    epoch = batching_cost(counts["train"].lengths, budget=batch_tokens, seed=seed, epoch=0)
    return {
        "splits": {name: {"share": share[name], **count.as_json()} for name, count in counts.items()},
        "overlap": {name: count.overlap(counts["train"]) for name, count in counts.items() if name != "train"},
        "batches": {
            "batch_tokens": batch_tokens,
            "batches_an_epoch": epoch.batches,
            "rows_an_epoch": epoch.rows,
            "padding": epoch.padding,
        },
    }


def length_bin(index: int) -> str:
    """A bin of the length histogram in words: "6-10"."""
    low = LENGTH_BIN_EDGES[index]
    if index + 1 == len(LENGTH_BIN_EDGES):
        return f"{low}-"
    high = LENGTH_BIN_EDGES[index + 1] - 1
    return str(low) if low == high else f"{low}-{high}"
