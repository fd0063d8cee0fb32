"""Out-of-memory errors: told apart from other errors, and explained in one sentence."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from tfm.pipeline.errors import DataError, told_here

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


def too_large(batch: str, where: str) -> str:
    """What to say of a batch, given in words, that did not fit."""
    return (
        f"{where}: {batch} does not fit in memory; lower data.batch_tokens, or training.batch_tokens if it is set "
        "(and raise training.accumulate by the same factor). Checkpoints are intact"
    )
