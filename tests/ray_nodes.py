"""Clusters of Ray on this machine for tests: each in a process of its own, its nodes and workers killed as asked.

As a module, it is that process: `add`, `remove` and the end of its standard input are its commands.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import cluster_driver
from tfm.pipeline.cleaning import cluster_measurement
from tfm.pipeline.cluster import encoding, processes, translation

ROOT = Path(__file__).parents[1]
NODE_MEMORY_BYTES = 200_000_000
PATIENCE_MS = 200_000
TASKS = (
    *(cluster_driver.compute, encoding.encode_columns, translation.translate_chunk),
    *(cluster_measurement.measure_on_node, processes._run_job),
)
TITLES = (*(f"ray::{task.__name__}" for task in TASKS), "ray::RayTrainWorker")
"""How the title of a process begins that computes a chunk, or is a run or a rank; Ray's agents are ray:: too."""


class Nodes:
    """A cluster that runs, with nodes of one processor each."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self.address = self._answer()

    def add(self) -> None:
        """Start a further node."""
        self._command("add")

    def remove(self) -> None:
        """Kill the node that was added last, with all its processes."""
        self._command("remove")

    def kill_worker(self) -> bool:
        """Kill -9 one process that computes; False if none does."""
        busy = [each for each in _descendants(self._process.pid) if _title(each).startswith(TITLES)]
        for each in busy[:1]:
            os.kill(each, signal.SIGKILL)
        return bool(busy)

    def _command(self, word: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(word + "\n")
        self._process.stdin.flush()
        self._answer()

    def _answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


@contextmanager
def ray_nodes(number: int) -> Iterator[Nodes]:
    """Start a cluster for the time of the block; the test is skipped where Ray is not installed."""
    pytest.importorskip("ray", reason="needs the extra cluster")
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "RAY_USAGE_STATS_ENABLED": "0"}
    command = [sys.executable, "-m", "tests.ray_nodes"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, cwd=ROOT, env=environment, text=True, **pipes) as process:  # type: ignore[call-overload]
        try:
            nodes = Nodes(process)
            assert nodes.address
            for _ in range(number - 1):
                nodes.add()
            yield nodes
        finally:
            process.stdin.close()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()


def _descendants(pid: int) -> list[int]:
    """All processes that a process started, and those that they did."""
    parents = {}
    for each in Path("/proc").iterdir():
        if each.name.isdecimal():
            try:
                parents[int(each.name)] = int((each / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    found = [pid]
    for each in found:
        found += [child for child, parent in parents.items() if parent == each]
    return found[1:]


def _title(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def _serve() -> None:
    from ray.cluster_utils import Cluster

    settings = {"num_cpus": 1, "object_store_memory": NODE_MEMORY_BYTES, "include_dashboard": False}
    # a machine with much to do may stop a node for a while, which then counts as dead
    patient = {"_system_config": {"health_check_timeout_ms": PATIENCE_MS}}
    cluster = Cluster(initialize_head=True, head_node_args=settings | patient)
    added = []
    print(cluster.address, flush=True)
    del settings["include_dashboard"]
    for line in sys.stdin:
        if line.strip() == "add":
            added.append(cluster.add_node(**settings))
        else:
            cluster.remove_node(added.pop(), allow_graceful=False)
        print("done", flush=True)
        time.sleep(0)
    cluster.shutdown()


if __name__ == "__main__":
    _serve()
