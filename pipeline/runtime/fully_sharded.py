"""Parameters sharded over the processes of a training, by PyTorch's FSDP2 (`fully_shard`), one unit a layer.

A process keeps a part of every parameter, of its gradient and of what the optimizer knows of it: some rows, as
`torch.chunk` divides them. A layer's whole parameters are gathered for each of its passes alone ("full"), or for the
time from its forward to its backward pass ("optimizer").
"""

import ctypes
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Literal

from torch import Tensor, nn

from tfm.pipeline.errors import StoppedError, mark_as_error_of_one_rank
from tfm.pipeline.runtime.distributed import World
from tfm.pipeline.runtime.out_of_memory import is_out_of_memory
from tfm.pipeline.runtime.process_memory import trim_heap

LOST_PROCESS_WORDS = ("gloo", "NCCL", "onnection", "Broken pipe")
M_MMAP_THRESHOLD = -3  # of malloc.h
MIN_MAPPED_BYTES = 1 << 20
EXTRA_FORWARD_METHODS = ("hidden_states",)
"""Methods beside `forward` by which a task enters a network."""


def shard_parameters(
    model: nn.Module, layers: Iterable[nn.Module], mode: Literal["optimizer", "full"], world: World
) -> None:
    """Shard the parameters of a network over all processes; gradients are summed over them, not averaged.

    Args:
        model: changed in place.
        layers: its layers, each a unit whose parameters are gathered together.
        mode: "full": gathered again for the backward pass; "optimizer": kept from the forward to the backward pass.
        world: the processes.
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import FSDPModule, fully_shard, register_fsdp_forward_method

    mesh = init_device_mesh(world.device.type, (world.size,))
    for unit in (*layers, model):
        fully_shard(unit, mesh=mesh, reshard_after_forward=mode == "full" and unit is not model)
        assert isinstance(unit, FSDPModule)
        unit.set_gradient_divide_factor(1.0)
        unit.set_force_sum_reduction_for_comms(True)  # gloo has no other
    if world.device.type == "cpu":
        return_freed_memory()
    for name in EXTRA_FORWARD_METHODS:
        if hasattr(model, name):
            register_fsdp_forward_method(model, name)


def return_freed_memory() -> None:
    """Let the C library give the memory of gathered layers back to the system as soon as they are freed.

    By default glibc keeps freed tensors of up to 32 MiB, of which the next layers use only some.
    """
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, MIN_MAPPED_BYTES)
    trim_heap()


def is_sharded(model: nn.Module) -> bool:
    """Return whether this process has only a part of the parameters of a network."""
    return any(_is_distributed(each) for each in model.parameters())


def local_shard(tensor: Tensor) -> Tensor:
    """Return the part of a tensor that this process has: all of one that is not sharded."""
    return tensor.to_local() if _is_distributed(tensor) else tensor  # type: ignore[attr-defined]


def full_tensor(tensor: Tensor) -> Tensor:
    """Return all of a tensor; every process calls it for the same tensors in the same order.

    Raises StoppedError if another process has ended.
    """
    if not _is_distributed(tensor):
        return tensor
    with detect_lost_processes():
        gathered: Tensor = tensor.full_tensor()  # type: ignore[attr-defined]
    return gathered


def shard_like(local: Tensor, parameter: Tensor) -> Tensor:
    """Return a tensor that is sharded as a parameter is.

    Args:
        local: the part that this process has.
        parameter: the parameter, sharded or whole.
    """
    if not _is_distributed(parameter) or not local.ndim:
        return local
    from torch.distributed.tensor import DTensor

    assert isinstance(parameter, DTensor)
    return DTensor.from_local(
        local,
        parameter.device_mesh,
        parameter.placements,
        run_check=False,
        shape=parameter.shape,
        stride=parameter.stride(),
    )


def shard_of_rank(tensor: Tensor, rank: int, size: int) -> Tensor:
    """Return the part of a whole tensor that a process has of it.

    Args:
        tensor: the whole tensor.
        rank: number of the process.
        size: number of processes.
    """
    chunks = tensor.chunk(size) if tensor.ndim and size > 1 else (tensor,) * size
    return chunks[rank] if rank < len(chunks) else tensor[:0]


def named_weights(model: nn.Module) -> dict[str, Tensor]:
    """Return this process's parts of the parameters of a sharded network, shared ones once, under their first name."""
    return {name: local_shard(parameter.detach()) for name, parameter in model.named_parameters()}


def total_norm(gradients: Iterable[Tensor], world: World) -> Tensor:
    """Return the norm of all gradients, of which each process has its parts.

    Args:
        gradients: the parts of this process.
        world: the processes.
    """
    squared = nn.utils.get_total_norm(gradients).double().square()
    return world.all_reduce_sum(squared).sqrt()


def clip_factor(norm: Tensor, clip_norm: float) -> Tensor:
    """Return the factor by which gradients of a norm are clipped, as `clip_grads_with_norm_` computes it.

    Args:
        norm: of all gradients.
        clip_norm: the largest norm.
    """
    return (clip_norm / (norm + 1e-6)).clamp(max=1.0)


@contextmanager
def detect_lost_processes() -> Iterator[None]:
    """Raise StoppedError while the body runs where another process has ended, for which this one waits."""
    try:
        yield
    except RuntimeError as error:
        if is_out_of_memory(error) or not any(word in str(error) for word in LOST_PROCESS_WORDS):
            raise
        reason = str(error).partition("\n")[0]
        lost_error = StoppedError(
            f"another process of this training has ended ({reason:.200}); the same command resumes it"
        )
        raise mark_as_error_of_one_rank(lost_error) from error


def _is_distributed(tensor: Tensor) -> bool:
    """Whether a tensor is sharded; its class is not imported, which takes a second."""
    return hasattr(tensor, "_local_tensor")
