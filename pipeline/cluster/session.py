"""A cluster of Ray for the time of a stage: connected to, or started on this machine, and the work that is given to it.

Scheduling, retries and the loss of nodes are Ray's. Here, work is cut into chunks whose results are pure functions of
their content, which come back in the order of the chunks.
"""

import itertools
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from tfm.pipeline.artifacts.artifact import Plan
from tfm.pipeline.cluster.authentication import (
    capture_stderr,
    missing_token_problem,
    refused_token_problem,
    set_token_for_new_cluster,
)
from tfm.pipeline.cluster.chunk_store import ChunkStore, open_chunk_store
from tfm.pipeline.cluster.node_packages import import_problem, require_same_packages
from tfm.pipeline.cluster.reachability import check_cluster_accepts, check_cluster_answers
from tfm.pipeline.distribution import install_command
from tfm.pipeline.errors import RecipeError, StoppedError, TfmError
from tfm.pipeline.runtime.stop_signal import STOP_SIGNALS

NEW_CLUSTER_ADDRESS = "auto"
MAX_PENDING_CHUNKS_PER_CPU = 4
"""Chunks that are under way or wait for their turn, for each processor of the cluster: memory is bounded by them."""
NODE_POLL_SECONDS = 10.0
NODE_PATIENCE_SECONDS = 300.0
"""How long a cluster without a processor is waited for: lost nodes may be started again."""
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
        reference: ValueT = self.ray.put(value)
        return reference

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
            RecipeError: no node can compute one, or a node has other packages.
            StoppedError: a chunk lost its process MAX_RETRIES times, or this node or all other nodes were lost.
        """
        self._check_resources(num_gpus)
        task = self.ray.remote(num_cpus=1, num_gpus=num_gpus, max_retries=MAX_RETRIES)(require_same_packages(compute))
        numbered_chunks, max_pending = enumerate(chunks), self._max_pending()
        pending: dict[int, tuple[ItemT, str]] = {}
        running: dict[Any, int] = {}
        results: dict[int, bytes] = {}
        for next_number in itertools.count():
            while len(pending) < max_pending and (numbered_chunk := next(numbered_chunks, None)) is not None:
                number, (item, chunk) = numbered_chunk
                pending[number] = item, chunk.key
                if self.store is not None and (stored_result := self.store.read(chunk.key)) is not None:
                    results[number] = stored_result
                else:
                    running[task.remote(*chunk.arguments)] = number
            if next_number not in pending:
                return
            while next_number not in results:
                for reference in self._wait_for_results(list(running)):
                    number = running.pop(reference)
                    results[number] = self.result(reference)
                    if self.store is not None:
                        self.store.write(pending[number][1], results[number])
                max_pending = self._max_pending()
            yield pending.pop(next_number)[0], results.pop(next_number)

    def _wait_for_results(self, references: list[Any]) -> list[Any]:
        """Return the references of finished results. Raises StoppedError if the cluster has lost all processors."""
        lost_at: float | None = None
        while True:
            ready_references: list[Any] = self.ray.wait(references, num_returns=1, timeout=NODE_POLL_SECONDS)[0]
            if ready_references:
                return ready_references
            if self.ray.cluster_resources().get("CPU", 0) >= 1:
                lost_at = None
                continue
            lost_at = time.monotonic() if lost_at is None else lost_at
            if time.monotonic() - lost_at >= NODE_PATIENCE_SECONDS:
                raise StoppedError("no node of the cluster has a processor any more; the same command goes on")

    def _check_resources(self, num_gpus: float) -> None:
        """Raise RecipeError if no node could compute a chunk: Ray would wait for one without an end."""
        resources = self.ray.cluster_resources()
        if resources.get("CPU", 0) < 1:
            raise RecipeError("--cluster: no node has a processor: start one, as by `ray start --address HOST:PORT`")
        if resources.get("GPU", 0) < num_gpus:
            raise RecipeError(
                "--cluster: no node has a GPU, and the device is cuda: start one that has, or use the CPU"
            )

    def _max_pending(self) -> int:
        """The most chunks that may be under way: nodes come and go."""
        return max(2, int(MAX_PENDING_CHUNKS_PER_CPU * self.ray.cluster_resources().get("CPU", 1)))

    def result(self, reference: Any) -> Any:
        """Return the result of a task.

        Raises:
            TfmError, OSError: the error that the task raised.
            RecipeError: a node cannot load what the task calls.
            StoppedError: the task lost its process MAX_RETRIES times, or the node of this process was lost.
        """
        try:
            result: Any = self.ray.get(reference)
        except self.ray.exceptions.RayError as error:
            if isinstance(error, self.ray.exceptions.RayTaskError) and isinstance(error.cause, (TfmError, OSError)):
                raise error.cause from None
            if (problem := import_problem(error)) is not None:
                raise RecipeError(problem) from None
            if isinstance(error, self.ray.exceptions.RayTaskError):
                raise
            problem_text = f"the cluster was lost ({type(error).__name__}), or it lost a process {MAX_RETRIES} times"
            remedy = "the same command goes on; if memory ran out, give each processor of a node more of it"
            raise StoppedError(f"{problem_text}: {remedy}") from error
        return result


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
        check_cluster_answers(address)
    if problem := missing_token_problem(is_new_cluster=address == NEW_CLUSTER_ADDRESS):
        raise RecipeError(f"--cluster {address}: {problem}")
    if address == NEW_CLUSTER_ADDRESS:
        set_token_for_new_cluster()
    else:
        check_cluster_accepts(ray, address)
    with redirect_stdout(sys.stderr):  # Ray prints there that a process was lost, amid what this command prints
        with _keep_signal_handlers():
            _init_ray(ray, address)
        try:
            with open_chunk_store(plan) as store:
                yield ClusterSession(ray, store)
        finally:
            ray.shutdown()


@contextmanager
def _keep_signal_handlers() -> Iterator[None]:
    """Set the handlers of this process again after the body: Ray has its own, which print addresses in memory."""
    if threading.current_thread() is not threading.main_thread():  # only there may Python set handlers
        yield
        return
    handlers = {number: handler for number in STOP_SIGNALS if (handler := signal.getsignal(number)) is not None}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def make_job_config(ray: Any) -> Any:
    """Return a job config by which processes on nodes find modules as they do without this process.

    Ray would put the current folder first in their path, and a folder `tfm` or a file `regex.py` of the user's would
    stand in place of the modules of these names. It does so still where tfm itself runs from the current folder.
    """
    config = ray.job_config.JobConfig()
    if Path.cwd() != Path(__file__).parents[3]:
        config._runtime_env_has_working_dir = lambda: True  # the only case in which Ray leaves the path unchanged
    return config


def _init_ray(ray: Any, address: str) -> None:
    """Connect Ray, or start it: twice if need be, as it gives a node of a busy machine no more than half a minute."""
    attempts = 2 if address == NEW_CLUSTER_ADDRESS else 1
    for attempt in range(1, attempts + 1):
        stderr_texts: list[str] = []
        try:
            with nullcontext(stderr_texts) if address == NEW_CLUSTER_ADDRESS else capture_stderr() as stderr_texts:
                ray.init(
                    address="local"
                    if address == NEW_CLUSTER_ADDRESS
                    else address,  # else Ray asks for clusters that may be dead
                    log_to_driver=False,
                    logging_level="error",
                    include_dashboard=None if address != NEW_CLUSTER_ADDRESS else False,
                    job_config=make_job_config(ray),
                )
        except Exception as error:  # Ray raises that class itself, as of a node that is too busy to start
            ray.shutdown()
            if (problem := refused_token_problem("".join(stderr_texts))) is not None:
                raise RecipeError(f"--cluster {address}: {problem}") from error
            sys.stderr.writelines(stderr_texts)
            if attempt == attempts:
                reason = " ".join(str(error).split())
                raise RecipeError(f"--cluster {address}: Ray does not start or answer ({reason:.200})") from error
        else:
            sys.stderr.writelines(stderr_texts)
            return
