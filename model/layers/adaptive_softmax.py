"""Embeddings and an output layer in clusters of pieces: the rarer the pieces, the narrower their vectors.

Ids are taken as frequency ranks. Cluster 0 has the n ids below the first cutoff, cluster i those from
the i-th cutoff to the next, and its vectors W_i are E / factor^i wide.

    adaptive softmax (Grave et al. 2017, section 4.3), C one row for each cluster but the first, P_i from E to E /
    factor^i:
        p(w | h) = softmax([W_0; C] h)_w                                   w in cluster 0
        p(w | h) = softmax([W_0; C] h)_(n + i - 1)  softmax(W_i P_i h)_w   w in cluster i
    adaptive inputs (Baevski and Auli 2019, section 3), Q_i from E / factor^i to E:
        x(w) = W_0[w], or Q_i W_i[w]

If tied, both share the W_i. Cluster 0 has width E and no projection, unlike in the paper: with one cluster these are
the full softmax and the plain embedding.
Legend: N rows · E width · V vocabulary.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import torch
from torch import Tensor, nn

from tfm.model.config import AdaptiveConfig
from tfm.model.layers.linear import Linear
from tfm.model.layers.log_probs import log_softmax


@dataclass(frozen=True)
class VocabularyCluster:
    """The number of pieces of a cluster, and the width of each one's vector."""

    size: int
    width: int


def make_clusters(config: AdaptiveConfig, dim: int, vocab: int) -> list[VocabularyCluster]:
    """Return the clusters of a vocabulary, the first as wide as `dim`.

    Args:
        config: cutoffs and the factor by which widths shrink.
        dim: width of the vectors of the first cluster.
        vocab: number of pieces.

    Raises:
        ValueError: a cutoff lies beyond the vocabulary.
    """
    if config.cutoffs and config.cutoffs[-1] >= vocab:
        raise ValueError(
            f"model.adaptive.cutoffs: a cluster begins at id {config.cutoffs[-1]}, and the vocabulary has {vocab} "
            "pieces: lower it, or remove it"
        )
    cutoffs, ends = (0, *config.cutoffs), (*config.cutoffs, vocab)
    pairs = enumerate(zip(cutoffs, ends, strict=True))
    return [VocabularyCluster(end - begin, dim // config.factor**number) for number, (begin, end) in pairs]


class AdaptiveEmbedding(nn.Module):
    """Adaptive inputs, in the place of an nn.Embedding.

    tables: of each cluster, the first as wide as E.
    """

    def __init__(self, tables: Sequence[nn.Embedding], *, compute_dtype: torch.dtype) -> None:
        super().__init__()
        sizes = [table.num_embeddings for table in tables]
        self.num_embeddings, self.embedding_dim = sum(sizes), tables[0].embedding_dim
        self.bounds = tuple(zip(accumulate(sizes, initial=0), accumulate(sizes), strict=False))
        """The first id of each cluster, and the first that is beyond it."""
        self.tables = nn.ModuleList(tables)
        self.project = nn.ModuleList(
            Linear(table.embedding_dim, self.embedding_dim, bias=False, compute_dtype=compute_dtype)
            for table in tables[1:]
        )

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the vectors (N, E) of ids (N,)."""
        # every cluster for every row, zeros where it is another's: cheap, for they are narrow, and of one shape
        first, *tail_vectors = (self._embed_in_cluster(tokens, number) for number in range(len(self.tables)))
        for project, vectors in zip(self.project, tail_vectors, strict=True):
            first = first + project(vectors)
        return first

    def iterate_tables(self) -> Iterator[nn.Embedding]:
        """The tables, in the order of their ids."""
        return iter(self.tables)  # type: ignore[arg-type]

    def _embed_in_cluster(self, tokens: Tensor, cluster: int) -> Tensor:
        """The rows (N, E_i) of one cluster's table; zeros for tokens of another."""
        begin, end = self.bounds[cluster]
        is_inside = (tokens >= begin) & (tokens < end)
        vectors: Tensor = self.tables[cluster](torch.where(is_inside, tokens - begin, 0))
        return vectors * is_inside.unsqueeze(1)


class TailProjection(nn.Module):
    """The logits of the pieces of one cluster but the first   W_i P_i h.

    Args:
        dim: E.
        cluster: number and width of the cluster's vectors.
        compute_dtype: precision of the operands of matrix products in training.
    """

    def __init__(self, dim: int, cluster: VocabularyCluster, *, compute_dtype: torch.dtype) -> None:
        super().__init__()
        self.project = Linear(dim, cluster.width, bias=False, compute_dtype=compute_dtype)
        self.words = Linear(cluster.width, cluster.size, bias=False, compute_dtype=compute_dtype)

    def forward(self, hidden: Tensor) -> Tensor:
        """(N, E) -> (N, n_i)."""
        logits: Tensor = self.words(self.project(hidden))
        return logits


class AdaptiveSoftmax(nn.Module):
    """An output layer that gives log-probabilities, which are logits as any others.

    words: W_0. clusters: C; None if there are no tails.

    Args:
        clusters: number and width of the vectors of each cluster.
        tables: of each cluster, the embeddings whose weights it shares; none: it has its own.
        compute_dtype: precision of the operands of matrix products in training.
    """

    def __init__(
        self, clusters: Sequence[VocabularyCluster], tables: Iterable[nn.Embedding] = (), *, compute_dtype: torch.dtype
    ) -> None:
        super().__init__()
        first, *tail_clusters = clusters
        dim, dtype = first.width, compute_dtype
        self.words = Linear(dim, first.size, bias=False, compute_dtype=dtype)
        self.clusters = Linear(dim, len(tail_clusters), bias=False, compute_dtype=dtype) if tail_clusters else None
        self.tails = nn.ModuleList(TailProjection(dim, cluster, compute_dtype=dtype) for cluster in tail_clusters)
        self.cutoffs = tuple(accumulate(cluster.size for cluster in clusters))[:-1]
        """The first id of each tail."""
        for layer, table in zip((self.words, *(tail.words for tail in self.iterate_tails())), tables, strict=False):
            layer.weight = table.weight

    def forward(self, hidden: Tensor) -> Tensor:
        """Return log-probabilities (N, V) of the output layer's input (N, E)."""
        if self.clusters is None:
            return log_softmax(self.words(hidden))
        head = log_softmax(torch.cat([self.words(hidden), self.clusters(hidden)], dim=1))
        first, cluster_log_probs = torch.split(head, [self.cutoffs[0], len(self.tails)], dim=1)
        tail_log_probs = (log_softmax(tail(hidden)) for tail in self.iterate_tails())
        tails = (
            in_tail + of_cluster
            for in_tail, of_cluster in zip(tail_log_probs, torch.split(cluster_log_probs, 1, dim=1), strict=True)
        )
        return torch.cat([first, *tails], dim=1)

    def head_weight(self) -> Tensor:
        """[W_0; C]: one row a piece of cluster 0, then one a tail."""
        return self.words.weight if self.clusters is None else torch.cat([self.words.weight, self.clusters.weight])

    def find_cluster(self, tokens: Tensor) -> Tensor:
        """Return the number of each id's cluster, in the same shape."""
        number = torch.zeros_like(tokens)
        for begin in self.cutoffs:
            number += tokens >= begin
        return number

    def iterate_tails(self) -> Iterator[TailProjection]:
        """The tails, in the order of their ids."""
        return iter(self.tails)  # type: ignore[arg-type]


EmbeddingTable = nn.Embedding | AdaptiveEmbedding
OutputLayer = Linear | AdaptiveSoftmax
