"""Out-of-memory errors: how to recognise them, and a message of one sentence."""

import errno
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tfm.pipeline.errors import ComputationError, mark_as_error_of_one_rank

# How it is said where there is no error of its own for it: by torch's allocators, Linux, macOS, C++, cuBLAS; by oneDNN,
# which has the same words for a primitive that does not exist, and then names its descriptor; by Python of a thread;
# and by the loader of libraries.
_MEMORY_ERRORS = re.compile(
    "can't allocate memory|not enough memory|cannot allocate memory|out of memory|bad_alloc|ALLOC_FAILED"
    "|could not (create|execute) a primitive(?! descriptor)|could not create a memory|can't start new thread"
    "|failed to map segment|cannot map|cannot enlarge memory",
    re.IGNORECASE,
)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error means that memory ran out."""
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno == errno.ENOMEM
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":  # torch's, which may not be loaded
        return True
    return isinstance(error, RuntimeError | ImportError) and _MEMORY_ERRORS.search(str(error)) is not None


@contextmanager
def raise_oom_as_data_error(message: Callable[[], str]) -> Iterator[None]:
    """Raise ComputationError with this message if memory runs out while the body runs."""
    try:
        yield
    except (MemoryError, RuntimeError, ImportError, OSError) as error:
        if not is_out_of_memory(error):
            raise
        raise mark_as_error_of_one_rank(ComputationError(message())) from error


def too_large_message(batch: str, location: str) -> str:
    """The message on a batch, given in words, that did not fit."""
    return (
        f"{location}: {batch} does not fit in memory; lower data.batch_tokens, or training.batch_tokens if it is set "
        "(and raise training.accumulate by the same factor). Checkpoints are intact"
    )
