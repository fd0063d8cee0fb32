"""Long work on a cluster, each job in a process of its own: runs of recipes, workers of a search."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tfm.pipeline.cluster.mailbox import POLL_INTERVAL_SECONDS, Mailbox, MailboxReplay, forward_events
from tfm.pipeline.cluster.node_packages import require_same_packages
from tfm.pipeline.cluster.session import MAX_RETRIES, ClusterSession
from tfm.pipeline.cluster.shared_folder import change_to_shared_folder
from tfm.pipeline.errors import RecipeError, StoppedError, TfmError, format_count
from tfm.pipeline.runtime.progress import Reporter
from tfm.pipeline.runtime.stop_signal import catch_stop_signals

JobFunction = Callable[..., object]
"""work(reporter=...): a job, which travels by pickle; what the reporter is told, the process hears that was
started."""


def num_threads() -> int:
    """The number of threads of a process on a node: OMP_NUM_THREADS, as torchrun has it; 1 if it is not set.

    Raises:
        RecipeError: OMP_NUM_THREADS is no number.
    """
    text = os.environ.get("OMP_NUM_THREADS", "1")
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        raise RecipeError(f"OMP_NUM_THREADS={text:.20} is no number of threads from 1 on: set it to one, as to 1")
    return int(text)


@dataclass(frozen=True)
class ProcessResources:
    """The processors and GPUs of a node that a process takes."""

    num_cpus: int
    num_gpus: float

    def num_processes_on_node(self, resources: Mapping[str, float]) -> int:
        """Return how many such processes a node has room for."""
        rooms = [int(resources.get("CPU", 0) // self.num_cpus)]
        return min([*rooms, *([int(resources.get("GPU", 0) // self.num_gpus)] if self.num_gpus else [])])


def choose_resources(cluster: ClusterSession, device: str) -> ProcessResources:
    """Return what a training on a device takes: `num_threads()` processors; a GPU, if it is asked for or there.

    Raises:
        RecipeError: no node has so much.
    """
    nodes = [each["Resources"] for each in cluster.ray.nodes() if each["Alive"]]
    has_gpu = any(each.get("GPU", 0) for each in nodes)
    resources = ProcessResources(num_threads(), float(device == "cuda" or (device == "auto" and has_gpu)))
    if not any(resources.num_processes_on_node(each) for each in nodes):
        description = format_count(resources.num_cpus, "processor") + (" and a GPU" if resources.num_gpus else "")
        remedy = "start a larger node, or set OMP_NUM_THREADS to fewer threads"
        raise RecipeError(f"--cluster: no node has {description} for one process; {remedy}")
    return resources


def max_processes(cluster: ClusterSession, resources: ProcessResources) -> int:
    """Return how many processes all nodes have room for."""
    return sum(resources.num_processes_on_node(each["Resources"]) for each in cluster.ray.nodes() if each["Alive"])


@contextmanager
def open_mailbox(cluster: ClusterSession) -> Iterator[Any]:
    """Start the actor of a mailbox on the node of this process, for the time of the block."""
    node_id = cluster.ray.get_runtime_context().get_node_id()
    near = cluster.ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node_id, soft=False)
    mailbox = cluster.ray.remote(num_cpus=0, scheduling_strategy=near)(Mailbox).remote()
    try:
        yield mailbox
    finally:
        cluster.ray.kill(mailbox)


def run_jobs(
    cluster: ClusterSession,
    jobs: Mapping[str, JobFunction],
    process_resources: ProcessResources,
    *,
    reporter: Reporter,
    keep_going: bool = False,
    on_poll: Callable[[list[str]], None] = lambda running: None,
) -> dict[str, Exception]:
    """Run jobs side by side, as many as there is room for. One that loses its process or node begins again.

    Args:
        cluster: the cluster.
        jobs: by name.
        process_resources: what each takes.
        reporter: receives the lines of all, which begin with the name of the job.
        keep_going: whether the others go on after an error; else they are asked to stop.
        on_poll: called with the names of the jobs that are not done, now and then.

    Returns:
        The errors, by the name of the job that had them.

    Raises:
        StoppedError: on SIGTERM, Ctrl-C or SIGHUP, after all jobs have stopped.
    """
    task = cluster.ray.remote(
        num_cpus=process_resources.num_cpus, num_gpus=process_resources.num_gpus, max_retries=MAX_RETRIES, max_calls=1
    )(require_same_packages(_run_job))
    replay, errors = MailboxReplay(reporter, labelled=True), dict[str, Exception]()
    with open_mailbox(cluster) as mailbox, catch_stop_signals() as stop:
        working_folder = str(Path.cwd())
        running = {task.remote(mailbox, name, working_folder, work): name for name, work in jobs.items()}
        while running:
            references, _ = cluster.ray.wait(list(running), num_returns=1, timeout=POLL_INTERVAL_SECONDS)
            replay.replay_events(cluster.result(mailbox.take.remote()))
            for reference in references:
                name = running.pop(reference)
                try:
                    cluster.result(reference)
                except (TfmError, OSError) as error:
                    errors[name] = error
            if stop or (errors and not keep_going):
                started_names = cluster.result(mailbox.ask_to_stop.remote(stop.signal or "SIGTERM"))
                for reference in [reference for reference, name in running.items() if name not in started_names]:
                    cluster.ray.cancel(reference, force=True)  # else a process is started for each to say that it ends
                    errors[running.pop(reference)] = StoppedError("stopped before it began; the same command goes on")
            on_poll(list(running.values()))
        replay.replay_events(cluster.result(mailbox.take.remote()))
    if stop:
        raise StoppedError("stopped; the same command goes on")
    return errors


def _run_job(mailbox: Any, name: str, folder: str, work: JobFunction) -> None:
    """Run a job, on a node, in the folder of the process that was started."""
    with change_to_shared_folder(folder), forward_events(mailbox, name) as reporter:
        work(reporter=reporter)
