"""The processes of one training, started by torchrun: their ranks, sums over them, and common decisions.

Every process has the whole model and takes its share of each update's batches (data parallelism). Gradients are summed,
not averaged: the loss is divided once, by the tokens of all processes. Only the first process writes.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn

from tfm.pipeline.errors import StoppedError, TfmError, mark_as_error_of_one_rank
from tfm.pipeline.runtime.out_of_memory import is_out_of_memory
from tfm.pipeline.runtime.torchrun import local_rank, rank_and_size, rendezvous_store

T = TypeVar("T")


@dataclass(frozen=True)
class World:
    """One process among those of a training; one alone needs no torchrun.

    Args:
        rank: the number of the process, from 0.
        size: the number of processes.
        device: of this process.
    """

    rank: int = 0
    size: int = 1
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    @property
    def is_main_process(self) -> bool:
        """Whether this process is the one that writes and talks."""
        return self.rank == 0

    def shard_items(self, items: Sequence[T]) -> list[tuple[int, T]]:
        """Every size-th item, from the rank-th on, with its place among all."""
        return list(enumerate(items))[self.rank :: self.size]

    def all_reduce_sum(self, tensor: Tensor) -> Tensor:
        """The sum of all processes' tensors, in place."""
        if self.size > 1:
            self._call_collective(lambda: dist.all_reduce(tensor))
        return tensor

    def all_reduce_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        """Replace every parameter's gradient by the sum over all processes; one that had no batch adds nothing."""
        if self.size == 1:
            return
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
        flat = self.all_reduce_sum(torch.cat([gradient.reshape(-1) for gradient in gradients]))
        pieces = torch.split(flat, [p.numel() for p in parameters])
        for parameter, piece in zip(parameters, pieces, strict=True):
            parameter.grad = piece.view_as(parameter)

    def all_gather_object(self, value: Any) -> list[Any]:
        """The JSON value of every process, by rank, in all of them."""
        if self.size == 1:
            return [value]
        text = torch.frombuffer(bytearray(json.dumps(value).encode()), dtype=torch.uint8).to(self.device)
        sizes = self.all_reduce_sum(
            torch.zeros(self.size, dtype=torch.long, device=self.device).index_fill_(
                0, torch.tensor([self.rank], device=self.device), len(text)
            )
        ).tolist()
        padded = torch.zeros(max(sizes), dtype=torch.uint8, device=self.device)
        padded[: len(text)] = text
        buffers = [torch.empty_like(padded) for _ in sizes]
        self._call_collective(lambda: dist.all_gather(buffers, padded))
        return [json.loads(bytes(piece[:size].tolist())) for piece, size in zip(buffers, sizes, strict=True)]

    def run_on_rank_zero(self, work: Callable[[], Any]) -> Any:
        """Run `work` in the first process, and return its JSON value in all of them; its error stops all of them."""
        result: dict[str, Any] = {}
        try:
            if self.is_main_process:
                result = {"value": work()}
        except Exception as error:
            self.all_gather_object({"failed": str(error), "exit_code": _exit_code_of(error)})
            raise
        first = self.all_gather_object(result)[0]
        if "failed" in first:
            failed = TfmError(f"the first process stopped: {first['failed']}")
            failed.exit_code = first["exit_code"]
            raise failed
        return first["value"]

    def run_on_every_rank(self, work: Callable[[], T]) -> T:
        """Run `work`, which calls no other process, in each, and return its value; where it fails in some, all of them
        end with the error of the first of those.
        """
        failed: Exception | None = None
        try:
            value = work()
        except Exception as error:
            failed = error
        report = None if failed is None else {"failed": str(failed), "exit_code": _exit_code_of(failed)}
        first = next((item for item in enumerate(self.all_gather_object(report)) if item[1] is not None), None)
        if first is None:
            return value
        rank, outcome = first
        if failed is not None and rank == self.rank:
            raise failed
        remote_error = TfmError(outcome["failed"])
        remote_error.exit_code = outcome["exit_code"]
        raise remote_error from failed

    def barrier(self) -> None:
        """Wait until every process is here."""
        self.all_reduce_sum(torch.zeros(1, device=self.device))

    def _call_collective(self, call: Callable[[], object]) -> None:
        try:
            call()
        except RuntimeError as error:
            if is_out_of_memory(error):
                raise
            reason = str(error).partition("\n")[0].rpartition("] ")[2]
            lost_error = StoppedError(
                f"another process of this training has ended ({reason}); the same command resumes it"
            )
            raise mark_as_error_of_one_rank(lost_error) from error


def _exit_code_of(error: Exception) -> int:
    """The exit code of a process that ends with an error."""
    return getattr(error, "exit_code", 74 if isinstance(error, OSError) else 1)


@contextmanager
def init_world(device: torch.device) -> Iterator[World]:
    """Join the processes that the environment of torchrun or Ray Train describes: NCCL on GPUs, gloo elsewhere; else
    there is one process.
    """
    rank, size = rank_and_size()
    if size == 1:
        yield World(device=device)
        return
    if device.type == "cuda":
        device = torch.device("cuda", local_rank())
        torch.cuda.set_device(device)
    if dist.is_initialized():  # by Ray Train, which also ends it
        yield World(rank, size, device)
        return
    try:
        backend = "nccl" if device.type == "cuda" else "gloo"
        dist.init_process_group(backend, store=rendezvous_store(), rank=rank, world_size=size)
    except (RuntimeError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise mark_as_error_of_one_rank(
            StoppedError(f"the processes of this training could not connect ({reason}); try again")
        ) from error
    try:
        yield World(rank, size, device)
    finally:
        dist.destroy_process_group()
