"""Vectors of any number of ids from small tables: each id is looked up by several hashes.

Legend: N ids · E width · K hashes · B buckets.
"""

import torch
from torch import Tensor, nn

HASH_PRIME = 2**31 - 1
HASH_MULTIPLIER = 48271
"""Multiplier of Park and Miller (1993): its powers modulo PRIME are all the numbers from 1 to PRIME - 1."""


class HashEmbedding(nn.Module):
    """x(i) = [T_1[h_1(i)] ; ... ; T_K[h_K(i)]], in the place of an nn.Embedding   (Clark et al. 2022, sec. 3.1)

        h_k(i) = ((a_k (i + 1) + b_k) mod p) mod B
        p = 2^31 - 1, a_k = 48271^(2k+1) mod p, b_k = 48271^(2k+2) mod p

    each table B x E / K. The hashes are universal (Carter and Wegman 1979): two ids share one bucket by chance, and
    hardly ever all K. (In the authors' code h_k(i) = p_k (i + 1) mod B with primes p_k and B = 2^14, so that ids with
    the same remainder modulo B share all of them.)

    Args:
        hashes: K, which must divide E.
        buckets: B.
        dim: E.
    """

    multipliers: Tensor
    shifts: Tensor
    firsts: Tensor

    def __init__(self, hashes: int, buckets: int, dim: int) -> None:
        super().__init__()
        self.hashes, self.buckets, self.embedding_dim = hashes, buckets, dim
        self.tables = nn.Embedding(hashes * buckets, dim // hashes)
        nn.init.normal_(self.tables.weight, std=dim**-0.5)
        powers = [pow(HASH_MULTIPLIER, power, HASH_PRIME) for power in range(3, 2 * hashes + 3)]
        self.register_buffer("multipliers", torch.tensor(powers[0::2]), persistent=False)
        self.register_buffer("shifts", torch.tensor(powers[1::2]), persistent=False)
        # All tables lie in one, end to end.
        self.register_buffer("firsts", torch.arange(hashes) * buckets, persistent=False)

    def bucket_indices(self, ids: Tensor) -> Tensor:
        """Return the bucket in each table (N, K) of ids (N,)."""
        return (self.multipliers * (ids.unsqueeze(1) + 1) + self.shifts) % HASH_PRIME % self.buckets

    def forward(self, ids: Tensor) -> Tensor:
        """(N,) -> (N, E)."""
        vectors: Tensor = self.tables(self.bucket_indices(ids) + self.firsts)
        return vectors.flatten(1)
