"""Memory that runs out is told apart from other errors, however it is said."""

import errno

import pytest
import torch

from tfm.pipeline.errors import DataError
from tfm.pipeline.runtime.out_of_memory import is_out_of_memory, raise_oom_as_data_error

SAID = [
    MemoryError(),
    torch.OutOfMemoryError("CUDA out of memory"),
    RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory: you tried"),
    RuntimeError("could not create a primitive"),
    RuntimeError("could not create a memory object"),
    RuntimeError("std::bad_alloc"),
    RuntimeError("can't start new thread"),
    ImportError("libtorch_cpu.so: failed to map segment from shared object"),
    OSError(errno.ENOMEM, "Cannot allocate memory"),
]
OTHERS = [
    RuntimeError("could not create a primitive descriptor for a matmul primitive"),
    RuntimeError("shapes do not fit"),
    ImportError("No module named 'numba'"),
    OSError(errno.ENOSPC, "No space left on device"),
    ValueError("out of memory"),
]


@pytest.mark.parametrize("error", SAID, ids=repr)
def test_it_is_explained(error: Exception) -> None:
    assert is_out_of_memory(error)
    with (
        pytest.raises(DataError, match="does not fit: lower it"),
        raise_oom_as_data_error(lambda: "does not fit: lower it"),
    ):
        raise error


@pytest.mark.parametrize("error", OTHERS, ids=repr)
def test_other_errors_are_raised_as_they_are(error: Exception) -> None:
    assert not is_out_of_memory(error)
    with pytest.raises(type(error)) as caught, raise_oom_as_data_error(lambda: "does not fit: lower it"):
        raise error
    assert caught.value is error
