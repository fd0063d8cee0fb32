"""A cluster of Ray for the time of a stage: connected to, or started on this machine, and the work that is given to it.

Scheduling, retries and the loss of nodes are Ray's. Here, work is cut into chunks whose results are pure functions of
their content, which come back in the order of the chunks.
"""

import itertools
import os
import socket
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout
from dataclasses import dataclass
from typing import Any, TypeVar

from tfm.pipeline.artifacts.artifact import Plan
from tfm.pipeline.cluster.authentication import (
    capture_stderr,
    missing_token_problem,
    refused_token_problem,
    set_token_for_new_cluster,
)
from tfm.pipeline.cluster.chunk_store import ChunkStore, open_chunk_store
from tfm.pipeline.distribution import install_command
from tfm.pipeline.errors import RecipeError, StoppedError, TfmError

NEW_CLUSTER_ADDRESS = "auto"
MAX_PENDING_CHUNKS_PER_CPU = 4
"""Chunks that are under way or wait for their turn, for each processor of the cluster: memory is bounded by them."""
CONNECT_SECONDS = 10.0
MAX_RETRIES = 20
"""How often a chunk is computed again because its process or node was lost."""

ItemT = TypeVar("ItemT")
ValueT = TypeVar("ValueT")


@dataclass(frozen=True)
class ComputeChunk:
    """A unit of work.

    Args:
        key: a hash of all that its result depends on.
        arguments: of the function that computes the result, as bytes.
    """

    key: str
    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class ClusterSession:
    """A connected cluster, and the results of chunks that are kept on disk (None: nowhere)."""

    ray: Any
    store: ChunkStore | None

    def share(self, value: ValueT) -> ValueT:
        """Return what stands for a value in the arguments of chunks: it travels to each node once."""
        shared: ValueT = self.ray.put(value)
        return shared

    def map_in_order(
        self, compute: Callable[..., bytes], chunks: Iterable[tuple[ItemT, ComputeChunk]], *, num_gpus: float = 0
    ) -> Iterator[tuple[ItemT, bytes]]:
        """Compute chunks on the cluster, each in a process of one processor, and yield their results in order.

        A result is kept when it arrives, whatever is still missing before it. A chunk whose result is kept already is
        not computed.

        Args:
            compute: (*arguments) -> result; pure, from a module that every node has.
            chunks: what the caller knows of each chunk, and the chunk.
            num_gpus: the number of GPUs that a chunk needs.

        Yields:
            What the caller knows of a chunk, and the chunk's result.

        Raises:
            TfmError: the error that computing a chunk raised.
            Stopped: a chunk lost its process MAX_RETRIES times, or the node of this process was lost.
        """
        task = self.ray.remote(num_cpus=1, num_gpus=num_gpus, max_retries=MAX_RETRIES)(compute)
        coming, most = enumerate(chunks), self._max_pending()
        asked: dict[int, tuple[ItemT, str]] = {}
        running: dict[Any, int] = {}
        results: dict[int, bytes] = {}
        for following in itertools.count():
            while len(asked) < most and (taken := next(coming, None)) is not None:
                number, (known, chunk) = taken
                asked[number] = known, chunk.key
                if self.store is not None and (kept := self.store.read(chunk.key)) is not None:
                    results[number] = kept
                else:
                    running[task.remote(*chunk.arguments)] = number
            if following not in asked:
                return
            while following not in results:
                for done in self.ray.wait(list(running), num_returns=1)[0]:
                    number = running.pop(done)
                    results[number] = self.result(done)
                    if self.store is not None:
                        self.store.write(asked[number][1], results[number])
                most = self._max_pending()
            yield asked.pop(following)[0], results.pop(following)

    def _max_pending(self) -> int:
        """The most chunks that may be under way: nodes come and go."""
        return max(2, int(MAX_PENDING_CHUNKS_PER_CPU * self.ray.cluster_resources().get("CPU", 1)))

    def result(self, reference: Any) -> Any:
        """Return the result of a task.

        Raises:
            TfmError, OSError: the error that the task raised.
            Stopped: the task lost its process MAX_RETRIES times, or the node of this process was lost.
        """
        try:
            found: Any = self.ray.get(reference)
        except self.ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, (TfmError, OSError)):
                raise error.cause from None
            raise
        except self.ray.exceptions.RayError as error:
            lost = f"the cluster was lost ({type(error).__name__}), or it lost a process {MAX_RETRIES} times"
            remedy = "the same command goes on; if memory ran out, give each processor of a node more of it"
            raise StoppedError(f"{lost}: {remedy}") from error
        return found


@contextmanager
def connect_to_cluster(address: str, plan: Plan | None = None) -> Iterator[ClusterSession]:
    """Connect to a cluster, or start one on this machine, for the time of the block.

    Args:
        address: an address of Ray, such as 10.0.0.1:6379; or auto: a cluster of this machine that is started, and ends
            with the block.
        plan: of the artifact beside which results of chunks are kept until it is published; None to keep none.

    Raises:
        RecipeError: Ray is not installed, there is no cluster at the address, or it refuses the token.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_COLOR_PREFIX", "0")
    try:
        import ray
    except ModuleNotFoundError as error:
        if error.name != "ray":
            raise
        raise RecipeError(f"--cluster needs ray: {install_command('cluster')}") from None
    if address != NEW_CLUSTER_ADDRESS:
        _check_cluster_answers(address)
    if problem := missing_token_problem(is_new_cluster=address == NEW_CLUSTER_ADDRESS):
        raise RecipeError(f"--cluster {address}: {problem}")
    if address == NEW_CLUSTER_ADDRESS:
        set_token_for_new_cluster()
    with redirect_stdout(sys.stderr):  # Ray prints there that a process was lost, amid what this command prints
        _init_ray(ray, address)
        try:
            with open_chunk_store(plan) as store:
                yield ClusterSession(ray, store)
        finally:
            ray.shutdown()


def _init_ray(ray: Any, address: str) -> None:
    """Connect Ray, or start it: twice if need be, as it gives a node of a busy machine no more than half a minute."""
    attempts = 2 if address == NEW_CLUSTER_ADDRESS else 1
    for attempt in range(1, attempts + 1):
        said: list[str] = []
        try:
            with nullcontext(said) if address == NEW_CLUSTER_ADDRESS else capture_stderr() as said:
                ray.init(
                    address="local"
                    if address == NEW_CLUSTER_ADDRESS
                    else address,  # else Ray asks for clusters that may be dead
                    log_to_driver=False,
                    logging_level="error",
                    include_dashboard=None if address != NEW_CLUSTER_ADDRESS else False,
                )
        except Exception as error:  # Ray raises that class itself, as of a node that is too busy to start
            ray.shutdown()
            if (problem := refused_token_problem("".join(said))) is not None:
                raise RecipeError(f"--cluster {address}: {problem}") from error
            sys.stderr.writelines(said)
            if attempt == attempts:
                reason = " ".join(str(error).split())
                raise RecipeError(f"--cluster {address}: Ray does not start or answer ({reason:.200})") from error
        else:
            sys.stderr.writelines(said)
            return


def _check_cluster_answers(address: str) -> None:
    """Raise RecipeError where nothing answers at an address: Ray itself would try for many minutes."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()
    except (OSError, ValueError, OverflowError) as error:
        problem = f"--cluster {address}: there is no cluster of Ray ({error})"
        raise RecipeError(f"{problem}; give auto, or HOST:PORT as `ray start --head` prints it") from None
