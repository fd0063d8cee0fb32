"""Keys of very many texts, in a file: questions about all of them take the memory of a share of them."""

from collections.abc import Iterator
from typing import IO

import numpy as np

from tfm.data.arrays import Ints

KEYS_PER_BUCKET = 1 << 20


class DuplicateKeyFile:
    """64-bit keys, well spread as a hash is, in an empty file that may be read and written."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, keys: Ints) -> None:
        """Append further keys."""
        self._file.write(keys.tobytes())
        self._count += len(keys)

    def num_duplicates(self) -> int:
        """The number of keys that came before."""
        shares = (self._read_partition(*partition) for partition in _iterate_partitions(self._count))
        return sum(int((keys[1:] == keys[:-1]).sum()) for keys in shares)

    def count_common(self, other: "DuplicateKeyFile") -> int:
        """The number of keys that the other file has as well."""
        num_common = 0
        for partition in _iterate_partitions(max(len(self), len(other))):
            keys, other_keys = self._read_partition(*partition), other._read_partition(*partition)
            if len(other_keys):  # by binary search: np.isin hashes both, which is far slower
                indices = np.minimum(np.searchsorted(other_keys, keys), len(other_keys) - 1)
                num_common += int((other_keys[indices] == keys).sum())
        return num_common

    def _read_partition(self, partition: int, num_partitions: int) -> Ints:
        """The keys of one share, sorted."""
        parts = [
            keys if num_partitions == 1 else keys[keys % num_partitions == partition] for keys in self._read_blocks()
        ]
        return np.sort(np.concatenate(parts)) if parts else np.empty(0, np.int64)

    def _read_blocks(self) -> Iterator[Ints]:
        self._file.seek(0)
        while content := self._file.read(8 * KEYS_PER_BUCKET):
            yield np.frombuffer(content, np.int64)


def _iterate_partitions(count: int) -> Iterator[tuple[int, int]]:
    """Pairs (number of a share, number of shares) such that each share is small."""
    num_shares = -(-count // KEYS_PER_BUCKET)
    return ((share, num_shares) for share in range(num_shares))
