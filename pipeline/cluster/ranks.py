"""The ranks of one training on a cluster, started by Ray Train with PyTorch's process group.

A rank or node that is lost ends the others; Ray Train starts all of them again, and they go on from the newest
checkpoint, as torchrun's do when the same command is given again.
"""

import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tfm.pipeline.cluster.mailbox import POLL_INTERVAL_SECONDS, MailboxReplay, forward_events
from tfm.pipeline.cluster.node_packages import check_same_packages, import_problem, installed_packages
from tfm.pipeline.cluster.processes import JobFunction, ProcessResources, choose_resources, max_processes, open_mailbox
from tfm.pipeline.cluster.session import ClusterSession
from tfm.pipeline.cluster.shared_folder import change_to_shared_folder
from tfm.pipeline.errors import RecipeError, StoppedError
from tfm.pipeline.runtime.progress import Reporter
from tfm.pipeline.runtime.stop_signal import StopRequest, catch_stop_signals

SILENT_SECONDS = 5.0
"""How long a wait for room is not told: a cluster that has just begun does not know all of its nodes."""
ERROR_EVENT = "error"
"""The name of an event that ends a training: its argument is the error of a rank."""


def train_on_ranks(
    cluster: ClusterSession, work: JobFunction, num_ranks: int, device: str, restarts: int, reporter: Reporter
) -> None:
    """Train by several processes, and wait for their end.

    Args:
        cluster: the cluster.
        work: what each rank does; RANK, WORLD_SIZE and LOCAL_RANK are set, and the process group is joined.
        num_ranks: the number of processes.
        device: name of the device.
        restarts: how often all ranks start again after one was lost.
        reporter: receives messages.

    Raises:
        RecipeError: a node cannot load what a rank calls.
        StoppedError: on SIGTERM, Ctrl-C or SIGHUP, after all is saved; or ranks were lost more often than `restarts`.
        Exception: the error of a rank.
    """
    resources = choose_resources(cluster, device)
    replay = MailboxReplay(reporter, labelled=False)
    with open_mailbox(cluster) as mailbox, catch_stop_signals() as stop, _temporary_storage() as storage:
        cluster.result(mailbox.take.remote())  # a node that cannot is refused before Ray Train tries, again and again
        wait_for_room(cluster, resources, num_ranks, stop, reporter)
        trainer = _make_trainer(mailbox, work, num_ranks, resources, restarts, storage)
        fit = _FitThread(trainer)
        fit.start()
        errors: list[tuple[int, Exception]] = []
        is_alive = True
        while is_alive:
            fit.join(POLL_INTERVAL_SECONDS)
            is_alive = fit.is_alive()
            events = cluster.result(mailbox.take.remote())
            errors += [(int(sender), event[1][0]) for sender, event in events if event[0] == ERROR_EVENT]
            replay.replay_events([each for each in events if each[1][0] != ERROR_EVENT])
            if stop:
                cluster.result(mailbox.ask_to_stop.remote(stop.signal))
        replay.close()
    if stop:
        raise StoppedError("stopped; the same command resumes it")
    if errors:
        raise min(errors, key=lambda each: each[0])[1]
    if fit.error is not None and (problem := import_problem(fit.error)) is not None:
        raise RecipeError(problem) from None
    if fit.error is not None:
        raise StoppedError(
            f"the training lost a process or a node more than {restarts} times (training.restarts); the same command "
            f"resumes it ({' '.join(str(fit.error).split()):.200})"
        ) from fit.error


def wait_for_room(
    cluster: ClusterSession, resources: ProcessResources, num_ranks: int, stop: StopRequest, reporter: Reporter
) -> None:
    """Wait until the cluster has room for all ranks: Ray Train would too, and would not hear of a wish to stop.

    Args:
        cluster: the cluster.
        resources: what a rank takes.
        num_ranks: the number of ranks.
        stop: asks to stop.
        reporter: is told that there is no room yet.

    Raises:
        StoppedError: a stop is asked for.
    """
    is_told, start = False, time.monotonic()
    while (problem := _room_problem(cluster, resources, num_ranks)) is not None:
        if not is_told and time.monotonic() - start >= SILENT_SECONDS:
            reporter.warn(problem)
            is_told = True
        if stop:
            raise StoppedError("stopped while it waited for room on the cluster; the same command goes on")
        time.sleep(POLL_INTERVAL_SECONDS)


def _room_problem(cluster: ClusterSession, resources: ProcessResources, num_ranks: int) -> str | None:
    if (room := max_processes(cluster, resources)) < num_ranks:
        return f"the cluster has room for {room} of {num_ranks} processes: waiting for further nodes"
    if (room := resources.num_processes_on_node(cluster.ray.available_resources())) < num_ranks:
        return f"the cluster has room for {room} of {num_ranks} processes now: waiting for other work on it to end"
    return None


class _FitThread(threading.Thread):
    """`fit` of a trainer beside this thread, which shows progress; error: what it raised."""

    def __init__(self, trainer: Any) -> None:
        super().__init__(daemon=True)
        self._trainer = trainer
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            self._trainer.fit()
        except Exception as error:  # Ray Train raises one class for all
            self.error = error


@contextmanager
def _temporary_storage() -> Iterator[str]:
    """A folder for what Ray Train writes about a training, none of which is needed afterwards."""
    folder = tempfile.mkdtemp(prefix="tfm-ray-")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _make_trainer(
    mailbox: Any, work: JobFunction, num_ranks: int, process_resources: ProcessResources, restarts: int, storage: str
) -> Any:
    from ray import train
    from ray.train.torch import TorchConfig, TorchTrainer

    resources: dict[str, float] = {"CPU": process_resources.num_cpus} | (
        {"GPU": process_resources.num_gpus} if process_resources.num_gpus else {}
    )
    return TorchTrainer(
        _run_rank,
        train_loop_config={
            "mailbox": mailbox,
            "work": work,
            "folder": str(Path.cwd()),
            "packages": installed_packages(),
        },
        torch_config=TorchConfig(backend="nccl" if process_resources.num_gpus else "gloo"),
        scaling_config=train.ScalingConfig(
            num_workers=num_ranks, use_gpu=bool(process_resources.num_gpus), resources_per_worker=resources
        ),
        run_config=train.RunConfig(
            name="training",
            storage_path=storage,
            failure_config=train.FailureConfig(max_failures=restarts),
        ),
    )


def _run_rank(config: dict[str, Any]) -> None:
    """Do the work of one rank. Its errors go to the mailbox, as Ray Train would start all ranks again after one.

    A lost peer raises StoppedError in a rank that was not asked to stop: that one is Ray Train's business.
    """
    rank = os.environ["RANK"]
    with forward_events(config["mailbox"], rank) as reporter:
        try:
            check_same_packages(config["packages"])
            with change_to_shared_folder(config["folder"]):
                config["work"](reporter=reporter)
        except Exception as error:
            is_lost_peer = isinstance(error, StoppedError) and reporter.stop is None
            if is_lost_peer:
                raise
            reporter.record_event(ERROR_EVENT, error)
