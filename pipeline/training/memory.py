"""Memory that ran out, told from other errors and said in a sentence."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pipeline.errors import DataError, told_here

# How torch's allocators say it where they have no error of their own for it; Linux, macOS, C++, cuBLAS.
_SIGNS = (
    "can't allocate memory", "not enough memory", "Cannot allocate memory", "out of memory", "bad_alloc",
    "ALLOC_FAILED",
)  # fmt: skip


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error means that memory ran out."""
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    return isinstance(error, RuntimeError) and any(sign in str(error) for sign in _SIGNS)


@contextmanager
def fits(complaint: Callable[[], str]) -> Iterator[None]:
    """Within, memory that runs out raises DataError with this complaint."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        raise told_here(DataError(complaint())) from error


def too_large(rows: NDArray[np.int64], split: Any, where: str) -> str:
    """What to say of a batch of these rows that did not fit."""
    longest = 1 + int(max(split.source_lengths[rows].max(), split.target_lengths[rows].max()))
    return (
        f"{where}: a batch of {len(rows)} rows x {longest} tokens does not fit in memory; lower data.batch_tokens "
        "(and raise training.accumulate as much). Checkpoints are intact"
    )
